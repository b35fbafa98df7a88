//! Streams: their sizes, and the burst that a disk with a token bucket writes faster than its
//! sustained rate. Finds a burst within a run, and uses up a burst before the next run.

use crate::site::Site;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::data::seed;
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::{Mark, Permissions, Watcher};
use wrote_jobs::rate::Rate;
use wrote_jobs::spec::{JobSpec, WRITE};
use wrote_result::document::Limit;
use wrote_result::{Error, stats};

/// The number of parts of the second half of a run, and the minimum speed of each part relative to
/// the whole half.
const PARTS: u64 = 5;
const PART_MIN: f64 = 0.85;
/// The minimum ratio of a burst's speed to the sustained speed, and a burst's minimum share of the
/// run's bytes.
const FASTER_MIN: f64 = 1.5;
const SHARE_MIN: f64 = 0.05;
/// The minimum ratio if only the first run was faster, and the minimum number of later runs. A
/// single fast run may be chance.
const FIRST_MIN: f64 = 1.75;
const FIRST_RUNS_MIN: usize = 3;
/// The minimum length of a run. In a shorter run, a single slow write would look like a drop.
const LASTS_NS_MIN: u64 = 100_000_000;
/// The time slice in which the kernel throttles control groups.
const SLICE_S: f64 = 0.1;
/// The multiples of a limit between which a stream under the limit writes, not counting the burst.
const NEAR: [f64; 2] = [0.7, 1.25];
/// The maximum number of bytes that may be written before each run to use up a burst.
const DRAINED_BYTES_MAX: u64 = 128 << 20;
/// The divisor of all bytes that may be written: if using up a burst takes more than the quotient,
/// the burst is not used up and remains in the figures.
const DRAINED_SHARE: u64 = 2;
/// The number of bytes written before a run, as a multiple of the burst, so that the run measures
/// the sustained rate.
const DRAINED_TIMES: f64 = 1.25;
/// The time limit for using up a burst. When it is reached, the burst is regarded as used up: the
/// disk has become slower than the calibration measured.
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// The number of writes in flight while a burst is used up. It is so small that no writes are left
/// to slow down the next run.
const DRAIN_IODEPTH: u32 = 4;

/// The sizes of a stream of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sizes {
    pub bs_bytes: u64,
    /// The total size of all threads' files, which is a multiple of `bs_bytes * numjobs`.
    pub size_bytes: u64,
    /// The number of writes in flight per thread.
    pub iodepth: u32,
    pub numjobs: u32,
    /// The total rate of all threads. Each thread repeats its file until its time has passed.
    pub rate: Option<Rate>,
}

impl Sizes {
    /// Returns the sizes of a single write.
    pub(crate) fn one(bs_bytes: u64) -> Sizes {
        Sizes { bs_bytes, size_bytes: bs_bytes, iodepth: 1, numjobs: 1, rate: None }
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.size_bytes / u64::from(self.numjobs)
    }

    /// Returns a job that writes each file once, with direct I/O, into preallocated blocks, and
    /// flushes it at the end. The blocks have `bs_bytes` if the file is a multiple of that size.
    pub(crate) fn fill(&self, bs_bytes: u64, iodepth: u32) -> JobSpec {
        let is_whole = self.file_bytes().is_multiple_of(bs_bytes);
        let bs_bytes = if is_whole { bs_bytes.max(self.bs_bytes) } else { self.bs_bytes };
        let sizes = Sizes { bs_bytes, iodepth, ..*self };
        sizes.job("fill").with(|job| job.writes.end_fdatasync = true)
    }

    /// Returns a job that writes each file once, without a flush.
    pub(crate) fn job(&self, name: &str) -> JobSpec {
        JobSpec::new(name, WRITE, self.bs_bytes).with(|job| {
            job.io.iodepth = self.iodepth;
            job.files.file_bytes = Some(self.file_bytes());
            // The page cache holds no page of a file that is new or was written with direct I/O.
            job.files.invalidate = false;
            // The arrivals differ from run to run.
            job.seed = seed();
        })
    }
}

/// Finds a burst within a stream that is fast at first and steady in its second half; `None` if
/// there is no burst or the stream is too short.
///
/// If the disk's speed fluctuates, the second half is not steady. A slow start is not a burst.
pub(crate) fn find(marks: &[Mark]) -> Option<Burst> {
    let last = marks.last().filter(|last| last.end_ns >= LASTS_NS_MIN)?;
    let middle = marks.iter().find(|mark| mark.end_ns >= last.end_ns / 2)?;
    let half_ns = last.end_ns - middle.end_ns;
    let speed = |from: &Mark, to: &Mark| {
        (to.end_bytes - from.end_bytes) as f64 / (to.end_ns - from.end_ns).max(1) as f64
    };
    let lasts = speed(middle, last);
    let at = |part: u64| {
        let end_ns = middle.end_ns + half_ns * part / PARTS;
        marks.iter().find(|mark| mark.end_ns >= end_ns).unwrap_or(last)
    };
    let is_even = (0..PARTS).all(|part| {
        let share = speed(at(part), at(part + 1)) / lasts;
        (PART_MIN..=1.0 / PART_MIN).contains(&share)
    });
    // The number of bytes that the run has written in excess of a run at the sustained rate.
    let bytes = last.end_bytes as f64 - lasts * last.end_ns as f64;
    let is_burst = bytes > SHARE_MIN * last.end_bytes as f64;
    let is_first = |mark: &&Mark| mark.end_bytes as f64 >= bytes / 2.0;
    let first = speed(&Mark::default(), marks.iter().find(is_first)?);
    (is_even && is_burst && first >= FASTER_MIN * lasts).then(|| Burst {
        bytes: bytes as u64,
        bytes_per_s: lasts * 1e9,
        is_left_out: drained_bytes(bytes as u64) <= DRAINED_BYTES_MAX,
    })
}

/// A run that the disk limited. Lists contain such runs in the order of the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    pub row: usize,
    /// The number of bytes that the disk had written before this run.
    pub before_bytes: u64,
    pub bytes_per_s: f64,
}

/// Finds a burst that was used up between two runs, or within the first run: every earlier run was
/// clearly faster than every later run, either among all runs, or among the runs of each row if
/// there are at least two rows. The later runs make up at least a round. `None` if there is no such
/// drop.
pub(crate) fn dropped(runs: &[Past]) -> Option<Burst> {
    let rows: BTreeSet<usize> = runs.iter().map(|run| run.row).collect();
    let times = |before: &[Past], after: &[Past], is_of: &dyn Fn(&&Past) -> bool| {
        let speeds = |runs: &[Past]| -> Vec<f64> {
            runs.iter().filter(is_of).map(|run| run.bytes_per_s).collect()
        };
        let least = speeds(before).into_iter().reduce(f64::min)?;
        Some(least / speeds(after).into_iter().reduce(f64::max)?)
    };
    let is_drop = |end: &usize| {
        let (before, after) = runs.split_at(*end);
        let of_all = times(before, after, &|_| true);
        let of_rows = rows.iter().filter_map(|row| times(before, after, &|run| run.row == *row));
        let of_rows: Vec<f64> = of_rows.collect();
        let are_faster = |times: &f64| *times >= if *end == 1 { FIRST_MIN } else { FASTER_MIN };
        of_all.is_some_and(|times| are_faster(&times))
            || of_rows.len() >= 2 && of_rows.iter().all(are_faster)
    };
    let first = if runs.len() > FIRST_RUNS_MIN { 1 } else { 2 };
    let end = (first..=runs.len().checked_sub(rows.len())?).rev().find(is_drop)?;
    let bytes_per_s = lasting(&runs[end..])?;
    Some(Burst { bytes: runs[end].before_bytes, bytes_per_s, is_left_out: false })
}

/// Returns the median rate of the later half of the runs; `None` if there are no runs.
pub(crate) fn lasting(runs: &[Past]) -> Option<f64> {
    let later: Vec<f64> = runs[runs.len() / 2..].iter().map(|run| run.bytes_per_s).collect();
    (!later.is_empty()).then(|| stats::median(&later))
}

/// Returns the lowest limit on the rate at which bytes are written to the device; `None` if there
/// is no such limit.
pub(crate) fn most_bytes_per_s(limits: &[Limit]) -> Option<f64> {
    let of_writes = limits.iter().filter(|limit| limit.of == "write_bytes_per_s");
    of_writes.map(|limit| limit.most).min_by(f64::total_cmp)
}

/// Returns the burst that a control group's limit allows, if the stream came near the limit. The
/// kernel lets the bytes of two time slices through at once (`blk-throttle`).
pub(crate) fn of_limit(limits: &[Limit], written_bytes: u64, time: Duration) -> Option<Burst> {
    let most = most_bytes_per_s(limits)?;
    let bytes = (most * 2.0 * SLICE_S) as u64;
    let [least_bytes, most_bytes] = NEAR.map(|near| (near * most * time.as_secs_f64()) as u64);
    (least_bytes..=most_bytes + bytes).contains(&written_bytes).then(|| Burst {
        bytes,
        bytes_per_s: most,
        is_left_out: drained_bytes(bytes) <= DRAINED_BYTES_MAX,
    })
}

/// Returns the number of bytes that uses up a burst.
fn drained_bytes(burst_bytes: u64) -> u64 {
    (burst_bytes as f64 * DRAINED_TIMES) as u64
}

/// Returns the stream that uses up a burst; `None` if the burst remains in the figures.
pub(crate) fn drain(burst: Option<Burst>, bs_bytes: u64) -> Option<Sizes> {
    let burst = burst.filter(|burst| burst.is_left_out)?;
    let size_bytes = drained_bytes(burst.bytes).next_multiple_of(bs_bytes);
    Some(Sizes { bs_bytes, size_bytes, iodepth: DRAIN_IODEPTH, numjobs: 1, rate: None })
}

/// Reserves the bytes that use up a burst before all runs, and returns the part of `wear_bytes`
/// that is left for the runs. If too many bytes would have to be reserved, the burst remains in the
/// figures.
pub(crate) fn reserve(burst: &mut Option<Burst>, drained_bytes: u64, wear_bytes: u64) -> u64 {
    match (drained_bytes > wear_bytes / DRAINED_SHARE, wear_bytes) {
        (true, _) => burst.iter_mut().for_each(|burst| burst.is_left_out = false),
        (false, u64::MAX) => {}
        (false, _) => return wear_bytes - drained_bytes,
    }
    wear_bytes
}

/// Writes to use up a burst, so that the next run measures the sustained rate. Returns the number
/// of bytes written.
pub(crate) fn use_up(site: &Site, jobs: &[JobSpec]) -> Result<u64, Error> {
    let permissions = Permissions { overwrite: true, fill: true, ..Permissions::default() };
    Ok(site.apart().run_jobs(jobs, permissions, &mut ())?.written_bytes())
}

/// Uses up the burst, if there is one, right before the clock of a run starts.
pub(crate) struct Drain<'a> {
    pub site: &'a Site<'a>,
    /// The sizes of the stream, which overwrites its file each time; `None` if there is no burst to
    /// use up.
    pub sizes: Option<Sizes>,
    /// The number of bytes that the stream has written. It falls short of the size if the time
    /// limit was reached.
    pub written_bytes: u64,
}

impl Drain<'_> {
    pub(crate) fn file(site: &Site) -> PathBuf {
        site.file("burst", 0)
    }
}

impl Watcher for Drain<'_> {
    fn ready(&mut self) -> Result<(), Error> {
        let Some(sizes) = &self.sizes else { return Ok(()) };
        let job = sizes.job("burst").with(|job| job.pace.runtime = Some(DRAIN_TIME));
        self.written_bytes += use_up(self.site, &job.on_each(&[Drain::file(self.site)], None))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Simulates a stream of `ms` milliseconds on a disk that writes `burst` bytes at `first` bytes
    /// per second, and all further bytes at `lasts`.
    fn marks(burst: f64, first: f64, lasts: f64, ms: u64) -> Vec<Mark> {
        let at = |ms: u64| {
            let time_s = ms as f64 / 1e3;
            let fast_s = (burst / first).min(time_s);
            (fast_s * first + (time_s - fast_s) * lasts) as u64
        };
        (1..=ms / 5).map(|n| Mark { end_bytes: at(n * 5), end_ns: n * 5 * MS }).collect()
    }

    #[test]
    fn a_bucket_is_found_with_its_bytes_and_the_speed_that_lasts() {
        for (bytes, first, lasts) in [(12.5e6, 2e9, 125e6), (50e6, 1e9, 125e6), (1e6, 50e6, 10e6)] {
            let burst = find(&marks(bytes, first, lasts, 250)).unwrap();
            assert!((burst.bytes_per_s / lasts - 1.0).abs() < 0.03, "{burst:?}");
            // The other bytes would be written at the sustained rate anyway.
            let ahead = bytes * (1.0 - lasts / first);
            assert!((burst.bytes as f64 / ahead - 1.0).abs() < 0.1, "{burst:?}: {ahead}");
            assert!(burst.is_left_out, "{burst:?}");
        }
        assert!(!find(&marks(150e6, 2e9, 50e6, 250)).unwrap().is_left_out);
    }

    /// Returns the runs of five rounds of four rows, 40 MB each, at rates that depend on the bytes
    /// written before.
    fn past(bytes_per_s: impl Fn(u64) -> f64) -> Vec<Past> {
        let run = |number: u64| {
            let before_bytes = 100_000_000 + number * 40_000_000;
            let bytes_per_s = bytes_per_s(before_bytes) * (1.0 + (number % 4) as f64 / 100.0);
            Past { row: number as usize % 4, before_bytes, bytes_per_s }
        };
        (0..20).map(run).collect()
    }

    #[test]
    fn a_burst_that_ends_between_runs_is_found_with_its_bytes_and_what_lasts() {
        let burst = dropped(&past(|before| if before < 600_000_000 { 400e6 } else { 40e6 }));
        let burst = burst.unwrap();
        assert!((40e6..42e6).contains(&burst.bytes_per_s) && !burst.is_left_out, "{burst:?}");
        assert!((600_000_000..640_000_000).contains(&burst.bytes), "{burst:?}");
        // The burst is used up in the first run of the second row.
        let early = dropped(&past(|before| if before < 200_000_000 { 400e6 } else { 40e6 }));
        assert_eq!(early.unwrap().bytes, 220_000_000);
    }

    #[test]
    fn a_burst_within_the_first_run_of_several_is_found_where_that_run_was_much_faster() {
        let first = |bytes_per_s| {
            past(move |before| if before == 100_000_000 { bytes_per_s } else { 40e6 })
        };
        assert_eq!(dropped(&first(80e6)).unwrap().bytes, 140_000_000);
        assert_eq!(dropped(&first(65e6)), None);
        let run = |bytes_per_s| Past { row: 0, before_bytes: 1, bytes_per_s };
        assert!(dropped(&[80e6, 40e6, 40e6, 40e6].map(run)).is_some());
        assert_eq!(dropped(&[80e6, 40e6, 40e6].map(run)), None);
    }

    #[test]
    fn steady_rows_and_a_stall_at_the_end_are_no_burst_between_runs() {
        assert_eq!(dropped(&past(|_| 400e6)), None);
        assert_eq!(dropped(&past(|before| if before < 800_000_000 { 400e6 } else { 40e6 })), None);
        assert_eq!(dropped(&[]), None);
        assert_eq!(lasting(&[]), None);
        let lasts = lasting(&past(|before| if before < 300_000_000 { 400e6 } else { 40e6 }));
        assert!((40e6..42e6).contains(&lasts.unwrap()));
    }

    #[test]
    fn a_known_limit_that_a_stream_came_near_to_has_a_burst_of_two_slices() {
        let limit = |of: &str, most| Limit { of: of.into(), most, from: "io.max".into() };
        let limits = [limit("read_bytes_per_s", 50e6), limit("write_bytes_per_s", 125e6)];
        let of = |bytes, ms| of_limit(&limits, bytes, Duration::from_millis(ms));
        let burst = of(45_000_000, 250).unwrap();
        assert_eq!((burst.bytes, burst.bytes_per_s, burst.is_left_out), (25_000_000, 125e6, true));
        // The disk is slower than the limit, or the limit does not apply.
        assert_eq!((of(15_000_000, 250), of(250_000_000, 250)), (None, None));
        assert_eq!(of_limit(&limits[..1], 30_000_000, Duration::from_millis(250)), None);
        // All bytes are within the burst.
        assert_eq!(of(20_000_000, 30), Some(burst));
    }

    #[test]
    fn a_steady_a_slowly_starting_and_a_wandering_disk_have_no_burst() {
        assert_eq!(find(&marks(0.0, 1e9, 1e9, 250)), None);
        assert_eq!(find(&marks(5e6, 50e6, 500e6, 250)), None);
        // The disk is half as fast again for a moment, and then alternates.
        let mut bytes = 0;
        let wander = (1..=50).map(|n| {
            bytes += if n < 10 || n % 16 < 6 { 5_000_000 } else { 2_000_000 };
            Mark { end_bytes: bytes, end_ns: n * 5 * MS }
        });
        assert_eq!(find(&wander.collect::<Vec<_>>()), None);
        // The first stream is too short, and the second is empty.
        assert_eq!(find(&marks(12.5e6, 2e9, 125e6, 60)), None);
        assert_eq!(find(&[]), None);
    }
}
