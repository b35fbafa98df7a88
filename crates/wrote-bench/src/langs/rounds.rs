//! The comparison: every place, every workload, every program in turn.

mod file;
mod ranks;
mod table;
#[cfg(test)]
mod tests;

use super::Request;
use super::build::{BuiltProgram, COMPILER_TIMEOUT, build};
use super::catalogue::{Candidate, catalogue};
use super::drive;
use super::pace::Rate;
use super::plan::{PlacePlan, Plan, fixed};
use super::workload::{Table, Task};
use crate::bench::report_leftovers;
use crate::progress::{Observer, Ticker};
use crate::scratch::Scratch;
use crate::site::{Clock, SinceStart, Site};
use itertools::Itertools;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use wrote_jobs::machine::target::{device_of, shown_target};
use wrote_jobs::machine::{host, watch as machine};
use wrote_jobs::peers::{Alone, Peers};
use wrote_result::document::{Program, RankFiles};
use wrote_result::langs::{Document, Language, Place, SCHEMA, State};
use wrote_result::{Error, Stop};

#[derive(Clone, Debug)]
struct Contestant {
    program: usize,
    id: String,
    name: String,
    built: BuiltProgram,
    tasks: Vec<Task>,
}

/// State shared by all tables of all places.
#[derive(Clone, Copy, Debug)]
struct Crew<'a> {
    tables: &'a [Table],
    ready: &'a [Contestant],
    /// The runs of each place's drive, and their time.
    drives: &'a [(u32, Duration)],
    timeout: Duration,
    /// The time of each place, if amounts depend on it.
    within: Duration,
    /// The time since the program's start.
    clock: &'a dyn Clock,
    /// The programs' working folder.
    folder: &'a Path,
    stop: &'a Stop,
    /// The ranks, which run each program simultaneously.
    peers: &'a dyn Peers,
}

struct LangsReporter<'a> {
    ticker: Ticker<'a>,
    /// Why the first failing table could not be measured.
    failed: Option<String>,
    /// The rates of saves, by task and program.
    rates: HashMap<(Task, usize), Rate>,
}

/// Measures the languages.
///
/// A program's fault (a crash, a hang, a wrong byte, a false report) is recorded for it alone.
/// Other programs' results stay valid.
///
/// # Errors
///
/// [`Error::Usage`] for an invalid request or if no requested language is installed,
/// [`Error::Interrupted`] if `stop` is raised, else [`Error::Failed`].
pub fn langs(
    request: &Request,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Document, Error> {
    langs_by(&Alone, request, stop, observer)
}

/// Measures as one of several ranks, each of which runs the programs. All make the same request,
/// but paths may differ. Rank 0 gets the combined result.
///
/// # Errors
///
/// Like [`langs`]. If any rank fails, all end.
pub fn langs_by(
    peers: &dyn Peers,
    request: &Request,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Document, Error> {
    let began = request.began.unwrap_or_else(Instant::now);
    let started_at = format!("{:.0}", jiff::Timestamp::now());
    let mut plan = Plan::new(request, peers)?;
    let (chosen, mut languages) = catalogue(&request.add)?.choose(request, stop)?;
    refuse_nobody(&chosen, &languages)?;
    refuse_idlers(&chosen, &plan.tables)?;
    for missing in languages.iter().filter(|language| language.state == State::Missing) {
        observer.note(&missing_text(missing));
    }
    for path in &request.paths {
        if peers.is_first() {
            report_leftovers(path, observer);
        }
    }
    // Detects a read-only folder before minutes are spent measuring the first one.
    let scratches = request.paths.iter().map(|path| Scratch::make_for(path, peers));
    let scratches: Vec<Scratch> = scratches.collect::<Result<_, Error>>()?;
    let programs = |task| chosen.iter().filter(|chosen| chosen.does(task)).count();
    let announcement = plan.announcement(scratches[0].path(), programs);
    observer.announce(&announcement);
    let ticker = Ticker::new(observer, announcement.runs, announcement.estimated);
    let mut reporter = LangsReporter { ticker, failed: None, rates: HashMap::new() };
    let ready = build_in_turn(&chosen, request, peers, &mut languages, stop, &mut reporter)?;
    let folder = tempfile::TempDir::new()
        .map_err(|error| Error::Failed(format!("no folder can be made for programs: {error}")))?;
    // Without a program the drives are not measured.
    let drive = |place: &PlacePlan| {
        place
            .drive
            .as_ref()
            .filter(|_| !ready.is_empty())
            .map_or((0, Duration::ZERO), |drive| (drive.runs_total(), drive.time(None)))
    };
    let drives: Vec<(u32, Duration)> = plan.places.iter().map(drive).collect();
    let crew = Crew {
        tables: &plan.tables,
        ready: &ready,
        drives: &drives,
        timeout: request.timeout,
        within: request.within,
        clock: &SinceStart(began),
        folder: folder.path(),
        stop,
        peers,
    };
    let mut places = Vec::new();
    for (number, (place, scratch)) in plan.places.iter_mut().zip(scratches).enumerate() {
        places.push(crew.measure(number, place, scratch, &mut reporter)?);
    }
    reporter.ticker.finish();
    if let Some(because) =
        reporter.failed.filter(|_| places.iter().all(|of| of.workloads.is_empty()))
    {
        return Err(Error::Failed(because));
    }
    Ok(Document {
        schema: SCHEMA.into(),
        wrote: Program::this(request.commit.clone()),
        started_at,
        elapsed_s: began.elapsed().as_secs_f64(),
        command: request.command.clone(),
        host: host::host(),
        ranks: peers.are_many().then(|| peers.places().shown(RankFiles::PerRank, None)),
        languages,
        places,
    })
}

/// Refuses a comparison without programs.
fn refuse_nobody(chosen: &[Candidate], languages: &[Language]) -> Result<(), Error> {
    if !chosen.is_empty() {
        return Ok(());
    }
    let missing = languages.iter().map(missing_text).join("; ");
    Err(Error::Usage(format!("nothing can be run: {missing}")))
}

/// Refuses programs if none supports a requested task.
fn refuse_idlers(chosen: &[Candidate], tables: &[Table]) -> Result<(), Error> {
    let works = |of: &Candidate| tables.iter().any(|table| of.does(table.task));
    if chosen.iter().any(works) {
        return Ok(());
    }
    let names = chosen.iter().map(|of| &of.variant.name).join(", ");
    Err(Error::Usage(format!("nothing can be run: none of these workloads is done by {names}")))
}

/// Describes a missing language: `Zig is missing (zig: not found): pip install ziglang`.
fn missing_text(language: &Language) -> String {
    let because = language.because.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let install = language.install.as_ref().map_or_else(String::new, |how| format!(": {how}"));
    format!("{} is missing{because}{install}", language.name)
}

/// Builds every program, or reuses its build. Notes failures.
fn build_all(
    chosen: &[Candidate],
    cache: &Path,
    languages: &mut [Language],
    stop: &Stop,
    reporter: &mut LangsReporter,
) -> Result<Vec<Contestant>, Error> {
    let mut ready = Vec::new();
    for (program, of) in chosen.iter().enumerate() {
        stop.check()?;
        let (id, name) = (of.variant.id.clone(), of.variant.name.clone());
        reporter.ticker.within(&format!("building {name}"), 0.0);
        match build(of, cache, stop)? {
            Ok(built) => {
                let tasks = Task::ALL.into_iter().filter(|task| of.does(*task)).collect();
                ready.push(Contestant { program, id, name, built, tasks });
            }
            Err(because) => {
                reporter.ticker.note(&format!("{name} could not be built: {because}"));
                if let Some(language) = languages.iter_mut().find(|known| known.id == id) {
                    language.state = State::BuildFailed;
                    language.because = Some(because);
                }
            }
        }
    }
    Ok(ready)
}

/// Builds the programs on rank 0 first, then on the others, which reuse them if they share the
/// folder. A program that any rank can't build is left out on all.
fn build_in_turn(
    chosen: &[Candidate],
    request: &Request,
    peers: &dyn Peers,
    languages: &mut [Language],
    stop: &Stop,
    reporter: &mut LangsReporter,
) -> Result<Vec<Contestant>, Error> {
    let ids: Vec<String> = chosen.iter().map(|of| of.variant.id.clone()).collect();
    let first = peers.of_first("the languages", ids.clone())?;
    if first != ids {
        let (ours, theirs) = (ids.join(", "), first.join(", "));
        return Err(Error::Failed(format!("{ours} can be run here, and {theirs} on rank 0")));
    }
    // The other ranks are idle, and can't know how long it takes.
    let patience = COMPILER_TIMEOUT * chosen.len() as u32;
    if !peers.is_first() {
        peers.barrier_within(patience, "the builds of rank 0")?;
    }
    let mut ready = build_all(chosen, &request.cache, languages, stop, reporter)?;
    if peers.is_first() {
        peers.barrier("the builds of rank 0")?;
    }
    let built: Vec<usize> = ready.iter().map(|of| of.program).collect();
    let by_all = peers.agree_within(patience, "the builds", built, |all| {
        let by_all = |program: &usize| all.iter().all(|built| built.contains(program));
        Ok(all[0].iter().copied().filter(by_all).collect::<Vec<usize>>())
    })?;
    ready.retain(|of| by_all.contains(&of.program));
    Ok(ready)
}

impl Crew<'_> {
    /// Measures one place in a folder that is removed afterwards.
    fn measure(
        &self,
        number: usize,
        planned: &mut PlacePlan,
        scratch: Scratch,
        reporter: &mut LangsReporter,
    ) -> Result<Place, Error> {
        let target = &planned.target;
        let mut shown = shown_target(target, File::open(scratch.lock_file()).ok().as_ref());
        shown.limits = machine::limits(device_of(target));
        let site = Site {
            scenario: "langs",
            target,
            scratch: &scratch,
            stop: self.stop,
            clock: self.clock,
            keep: false,
            peers: self.peers,
            together: None,
            ranks: Default::default(),
        };
        let drive = match planned.drive.take() {
            // Without a program the drive's rate is not needed.
            Some(cells) if !self.ready.is_empty() => {
                self.expect(&mut reporter.ticker, self.drives[number].0, (number, 0));
                drive::measure(cells, &site, &mut reporter.ticker)?
            }
            _ => None,
        };
        let mut workloads = Vec::new();
        let is_done = |&table: &usize| self.programs(&self.tables[table]) > 0;
        for table in (0..self.tables.len()).filter(is_done) {
            let runs = self.runs(&self.tables[table]);
            self.expect(&mut reporter.ticker, runs, (number, table + 1));
            if self.is_late(number, table)? {
                let name = self.tables[table].name();
                let within_s = self.within.as_secs_f64();
                reporter.ticker.note(&format!("{name} is left out: no time within {within_s} s"));
                continue;
            }
            match table::measure(self, (number, table), planned, &site, reporter) {
                Ok(workload) => workloads.extend(workload),
                // A full or missing disk affects only this table.
                Err(Error::Failed(because)) if !self.peers.are_many() => {
                    let (name, path) = (self.tables[table].name(), planned.path.display());
                    reporter.ticker.note(&format!("{name} is left out in {path}: {because}"));
                    reporter.failed.get_or_insert(because);
                }
                Err(error) => return scratch.end_for(self.peers, Err(error)),
            }
        }
        self.expect(&mut reporter.ticker, 0, (number, self.tables.len()));
        // A program's leftovers do not invalidate other programs' results.
        if let Err(left) = scratch.end_for(self.peers, Ok(())) {
            match self.peers.are_many() {
                true => return Err(left),
                false => reporter.ticker.note(&left.to_string()),
            }
        }
        Ok(Place { target: shown, drive, workloads })
    }
}

impl Crew<'_> {
    /// Counts the programs that support a table's task.
    fn programs(&self, table: &Table) -> usize {
        self.ready.iter().filter(|ready| ready.tasks.contains(&table.task)).count()
    }

    /// Passes the numbers of upcoming runs to the ticker: `runs` next ones, then the tables of this
    /// place from this one on, and the remaining places.
    fn expect(&self, ticker: &mut Ticker, runs: u32, (place, table): (usize, usize)) {
        let later = self.drives.len() - place - 1;
        let tables = self.tables[table..].iter().chain((0..later).flat_map(|_| self.tables));
        let tables = tables.map(|table| (self.runs(table), fixed(&(*table, self.programs(table)))));
        let behind = tables.chain(self.drives[place + 1..].iter().copied());
        let (count, time) = behind
            .fold((0, Duration::ZERO), |(count, time), (runs, takes)| (count + runs, time + takes));
        ticker.expect(runs + count, time / count.max(1));
    }

    /// Counts the runs of a table.
    fn runs(&self, table: &Table) -> u32 {
        table.runs * self.programs(table) as u32
    }

    /// Returns whether a place's time is over before a table whose amounts depend on the time.
    fn is_late(&self, place: usize, table: usize) -> Result<bool, Error> {
        let until = self.within * (place as u32 + 1);
        Ok(self.tables[table].in_time && self.now()? >= until)
    }

    /// Returns rank 0's time since the program's start. All ranks decide by it.
    fn now(&self) -> Result<Duration, Error> {
        self.peers.of_first("the time", self.clock.elapsed())
    }
}
