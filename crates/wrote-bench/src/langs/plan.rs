//! The plan: all runs, their order, their need of space and time, and the time that is left.

use super::Request;
use super::drive::cells;
use super::workload::{Content, LINE_BYTES, Table, Task, tables};
use crate::progress::Announcement;
use crate::request::{Common, positive};
use crate::rounds::in_turn;
use crate::scenario::Plan as DrivePlan;
use crate::scratch;
use crate::sharing::share;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote::device::{self, Target};
use wrote_jobs::peers::Peers;
use wrote_machine::{held_memory, space};
use wrote_result::{Error, units};

/// More than any disk holds.
const SIZE_BYTES_MAX: u64 = 1 << 50;
const SAVES_MAX: u64 = 1_000_000;
const LINES_MAX: u64 = SIZE_BYTES_MAX / LINE_BYTES;
/// The least space of a file, on most file systems.
const BLOCK_BYTES: u64 = 4096;
/// Languages that read as much as they can in their time need files of several sizes. The greatest
/// of 1, 2 and 5 times each power of ten are together less than three times the longest file.
const READ_FILES: u64 = 3;

/// All decisions that precede the first file.
pub(super) struct Plan {
    pub tables: Vec<Table>,
    pub places: Vec<PlacePlan>,
    /// The time of each place, where amounts are left to it.
    pub within: Duration,
}

pub(super) struct PlacePlan {
    /// The folder, as the user named it.
    pub path: PathBuf,
    /// The file system and device under it.
    pub target: Target,
    /// The cells that measure the drive's own rate.
    pub drive: Option<Box<dyn DrivePlan>>,
    /// The most memory that is held for writes through the page cache.
    pub held_bytes: u64,
}

impl Plan {
    /// Plans `request`, without making a file.
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
            scratch::check_folder(path)?;
        }
        let place = |path: &PathBuf| {
            let target = device::examine(path)?;
            let planned = PlacePlan::new(path, &share(&target, peers)?, &tables)?;
            Ok(PlacePlan { target, ..planned })
        };
        let places = request.paths.iter().map(place).collect::<Result<_, Error>>()?;
        Ok(Plan { tables, places, within: request.within })
    }

    /// Announces the run, where `does` counts the programs of a task; `folder` is the run's first.
    pub(super) fn announcement(
        &self,
        folder: &Path,
        ahead: &RunsAhead,
        programs: impl Fn(Task) -> u64,
    ) -> Announcement {
        let drives = || self.places.iter().filter_map(|place| place.drive.as_ref());
        let of_place = |place: &PlacePlan| place.space_bytes_max(&self.tables);
        let in_each: u64 = self
            .tables
            .iter()
            .map(|table| written_bytes(table, programs(table.task)))
            .fold(0, u64::saturating_add);
        let of_drives: u64 = drives().map(|drive| drive.written_bytes_max()).sum();
        let written_bytes_max =
            in_each.saturating_mul(self.places.len() as u64).saturating_add(of_drives);
        Announcement {
            folder: folder.to_owned(),
            space_bytes_max: self.places.iter().map(of_place).max().unwrap_or(0),
            written_bytes: Some(written_bytes_max),
            written_bytes_max,
            runs: ahead.runs_left() + drives().map(|drive| drive.runs_total()).sum::<u32>(),
            estimated: self.in_time(
                ahead.time_left() + drives().map(|drive| drive.estimate()).sum::<Duration>(),
            ),
        }
    }
}

impl Plan {
    /// Returns the estimate, or the time of all places where it decides all amounts.
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
        let lines = longest(|table| table.task == Task::Lines);
        space::check(bytes * files, bytes, target)?;
        let budget = space::room_bytes(target);
        if lines > budget {
            return Err(Error::Failed(format!(
                "{}: the file of lines takes {}, and {} may be made there, so that 10 % of the \
                 file system or 5 GiB stay free. Free some space, or use fewer --lines",
                path.display(),
                units::bytes(lines),
                units::bytes(budget),
            )));
        }
        // A drive's rate is no baseline of saved texts.
        let streams = bytes.max(lines);
        let drive = if streams > 0 { cells(target, streams)? } else { None };
        // It is given back before the file is written: both can use the same room.
        let held_bytes = held_memory::most_bytes(streams);
        Ok(PlacePlan { path: path.to_owned(), target: target.clone(), drive, held_bytes })
    }

    /// Returns the most bytes in the folder at once: one table's file, the drive's, or held memory.
    fn space_bytes_max(&self, tables: &[Table]) -> u64 {
        let of = |table: &Table| {
            let files = if table.task == Task::BytesRead && table.in_time { READ_FILES } else { 1 };
            in_blocks(&table.content()).saturating_mul(files)
        };
        let files = tables.iter().map(of);
        let drive = self.drive.as_ref().map(|drive| drive.space_bytes_max());
        files.chain(drive).chain([self.held_bytes]).max().unwrap_or(0)
    }
}

/// Returns the most bytes that `programs` programs, and we for them, write for a table in one
/// place.
fn written_bytes(table: &Table, programs: u64) -> u64 {
    let (file, runs) = (in_blocks(&table.content()), u64::from(table.runs));
    let before = table.before().map_or(0, |before| in_blocks(&before));
    match table.task {
        // Made once. A program that writes into it breaks the protocol.
        Task::BytesRead => file.saturating_mul(if table.in_time { READ_FILES } else { 1 }),
        Task::BytesWrite | Task::Lines | Task::Save | Task::SaveSync => {
            let times = if table.task.is_save() { table.count } else { 1 };
            file.saturating_mul(times)
                .saturating_add(before)
                .saturating_mul(runs)
                .saturating_mul(programs)
        }
    }
}

fn in_blocks(content: &Content) -> u64 {
    content.len().checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

/// Returns the order of runs of `programs` programs: every second round is backwards, and of tables
/// with one round every second table (M8).
pub(super) fn order(programs: usize, runs: u32, table: usize) -> Vec<usize> {
    let rounds_before = u32::from(runs == 1 && table % 2 == 1);
    let turns = in_turn(programs, rounds_before + runs).into_iter();
    turns.filter(|turn| turn.round >= rounds_before).map(|turn| turn.row).collect()
}

/// The estimate for one byte, one save, one flush and one line before the first run: the time of a
/// language in the middle of the field.
const USUAL_BYTE_NS: u64 = 15;
const USUAL_SAVE_NS: u64 = 100_000;
const USUAL_FLUSH_NS: u64 = 2_500_000;
const USUAL_LINE_NS: u64 = 500;
/// The time to start a program, to prepare its file and to check it.
const BESIDE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub place: usize,
    pub table: usize,
    pub program: usize,
}

#[derive(Clone, Debug)]
pub(super) struct RunsAhead {
    tables: Vec<Table>,
    runs_left: BTreeMap<Cell, u32>,
    /// The time of the last run of a program for a table, in any place.
    took: BTreeMap<(usize, usize), Duration>,
}

impl RunsAhead {
    /// Counts the runs in `places` places, where `does` tells which programs do which task.
    pub(super) fn new(
        places: usize,
        tables: &[Table],
        programs: usize,
        does: impl Fn(usize, Task) -> bool,
    ) -> RunsAhead {
        let mut runs_left = BTreeMap::new();
        for place in 0..places {
            for (table, of) in tables.iter().enumerate() {
                for program in (0..programs).filter(|program| does(*program, of.task)) {
                    runs_left.insert(Cell { place, table, program }, of.runs);
                }
            }
        }
        RunsAhead { tables: tables.to_vec(), runs_left, took: BTreeMap::new() }
    }

    pub(super) fn runs_left(&self) -> u32 {
        self.runs_left.values().sum()
    }

    pub(super) fn time_left(&self) -> Duration {
        let of = |(cell, runs): (&Cell, &u32)| {
            let known = self.took.get(&(cell.table, cell.program)).copied();
            known.unwrap_or_else(|| usual(&self.tables[cell.table])) * *runs
        };
        self.runs_left.iter().map(of).sum()
    }

    pub(super) fn is_over(&mut self, cell: Cell, took: Duration) {
        if let Some(runs) = self.runs_left.get_mut(&cell) {
            *runs = runs.saturating_sub(1);
        }
        self.took.insert((cell.table, cell.program), took);
    }

    /// Removes the runs for which `is_left_out` is true; returns their number.
    pub(super) fn leave_out(&mut self, is_left_out: impl Fn(&Cell) -> bool) -> u32 {
        let before = self.runs_left();
        self.runs_left.retain(|cell, _| !is_left_out(cell));
        before - self.runs_left()
    }
}

/// Estimates a run before the first of its kind.
fn usual(table: &Table) -> Duration {
    let each_ns = match table.task {
        Task::BytesWrite | Task::BytesRead => table.size.saturating_mul(USUAL_BYTE_NS),
        Task::Save => USUAL_SAVE_NS,
        Task::SaveSync => USUAL_SAVE_NS + USUAL_FLUSH_NS,
        Task::Lines => USUAL_LINE_NS,
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
    use wrote_machine::sample::place;

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
    fn what_makes_no_sense_is_refused_in_one_line() {
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
        // The second of two folders, before a file is made in the first.
        assert!(bad(|request| request.paths.push("/dev/null".into())).contains("not a folder"));
        assert!(folder.path().read_dir().unwrap().next().is_none());
    }

    #[test]
    fn every_second_round_is_backwards_and_of_single_rounds_every_second_table() {
        // M8
        assert_eq!(order(3, 3, 0), [0, 1, 2, 2, 1, 0, 0, 1, 2]);
        assert_eq!(order(3, 3, 1), [0, 1, 2, 2, 1, 0, 0, 1, 2]);
        assert_eq!(order(3, 1, 0), [0, 1, 2]);
        assert_eq!(order(3, 1, 1), [2, 1, 0]);
        assert_eq!(order(0, 6, 1), [0; 0]);
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
    fn what_is_announced_is_as_much_as_all_programs_write() {
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
        let ahead = RunsAhead::new(1, &plan.tables, 2, |_, _| true);
        let announced = plan.announcement(folder.path(), &ahead, |_| 2);
        assert_eq!(announced.runs, 2 * 3 * 2);
        assert_eq!(announced.written_bytes_max, (2 * 3 + 1) << 20);
        assert_eq!(announced.space_bytes_max, 5 << 20);
        assert_eq!(announced.estimated, ahead.time_left());
    }
}

#[cfg(test)]
mod ahead_tests {
    use super::*;

    fn table(task: Task, size: u64, count: u64, runs: u32) -> Table {
        Table { task, size, count, runs, cold: false, in_time: false }
    }

    /// Two places; the second program saves nothing.
    fn ahead() -> RunsAhead {
        let tables = [table(Task::Lines, 64, 1000, 6), table(Task::Save, 500, 1000, 1)];
        RunsAhead::new(2, &tables, 2, |program, task| program == 0 || task == Task::Lines)
    }

    #[test]
    fn only_what_a_program_does_is_ahead_of_it() {
        assert_eq!(ahead().runs_left(), 2 * (6 + 6 + 1));
    }

    #[test]
    fn what_was_seen_takes_the_place_of_what_was_guessed_in_every_place() {
        let mut ahead = ahead();
        let (lines, saves) = (usual(&ahead.tables[0]), usual(&ahead.tables[1]));
        assert_eq!(ahead.time_left(), lines * 24 + saves * 2);
        let took = Duration::from_secs(10);
        ahead.is_over(Cell { place: 0, table: 0, program: 1 }, took);
        assert_eq!(ahead.runs_left(), 25);
        assert_eq!(ahead.time_left(), lines * 12 + took * 11 + saves * 2);
    }

    #[test]
    fn what_is_given_up_is_ahead_no_more() {
        let mut ahead = ahead();
        let cell = Cell { place: 0, table: 0, program: 0 };
        ahead.is_over(cell, Duration::ZERO);
        assert_eq!(ahead.leave_out(|of| *of == cell), 5);
        assert_eq!(ahead.leave_out(|of| of.program == 1), 12);
        assert_eq!(ahead.leave_out(|_| true), 6 + 2);
        assert_eq!((ahead.runs_left(), ahead.time_left()), (0, Duration::ZERO));
    }

    #[test]
    fn the_time_of_the_largest_that_may_be_asked_for_is_some_time() {
        let large = table(Task::BytesWrite, u64::MAX, 1, 1);
        assert!(usual(&large) > usual(&table(Task::BytesWrite, 1000, 1, 1)));
        let sync = table(Task::SaveSync, 500, 1000, 1);
        assert!(usual(&sync) > usual(&table(Task::Save, 500, 1000, 1)));
    }
}
