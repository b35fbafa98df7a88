//! The requested ways, the file size, and the number of runs.

use super::{CHUNK, FILE, NAME, WAYS, Way};
use crate::rounds::RUNS;
use crate::scenario::{Call, Plan as _};
use std::time::Duration;
use wrote_jobs::machine::{host, target};
use wrote_result::Error;

const MIB: u64 = 1 << 20;
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The minimum on any disk: less would disappear in its caches.
const FILE_BYTES_MIN: u64 = 16 * MIB;
/// The most bytes of a chunk row: enough to distinguish sizes.
const CHUNK_BYTES_MAX: u64 = 256 * MIB;
/// The writing time of all runs together at the measured speed.
const ALL_RUNS_S: f64 = 60.0;
/// The assumed speed of the disk before it is known.
const USUAL_BYTES_PER_S: f64 = 1e9;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub ways: Vec<&'static Way>,
    pub runs: u32,
    /// Requested rows that can't be measured, with reasons.
    pub left_out: Vec<(String, String)>,
    /// The maximum file size; the exact one if requested.
    pub(super) largest_bytes: u64,
    /// Whether the request specifies that size.
    asked: bool,
    /// The disk's speed, once known.
    pub(super) bytes_per_s: Option<f64>,
    /// The time of a small write with its flush, after the trial run.
    /// The file sizes: the largest until the disk's speed is known.
    pub(super) sizes: Sizes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The size of the source, and of each whole file.
    pub file_bytes: u64,
    /// The size of each file of the chunks workload.
    pub chunk_bytes: u64,
}

impl Plan {
    /// Plans the requested rows; `None` if there are none. Measured only on request, because the
    /// ladder alone takes a minute.
    pub(crate) fn new(call: &Call) -> Result<Option<Plan>, Error> {
        Plan::within(call, host::memory().bytes)
    }

    fn within(call: &Call, memory_bytes: u64) -> Result<Option<Plan>, Error> {
        let called = |way: &&Way| call.names(NAME, way.name);
        let ways: Vec<&'static Way> = WAYS.iter().filter(called).collect();
        if ways.is_empty() {
            return Ok(None);
        }
        let room_bytes = target::room_bytes(call.target);
        let runs = call.common.runs.unwrap_or(RUNS);
        let wear = call.common.written_bytes_max(call.target);
        let usual = FILE_BYTES_MAX
            .min(room_bytes / 2)
            .min(memory_bytes / 4)
            .min(file_bytes_of(wear, &ways, runs))
            .max(MIB);
        let largest_bytes = call.common.size_bytes.unwrap_or(usual) / MIB * MIB;
        if largest_bytes == 0 {
            return Err(Error::Usage(format!("--size: {NAME} needs at least 1 MiB")));
        }
        let asked = call.common.size_bytes.is_some();
        let sizes = Sizes::of_file(largest_bytes);
        let left_out = Vec::new();
        let mut plan =
            Plan { ways, runs, left_out, largest_bytes, asked, sizes, bytes_per_s: None };
        target::check_room(plan.space_bytes_max(), largest_bytes, call.target)?;
        plan.keep_memory(memory_bytes);
        Ok(Some(plan))
    }

    /// Leaves out ways that would use more than half of the machine's memory. In practice the
    /// kernel kills programs that write like this (W8).
    fn keep_memory(&mut self, memory_bytes: u64) {
        let sizes = self.sizes_max();
        self.leave_out(|way| {
            let bytes = if way.kind.holds_input() { sizes.of(way) } else { 0 };
            let because = "the whole file in memory would be more than half of the machine's";
            (bytes > memory_bytes / 2).then(|| because.to_owned())
        });
    }

    /// Removes the rows for which there is a reason.
    pub(super) fn leave_out(&mut self, reason: impl Fn(&Way) -> Option<String>) {
        let left_out = &mut self.left_out;
        self.ways.retain(|way| match reason(way) {
            None => true,
            Some(because) => {
                left_out.push((way.name.into(), because));
                false
            }
        });
    }

    /// Returns the time of a run at the disk's speed: whole files have no other slice.
    pub(super) fn slice(&self) -> Duration {
        let round: u64 = self.ways.iter().map(|way| self.sizes.of(way)).sum();
        let bytes = round as f64 / self.ways.len().max(1) as f64;
        Duration::from_secs_f64(bytes / self.bytes_per_s.unwrap_or(USUAL_BYTES_PER_S))
    }

    pub(super) fn sizes_max(&self) -> Sizes {
        Sizes::of_file(self.largest_bytes)
    }

    pub(super) fn sizes(&self, bytes_per_s: f64) -> Sizes {
        if self.asked {
            return self.sizes_max();
        }
        let bytes = (bytes_per_s * ALL_RUNS_S) as u64;
        let wanted = file_bytes_of(bytes, &self.ways, self.runs);
        let wanted = wanted.max(FILE_BYTES_MIN).min(self.largest_bytes);
        // Whole chunks, if there is more than one.
        let unit = if wanted >= 16 * MIB { 8 * MIB } else { MIB };
        Sizes::of_file(wanted / unit * unit)
    }
}

/// Returns the file size if all runs and the source together write `bytes`.
fn file_bytes_of(bytes: u64, ways: &[&Way], runs: u32) -> u64 {
    let count = |workload: &str| ways.iter().filter(|way| way.workload == workload).count() as u64;
    // Below the largest size, a chunk file is as long as any other.
    let of = |files: u64| bytes / (files * u64::from(runs) + 1);
    let all = of(count(FILE) + count(CHUNK));
    if all < CHUNK_BYTES_MAX { all } else { of(count(FILE) + count(CHUNK) / 4) }
}

impl Sizes {
    fn of_file(file_bytes: u64) -> Sizes {
        Sizes { file_bytes, chunk_bytes: file_bytes.min(CHUNK_BYTES_MAX) }
    }

    pub(super) fn of(&self, way: &Way) -> u64 {
        if way.workload == CHUNK { self.chunk_bytes } else { self.file_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wear;
    use crate::sample::{Asked, asked, place as target};

    const GIB: u64 = 1 << 30;

    fn plan(request: &Asked) -> Option<Plan> {
        request.plan(&target(1 << 40, 1 << 39), |_, call| Plan::within(call, 16 * GIB)).unwrap()
    }

    #[test]
    fn the_scenario_is_measured_only_when_it_is_asked_for() {
        assert!(plan(&asked(&[])).is_none());
        assert!(plan(&asked(&["ladder", "peak"])).is_none());
        assert_eq!(plan(&asked(&["ways"])).unwrap().ways.len(), WAYS.len());
        let chunks = plan(&asked(&["ways/chunk"])).unwrap();
        assert!(chunks.ways.len() == 12 && chunks.ways.iter().all(|way| way.workload == CHUNK));
        assert_eq!(plan(&asked(&["ways/file/copy"])).unwrap().ways.len(), 1);
    }

    #[test]
    fn a_fast_disk_gets_a_gibibyte_and_a_slow_one_what_it_takes_in_a_minute() {
        // A number of runs is an amount, which lifts the default byte limit.
        let plan = plan(&Asked { runs: Some(5), ..asked(&["ways"]) }).unwrap();
        let fast = plan.sizes(10e9);
        assert_eq!((fast.file_bytes, fast.chunk_bytes), (GIB, GIB / 4));
        let slow = plan.sizes(100e6);
        assert!(slow.file_bytes < 100 * MIB && slow.file_bytes.is_multiple_of(8 * MIB), "{slow:?}");
        let round: u64 = plan.ways.iter().map(|way| slow.of(way)).sum();
        assert!(round * u64::from(plan.runs) <= 120 * 100_000_000);
        assert_eq!(plan.sizes(1.0).file_bytes, FILE_BYTES_MIN);
    }

    #[test]
    fn all_files_keep_to_the_limit_of_bytes() {
        for only in ["ways", "ways/file", "ways/file/copy", "ways/chunk"] {
            let bytes = |wear| plan(&Asked { wear, ..asked(&[only]) }).unwrap().written_bytes_max();
            assert!(bytes(None) <= 10_000_000_000, "{only}: {}", bytes(None));
            assert!(bytes(Some(Wear::Low)) <= 1_000_000_000, "{only}");
        }
    }

    #[test]
    fn scenarios_that_are_measured_together_share_the_limit_of_bytes() {
        let folder = fixtures::folder();
        let named = |only: &[&str]| {
            let only = only.iter().map(|name| name.to_string()).collect();
            let request = Asked { only, ..Asked::new(folder.path().to_owned()) };
            request.planned().iter().map(|plan| plan.written_bytes_max()).sum::<u64>()
        };
        assert!(named(&["peak", "rand", "ways"]) <= 10_000_000_000);
        assert!(named(&["ways"]) > named(&["peak", "rand", "ways"]) / 2);
    }

    #[test]
    fn a_size_that_was_asked_for_is_the_size() {
        let request = Asked { size_bytes: Some(3 * GIB + 5), ..asked(&["ways"]) };
        let plan = plan(&request).unwrap();
        assert_eq!(plan.sizes(1.0).file_bytes, 3 * GIB);
        let none = Asked { size_bytes: Some(1000), ..asked(&["ways"]) };
        assert!(matches!(
            none.plan(&target(1 << 40, 1 << 39), |_, call| Plan::new(call)),
            Err(Error::Usage(_))
        ));
    }

    #[test]
    fn the_announced_bytes_bound_those_written_at_any_speed() {
        let plan = plan(&asked(&["ways"])).unwrap();
        for bytes_per_s in [1.0, 1e8, 1e12] {
            let sizes = plan.sizes(bytes_per_s);
            let round: u64 = plan.ways.iter().map(|way| sizes.of(way)).sum();
            let written = sizes.file_bytes + round * u64::from(plan.runs);
            assert!(written <= plan.written_bytes_max());
            assert!(2 * sizes.file_bytes <= plan.space_bytes_max());
        }
    }

    #[test]
    fn a_full_disk_gets_smaller_files_or_none() {
        let little = asked(&["ways"])
            .plan(&target(10 * GIB, GIB + GIB / 5), |_, call| Plan::within(call, 16 * GIB));
        let little = little.unwrap().unwrap();
        assert!(little.space_bytes_max() <= GIB / 5);
        assert!(
            asked(&["ways"])
                .plan(&target(10 * GIB, GIB / 2), |_, call| Plan::within(call, 16 * GIB))
                .is_err()
        );
        let large = Asked { size_bytes: Some(6 * GIB), ..asked(&["ways"]) };
        let error = large
            .plan(&target(10 * GIB, 10 * GIB), |_, call| Plan::within(call, 64 * GIB))
            .unwrap_err();
        assert!(error.to_string().contains("stays free"), "{error}");
    }

    #[test]
    fn ways_that_would_take_the_memory_are_left_out_and_named() {
        // W8
        let large = Asked { size_bytes: Some(10 * GIB), ..asked(&["ways"]) };
        let plan = plan(&large).unwrap();
        let left: Vec<&str> = plan.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert!(left.contains(&"ways/file/fs-write") && left.contains(&"ways/file/writer"));
        assert!(plan.ways.iter().any(|way| way.name == "ways/file/stream-8m"));
        // Chunk files are shorter.
        assert!(left.iter().all(|name| name.starts_with("ways/file/")), "{left:?}");
    }
}
