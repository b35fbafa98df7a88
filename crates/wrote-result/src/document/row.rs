//! A row: one method of reading or writing, its runs and figures, and the view that shows it.

use super::{
    CrashLeaves, Direction, Flush, Interval, Latency, Process, SettingsPair, Spread, Survives,
    SurvivesWord, Sustained, Torn,
};
use crate::stats::{ROUGH_WIDTH, distinguishable, interval, median, relative_width};
use crate::units::{rounded, significant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{As, DisplayFromStr, skip_serializing_none};
use std::ops::Add;
use std::time::Duration;

/// A method of reading or writing, measured several times.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Row {
    /// The name of the row, which is unique in the result: `stream/direct-io_uring`.
    pub name: String,
    /// The group of rows that are compared with each other: `stream` or `small`; for jobs, the jobs
    /// that ran at the same time: `group 0`.
    pub workload: String,
    /// The method of writing or reading, in words.
    pub way: String,
    /// The kind of measurement, which decides how the row is shown. Absent in older results.
    pub view: Option<View>,
    /// The cell of the row in the grid of its workload, if the rows form one.
    pub cell: Option<Cell>,
    /// The direction of the row's bytes. A document without this key is older than the first reads.
    #[serde(default)]
    pub direction: Direction,
    /// The worst event that an acknowledged write survives: `nothing`, `process-crash`, `os-crash`,
    /// `power-loss`. Absent for reads.
    #[serde(default, with = "As::<Option<DisplayFromStr>>")]
    #[schemars(with = "Option<SurvivesWord>")]
    pub survives: Option<Survives>,
    /// The number of file bytes that each run transferred; the median, if runs are limited by time.
    pub bytes_per_run: u64,
    /// The state of the file after a crash in the middle of a save, if whole files are saved:
    /// `old-or-new`, `torn` (some of both texts), `empty` (or a part of the new text),
    /// `old-and-part` (all of the old text, and a part of the appended one).
    pub crash_leaves: Option<CrashLeaves>,
    /// Whether a power loss may leave a page that is partly written, if pages of a database are
    /// written: `possible` or `never`.
    pub torn: Option<Torn>,
    /// The requested settings, the settings in effect, and the reason for each difference.
    pub settings: SettingsPair,
    /// The runs, in order.
    pub runs: Vec<Run>,
    /// The file bytes per second, over the runs.
    pub throughput_bytes_per_s: Interval,
    /// The latency of one write or read, over all runs; absent if operations were not timed.
    pub latency_ns: Option<Latency>,
    /// The histogram of these latencies, in nanoseconds: Base64 of HdrHistogram's payload "V2
    /// deflate", which HdrHistogram's tools can read. Absent in results that are older than this
    /// key.
    pub latency_histogram_ns: Option<String>,
    /// The latency of one flush, over all runs, for jobs that flush between writes or at the end.
    pub flush_latency_ns: Option<Latency>,
    /// The time from the start of a write to the end of the flush that covers it, over all runs, if
    /// flushes occur between writes.
    pub durable_latency_ns: Option<Latency>,
    /// The histogram of these times, in the format of the histogram of latencies.
    pub durable_histogram_ns: Option<String>,
    /// The throughput over time, in the scenario `sustained`.
    pub sustained: Option<Sustained>,
}

/// One run of one row.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Run {
    /// The number of file bytes written or read.
    pub bytes: u64,
    /// The time from the first operation to the last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// `bytes / elapsed_s`.
    pub throughput_bytes_per_s: f64,
    /// The operations per second.
    pub iops: f64,
    /// The CPU seconds in user space: of the whole process, or of a job's threads. A job that both
    /// reads and writes divides its CPU seconds between its two rows by their operations.
    pub cpu_user_s: f64,
    /// The CPU seconds in the kernel, of the same threads.
    pub cpu_system_s: f64,
    /// The number of voluntary and involuntary context switches.
    pub context_switches: u64,
    /// The number of bytes that all processes together wrote to the block device during the run.
    pub device_written_bytes: Option<u64>,
    /// The number of write requests and flushes of all processes that the block device completed
    /// during the run.
    pub device_writes: Option<u64>,
    /// The number of bytes that all processes together read from the block device during the run.
    pub device_read_bytes: Option<u64>,
    /// The share of the device and the CPUs that other programs used, from 0 to 1, according to the
    /// samples before and after the run. It is the largest of three figures: the part of the time
    /// in which their requests were in the device's queue, their share of all writes, and the part
    /// of the time in which they waited for a CPU. For a run that flushes each write, it is the
    /// share of the device's bytes that the run's flushes can't have written.
    pub foreign_share: Option<f64>,
    /// The peak resident memory, in bytes: of the run for whole files, otherwise of the process
    /// until then; in `serve`, of the server's process. Absent if the kernel cannot reset the peak.
    pub max_rss_bytes: Option<u64>,
    /// The maximum number of operations in flight.
    pub iodepth_reached: u32,
    /// The messages of a run that appends, read back from the file after the clock stopped.
    pub records: Option<Records>,
    /// The latency of one write or read of this run.
    pub latency_ns: Option<Latency>,
    /// The latency of one flush of this run.
    pub flush_latency_ns: Option<Latency>,
    /// The time from the start of a write of this run until it was durable.
    pub durable_latency_ns: Option<Latency>,
    /// With a rate, the delay from the time at which an operation was due, or at which the queue
    /// had space for it, to its start. The measuring program itself adds this delay to the
    /// latencies.
    pub issue_delay_ns: Option<Latency>,
    /// The busiest CPU, including the work of all processes.
    pub cpu_busiest: Option<CpuBusy>,
    /// The time in which threads of this process were ready to run but had no CPU, in seconds:
    /// other threads used it, or a control group withheld it.
    pub cpu_waited_s: Option<f64>,
    /// For a run that bypasses the page cache, the number of bytes of its files that the page cache
    /// held at the end of the run and may not have held before it. 0, or little, if the bypass
    /// works.
    pub page_cache_bytes: Option<u64>,
    /// The number of bytes to read that were never written.
    pub unwritten_bytes: Option<u64>,
    /// The number of bytes of the files to read that the page cache held when the clock started,
    /// for jobs that read through it.
    pub cached_before_bytes: Option<u64>,
    /// The spread of the ranks, if several ranks ran together.
    pub ranks: Option<Spread>,
}

/// The load of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CpuBusy {
    /// The number of the CPU.
    pub cpu: u32,
    /// The part of the time in which the CPU was neither idle nor waiting for I/O, from 0 to 1.
    pub busy_share: f64,
}

/// The messages of a run, as found in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Records {
    /// The number of messages that producers submitted.
    pub sent: u64,
    /// The number of intact messages found.
    pub whole: u64,
    /// The number of missing messages.
    pub lost: u64,
    /// The number of stretches of the file whose bytes are not an intact message.
    pub torn: u64,
    /// The number of intact messages that were found again.
    pub doubled: u64,
    /// The number of messages that follow one which the same producer submitted later. If each
    /// message has a task, the producer is the thread that creates the tasks.
    pub out_of_order: u64,
}

impl Records {
    /// Returns whether the file contains every message intact and once, in any order, and nothing
    /// else.
    pub fn are_whole(&self) -> bool {
        self.whole == self.sent && self.torn == 0 && self.doubled == 0
    }
}

impl Add for Records {
    type Output = Records;

    fn add(self, other: Records) -> Records {
        Records {
            sent: self.sent + other.sent,
            whole: self.whole + other.whole,
            lost: self.lost + other.lost,
            torn: self.torn + other.torn,
            doubled: self.doubled + other.doubled,
            out_of_order: self.out_of_order + other.out_of_order,
        }
    }
}

/// The share above which other programs disturb a run.
const FOREIGN_SHARE_MAX: f64 = 0.1;

impl Run {
    /// Returns whether other programs used the disk or the CPUs so much that they disturbed the
    /// run.
    pub fn is_disturbed(&self) -> bool {
        self.foreign_share.is_some_and(|share| share > FOREIGN_SHARE_MAX)
    }
}

impl Row {
    /// Returns the view. A row of an older result gets its view when the document is read.
    pub fn view(&self) -> View {
        self.view.unwrap_or_default()
    }

    /// Returns the row with its first run.
    pub fn with_run(self, run: Run) -> Row {
        Row {
            bytes_per_run: run.bytes,
            throughput_bytes_per_s: interval(&[run.throughput_bytes_per_s]),
            latency_ns: run.latency_ns,
            flush_latency_ns: run.flush_latency_ns,
            durable_latency_ns: run.durable_latency_ns,
            runs: vec![run],
            ..self
        }
    }

    /// Returns the latency to show for the row: of an operation, or of a durable write if flushes
    /// occur between writes (M11); `None` if a single flush at the end makes all writes durable. A
    /// result of fio lacks the durable time, so the latency of the flush alone is returned.
    pub fn latency(&self) -> Option<&Latency> {
        let flush = || self.flush_latency_ns.as_ref();
        match self.settings.effective.sync {
            _ if self.durable_latency_ns.is_some() => self.durable_latency_ns.as_ref(),
            Flush::FdatasyncAtEnd | Flush::FsyncAtEnd if flush().is_some() => None,
            sync if sync.is_between() => flush().or(self.latency_ns.as_ref()),
            _ => self.latency_ns.as_ref(),
        }
    }

    /// Returns the histogram of [`Row::latency`], if the document contains it.
    pub fn histogram_ns(&self) -> Option<&str> {
        match self.latency() {
            None => None,
            latency if latency == self.durable_latency_ns.as_ref() => {
                self.durable_histogram_ns.as_deref()
            }
            latency if latency == self.latency_ns.as_ref() => self.latency_histogram_ns.as_deref(),
            _ => None,
        }
    }

    /// Returns whether the file contained every message intact and once, and nothing else, in all
    /// runs that were read back.
    pub fn has_all_records(&self) -> bool {
        self.runs.iter().filter_map(|run| run.records).all(|records| records.are_whole())
    }

    /// Returns whether the operations began at a rate. The latency of each operation is then
    /// counted from the time at which it was due (M5).
    pub fn is_open_loop(&self) -> bool {
        let asked = &self.settings.asked;
        asked.rate_iops.is_some() || asked.rate_bytes_per_s.is_some()
    }

    /// Returns the name of the row without the name of its workload: `cached-fdatasync-at-end`. A
    /// number alone is not a name, so `rand/read/16` is returned in full.
    pub fn short_name(&self) -> &str {
        let rest = self.name.strip_prefix(&self.workload).and_then(|rest| rest.strip_prefix('/'));
        rest.filter(|rest| !rest.bytes().all(|of| of.is_ascii_digit())).unwrap_or(&self.name)
    }

    /// Returns whether the operations are at random offsets.
    pub fn is_random(&self) -> bool {
        self.settings.effective.rw.starts_with("rand")
    }

    /// Returns whether the data is random and the writes survive a power loss.
    pub fn is_durable(&self) -> bool {
        self.survives == Some(Survives::PowerLoss) && self.settings.effective.data.is_none()
    }

    /// Returns whether the row and `other` have no measurable difference; false if either has a
    /// single run, whose variation is unknown.
    pub fn is_tied_with(&self, other: &Row) -> bool {
        let (one, other_interval) = (&self.throughput_bytes_per_s, &other.throughput_bytes_per_s);
        self.runs.len() >= 2 && other.runs.len() >= 2 && !distinguishable(one, other_interval)
    }

    /// Returns whether the runs differ so much that the throughput is rough.
    pub fn is_rough(&self) -> bool {
        relative_width(&self.throughput_bytes_per_s) > ROUGH_WIDTH
    }

    /// Returns how many times as fast as `other` the row is: `1.74`, or `about 2` if a throughput
    /// is rough.
    pub fn times(&self, other: &Row) -> String {
        let times = self.throughput() / other.throughput();
        match (self.is_rough() || other.is_rough(), times) {
            (false, _) => significant(times),
            (true, times) if times < 1.95 => format!("about {times:.1}"),
            (true, times) => format!("about {:.0}", rounded(times, 1)),
        }
    }

    /// Returns the throughput in bytes per second: the median over the runs.
    pub fn throughput(&self) -> f64 {
        self.throughput_bytes_per_s.median
    }

    /// Returns the operations per second: the median over the runs.
    pub fn iops(&self) -> f64 {
        self.median_of(|run| Some(run.iops))
    }

    /// Returns the CPU seconds, user and kernel, per gigabyte (10^9 bytes): the median over the
    /// runs.
    pub fn cpu_s_per_gb(&self) -> f64 {
        let cost = |run: &Run| run.cpu_s() / (run.bytes as f64 / 1e9);
        self.median_of(|run| (run.bytes > 0).then(|| cost(run)))
    }

    /// Returns the CPU seconds, user and kernel, per operation: the median over the runs.
    pub fn cpu_s_per_operation(&self) -> f64 {
        let cost = |run: &Run| run.cpu_s() / (run.iops * run.elapsed_s);
        self.median_of(|run| (run.iops > 0.0).then(|| cost(run)))
    }

    /// Returns the median of a figure over the runs that have it; 0 if no run has it.
    pub fn median_of(&self, figure: impl Fn(&Run) -> Option<f64>) -> f64 {
        median(&self.runs.iter().filter_map(figure).collect::<Vec<f64>>())
    }
}

impl Run {
    fn cpu_s(&self) -> f64 {
        self.cpu_user_s + self.cpu_system_s
    }
}

/// Returns the row with the highest throughput; of equal rows, the first. `None` if there are no
/// rows.
pub fn fastest<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.reduce(|best, row| if row.throughput() > best.throughput() { row } else { best })
}

/// The kind of measurement of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// Operations, which were timed one by one or at least counted.
    #[default]
    Operations,
    /// Whole files, whose single operations were not timed.
    Files,
    /// Messages that were appended.
    Messages,
    /// Saves of a small text, again and again.
    Saves,
    /// Operations at rising shares of the load that a closed loop reaches.
    Curve,
    /// One long stream.
    Long,
    /// Operations on names and small files.
    Metadata,
}

/// The position of a row in a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Cell {
    /// The title of the lines: `BS x IODEPTH`.
    pub title: String,
    /// The line: `512 KiB x 64`.
    pub side: String,
    /// The column: `registered`.
    pub head: String,
}

/// The minimum share of the requested rate for the rate to be reached.
const REACHED_SHARE_MIN: f64 = 0.95;

/// The requested rate of a row, and the rate that it reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// The requested operations or bytes per second, over all jobs of a run.
    pub asked_per_s: f64,
    /// The achieved operations or bytes per second, over the examined runs.
    pub achieved_per_s: f64,
    /// Whether both are rates of operations, and not of bytes.
    pub is_of_operations: bool,
    /// Whether at least 95 % was reached, or as much as chance allows under random arrivals. At a
    /// rate that is not reached, latencies grow with the length of the run.
    pub is_reached: bool,
}

impl Reached {
    /// Returns the rates over all runs of a row; `None` if no rate was requested.
    pub fn of(row: &Row) -> Option<Reached> {
        Reached::within(row, Duration::ZERO)
    }

    /// Like [`Reached::of`], but only over the runs that took at least `elapsed_min`. `None` also
    /// if there are no such runs.
    pub fn within(row: &Row, elapsed_min: Duration) -> Option<Reached> {
        let asked = &row.settings.asked;
        let jobs = f64::from(asked.numjobs.max(1));
        let (asked_per_s, is_of_operations) = match (asked.rate_iops, asked.rate_bytes_per_s) {
            (Some(operations), _) => (operations * jobs, true),
            (None, Some(bytes)) => (bytes * jobs, false),
            (None, None) => return None,
        };
        let runs = row.runs.iter().filter(|run| run.elapsed_s >= elapsed_min.as_secs_f64());
        let (mut elapsed_s, mut operations, mut bytes) = (0.0, 0.0, 0.0);
        for run in runs {
            elapsed_s += run.elapsed_s;
            operations += run.iops * run.elapsed_s;
            bytes += run.bytes as f64;
        }
        if elapsed_s <= 0.0 {
            return None;
        }
        let achieved_per_s = if is_of_operations { operations } else { bytes } / elapsed_s;
        // Three standard deviations of the number of arrivals in a Poisson process.
        let is_random = asked.rate_process == Some(Process::Poisson);
        let chance = if is_random { 3.0 / operations.max(1.0).sqrt() } else { 0.0 };
        let share = achieved_per_s / asked_per_s;
        let is_reached = share >= REACHED_SHARE_MIN.min(1.0 - chance);
        Some(Reached { asked_per_s, achieved_per_s, is_of_operations, is_reached })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_of_a_row_is_the_time_until_a_write_is_durable() {
        // M11
        let latency = |p99: u64| Some(Latency { p99, count: 100, ..Latency::default() });
        let p99 = |sync: Flush, flush: Option<Latency>, durable: Option<Latency>| {
            let mut row = crate::sample::row("group/job", "power-loss", &[1e9]);
            row.settings.effective.sync = sync;
            row.latency_ns = latency(10);
            (row.flush_latency_ns, row.durable_latency_ns) = (flush, durable);
            row.latency().map(|of| of.p99)
        };
        for (sync, expected) in [
            (Flush::None, [Some(10), Some(10)]),
            (Flush::ODsyncEach, [Some(10), Some(10)]),
            // A result that is older than the latencies of flushes has only the latencies of the
            // writes.
            (Flush::FdatasyncAtEnd, [Some(10), None]),
            (Flush::FsyncAtEnd, [Some(10), None]),
            (Flush::FdatasyncEach, [Some(10), Some(300)]),
            (Flush::FsyncEvery(8), [Some(10), Some(300)]),
        ] {
            let found = [p99(sync, None, None), p99(sync, latency(300), None)];
            assert_eq!(found, expected, "{sync}");
            assert_eq!(p99(sync, latency(300), latency(310)), Some(310), "{sync}");
        }
    }
}
