//! One table in one place: every program in turn, each watched, and its file checked.

use super::super::ahead::Cell;
use super::super::answer::{self, Answer};
use super::super::plan::{PlacePlan, order};
use super::super::program::{self, Call};
use super::super::workload::Table;
use super::file::Subject;
use super::row::{self, RowBuilder};
use super::{Contestant, Crew, LangsReporter};
use std::time::Instant;
use wrote_bench::Site;
use wrote_jobs::clock::counters;
use wrote_machine::held_memory::HeldMemory;
use wrote_result::Error;
use wrote_result::langs::{Cache, Failure, Run, Workload};

/// The outcome of a run; `Err` is its program's failure, one line.
type RunOutcome = Result<(Run, Answer), String>;

struct Turns<'a> {
    crew: &'a Crew<'a>,
    site: &'a Site<'a>,
    table: &'a Table,
    subject: Subject<'a>,
    /// Memory for writes through the page cache.
    held: HeldMemory,
}

struct ProgramRuns<'a> {
    ready: &'a Contestant,
    so_far: RowBuilder,
    failed: Option<String>,
}

/// Runs every program of the task in turn (M8). A program that fails is not run again. Returns
/// `None` without such a program, or where the task cannot be done here, which is noted.
pub(super) fn measure(
    crew: &Crew,
    (place, number): (usize, usize),
    planned: &PlacePlan,
    site: &Site,
    reporter: &mut LangsReporter,
) -> Result<Option<Workload>, Error> {
    let mut turns = Turns::new(crew, site, &crew.tables[number], planned.held_bytes);
    let measured = turns.measure((place, number), planned, reporter);
    if measured.is_err() {
        // The next table must find no file of this one. The caller reports the failure.
        let _ = turns.finish();
    }
    measured
}

fn row_name(crew: &Crew, planned: &PlacePlan, table: &Table, ready: &Contestant) -> String {
    let (table, language) = (table.name(), &ready.name);
    let place =
        if crew.places == 1 { String::new() } else { format!(" in {}", planned.path.display()) };
    format!("{table}: {language}{place}")
}

impl<'a> Turns<'a> {
    fn new(crew: &'a Crew, site: &'a Site, table: &'a Table, held_bytes: u64) -> Turns<'a> {
        let wanted = if table.fills_page_cache() { table.run_bytes() } else { 0 };
        Turns {
            crew,
            site,
            table,
            subject: Subject::new(table, site),
            held: HeldMemory::new(site.file("held", 0), wanted.min(held_bytes)),
        }
    }

    fn measure(
        &mut self,
        (place, number): (usize, usize),
        planned: &PlacePlan,
        reporter: &mut LangsReporter,
    ) -> Result<Option<Workload>, Error> {
        let (crew, table) = (self.crew, self.table);
        let does = |ready: &&Contestant| ready.tasks.contains(&table.task);
        let new = |ready| ProgramRuns { ready, so_far: RowBuilder::new(), failed: None };
        let mut doing: Vec<ProgramRuns> = crew.ready.iter().filter(does).map(new).collect();
        for (turn, index) in order(doing.len(), table.runs, number).into_iter().enumerate() {
            let doing_so_far = turn / doing.len().max(1);
            let doing = &mut doing[index];
            if doing.failed.is_some() {
                continue;
            }
            let cell = Cell { place, table: number, program: doing.ready.program };
            let began = Instant::now();
            if let Err(because) = self.subject.make_ready()? {
                self.finish()?;
                let name = table.name();
                reporter
                    .note(&format!("{name} is left out in {}: {because}", planned.path.display()));
                reporter.leave_out(|of| (of.place, of.table) == (place, number));
                return Ok(None);
            }
            reporter.tick(&row_name(crew, planned, table, doing.ready));
            let dropped = table.runs > 1 && doing_so_far == 0;
            let ran = self.run(doing.ready, dropped)?;
            reporter.ahead.is_over(cell, began.elapsed());
            match ran {
                Ok((run, answer)) => doing.so_far.add(run, &answer),
                Err(because) => {
                    reporter.note(&format!("{}: {}: {because}", doing.ready.name, table.name()));
                    reporter.leave_out(|of| *of == cell);
                    doing.failed = Some(because);
                }
            }
        }
        self.finish()?;
        let spilled = self.subject.spilled();
        if let Some(because) = spilled {
            reporter.note(&format!("{} in {}: {because}", table.name(), planned.path.display()));
        }
        let cache = if spilled.is_some() { Cache::PartlyPageCache } else { table.cache() };
        Ok((!doing.is_empty()).then(|| workload(table, self.site, cache, doing)))
    }

    /// Runs a program once, on a prepared file, and cleans up.
    fn run(&mut self, ready: &Contestant, dropped: bool) -> Result<RunOutcome, Error> {
        self.held.take(self.site.stop)?;
        self.held.give_back()?;
        let ran = self.call(ready)?;
        let ran = match ran {
            Ok((run, answer)) => self.judge(&run, &answer)?.map(|()| (run, answer)),
            Err(because) => Err(because),
        };
        self.subject.is_done(ran.is_ok())?;
        Ok(ran.map(|(run, answer)| (Run { dropped, ..run }, answer)))
    }

    /// Runs the program, between two readings of the device's counters (M7).
    fn call(&self, ready: &Contestant) -> Result<RunOutcome, Error> {
        let path = self.subject.path();
        let call = Call {
            table: self.table,
            path: &path,
            folder: self.crew.folder,
            timeout: self.crew.timeout,
        };
        let before = counters(self.site.device());
        let ended = program::run(&ready.built, call, self.site.stop)?;
        let moved = counters(self.site.device()).zip(before);
        let moved = moved.map(|(after, before)| after.since(&before));
        Ok(ended.and_then(|ended| {
            let answer = answer::parse(&ended.stdout)?;
            let run = Run {
                bytes: self.table.run_bytes(),
                elapsed_s: answer.elapsed_s(),
                process_s: ended.process_s,
                cpu_user_s: ended.cpu_user_s,
                cpu_system_s: ended.cpu_system_s,
                max_rss_bytes: ended.max_rss_bytes,
                device_written_bytes: moved.map(|moved| moved.written_bytes),
                device_read_bytes: moved.map(|moved| moved.read_bytes),
                dropped: false,
            };
            Ok((run, answer))
        }))
    }

    /// Checks the file, and then the program's report.
    fn judge(&self, run: &Run, answer: &Answer) -> Result<Result<(), String>, Error> {
        let says_whole = answer.bytes == self.table.timing_bytes();
        Ok(self
            .subject
            .check(says_whole)?
            .and_then(|()| answer::judge(answer, self.table, run.process_s)))
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.held.give_back()?;
        self.subject.clear()
    }
}

fn workload(table: &Table, site: &Site, cache: Cache, doing: Vec<ProgramRuns>) -> Workload {
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for ProgramRuns { ready, so_far, failed } in doing {
        match failed {
            Some(because) => failures.push(Failure { language: ready.id.clone(), because }),
            None => rows.extend(so_far.row(&ready.id, table.task.is_save())),
        }
    }
    row::sort(&mut rows);
    Workload {
        name: table.name(),
        words: table.words(),
        bytes: table.timing_bytes(),
        cache,
        survives: table.survives(site.target).map(Into::into),
        rows,
        failures,
    }
}
