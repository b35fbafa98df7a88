//! The ladder on simulated disks: sizes, order and time limits are real, the writes are not.

use super::plan::Plan;
use super::{Blocks, Flush, Ioengine, WAYS, Way, Workload};
use crate::budget::{Clock as _, RUNS_MIN};
use crate::burst;
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::sample::{Asked, MadeUpClock, measured_by, place};
use crate::scenario::{self, Bounds as _, Measured, Site};
use crate::trial::{self, Trial};
use proptest::prelude::*;
use std::rc::Rc;
use std::time::Duration;
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::Mark;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::Row;
use wrote_result::sample::row;

const MEMORY_BYTES_PER_S: f64 = 2e9;
const WITHIN: Duration = Duration::from_secs(60);

/// A disk's timing. After `fast_bytes` it is `slower` times as slow.
#[derive(Clone, Copy, Debug)]
struct Disk {
    bytes_per_s: f64,
    flush_s: f64,
    /// The time to create a file, and to remove it and flush its folder.
    file_s: f64,
    fast_bytes: f64,
    slower: f64,
    /// A token bucket in front of it, which fills at `bytes_per_s`.
    bucket_bytes: f64,
}

impl Disk {
    fn steady(bytes_per_s: f64, flush_s: f64) -> Disk {
        let fast_bytes = f64::INFINITY;
        Disk { bytes_per_s, flush_s, file_s: flush_s, fast_bytes, slower: 1.0, bucket_bytes: 0.0 }
    }
}

/// The speed of a disk while its bucket has tokens.
const BURST_BYTES_PER_S: f64 = 1e9;

/// The ladder's plan on a simulated disk.
struct OnDisk {
    plan: Plan,
    disk: Disk,
    clock: Rc<MadeUpClock>,
    written_bytes: f64,
    longest_run_s: f64,
    /// The tokens in the bucket, and when they were counted.
    tokens: (f64, f64),
    /// The bytes and the nanoseconds of the last writes, as a worker leaves them.
    marks: Vec<Mark>,
    /// The time, once the sizes were chosen, and the estimate from there on.
    estimated: Option<(f64, Duration)>,
}

impl OnDisk {
    /// Advances the time for writing bytes to the device.
    fn write(&mut self, bytes: f64) {
        let Disk { bytes_per_s, bucket_bytes, .. } = self.disk;
        let (tokens, since) = self.tokens;
        let filled = bytes_per_s * (self.clock.0.get() - since);
        let tokens = (tokens + filled).min(bucket_bytes);
        // The bucket fills while the burst is written.
        let burst = (tokens / (1.0 - bytes_per_s / BURST_BYTES_PER_S)).min(bytes);
        let burst = if bucket_bytes > 0.0 { burst } else { 0.0 };
        let rest = bytes - burst;
        let fast = (self.disk.fast_bytes - self.written_bytes).clamp(0.0, rest);
        let slow = (rest - fast) * self.disk.slower;
        self.written_bytes += bytes;
        self.clock.pass(burst / BURST_BYTES_PER_S);
        let left = tokens - burst * (1.0 - bytes_per_s / BURST_BYTES_PER_S);
        self.clock.pass((fast + slow) / bytes_per_s);
        self.tokens = (if rest > 0.0 { 0.0 } else { left }, self.clock.0.get());
    }

    /// Writes blocks until the file is full or the time is over, like a worker.
    fn write_blocks(&mut self, way: &Way, bs: f64, in_flight: f64, size: f64, limit_s: f64) {
        let (began, mut done) = (self.clock.0.get(), 0.0);
        self.marks.clear();
        while done < size && (done == 0.0 || self.clock.0.get() - began < limit_s) {
            // Only a flush waits for all that is in flight.
            let at_once = if way.flush.is_each() { bs * in_flight } else { bs };
            let bytes = at_once.min(size - done);
            match (way.direct, way.flush) {
                (false, Flush::None | Flush::FdatasyncAtEnd) => {
                    self.clock.pass(bytes / MEMORY_BYTES_PER_S)
                }
                (_, Flush::None | Flush::FdatasyncAtEnd) => self.write(bytes),
                _ => {
                    self.write(bytes);
                    self.clock.pass(self.disk.flush_s);
                }
            }
            done += bytes;
            let end_ns = ((self.clock.0.get() - began) * 1e9) as u64;
            self.marks.push(Mark { end_bytes: done as u64, end_ns });
        }
        if way.flush == Flush::FdatasyncAtEnd {
            self.clock.pass(self.disk.flush_s);
            if !way.direct {
                self.write(done);
            }
        }
    }
}

impl scenario::Rows for OnDisk {
    fn scope(&self) -> scenario::Scope {
        self.plan.scope()
    }

    fn rows(&self) -> Vec<String> {
        self.plan.rows()
    }
}

impl scenario::Bounds for OnDisk {
    fn space_bytes_max(&self) -> u64 {
        self.plan.space_bytes_max()
    }

    fn written_bytes_max(&self) -> u64 {
        self.plan.written_bytes_max()
    }

    fn estimate(&self) -> Duration {
        self.plan.estimate()
    }

    fn limits(&mut self) -> Option<(Duration, &mut dyn scenario::Limits)> {
        self.plan.limits()
    }
}

impl scenario::Plan for OnDisk {
    fn prepare(&mut self, _: &Site, _: &mut Ticker) -> Result<u64, Error> {
        let bytes = trial::bytes_max(&self.plan.common) as f64;
        let bs_bytes = 512.0 * 1024.0;
        let way =
            WAYS.iter().find(|way| way.name == "stream/direct-io_uring-fdatasync-at-end").unwrap();
        let limit_s = trial::TIME.as_secs_f64();
        let speed = |plan: &mut Self, in_flight: f64, size: f64| {
            let (began, written) = (plan.clock.0.get(), plan.written_bytes);
            plan.write_blocks(way, bs_bytes, in_flight, size, limit_s);
            let elapsed_s = plan.clock.0.get() - began;
            plan.clock.pass(2.0 * plan.disk.file_s);
            (elapsed_s, (plan.written_bytes - written) / elapsed_s)
        };
        let (elapsed_s, mut bytes_per_s) = speed(self, 1.0, bs_bytes);
        if elapsed_s < limit_s {
            (_, bytes_per_s) = speed(self, 8.0, bytes);
        }
        let burst = burst::find(&self.marks);
        self.plan.learn(Trial {
            bytes_per_s: burst.map_or(bytes_per_s, |burst| burst.bytes_per_s),
            flush: Duration::from_secs_f64(self.disk.flush_s.max(1e-9)),
            burst,
            first_touch: None,
        });
        self.estimated = Some((self.clock.0.get(), self.plan.estimate()));
        Ok(0)
    }

    fn run(&mut self, turn: Turn, _: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let way = self.plan.ways[turn.row];
        let sizes = self.plan.sizes[way.workload as usize];
        let (began, size) = (self.clock.0.get(), sizes.size_bytes as f64);
        let is_first = !std::mem::replace(&mut self.plan.filled[way.workload as usize], true);
        if way.blocks == Blocks::Written && is_first {
            self.write(size);
        }
        self.clock.pass(2.0 * self.disk.file_s);
        let in_flight = if way.ioengine == Ioengine::Psync { 1 } else { sizes.iodepth };
        let limit_s = self.plan.time_of(way).as_secs_f64();
        if !way.direct {
            self.clock.pass(self.plan.held_bytes() as f64 / MEMORY_BYTES_PER_S);
        }
        self.write(self.plan.drained_bytes(way) as f64);
        let clock_s = self.clock.0.get();
        self.write_blocks(way, sizes.bs_bytes as f64, f64::from(in_flight), size, limit_s);
        let done = self.marks.last().map_or(0, |mark| mark.end_bytes) as f64;
        let bytes_per_s = done / (self.clock.0.get() - clock_s);
        self.longest_run_s = self.longest_run_s.max(self.clock.0.get() - began);
        Ok(Repeated::one(row(way.name, "power-loss", &[bytes_per_s]), wrote_jobs::histogram()))
    }

    fn burst(&self) -> Option<Burst> {
        self.plan.burst
    }

    fn clear(&mut self, _: usize, _: &Site) -> Result<(), Error> {
        self.clock.pass(self.disk.file_s);
        Ok(())
    }
}

/// The result of the default ladder on a disk.
struct Outcome {
    measured: Result<Measured, Error>,
    elapsed: Duration,
    longest_run_s: f64,
    /// The elapsed time after the trial run, as a multiple of its estimate.
    of_estimate: f64,
}

fn ladder_on(disk: Disk, asked: &Asked) -> Outcome {
    let target = place(1 << 40, 1 << 39);
    let plan =
        asked.plan(&target, |scenarios, call| Plan::new(call, scenarios.ladder.within)).unwrap();
    let clock = Rc::new(MadeUpClock::default());
    let mut plan = OnDisk {
        plan,
        disk,
        clock: clock.clone(),
        written_bytes: 0.0,
        longest_run_s: 0.0,
        tokens: (disk.bucket_bytes, 0.0),
        marks: Vec::new(),
        estimated: None,
    };
    let measured = measured_by(&clock, &mut plan);
    let (since_s, estimated) = plan.estimated.expect("it had a trial run");
    Outcome {
        measured,
        elapsed: clock.elapsed(),
        longest_run_s: plan.longest_run_s,
        of_estimate: (clock.0.get() - since_s) / estimated.as_secs_f64(),
    }
}

fn usual(disk: Disk) -> Outcome {
    ladder_on(disk, &Asked::new("/data".into()))
}

/// Returns the rows with their number of runs.
fn runs(measured: &Measured) -> Vec<(&str, usize)> {
    let rows = measured.scenario.rows.iter();
    rows.map(|row| (row.name.as_str(), row.runs.len())).collect()
}

/// Returns whether every row has an interval or is reported as left out, and fewer rounds are
/// reported. If there was no time for any interval, the rows that had a run are shown.
fn is_honest(measured: &Measured) -> bool {
    let runs = runs(measured);
    let least = runs.iter().map(|(_, runs)| *runs as u32).min().unwrap_or(0);
    let told = measured.shortened.as_ref().map_or(5, |shortened| shortened.runs_min);
    let is_named = |way: &Way| {
        let is_row = runs.iter().any(|(name, _)| *name == way.name);
        is_row != measured.left_out.iter().any(|(name, _)| name == way.name)
    };
    let most = runs.iter().map(|(_, runs)| *runs as u32).max().unwrap_or(0);
    let is_enough = least >= RUNS_MIN || most < RUNS_MIN;
    is_enough && least == told && WAYS.iter().all(is_named)
}

#[test]
fn a_fast_disk_has_every_run_of_every_row() {
    for disk in [Disk::steady(3e9, 1e-4), Disk::steady(500e6, 1e-3)] {
        let Outcome { measured, elapsed, .. } = usual(disk);
        let measured = measured.unwrap();
        assert!(
            runs(&measured).iter().all(|(_, runs)| *runs == 5),
            "{disk:?}: {:?}",
            runs(&measured)
        );
        assert!(elapsed < WITHIN && measured.shortened.is_none() && measured.left_out.is_empty());
    }
}

#[test]
fn streams_of_a_disk_with_a_bucket_are_as_fast_as_what_lasts() {
    for bucket_bytes in [12.5e6, 25e6, 50e6] {
        let disk = Disk { bucket_bytes, ..Disk::steady(125e6, 1e-3) };
        let Outcome { measured, elapsed, .. } = usual(disk);
        let measured = measured.unwrap();
        assert!(measured.burst.is_some_and(|burst| burst.is_left_out), "{:?}", measured.burst);
        assert!(elapsed < WITHIN, "{elapsed:?}");
        let of_device = |row: &&Row| row.workload == "stream" && row.name != "stream/cached";
        for row in measured.scenario.rows.iter().filter(of_device) {
            let lasts = row.throughput() / 125e6;
            let flushes = row.settings.effective.sync.is_each();
            // Each flush of 1 ms stands beside 4 ms of writing.
            let near = if flushes { 0.75..=1.05 } else { 0.95..=1.05 };
            assert!(near.contains(&lasts), "{} of {bucket_bytes}: {lasts}", row.name);
        }
    }
}

#[test]
fn the_time_is_estimated_within_one_and_a_half_times() {
    for bytes_per_s in [3e9, 500e6, 125e6, 20e6, 2e6] {
        for flush_s in [1e-4, 1e-3, 5e-3] {
            let disk = Disk::steady(bytes_per_s, flush_s);
            let of_estimate = usual(disk).of_estimate;
            assert!((1.0 / 1.5..1.5).contains(&of_estimate), "{disk:?}: {of_estimate}");
        }
    }
}

#[test]
fn a_disk_of_2_mb_a_second_has_every_row() {
    let Outcome { measured, elapsed, .. } = usual(Disk::steady(2e6, 5e-3));
    let measured = measured.unwrap();
    assert_eq!(measured.scenario.rows.len(), WAYS.len(), "{:?}", measured.left_out);
    assert!(is_honest(&measured) && elapsed < WITHIN, "{elapsed:?}");
}

#[test]
fn a_disk_too_slow_for_every_row_has_those_that_the_advice_is_made_of() {
    let Outcome { measured, elapsed, .. } = usual(Disk::steady(300e3, 50e-3));
    let measured = measured.unwrap();
    let names: Vec<&str> = measured.scenario.rows.iter().map(|row| row.name.as_str()).collect();
    for name in ["small/fdatasync-each", "stream/direct-io_uring-fdatasync-at-end"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let (_, because) = &measured.left_out[0];
    assert!(because.starts_with("time budget of 60 s used up; 3 runs need "), "{because}");
    assert!(is_honest(&measured) && elapsed < WITHIN, "{elapsed:?}");
}

#[test]
fn a_disk_on_which_nothing_fits_is_an_error_of_one_line() {
    let error = usual(Disk::steady(1e3, 30.0)).measured.unwrap_err().to_string();
    assert!(error.contains("time budget of 60 s") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_disk_that_becomes_slow_is_measured_by_smaller_runs() {
    for fast_bytes in [400e6, 2e9, 10e9] {
        let disk = Disk { fast_bytes, slower: 100.0, ..Disk::steady(1e9, 1e-3) };
        let Outcome { measured, elapsed, longest_run_s, .. } = usual(disk);
        let measured = measured.unwrap();
        assert!(is_honest(&measured), "{disk:?}: {:?}", measured.shortened);
        // The run in which it became slow could not be foreseen.
        assert!(
            elapsed.as_secs_f64() < WITHIN.as_secs_f64() + longest_run_s,
            "{disk:?}: {elapsed:?}"
        );
        if fast_bytes < 5e9 {
            assert!(measured.shortened.unwrap().shrunk > 1.0);
            assert!(elapsed < WITHIN, "{disk:?}: {elapsed:?}");
        }
    }
}

#[test]
fn amounts_that_are_asked_for_are_measured_in_any_time() {
    let slow = Disk::steady(2e6, 5e-3);
    let asked = Asked { runs: Some(7), ..Asked::new("/data".into()) };
    let Outcome { measured, elapsed, .. } = ladder_on(slow, &asked);
    let measured = measured.unwrap();
    assert!(runs(&measured).iter().all(|(_, runs)| *runs == 7) && elapsed > WITHIN);
    assert_eq!(measured.shortened, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_steady_disk_of_any_speed_is_measured_in_time_or_refused(
        bytes_per_s_log10 in 4.0..10.5,
        flush_s in 0.0..0.3,
    ) {
        let disk = Disk::steady(10_f64.powf(bytes_per_s_log10), flush_s);
        let Outcome { measured, elapsed, .. } = usual(disk);
        prop_assert!(elapsed < WITHIN, "{:?}", elapsed);
        if let Ok(measured) = measured {
            prop_assert!(is_honest(&measured), "{:?} {:?}", runs(&measured), measured.shortened);
        }
    }
}

#[test]
fn every_row_has_a_place_among_the_important_ones() {
    let places: std::collections::HashSet<usize> =
        WAYS.iter().map(super::plan::importance).collect();
    assert_eq!(places, (0..WAYS.len()).collect());
    let stream = |way: &&Way| way.workload == Workload::Stream;
    assert!(WAYS.iter().filter(stream).any(|way| super::plan::importance(way) < 4));
}
