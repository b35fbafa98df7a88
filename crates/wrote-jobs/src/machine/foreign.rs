//! The I/O and CPU time of other programs, sampled between runs. While this program does nothing,
//! every request in the disk's queue belongs to another. Samples also work for rows that flush,
//! whose journal and metadata cannot be distinguished from other programs' bytes within a run. When
//! tasks wait for a CPU, so do the kernel threads that complete a flush.

use super::counters::Counters;
use std::time::{Duration, Instant};
use std::{fs, thread};
use wrote::device::BlockDevice;
use wrote_result::document::{Row, Run};

/// The duration of a sample.
pub const SAMPLE: Duration = Duration::from_millis(50);

/// The divisor of the elapsed time that yields the maximum time for samples.
pub const SAMPLES_PART: u32 = 20;

/// The maximum bytes of journal and metadata that the device writes for each flushed write. A flush
/// may also write pages that other programs left in the page cache, after which a sample finds the
/// disk idle.
const FLUSH_BYTES_MAX: u64 = 128 << 10;

/// The number of times that a sample counts the runnable tasks.
const LOOKS: u32 = 10;

/// The samples between runs.
#[derive(Debug)]
pub struct Between {
    last: Foreign,
    ended: Instant,
}

impl Between {
    /// Takes the sample before the first run.
    pub fn new(device: Option<&BlockDevice>) -> Between {
        Between { last: Foreign::sample(device), ended: Instant::now() }
    }

    /// Sets the share of other programs in the rows of the run that has just ended, according to
    /// the samples before and after the run. If the sample before the run is recent, it also serves
    /// as the one after it, unless `is_sampled`.
    pub fn mark(&mut self, rows: &mut [Row], device: Option<&BlockDevice>, is_sampled: bool) {
        let before = self.last;
        if is_sampled || self.ended.elapsed() > SAMPLE * SAMPLES_PART {
            *self = Between::new(device);
        }
        for row in rows {
            // If there are only a few long writes, the number of other programs' writes means
            // nothing.
            let is_seldom = row.settings.effective.sync.is_seldom();
            for run in &mut row.runs {
                let writes_per_s = run.device_writes.unwrap_or(0) as f64 / run.elapsed_s;
                let all_per_s = if is_seldom { f64::INFINITY } else { writes_per_s };
                let sampled = before.share(all_per_s).max(self.last.share(all_per_s));
                let written = if is_seldom { 0.0 } else { share_of_bytes(run) };
                run.foreign_share = Some(sampled.max(written));
            }
        }
    }
}

/// Returns the share of the bytes on the device that exceeds what the run's own flushed writes can
/// account for.
fn share_of_bytes(run: &Run) -> f64 {
    let device_bytes = run.device_written_bytes.unwrap_or(0) as f64;
    let own_bytes = 2.0 * run.bytes as f64 + run.iops * run.elapsed_s * FLUSH_BYTES_MAX as f64;
    ((device_bytes - own_bytes) / device_bytes.max(1.0)).max(0.0)
}

/// The I/O of other programs during a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Foreign {
    /// The share of the time during which requests were in the device's queue, or a task waited for
    /// a CPU, from 0 to 1.
    busy_share: f64,
    /// The number of writes and flushes per second.
    writes_per_s: f64,
}

impl Foreign {
    /// Samples the machine and the device for [`SAMPLE`]. The device need not have counters.
    fn sample(device: Option<&BlockDevice>) -> Foreign {
        let (before, began) = (device.and_then(Counters::of), Instant::now());
        let crowded = (0..LOOKS).filter(|_| {
            thread::sleep(SAMPLE / LOOKS);
            is_crowded(&fs::read_to_string("/proc/loadavg").unwrap_or_default(), online_cpus())
        });
        let crowded_share = crowded.count() as f64 / f64::from(LOOKS);
        let counted = device.and_then(Counters::of).zip(before);
        let counted = counted.map(|(after, before)| after.since(&before)).unwrap_or_default();
        let foreign = Foreign::of(&counted, began.elapsed());
        Foreign { busy_share: foreign.busy_share.max(crowded_share), ..foreign }
    }

    /// Returns the sample that these counters describe. The kernel counts the time of a request
    /// only when it completes, so if a request is in flight at the start and the end of the sample,
    /// the device is taken to have been busy throughout.
    fn of(counted: &Counters, elapsed: Duration) -> Foreign {
        let queued = Duration::from_millis(counted.queued_ms);
        let of_time = queued.div_duration_f64(elapsed).min(1.0);
        let busy_share = if counted.in_flight > 0 { 1.0 } else { of_time };
        let writes_per_s = (counted.writes + counted.flushes) as f64 / elapsed.as_secs_f64();
        Foreign { busy_share, writes_per_s }
    }

    /// Returns the share of a run's time that other programs took, or their share of the writes and
    /// flushes that the device completed per second of the run, whichever is larger. Short requests
    /// of other programs delay a flush, too.
    fn share(self, all_per_s: f64) -> f64 {
        self.busy_share.max(self.writes_per_s / all_per_s).min(1.0)
    }
}

/// Returns whether there are more runnable tasks than CPUs, including this task. The fourth field
/// of `/proc/loadavg` is `runnable/all`.
fn is_crowded(loadavg: &str, cpus: u64) -> bool {
    let runnable = loadavg.split(' ').nth(3).and_then(|of| of.split('/').next()?.parse().ok());
    runnable.is_some_and(|runnable: u64| runnable > cpus)
}

/// Returns the number of online CPUs of the machine. This process may be restricted to fewer.
fn online_cpus() -> u64 {
    // SAFETY: the call touches no memory.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u64::try_from(cpus).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::row;
    use wrote_result::document::Flush;

    fn foreign(queued_ms: u64, in_flight: u64, writes: u64) -> Foreign {
        let counted = Counters { queued_ms, in_flight, writes, ..Counters::default() };
        Foreign::of(&counted, Duration::from_millis(50))
    }

    #[test]
    fn requests_in_the_queue_are_a_part_of_the_time_and_one_that_lasts_is_all_of_it() {
        let share = |queued_ms, in_flight| foreign(queued_ms, in_flight, 0).share(1000.0);
        assert_eq!([share(0, 0), share(10, 0), share(400, 0)], [0.0, 0.2, 1.0]);
        // A slow disk may complete no request within a sample.
        assert_eq!(share(0, 1), 1.0);
    }

    #[test]
    fn short_requests_of_others_are_a_part_of_all_writes() {
        // 1,400 writes per second, of 1,600 including ours, in 8 % of the time.
        assert_eq!(foreign(4, 0, 70).share(1600.0), 0.875);
        assert_eq!(foreign(4, 0, 70).share(140_000.0), 0.08);
        assert_eq!(foreign(0, 0, 0).share(0.0), 0.0, "nobody wrote");
    }

    #[test]
    fn others_short_writes_mark_a_run_that_flushes_each_write() {
        let last = foreign(2, 0, 10);
        let marked = |sync| {
            let mut row = row("small/x", "power-loss", &[1e6]);
            row.settings.effective.sync = sync;
            (row.runs[0].device_writes, row.runs[0].elapsed_s) = (Some(1000), 1.0);
            let mut rows = [row];
            Between { last, ended: Instant::now() }.mark(&mut rows, None, false);
            rows[0].runs[0].foreign_share.unwrap()
        };
        // 200 writes per second, of 1,000 including ours, in 4 % of the time.
        let shares = [Flush::FdatasyncEach, Flush::FdatasyncAtEnd].map(marked);
        assert_eq!(shares, [0.2, 0.04]);
    }

    #[test]
    fn pages_of_others_that_a_flush_writes_mark_a_run_though_the_disk_is_idle_between_runs() {
        let share = |device_bytes: u64| {
            // 300 appends of 2 KiB each.
            let run = Run { bytes: 600 << 10, iops: 300.0, elapsed_s: 1.0, ..Run::default() };
            share_of_bytes(&Run { device_written_bytes: Some(device_bytes), ..run })
        };
        assert_eq!([share(0), share(300 * (100 << 10))], [0.0, 0.0], "journal and metadata");
        assert!((0.6..0.8).contains(&share(125_000_000)));
    }

    #[test]
    fn tasks_wait_for_a_cpu_where_more_can_run_than_there_are_cpus() {
        let is_crowded = |runnable| is_crowded(&format!("0.1 0.2 0.3 {runnable}/345 678\n"), 2);
        assert_eq!([is_crowded(1), is_crowded(2), is_crowded(3)], [false, false, true]);
        assert!(!super::is_crowded("", 2), "a hidden /proc tells nothing");
    }

    #[test]
    fn a_sample_without_a_device_is_of_the_cpus() {
        let sampled = Foreign::sample(None);
        assert!((0.0..=1.0).contains(&sampled.share(1.0)), "{sampled:?}");
        assert_eq!(sampled.writes_per_s, 0.0);
    }
}
