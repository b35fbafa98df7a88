//! The rows of the requested methods, and the sizes of their files.

use super::{CHUNK, FILE, NAME, WAYS, Way};
use crate::calibration::Wanted;
use crate::plan::{Call, Plan, RUNS, RowSpec};
use std::time::Duration;
use wrote_jobs::machine::{host, target};
use wrote_result::Error;
use wrote_result::document::{Row, View};

const QUESTION: &str =
    "How fast is a whole file written by each usual method, and what does that cost?";
const MIB: u64 = 1 << 20;
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The minimum file size on any disk. A smaller file would disappear in the disk's caches.
const FILE_BYTES_MIN: u64 = 16 * MIB;
/// The maximum size of a file of chunks, enough to show differences between chunk sizes.
const CHUNK_BYTES_MAX: u64 = 256 * MIB;
/// The time that all runs together write, at the measured speed.
const ALL_RUNS_S: f64 = 60.0;
/// The assumed speed of a disk before it is measured.
const USUAL_BYTES_PER_S: f64 = 1e9;

/// The sizes of the files, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The size of the source, and of each whole file.
    pub file_bytes: u64,
    /// The size of each file in the workload of chunks.
    pub chunk_bytes: u64,
}

/// The methods and file sizes of the rows. The runs are in the module `rounds`.
pub(super) struct Runs {
    pub ways: Vec<&'static Way>,
    pub sizes: Sizes,
}

/// Plans the requested rows; `None` if there are none. The scenario is measured only on request,
/// so that the default run is short.
pub(super) fn plan(call: &Call) -> Result<Option<Plan<'static>>, Error> {
    within(call, host::memory().bytes)
}

fn within(call: &Call, memory_bytes: u64) -> Result<Option<Plan<'static>>, Error> {
    let ways: Vec<&Way> = WAYS.iter().filter(|way| call.names(NAME, way.name)).collect();
    if ways.is_empty() {
        return Ok(None);
    }
    let runs = call.common.runs.unwrap_or(RUNS);
    let largest_bytes = largest_bytes(call, &ways, runs, memory_bytes)?;
    target::check_room(2 * largest_bytes, largest_bytes, call.target)?;
    // In practice, the kernel kills programs that take so much memory (W8).
    let largest = Sizes::of_file(largest_bytes);
    let fits = |way: &&Way| !way.kind.holds_input() || largest.of(way) <= memory_bytes / 2;
    let (ways, too_large): (Vec<&Way>, Vec<&Way>) = ways.into_iter().partition(fits);
    let because = "the whole file in memory would be more than half of the machine's";
    let bytes_per_s = call.speed.map(|speed| speed.bytes_per_s);
    let sizes = match (call.common.size_bytes, bytes_per_s) {
        (None, Some(bytes_per_s)) => sizes(&ways, runs, largest_bytes, bytes_per_s),
        _ => largest,
    };
    let row = |way: &&Way| {
        let row = Row {
            name: way.name.into(),
            workload: way.workload.into(),
            way: way.words.into(),
            view: Some(View::Files),
            cell: way.cell(),
            survives: Some(call.target.survives(way.acknowledged())),
            ..Row::default()
        };
        let bytes_max = sizes.of(way);
        let time_s = bytes_max as f64 / bytes_per_s.unwrap_or(USUAL_BYTES_PER_S);
        let time = Duration::from_secs_f64(time_s);
        RowSpec { row, time, bytes_max, makes_files: true, ..RowSpec::default() }
    };
    let rows = ways.iter().map(row).collect();
    Ok(Some(Plan {
        left_out: too_large.iter().map(|way| (way.name.into(), because.into())).collect(),
        runs,
        // The source and the file of a run exist at the same time.
        space_bytes: 2 * largest_bytes,
        prepared_bytes: sizes.file_bytes,
        wants: Wanted::Stream,
        ..Plan::new(NAME, QUESTION, rows, Runs { ways, sizes })
    }))
}

/// Returns the maximum size of a file, or the exact size if one is requested.
fn largest_bytes(call: &Call, ways: &[&Way], runs: u32, memory_bytes: u64) -> Result<u64, Error> {
    let wear = call.common.written_bytes_max(call.target);
    let usual = FILE_BYTES_MAX
        .min(target::room_bytes(call.target) / 2)
        .min(memory_bytes / 4)
        .min(file_bytes_of(wear, ways, runs))
        .max(MIB);
    match call.common.size_bytes.unwrap_or(usual) / MIB * MIB {
        0 => Err(Error::Usage(format!("--size: {NAME} needs at least 1 MiB"))),
        bytes => Ok(bytes),
    }
}

/// Returns the sizes of the files on a disk of this speed.
fn sizes(ways: &[&Way], runs: u32, largest_bytes: u64, bytes_per_s: f64) -> Sizes {
    let wanted = file_bytes_of((bytes_per_s * ALL_RUNS_S) as u64, ways, runs);
    let wanted = wanted.max(FILE_BYTES_MIN).min(largest_bytes);
    // The size of a file with more than one chunk is a multiple of the largest chunk.
    let unit = if wanted >= 16 * MIB { 8 * MIB } else { MIB };
    Sizes::of_file(wanted / unit * unit)
}

/// Returns the file size at which all runs and the source together write `bytes`.
fn file_bytes_of(bytes: u64, ways: &[&Way], runs: u32) -> u64 {
    let count = |workload: &str| ways.iter().filter(|way| way.workload == workload).count() as u64;
    // Below its maximum size, a file of chunks is as long as any other file.
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
    use crate::sample::{Asked, asked, place as target};
    use crate::{Calibration, Wear};

    const GIB: u64 = 1 << 30;

    fn plan(request: &Asked) -> Option<Plan<'static>> {
        request.plan(&target(1 << 40, 1 << 39), |_, call| within(call, 16 * GIB)).unwrap()
    }

    fn named(only: &[&str]) -> Vec<String> {
        plan(&asked(only)).unwrap().rows.into_iter().map(|spec| spec.row.name).collect()
    }

    /// Returns the plan for a disk of this speed.
    fn plan_at(request: &Asked, bytes_per_s: f64) -> Plan<'static> {
        let flush = Duration::from_millis(1);
        let speed = Calibration { bytes_per_s, flush, ..Calibration::default() };
        let plan = |_: &_, call: &Call| within(call, 16 * GIB);
        request.plan_at(Some(&speed), &target(1 << 40, 1 << 39), plan).unwrap().unwrap()
    }

    #[test]
    fn the_scenario_is_measured_only_when_it_is_asked_for() {
        assert!(plan(&asked(&[])).is_none());
        assert!(plan(&asked(&["ladder", "peak"])).is_none());
        assert_eq!(named(&["ways"]).len(), WAYS.len());
        let chunks = named(&["ways/chunk"]);
        assert!(chunks.len() == 12 && chunks.iter().all(|name| name.starts_with(CHUNK)));
        assert_eq!(named(&["ways/file/copy"]), ["ways/file/copy"]);
    }

    #[test]
    fn a_fast_disk_gets_a_gibibyte_and_a_slow_one_what_it_takes_in_a_minute() {
        // A requested number of runs is an amount, which removes the default limit on bytes.
        let request = Asked { runs: Some(5), ..asked(&["ways"]) };
        let fast = plan_at(&request, 10e9);
        assert_eq!((fast.rows[0].bytes_max, fast.rows[23].bytes_max), (GIB, GIB / 4));
        let slow = plan_at(&request, 100e6);
        let file_bytes = slow.rows[0].bytes_max;
        assert!(file_bytes < 100 * MIB && file_bytes.is_multiple_of(8 * MIB), "{file_bytes}");
        assert!(slow.written_bytes_max() <= 120 * 100_000_000);
        assert!((slow.rows[0].time.as_secs_f64() / (file_bytes as f64 / 100e6) - 1.0).abs() < 1e-6);
        assert_eq!(plan_at(&request, 1.0).rows[0].bytes_max, FILE_BYTES_MIN);
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
            request.planned(None).iter().map(Plan::written_bytes_max).sum::<u64>()
        };
        assert!(named(&["peak", "rand", "ways"]) <= 10_000_000_000);
        assert!(named(&["ways"]) > named(&["peak", "rand", "ways"]) / 2);
    }

    #[test]
    fn a_size_that_was_asked_for_is_the_size() {
        let request = Asked { size_bytes: Some(3 * GIB + 5), ..asked(&["ways"]) };
        assert_eq!(plan_at(&request, 1.0).rows[0].bytes_max, 3 * GIB);
        let none = Asked { size_bytes: Some(1000), ..asked(&["ways"]) };
        let refused = none.plan(&target(1 << 40, 1 << 39), |_, call| super::plan(call));
        assert!(matches!(refused.map(|_| ()), Err(Error::Usage(_))));
    }

    #[test]
    fn the_announced_bytes_bound_those_written_at_any_speed() {
        let announced = plan(&asked(&["ways"])).unwrap();
        for bytes_per_s in [1.0, 1e8, 1e12] {
            let plan = plan_at(&asked(&["ways"]), bytes_per_s);
            assert!(plan.written_bytes_max() <= announced.written_bytes_max());
            assert!(2 * plan.rows[0].bytes_max <= plan.space_bytes);
        }
    }

    #[test]
    fn a_full_disk_gets_smaller_files_or_none() {
        let little = asked(&["ways"])
            .plan(&target(10 * GIB, GIB + GIB / 5), |_, call| within(call, 16 * GIB));
        let little = little.unwrap().unwrap();
        assert!(little.space_bytes <= GIB / 5);
        assert!(
            asked(&["ways"])
                .plan(&target(10 * GIB, GIB / 2), |_, call| within(call, 16 * GIB))
                .is_err()
        );
        let large = Asked { size_bytes: Some(6 * GIB), ..asked(&["ways"]) };
        let error = large
            .plan(&target(10 * GIB, 10 * GIB), |_, call| within(call, 64 * GIB).map(|_| ()))
            .unwrap_err();
        assert!(error.to_string().contains("must stay free"), "{error}");
    }

    #[test]
    fn ways_that_would_take_the_memory_are_left_out_and_named() {
        // W8
        let large = Asked { size_bytes: Some(10 * GIB), ..asked(&["ways"]) };
        let plan = plan(&large).unwrap();
        let left: Vec<&str> = plan.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert!(left.contains(&"ways/file/fs-write") && left.contains(&"ways/file/writer"));
        assert!(plan.rows.iter().any(|spec| spec.row.name == "ways/file/stream-8m"));
        // Files of chunks are shorter, so no row of chunks is left out.
        assert!(left.iter().all(|name| name.starts_with("ways/file/")), "{left:?}");
    }
}
