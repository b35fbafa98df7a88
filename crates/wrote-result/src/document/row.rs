//! A row: one way of reading or writing, its runs and figures, and the view that shows it.

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

/// One way of reading or writing, measured several times.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Row {
    /// Its name, unique in the result: `stream/direct-io_uring`.
    pub name: String,
    /// The group in which it is compared: `stream` or `small`; of jobs, the jobs that ran at once:
    /// `group 0`.
    pub workload: String,
    /// The way of writing or reading, in words.
    pub way: String,
    /// The kind of its measurement, which decides how the row is shown. Older results have none.
    pub view: Option<View>,
    /// The row's place in the grid of its workload, where that is one.
    pub cell: Option<Cell>,
    /// The direction of the row's bytes. A document without this key is older than the first reads.
    #[serde(default)]
    pub direction: Direction,
    /// The worst event that an acknowledged write survives: `nothing`, `process-crash`, `os-crash`,
    /// `power-loss`. Reads have none.
    #[serde(default, with = "As::<Option<DisplayFromStr>>")]
    #[schemars(with = "Option<SurvivesWord>")]
    pub survives: Option<Survives>,
    /// File bytes transferred by each run (the median, where runs are bounded by time).
    pub bytes_per_run: u64,
    /// The state of the file after a crash in the middle of a save, where whole files are saved:
    /// `old-or-new`, `torn` (some of both), `empty` (or a part of the new), `old-and-part` (all of
    /// the old, and a part of the appended).
    pub crash_leaves: Option<CrashLeaves>,
    /// Whether a power loss may leave a part of a page, where pages of a database are written:
    /// `possible` or `never`.
    pub torn: Option<Torn>,
    /// The requested settings, those in effect, and the reason for each difference.
    pub settings: SettingsPair,
    /// Each run, in order.
    pub runs: Vec<Run>,
    /// File bytes per second, over the runs.
    pub throughput_bytes_per_s: Interval,
    /// The latency of one write or read, over all runs; absent where operations were not timed.
    pub latency_ns: Option<Latency>,
    /// The histogram of these latencies, in nanoseconds: Base64 of HdrHistogram's payload "V2
    /// deflate", which its own tools read. Results from before this key have none.
    pub latency_histogram_ns: Option<String>,
    /// The latency of one flush, over all runs, of jobs that flush between writes or at the end.
    pub flush_latency_ns: Option<Latency>,
    /// The time from the start of a write to the end of the flush that covers it, over all runs,
    /// where flushes come between writes.
    pub durable_latency_ns: Option<Latency>,
    /// The histogram of these times, as of the latencies.
    pub durable_histogram_ns: Option<String>,
    /// The throughput over time, in the scenario `sustained`.
    pub sustained: Option<Sustained>,
}

/// One run of one row.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Run {
    /// File bytes written or read.
    pub bytes: u64,
    /// From the first operation to the last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// `bytes / elapsed_s`.
    pub throughput_bytes_per_s: f64,
    /// Operations per second.
    pub iops: f64,
    /// CPU seconds in user space: of the whole process, or of a job's threads. A job that both
    /// reads and writes divides its CPU seconds between its two rows by their operations.
    pub cpu_user_s: f64,
    /// CPU seconds in the kernel, of the same threads.
    pub cpu_system_s: f64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Bytes that any process wrote to the block device in the run.
    pub device_written_bytes: Option<u64>,
    /// Write requests and flushes of any process that the block device completed in the run.
    pub device_writes: Option<u64>,
    /// Bytes that any process read from the block device in the run.
    pub device_read_bytes: Option<u64>,
    /// Other programs' part of the device and of the CPUs in the samples before and after the run,
    /// from 0 to 1: the time in which their requests were in the device's queue, their writes of
    /// all writes, or the time in which they waited for a CPU, whichever is most; or, of a run that
    /// flushes each write, the device's bytes that its own flushes can't have written.
    pub foreign_share: Option<f64>,
    /// Peak resident memory, in bytes: for whole files in the run, else in the process until then;
    /// in `serve` of the server's process. None if the kernel cannot reset the peak.
    pub max_rss_bytes: Option<u64>,
    /// The largest number of operations in flight.
    pub iodepth_reached: u32,
    /// The appended messages that the file holds, read back after the clock.
    pub records: Option<Records>,
    /// The latency of one write or read of this run.
    pub latency_ns: Option<Latency>,
    /// The latency of one flush of this run.
    pub flush_latency_ns: Option<Latency>,
    /// The time of a write until it was durable, of this run.
    pub durable_latency_ns: Option<Latency>,
    /// With a rate: the delay from when an operation was due, or had room, to its start. It is the
    /// measuring program's own part of the latencies.
    pub issue_delay_ns: Option<Latency>,
    /// The busiest CPU, with the work of all processes.
    pub cpu_busiest: Option<CpuBusy>,
    /// Seconds in which threads of this process were ready to run without a CPU: other threads had
    /// it, or a control group withheld it.
    pub cpu_waited_s: Option<f64>,
    /// Bytes of the run's files that the page cache held at its end and need not have held from
    /// before, of runs that bypass it: 0 or little where the bypass works.
    pub page_cache_bytes: Option<u64>,
    /// Bytes to read that were never written.
    pub unwritten_bytes: Option<u64>,
    /// Bytes of the files to read that the page cache held when the clock started, of jobs that
    /// read through it.
    pub cached_before_bytes: Option<u64>,
    /// The spread of the ranks, in runs by several.
    pub ranks: Option<Spread>,
}

/// The load of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CpuBusy {
    /// Its number.
    pub cpu: u32,
    /// The part of the time in which it was neither idle nor waiting for I/O, from 0 to 1.
    pub busy_share: f64,
}

/// The messages of a run, as the file holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Records {
    /// Messages that producers submitted.
    pub sent: u64,
    /// Whole messages found.
    pub whole: u64,
    /// Messages that are missing.
    pub lost: u64,
    /// Places in the file with bytes that are not a whole message.
    pub torn: u64,
    /// Whole messages found again.
    pub doubled: u64,
    /// Messages after one that the same producer submitted later. Where every message has its own
    /// task, the producer is the thread that makes the tasks.
    pub out_of_order: u64,
}

impl Records {
    /// Returns whether the file has every message once, in any order, and nothing else.
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

/// Other programs disturb a run above this share.
const FOREIGN_SHARE_MAX: f64 = 0.1;

impl Run {
    /// Returns whether other programs used the disk during the run.
    pub fn is_disturbed(&self) -> bool {
        self.foreign_share.is_some_and(|share| share > FOREIGN_SHARE_MAX)
    }
}

impl Row {
    /// Returns the view. A row of an older result gets one when the document is read.
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

    /// Returns the latency to show for the row: of an operation, or of a durable write where
    /// flushes come between writes (M11). `None` where one flush at the end makes all writes
    /// durable. A result of fio lacks the durable time: there it is only the flush.
    pub fn latency(&self) -> Option<&Latency> {
        let flush = || self.flush_latency_ns.as_ref();
        match self.settings.effective.sync {
            _ if self.durable_latency_ns.is_some() => self.durable_latency_ns.as_ref(),
            Flush::FdatasyncAtEnd | Flush::FsyncAtEnd if flush().is_some() => None,
            sync if sync.is_between() => flush().or(self.latency_ns.as_ref()),
            _ => self.latency_ns.as_ref(),
        }
    }

    /// Returns the histogram of [`Row::latency`], where the document has it.
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

    /// Returns whether the file had every message once, and nothing else, in all runs that were
    /// read back.
    pub fn has_all_records(&self) -> bool {
        self.runs.iter().filter_map(|run| run.records).all(|records| records.are_whole())
    }

    /// Returns whether operations began at a rate. Their latencies then count from when each was
    /// due (M5).
    pub fn is_open_loop(&self) -> bool {
        let asked = &self.settings.asked;
        asked.rate_iops.is_some() || asked.rate_bytes_per_s.is_some()
    }

    /// Returns its name without its workload's: `cached-fdatasync-at-end`. A number is not a name:
    /// `rand/read/16` stays whole.
    pub fn short_name(&self) -> &str {
        let rest = self.name.strip_prefix(&self.workload).and_then(|rest| rest.strip_prefix('/'));
        rest.filter(|rest| !rest.bytes().all(|of| of.is_ascii_digit())).unwrap_or(&self.name)
    }

    /// Returns whether operations are at random offsets.
    pub fn is_random(&self) -> bool {
        self.settings.effective.rw.starts_with("rand")
    }

    /// Returns whether the row's bytes are random and survive a power loss.
    pub fn is_durable(&self) -> bool {
        self.survives == Some(Survives::PowerLoss) && self.settings.effective.data.is_none()
    }

    /// Returns whether two rows have no measurable difference. With a single run the variation is
    /// unknown, and the medians count.
    pub fn is_tied_with(&self, other: &Row) -> bool {
        let (one, other_interval) = (&self.throughput_bytes_per_s, &other.throughput_bytes_per_s);
        self.runs.len() >= 2 && other.runs.len() >= 2 && !distinguishable(one, other_interval)
    }

    /// Returns whether the runs differ so much that the throughput is rough.
    pub fn is_rough(&self) -> bool {
        relative_width(&self.throughput_bytes_per_s) > ROUGH_WIDTH
    }

    /// Returns how many times as fast as `other` it is: `1.74`, or `about 2` of rough throughputs.
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

/// Returns the row of the highest throughput; the first of equal rows.
pub fn fastest<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.reduce(|best, row| if row.throughput() > best.throughput() { row } else { best })
}

/// The kind of a row's measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// Operations, timed one by one or at least counted.
    #[default]
    Operations,
    /// Whole files; single operations were not timed.
    Files,
    /// Messages that were appended.
    Messages,
    /// A small text saved repeatedly.
    Saves,
    /// Operations at rising shares of the load that a closed loop reaches.
    Curve,
    /// One long stream.
    Long,
    /// Operations on names and small files, by their number.
    Metadata,
}

/// The place of a row in a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Cell {
    /// The title over all lines: `BS x IODEPTH`.
    pub title: String,
    /// The line: `512 KiB x 64`.
    pub side: String,
    /// The column: `registered`.
    pub head: String,
}

/// The least share of the requested rate that counts as reached.
const REACHED_SHARE_MIN: f64 = 0.95;

/// The requested rate of a row, and the rate that it reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Operations or bytes per second, over all jobs of a run.
    pub asked_per_s: f64,
    /// The same, over the examined runs.
    pub achieved_per_s: f64,
    /// Whether both are rates of operations; otherwise of bytes.
    pub is_of_operations: bool,
    /// Whether at least 95 % was reached, or as much as chance allows under random arrivals.
    /// Latencies of a rate that is not reached grow with the length of the run.
    pub is_reached: bool,
}

impl Reached {
    /// Returns the rates over all runs of a row; `None` without a requested rate.
    pub fn of(row: &Row) -> Option<Reached> {
        Reached::within(row, Duration::ZERO)
    }

    /// Like [`Reached::of`], over the runs that took at least `elapsed_min`.
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
        // Three standard deviations of the number of a Poisson process's arrivals.
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
            // A result from before the times of flushes has only the writes'.
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
