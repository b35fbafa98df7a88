//! Plans all runs: order, required space, time, and remaining time.

use super::Request;
use super::drive::cells;
use super::workload::{Content, LINE_BYTES, Table, Task, tables};
use crate::bench::share;
use crate::plan;
use crate::progress::Announcement;
use crate::scratch;
use crate::settings::{Common, positive};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote::device::{self, Target};
use wrote_jobs::machine::{held_memory, target};
use wrote_jobs::peers::Peers;
use wrote_result::{Error, units};

/// More than any disk holds.
const SIZE_BYTES_MAX: u64 = 1 << 50;
const SAVES_MAX: u64 = 1_000_000;
const LINES_MAX: u64 = SIZE_BYTES_MAX / LINE_BYTES;
/// The minimum space of a file on most file systems.
const BLOCK_BYTES: u64 = 4096;
/// When languages read as much as they can in their time, files of several sizes exist. The largest
/// of 1, 2 and 5 times each power of ten are together less than three times the longest file.
const READ_FILES: u64 = 3;

/// All decisions made before the first file.
pub(super) struct Plan {
    pub tables: Vec<Table>,
    pub places: Vec<PlacePlan>,
    /// The time of each place, if amounts depend on it.
    pub within: Duration,
}

pub(super) struct PlacePlan {
    /// The folder as given by the user.
    pub path: PathBuf,
    /// Its file system and device.
    pub target: Target,
    /// The cells that measure the drive's own rate.
    pub drive: Option<plan::Plan<'static>>,
    /// The most memory held for writes through the page cache.
    pub held_bytes: u64,
}

impl Plan {
    /// Plans `request` without creating a file.
    pub(super) fn new(request: &Request, peers: &dyn Peers) -> Result<Plan, Error> {
        positive("size", request.size_bytes_max(), SIZE_BYTES_MAX)?;
        positive("runs", request.runs.into(), Common::RUNS_MAX.into())?;
        positive("saves", request.saves_max().into(), SAVES_MAX)?;
        positive("lines", request.lines_max(), LINES_MAX)?;
        if request.timeout.is_zero() {
            return Err(Error::Usage("--timeout: no program is over in no time".into()));
        }
        if request.paths.is_empty() {
            return Err(Error::Usage("no folder to write in was given".into()));
        }
        let tables = tables(request);
        for path in &request.paths {
            scratch::check_writable(path)?;
        }
        let place = |path: &PathBuf| {
            let target = device::examine(path)?;
            let planned = PlacePlan::new(path, &share(&target, peers)?, &tables)?;
            Ok(PlacePlan { target, ..planned })
        };
        let places = request.paths.iter().map(place).collect::<Result<_, Error>>()?;
        Ok(Plan { tables, places, within: request.within })
    }

    /// Announces the run. `programs` counts a task's programs; `folder` is the run's first.
    pub(super) fn announcement(
        &self,
        folder: &Path,
        programs: impl Fn(Task) -> usize,
    ) -> Announcement {
        let drives = || self.places.iter().filter_map(|place| place.drive.as_ref());
        let places = self.places.len() as u32;
        let of_place = |place: &PlacePlan| place.space_bytes_max(&self.tables);
        let tables = || self.tables.iter().map(|table| (table, programs(table.task)));
        let in_each =
            tables().map(|(table, count)| written_bytes(table, count)).fold(0, u64::saturating_add);
        let of_drives: u64 = drives().map(|drive| drive.written_bytes_max()).sum();
        let written_bytes_max = in_each.saturating_mul(places.into()).saturating_add(of_drives);
        let runs: u32 = tables().map(|(table, count)| table.runs * count as u32).sum();
        let estimate: Duration = tables().map(|(table, count)| fixed(&(*table, count))).sum();
        Announcement {
            folder: folder.to_owned(),
            space_bytes_max: self.places.iter().map(of_place).max().unwrap_or(0),
            written_bytes_max,
            runs: runs * places + drives().map(plan::Plan::runs_total).sum::<u32>(),
            estimated: self.in_time(
                estimate * places + drives().map(|drive| drive.time(None)).sum::<Duration>(),
            ),
            estimated_slowed: Duration::ZERO,
        }
    }

    /// Returns the estimate, or the time of all places if it determines all amounts.
    fn in_time(&self, estimate: Duration) -> Duration {
        let all = self.within * self.places.len() as u32;
        if self.tables.iter().all(|table| table.in_time) { estimate.min(all) } else { estimate }
    }
}

impl PlacePlan {
    /// Refuses a folder whose disk has no room for the files.
    fn new(path: &Path, target: &Target, tables: &[Table]) -> Result<PlacePlan, Error> {
        let longest = |wanted: fn(&Table) -> bool| {
            let of = tables.iter().filter(|table| wanted(table));
            of.map(|table| table.content().len()).max().unwrap_or(0)
        };
        let bytes = longest(|table| matches!(table.task, Task::BytesWrite | Task::BytesRead));
        let is_read_in_time = |table: &Table| table.task == Task::BytesRead && table.in_time;
        let files = if tables.iter().any(is_read_in_time) { READ_FILES } else { 1 };
        let lines = longest(Table::is_of_lines);
        target::check_room(bytes * files, bytes, target)?;
        let budget = target::room_bytes(target);
        if lines > budget {
            return Err(Error::Failed(format!(
                "{}: the file of lines takes {}, and {} may be made there, so that 10 % of the \
                 file system or 5 GiB stay free. Free some space, or use fewer --lines",
                path.display(),
                units::bytes(lines),
                units::bytes(budget),
            )));
        }
        // A drive's rate is not a baseline for saved texts.
        let streams = bytes.max(lines);
        let drive = if streams > 0 { cells(target, streams)? } else { None };
        // It is released before the file is written, so both can use the same space.
        let held_bytes = held_memory::most_bytes(streams);
        Ok(PlacePlan { path: path.to_owned(), target: target.clone(), drive, held_bytes })
    }

    /// Returns the most bytes in the folder at once: one table's file, the drive's, or held memory.
    fn space_bytes_max(&self, tables: &[Table]) -> u64 {
        let files = tables.iter().map(files_bytes);
        let drive = self.drive.as_ref().map(|drive| drive.space_bytes);
        files.chain(drive).chain([self.held_bytes]).max().unwrap_or(0)
    }
}

/// Returns the most bytes of a table's files at once.
pub(super) fn files_bytes(table: &Table) -> u64 {
    let files = if table.task == Task::BytesRead && table.in_time { READ_FILES } else { 1 };
    in_blocks(&table.content()).saturating_mul(files)
}

/// Returns the most bytes that `programs` programs (and we for them) write for a table in one
/// place.
pub(super) fn written_bytes(table: &Table, programs: usize) -> u64 {
    let (file, runs) = (in_blocks(&table.content()), u64::from(table.runs));
    let before = table.before().map_or(0, |before| in_blocks(&before));
    match table.task {
        // Written once. A program that modifies it violates the protocol.
        Task::BytesRead => files_bytes(table),
        Task::BytesWrite | Task::Save | Task::SaveSync | Task::Lines | Task::Log => {
            let times = if table.task.is_save() { table.count } else { 1 };
            file.saturating_mul(times)
                .saturating_add(before)
                .saturating_mul(runs)
                .saturating_mul(programs as u64)
        }
    }
}

fn in_blocks(content: &Content) -> u64 {
    content.len().checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

/// Returns whether the programs of a table run in reverse order. Of tables with one round, every
/// second one does (M8).
pub(super) fn is_backwards(runs: u32, table: usize) -> bool {
    runs == 1 && table % 2 == 1
}

/// The estimate per byte, save, flush and line before the first run: an average language's.
const USUAL_BYTE_NS: u64 = 15;
const USUAL_SAVE_NS: u64 = 100_000;
const USUAL_FLUSH_NS: u64 = 2_500_000;
const USUAL_LINE_NS: u64 = 500;
/// The time to start a program, prepare its file and check it.
const BESIDE: Duration = Duration::from_millis(300);

/// Estimates a run before the first of its kind.
pub(super) fn usual(table: &Table) -> Duration {
    let each_ns = match table.task {
        Task::BytesWrite | Task::BytesRead => table.size.saturating_mul(USUAL_BYTE_NS),
        Task::Save => USUAL_SAVE_NS,
        Task::SaveSync => USUAL_SAVE_NS + USUAL_FLUSH_NS,
        Task::Lines => USUAL_LINE_NS,
        // A flush for a line of each task.
        Task::Log => USUAL_FLUSH_NS / 64,
    };
    BESIDE + Duration::from_nanos(each_ns.saturating_mul(table.count))
}

/// Estimates all runs of a table by its programs.
pub(super) fn fixed((table, programs): &(Table, usize)) -> Duration {
    usual(table) * table.runs * *programs as u32
}

#[cfg(test)]
mod tests {
    use super::super::workload::Kind;
    use super::*;
    use wrote_jobs::sample::place;

    const GIB: u64 = 1 << 30;

    fn request(folder: &Path) -> Request {
        Request::new(vec![folder.to_owned()], "/cache".into())
    }

    fn refused(request: &Request) -> String {
        match Plan::new(request, &wrote_jobs::peers::Alone) {
            Err(Error::Usage(text)) if text.lines().count() == 1 => text,
            other => panic!("{:?}", other.map(|_| ())),
        }
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let good = request(folder.path());
        let bad = |change: fn(&mut Request)| {
            let mut request = good.clone();
            change(&mut request);
            refused(&request)
        };
        assert!(bad(|request| request.size_bytes = Some(0)).contains("--size"));
        assert!(bad(|request| request.size_bytes = Some(u64::MAX)).contains("--size"));
        assert!(bad(|request| request.runs = 0).contains("--runs"));
        assert!(bad(|request| request.saves = Some(0)).contains("--saves"));
        assert!(bad(|request| request.lines = Some(u64::MAX)).contains("--lines"));
        assert!(bad(|request| request.timeout = Duration::ZERO).contains("--timeout"));
        assert!(bad(|request| request.paths.clear()).contains("folder"));
        // The second of two folders is refused before a file is created in the first.
        assert!(bad(|request| request.paths.push("/dev/null".into())).contains("not a folder"));
        assert!(folder.path().read_dir().unwrap().next().is_none());
    }

    #[test]
    fn of_single_rounds_every_second_table_is_backwards() {
        // M8
        let backwards = |runs| [0, 1, 2, 3].map(|table| is_backwards(runs, table));
        assert_eq!(backwards(1), [false, true, false, true]);
        assert_eq!(backwards(3), [false; 4]);
    }

    fn planned(request: &Request, target: &Target) -> Result<PlacePlan, Error> {
        PlacePlan::new(Path::new("/data"), target, &tables(request))
    }

    #[test]
    fn a_disk_without_room_is_refused_in_one_line_that_says_what_would_do() {
        let asked = Request { lines: Some(1 << 30), ..request(Path::new("/data")) };
        let full = |workloads: &[Kind], free| {
            let request = Request { workloads: workloads.to_vec(), ..asked.clone() };
            let refused = planned(&request, &place(10 * GIB, free)).err()?.to_string();
            assert_eq!(refused.lines().count(), 1);
            Some(refused)
        };
        assert!(full(&[Kind::Bytes], GIB + (4 << 20)).unwrap().contains("--size"));
        assert!(full(&[Kind::Lines], 5 * GIB).unwrap().contains("--lines"));
        assert!(full(&[Kind::Bytes], 2 * GIB).is_none());
        assert!(full(&[Kind::Save], GIB + (4 << 20)).is_none());
    }

    #[test]
    fn the_drive_is_measured_only_beside_what_it_can_be_measured_against() {
        let of = |kind| Request { workloads: vec![kind], ..request(Path::new("/data")) };
        let disk = place(1 << 40, 1 << 39);
        assert!(planned(&of(Kind::Bytes), &disk).unwrap().drive.is_some());
        assert!(planned(&of(Kind::Lines), &disk).unwrap().drive.is_some());
        assert!(planned(&of(Kind::Save), &disk).unwrap().drive.is_none());
    }

    #[test]
    fn the_announced_bytes_are_those_that_all_programs_write() {
        let folder = tempfile::tempdir().unwrap();
        let asked = Request {
            workloads: vec![Kind::Bytes],
            size_bytes: Some(1 << 20),
            runs: 3,
            ..request(folder.path())
        };
        let mut plan = Plan::new(&asked, &wrote_jobs::peers::Alone).unwrap();
        plan.places[0].drive = None;
        plan.places[0].held_bytes = 5 << 20;
        let announced = plan.announcement(folder.path(), |_| 2);
        assert_eq!(announced.runs, 2 * 3 * 2);
        assert_eq!(announced.written_bytes_max, (2 * 3 + 1) << 20);
        assert_eq!(announced.space_bytes_max, 5 << 20);
        assert_eq!(announced.estimated, plan.tables.iter().map(usual).sum::<Duration>() * 6);
    }

    fn table(task: Task, size: u64, count: u64) -> Table {
        Table { task, size, count, runs: 1, cold: false, in_time: false }
    }

    #[test]
    fn the_time_of_the_largest_that_may_be_asked_for_is_some_time() {
        let large = table(Task::BytesWrite, u64::MAX, 1);
        assert!(usual(&large) > usual(&table(Task::BytesWrite, 1000, 1)));
        let sync = table(Task::SaveSync, 500, 1000);
        assert!(usual(&sync) > usual(&table(Task::Save, 500, 1000)));
    }
}
