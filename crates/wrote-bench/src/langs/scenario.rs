//! The scenario of `wrote langs`: a row for each program in each of its workloads, and one for the
//! drive as a yardstick.

use super::answer::{self, Answer};
use super::build::{BuiltProgram, Shelf, build_all};
use super::catalogue::{Candidate, DRIVE};
use super::file::Subject;
use super::program::{self, Call as ProgramCall};
use super::workload::{Table, Task, in_blocks, tables};
use super::{Request, order};
use crate::calibration;
use crate::plan::{Call, OneRun, Plan, Prepared, RowSpec, Turn, Within, Work};
use crate::progress::Ticker;
use crate::scenario::Scenario;
use crate::site::Site;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;
use wrote::Survives;
use wrote::device::Target;
use wrote_jobs::clock::clocked;
use wrote_jobs::findings::Evidence;
use wrote_jobs::histogram;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::machine::foreign::SAMPLE;
use wrote_jobs::machine::held_memory::{self, HeldMemory};
use wrote_jobs::machine::target;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::{JobSpec, READ, WRITE};
use wrote_result::document::{self, Direction, Fallback, Language, Row, Run, View};
use wrote_result::{Error, units};

pub(super) const NAME: &str = "langs";
const QUESTION: &str = "What does each language's own file I/O cost?";
/// The block size and the queue depth at which most drives stream fastest.
const DRIVE_BS_BYTES: u64 = 512 << 10;
const DRIVE_IODEPTH: u32 = 64;
/// The minimum and the maximum length of the drive's file, which is otherwise as long as the
/// languages' file. The minimum keeps the drive busy at this depth. The maximum is enough to
/// measure a rate; a longer file would take more time, because it is written once before the first
/// run.
const DRIVE_BYTES: [u64; 2] = [64 << 20, 128 << 20];
/// The time to start a program, to prepare and check its file, and to take the sample after its
/// run.
const BESIDE: Duration = Duration::from_millis(100).saturating_add(SAMPLE);
const SLICE_MIN: Duration = Duration::from_millis(50);
/// The minimum length of a trial, as a part of a slice. A shorter trial is not representative, so a
/// longer one follows.
const TRIAL_PART: f64 = 0.25;
/// The minimum factor between the amounts of consecutive trials.
const TRIAL_GROWTH_MIN: u64 = 4;
/// An upper bound of the total amount of a row's trials, as a multiple of the row's maximum amount.
const TRIALS: u64 = 2;
/// The maximum excess over a slice, as a part of it, so that the amount is a round number.
const EXCESS: f64 = 0.1;
/// An upper bound of the total length of the files to read, as a multiple of the longest file. Each
/// length is 1, 2 or 5 times a power of ten.
const READ_FILES: u64 = 3;
/// The number of alternative names for a file, in case a program leaves folders in its place.
const FILE_NUMBERS: u32 = 1000;

/// The comparison of a request's programs.
#[derive(Clone)]
pub(super) struct Comparison {
    pub request: Request,
    pub chosen: Vec<Candidate>,
    /// The report on each language.
    pub languages: Rc<RefCell<Vec<Language>>>,
}

impl Scenario for Comparison {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        Ok(vec![Programs::new(self, call.target)?.plan(call.target)])
    }

    fn answers(&self, evidence: &Evidence) -> Vec<document::Answer> {
        ANSWERED.iter().filter_map(|asked| best(evidence, *asked)).collect()
    }
}

/// The workloads that have an answer, each with its question.
const ANSWERED: [(&str, &str); 5] = [
    ("langs/bytes-write", "Writes byte by byte"),
    ("langs/bytes-read", "Reads byte by byte"),
    ("langs/save-sync-500", "Synced saves"),
    ("langs/lines", "Lines appended"),
    ("langs/log", "Durable lines"),
];

/// Returns the answer for a workload: the fastest language, with its share of the drive's rate and
/// its lead over the slowest language; `None` if no language has a row.
fn best(evidence: &Evidence, (workload, question): (&str, &str)) -> Option<document::Answer> {
    let rows = evidence.rows.iter().filter(|row| row.workload == workload);
    let (drive, mut rows): (Vec<&Row>, Vec<&Row>) = rows.partition(|row| row.short_name() == DRIVE);
    rows.sort_by(|one, other| order(one, other));
    let (best, slowest) = (*rows.first()?, *rows.last()?);
    let part = |drive: &&Row| {
        let percent = best.throughput() / drive.throughput() * 100.0;
        format!("{percent:.0} % of the drive")
    };
    let behind =
        (rows.len() > 1).then(|| format!("{} times {}", best.times(slowest), slowest.short_name()));
    let facts = [Some(best.short_name().to_owned()), drive.first().map(part), behind];
    let how = facts.into_iter().flatten().collect::<Vec<String>>().join(", ");
    let (question, row) = (question.into(), best.name.clone());
    Some(document::Answer { question, row, how, ..document::Answer::default() })
}

/// The runs of the programs.
struct Programs {
    of: Comparison,
    /// The build of each program in `chosen`, once it is built.
    built: Vec<Option<BuiltProgram>>,
    /// The open shelf, which keeps the programs' folders from being removed.
    shelf: Option<Shelf>,
    rows: Vec<LanguageRow>,
    /// The time of a run, including everything around it and its share of the row's trials.
    each: Duration,
    /// The length of the drive's file; 0 if there are no rows of the drive.
    drive_bytes: u64,
    /// The programs' files: the files to read, by length, and the file to write, at 0.
    files: BTreeMap<u64, Subject>,
    /// The working folder of programs, where runtimes leave crash reports.
    folder: Option<TempDir>,
    /// The number of bytes that trials wrote.
    trial_bytes: u64,
}

struct LanguageRow {
    table: Table,
    /// The index of the program in `chosen`; `None` for the drive.
    program: Option<usize>,
    /// The amount of each run, once the trials have found it, or the reason why they failed.
    amount: Outcome<u64>,
}

/// A program's report, which has been checked, and our measurements of the program.
struct ProgramRun {
    answer: Answer,
    cost: Run,
}

/// The result of a program, or the reason for its failure, in one line.
type Outcome<T> = Result<T, String>;

impl Programs {
    /// Returns the runs of the comparison. Refuses a disk without enough space for the files.
    fn new(comparison: &Comparison, target: &Target) -> Result<Programs, Error> {
        let chosen = &comparison.chosen;
        let tables = tables(&comparison.request);
        let drive_bytes = drive_bytes(&tables, target);
        let mut rows = Vec::new();
        for table in &tables {
            let does = |(number, of): (usize, &Candidate)| of.does(table.task).then_some(number);
            let programs: Vec<usize> = chosen.iter().enumerate().filter_map(does).collect();
            let is_of_drive = table.is_of_drive() && drive_bytes > 0 && !programs.is_empty();
            let drive = is_of_drive.then_some(None);
            for program in drive.into_iter().chain(programs.into_iter().map(Some)) {
                rows.push(LanguageRow { table: *table, program, amount: Ok(0) });
            }
        }
        let mut all = Programs {
            of: comparison.clone(),
            built: vec![None; chosen.len()],
            shelf: None,
            rows,
            each: Duration::ZERO,
            drive_bytes,
            files: BTreeMap::new(),
            folder: None,
            trial_bytes: 0,
        };
        all.divide(Duration::ZERO);
        check_room(&all, target)?;
        Ok(all)
    }

    /// Returns the plan of the rows. If amounts are fixed, the time is not limited.
    fn plan(self, target: &Target) -> Plan<'static> {
        let is_fixed = self.rows.iter().any(|row| !row.table.in_time);
        let [read, written] = self.file_bytes();
        // The held memory is released before a file is written.
        let others = written.max(held_memory::most_bytes(written));
        let of_programs = self.rows.iter().filter(|row| row.program.is_some());
        let trials = of_programs.map(|row| row.table.written_bytes_max().saturating_mul(TRIALS));
        let of_drive = self.rows.iter().filter(|row| row.program.is_none());
        let writes = of_drive.filter(|row| row.table.direction() == Direction::Write).count();
        let drive_bytes = self.drive_bytes.saturating_mul(1 + writes as u64);
        let prepared = trials.fold(read.saturating_add(drive_bytes), u64::saturating_add);
        Plan {
            runs: self.of.request.runs,
            within: Some(self.within()),
            is_whole: is_fixed && self.of.request.within.is_none(),
            space_bytes: read.saturating_add(others).saturating_add(self.drive_bytes),
            prepared_bytes: prepared,
            ..Plan::new(NAME, QUESTION, self.specs(target), self)
        }
    }

    /// Returns the specifications of the rows.
    fn specs(&self, target: &Target) -> Vec<RowSpec> {
        let spec = |(number, LanguageRow { table, program, .. }): (usize, &LanguageRow)| {
            let drive =
                format!("direct I/O, {} x {DRIVE_IODEPTH}", units::block_size(DRIVE_BS_BYTES));
            let way = program.map(|program| self.of.chosen[program].way_of(table.task).to_owned());
            let synced = Survives::of_write(table.is_synced(), program.is_none());
            let is_write = table.direction() == Direction::Write;
            let row = Row {
                name: format!("{}/{}", table.name(), self.id(number)),
                workload: table.name(),
                way: way.unwrap_or(drive),
                view: Some(if table.task.is_save() { View::Saves } else { View::Files }),
                direction: table.direction(),
                survives: is_write.then(|| target.survives(synced)),
                ..Row::default()
            };
            let time = if table.in_time { self.each } else { usual(table) };
            RowSpec {
                row,
                importance: number,
                time: time.saturating_sub(calibration::BESIDE),
                bytes_max: match program {
                    Some(_) => table.written_bytes_max(),
                    None if is_write => self.drive_bytes,
                    None => 0,
                },
                ..RowSpec::default()
            }
        };
        self.rows.iter().enumerate().map(spec).collect()
    }

    /// Divides the time that is left at `now` among the runs.
    fn divide(&mut self, now: Duration) {
        let runs = self.of.request.runs * self.rows.len() as u32;
        let until = self.within().until.saturating_sub(now);
        self.each = until / runs.max(1);
    }

    fn within(&self) -> Within {
        let asked = self.of.request.within.unwrap_or(Request::WITHIN);
        Within::new(asked, Duration::ZERO, true)
    }

    /// Returns the time of a run without its share of the row's trials.
    fn run_time(&self) -> Duration {
        let runs = self.of.request.runs;
        self.each * runs / (runs + 1)
    }

    /// Returns the time of a run by the program's clock.
    fn slice(&self) -> Duration {
        let each = self.run_time();
        each.saturating_sub(BESIDE).max(each / 2).max(SLICE_MIN)
    }

    fn id(&self, row: usize) -> &str {
        self.rows[row].program.map_or(DRIVE, |number| &self.of.chosen[number].variant.id)
    }

    /// Returns the maximum number of bytes that the files to read, and all other files, occupy at
    /// once.
    fn file_bytes(&self) -> [u64; 2] {
        let longest = |is_read: bool| {
            let of = self.rows.iter().map(|row| row.table);
            let of = of.filter(|table| (table.task == Task::BytesRead) == is_read);
            of.map(|table| in_blocks(&table.content())).max().unwrap_or(0)
        };
        [longest(true).saturating_mul(READ_FILES), longest(false)]
    }

    /// Runs a program with growing amounts until a run takes a good part of a slice, and returns
    /// the amount for a whole slice. These runs are not part of the result, and they also warm up
    /// the program.
    fn find_amount(&mut self, row: usize, site: &Site) -> Result<Outcome<u64>, Error> {
        let table = self.rows[row].table;
        let (most, slice_s) = (table.amount(), self.slice().as_secs_f64());
        let mut amount = table.first_amount().min(most);
        loop {
            let of = table.of(amount);
            let ran = match self.run_once(row, &of, site)? {
                Ok(ran) => ran,
                Err(because) => return Ok(Err(because)),
            };
            self.trial_bytes += if table.task == Task::BytesRead { 0 } else { of.run_bytes() };
            if !table.in_time {
                return Ok(Ok(most));
            }
            let elapsed_s = ran.answer.elapsed_s().max(1e-9);
            let fits = |time_s: f64| step(amount as f64 * time_s / elapsed_s).min(most);
            let next = fits(slice_s * TRIAL_PART);
            if next < amount.saturating_mul(TRIAL_GROWTH_MIN) {
                return Ok(Ok(fits(slice_s)));
            }
            amount = next;
        }
    }

    /// Prepares the file, and runs a program once between two readings of the device's counters
    /// (M7). Then checks the file and the program's report, and cleans up.
    fn run_once(
        &mut self,
        row: usize,
        table: &Table,
        site: &Site,
    ) -> Result<Outcome<ProgramRun>, Error> {
        let built = self.rows[row].program.and_then(|number| self.built[number].as_ref());
        let (Some(built), Some(folder)) = (built, &self.folder) else {
            return Ok(Err("was not built".into()));
        };
        let number = FILE_NUMBERS * self.files.len() as u32;
        let key = if table.task == Task::BytesRead { table.size } else { 0 };
        let file = self.files.entry(key).or_insert_with(|| Subject::new(number));
        if let Err(because) = file.make_ready(table, site)? {
            return Ok(Err(because));
        }
        if table.fills_page_cache() {
            let bytes = held_memory::most_bytes(table.run_bytes());
            let mut held = HeldMemory::new(site.file("held", 0), bytes);
            held.take(site.stop)?;
            held.give_back()?;
        }
        let path = file.path(site);
        let timeout = self.of.request.timeout;
        let call = ProgramCall { table, path: &path, folder: folder.path(), timeout };
        let program = || program::run(built, call, site.stop);
        let (ended, cost) = clocked(&site.timer()?, Usage::of_children, program)?;
        let ran = match ended.and_then(|ended| Ok((answer::parse(&ended.stdout)?, ended))) {
            Ok((answer, ended)) => {
                let says_whole = answer.bytes == table.timing_bytes();
                let checked = file.check(table, says_whole, site)?;
                let judged = checked.and_then(|()| answer::judge(&answer, table, ended.process_s));
                let cost = Run { max_rss_bytes: ended.max_rss_bytes, ..cost };
                judged.map(|()| ProgramRun { answer, cost })
            }
            Err(because) => Err(because),
        };
        file.is_done(table, ran.is_ok(), site)?;
        Ok(ran)
    }

    /// Does what a row needs only once, so that each of its turns takes about the same time: finds
    /// a program's amount, or lays out the drive's file.
    fn try_row(&mut self, row: &Row, number: usize, site: &Site) -> Result<(), Error> {
        let found = match self.rows[number].program {
            Some(_) => self.find_amount(number, site),
            None => self.run_drive(row, SLICE_MIN, site).map(|run| {
                self.trial_bytes += run.written_bytes;
                // Without direct I/O, the bytes may stay in the page cache.
                let because = || "there is no direct I/O here".to_owned();
                run.rows.first().map(|_| 0).ok_or_else(because)
            }),
        };
        self.rows[number].amount = match found {
            // The disk may be full. The first turn of the row reports this, and the other rows are
            // still measured.
            Err(Error::Failed(because) | Error::Usage(because)) => Err(because),
            found => found?,
        };
        Ok(())
    }

    /// Runs a program with its amount, and returns the row of the run. For saves, each timing is a
    /// latency.
    fn run_program(
        &mut self,
        row: &Row,
        (number, amount): (usize, u64),
        site: &Site,
    ) -> Result<Outcome<Repeated>, Error> {
        let table = &self.rows[number].table.of(amount);
        let ProgramRun { answer, cost } = match self.run_once(number, table, site)? {
            Ok(ran) => ran,
            Err(because) => return Ok(Err(because)),
        };
        let (bytes, elapsed_s) = (table.run_bytes(), answer.elapsed_s());
        let mut latencies = histogram();
        if table.task.is_save() {
            answer.elapsed_ns.iter().for_each(|ns| latencies.saturating_record(*ns));
        }
        let run = Run {
            bytes,
            elapsed_s,
            throughput_bytes_per_s: bytes as f64 / elapsed_s,
            iops: answer.elapsed_ns.len() as f64 / elapsed_s,
            ..cost
        };
        let spilled = self.files.get(&table.size).and_then(Subject::spilled);
        let spilled = spilled.filter(|_| table.task == Task::BytesRead).map(|because| Fallback {
            wanted: "the file in the page cache".into(),
            got: "a part of it".into(),
            because: because.into(),
        });
        let settings = table.settings(self.id(number));
        let (effective, fallbacks) = (settings.clone(), spilled.into_iter().collect());
        let mut all = OneRun { run, latencies, effective, fallbacks }.row(row, settings);
        if table.direction() == Direction::Read {
            all.written_bytes = 0;
        }
        Ok(Ok(all))
    }

    /// Streams with direct I/O, as fast as the drive can. Without direct I/O the result has no row,
    /// because the bytes may not leave the page cache.
    fn run_drive(&self, row: &Row, runtime: Duration, site: &Site) -> Result<Repeated, Error> {
        let read = row.direction == Direction::Read;
        let files = vec![site.file(DRIVE, 0)];
        let mut job = JobSpec::new(&row.name, if read { READ } else { WRITE }, DRIVE_BS_BYTES);
        (job.files.paths, job.files.file_bytes) = (files.clone(), Some(self.drive_bytes));
        (job.files.overwrite, job.io.iodepth) = (true, DRIVE_IODEPTH);
        job.pace.runtime = Some(runtime);
        (job.latencies, job.samples) = (false, false);
        // The run created the file, so it may overwrite it.
        let permissions = Permissions { overwrite: true, ..Permissions::default() };
        let group = site.run_jobs(&[job], permissions, &mut ())?;
        let of = |_, settings| Row { settings, ..row.clone() };
        let mut run = Repeated::of(&group, &site.before(&files, &files), of);
        run.rows.retain(|row| row.settings.effective.direct);
        Ok(run)
    }
}

impl Work for Programs {
    /// Builds the programs. A program that can't be built has no rows.
    fn prepare(&mut self, site: &Site, ticker: &mut Ticker) -> Result<Prepared, Error> {
        let mut languages = self.of.languages.borrow_mut();
        let of = &self.of;
        let (shelf, built) =
            build_all(&of.chosen, &of.request.cache, &mut languages, site.stop, ticker)?;
        (self.shelf, self.built) = (Some(shelf), built);
        drop(languages);
        self.folder = Some(TempDir::new().map_err(|error| {
            Error::Failed(format!("no folder can be made for programs: {error}"))
        })?);
        self.divide(site.clock.elapsed());
        let mut left_out = Vec::new();
        for (number, RowSpec { row, .. }) in self.specs(site.target).iter().enumerate() {
            if self.rows[number].program.is_some_and(|of| self.built[of].is_none()) {
                left_out.push((number, "its program was not built".into()));
                continue;
            }
            ticker.within(&format!("{}, a trial", row.name), 0.0);
            self.try_row(row, number, site)?;
        }
        Ok(Prepared { written_bytes: self.trial_bytes, left_out })
    }

    /// Performs a run. If the program or our part fails (the disk may be full), the result has no
    /// row, and the row gets no further runs. It keeps its earlier runs unless the program failed.
    fn run(
        &mut self,
        row: &Row,
        turn: Turn,
        site: &Site,
        ticker: &mut Ticker,
    ) -> Result<Repeated, Error> {
        let LanguageRow { program, amount, .. } = &self.rows[turn.row];
        let ran = match (program, amount.clone()) {
            (_, Err(because)) => Ok(Err(because)),
            (Some(_), Ok(amount)) => self.run_program(row, (turn.row, amount), site),
            (None, Ok(_)) => self.run_drive(row, self.slice(), site).map(Ok),
        };
        let (because, is_ours) = match ran {
            Ok(Ok(run)) => return Ok(run),
            Ok(Err(because)) => (because, false),
            Err(Error::Failed(because) | Error::Usage(because)) => (because, true),
            Err(error) => return Err(error),
        };
        ticker.note(&format!("{}: {because}", row.name));
        let id = self.id(turn.row);
        let mut languages = self.of.languages.borrow_mut();
        let language = languages.iter_mut().find(|language| language.id == id);
        if let Some(language) = language.filter(|_| !is_ours || turn.round == 0) {
            language.failures.insert(row.name.clone(), because);
        }
        Ok(Repeated::default())
    }

    fn is_void(&self, row: &Row) -> bool {
        self.of.languages.borrow().iter().any(|of| of.failures.contains_key(&row.name))
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&[site.file(DRIVE, 0)])?;
        self.files.values_mut().try_for_each(|file| file.clear(site))
    }
}

fn check_room(rows: &Programs, target: &Target) -> Result<(), Error> {
    let [read, written] = rows.file_bytes();
    let of = |wanted: fn(&Table) -> bool| {
        let tables = rows.rows.iter().map(|row| row.table).filter(wanted);
        tables.map(|table| table.content().len()).max().unwrap_or(0)
    };
    let (bytes, lines) = (of(|table| table.is_of_bytes()), of(Table::is_of_lines));
    match lines > bytes {
        true => target::check_room(written, 0, target),
        false if bytes > 0 => target::check_room(read.saturating_add(written), bytes, target),
        false => Ok(()),
    }
}

/// Returns the length of the drive's file; 0 if the file system is in memory or has too little
/// space, or if there is nothing to compare the drive with.
fn drive_bytes(tables: &[Table], target: &Target) -> u64 {
    let longest = tables.iter().filter(|table| table.is_of_drive()).map(Table::run_bytes).max();
    let [least, most] = DRIVE_BYTES;
    let bytes = longest.unwrap_or(0).clamp(least, most).min(target::room_bytes(target));
    let is_measured = longest.is_some() && !target.in_memory && bytes >= least;
    if is_measured { bytes / DRIVE_BS_BYTES * DRIVE_BS_BYTES } else { 0 }
}

/// Returns the time that an average language takes for a fixed amount. Nothing more specific is
/// known before a language runs.
fn usual(table: &Table) -> Duration {
    let each_ns: u64 = match table.task {
        Task::BytesWrite | Task::BytesRead => 15,
        Task::Save => 100_000,
        Task::SaveSync => 2_500_000,
        Task::Lines => 500,
        Task::Log => 40_000,
    };
    BESIDE + Duration::from_nanos(each_ns.saturating_mul(table.amount()))
}

/// Returns the largest of the numbers 1, 2 and 5 times a power of ten that exceeds `amount` by at
/// most [`EXCESS`]; at least 1.
fn step(amount: f64) -> u64 {
    let most = (amount * (1.0 + EXCESS)).clamp(1.0, 1e18);
    let power = 10_f64.powf(most.log10().floor());
    let digit = [5.0, 2.0, 1.0].into_iter().find(|digit| digit * power <= most).unwrap_or(1.0);
    (digit * power).round() as u64
}

#[cfg(test)]
mod tests;
