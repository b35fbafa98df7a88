//! The comparison: every place, every workload, every program in turn.

mod file;
mod row;
mod table;
#[cfg(test)]
mod tests;

use super::Request;
use super::ahead::{Ahead, Cell};
use super::build::{Built, build};
use super::catalogue::{Chosen, catalogue};
use super::plan::{Plan, PlannedPlace};
use super::workload::{Table, Task};
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use wrote::Engine;
use wrote_bench::scratch::Scratch;
use wrote_bench::{Alone, Observer, Site, Ticker, report_leftovers};
use wrote_machine::target::{device_of, shown_target};
use wrote_machine::{host, watch as machine};
use wrote_result::document::Program;
use wrote_result::langs::{Document, Language, Place, SCHEMA, State};
use wrote_result::{Error, Stop};

/// A program that is ready to be run.
#[derive(Clone, Debug)]
struct Ready {
    /// Its number among all that were chosen.
    program: usize,
    /// The language's id, or the variant's.
    id: String,
    /// As it is shown.
    name: String,
    built: Built,
    /// What it does.
    tasks: Vec<Task>,
}

/// What all tables of all places share.
#[derive(Clone, Copy, Debug)]
struct Crew<'a> {
    tables: &'a [Table],
    ready: &'a [Ready],
    /// How many places there are.
    places: usize,
    /// How long one run may take.
    timeout: Duration,
    /// The folder that programs run in.
    folder: &'a Path,
    stop: &'a Stop,
}

/// What is told while the comparison goes on.
struct Told<'a> {
    ahead: Ahead,
    ticker: Ticker<'a>,
    /// Runs of scenarios beside ours that are ahead, and the time for them.
    beside: (u32, Duration),
    /// Why the first table could not be measured that could not.
    failed: Option<String>,
}

/// Measures, and says what it found.
///
/// Whatever a program does wrong (it crashes, hangs, writes a wrong byte, lies) is told of it alone, and the
/// others' results stand.
///
/// # Errors
///
/// [`Error::Usage`] when what was asked makes no sense or no language that was asked for is there,
/// [`Error::Interrupted`] when `stop` was raised, else [`Error::Failed`].
pub fn langs(
    request: &Request,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Document, Error> {
    let began = Instant::now();
    let started_at = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())
        .expect("the present is a time");
    let plan = Plan::new(request)?;
    let (chosen, mut languages) = catalogue(&request.add)?.choose(request, stop)?;
    refuse_nobody(&chosen, &languages)?;
    refuse_idlers(&chosen, &plan.tables)?;
    for missing in languages.iter().filter(|language| language.state == State::Missing) {
        observer.note(&missing_text(missing));
    }
    for path in &request.paths {
        report_leftovers(path, observer);
    }
    // A folder that can't be written to is found before the first is measured for minutes.
    let scratches = plan.places.iter().map(|place| Scratch::make(&place.target.path));
    let scratches: Vec<Scratch> = scratches.collect::<Result<_, Error>>()?;
    let ahead = Ahead::new(plan.places.len(), &plan.tables, chosen.len(), |program, task| {
        chosen[program].does(task)
    });
    let programs = |task| chosen.iter().filter(|chosen| chosen.does(task)).count() as u64;
    let announcement = plan.announcement(scratches[0].path(), &ahead, programs);
    observer.announce(&announcement);
    let ticker = Ticker::new(observer, announcement.runs, announcement.estimated);
    let mut told = Told { ahead, ticker, beside: beside(&plan), failed: None };
    let ready = build_all(&chosen, &request.cache, &mut languages, stop, &mut told)?;
    let folder = tempfile::TempDir::new()
        .map_err(|error| Error::Failed(format!("no folder can be made for programs: {error}")))?;
    let crew = Crew {
        tables: &plan.tables,
        ready: &ready,
        places: plan.places.len(),
        timeout: request.timeout,
        folder: folder.path(),
        stop,
    };
    let mut places = Vec::new();
    for (number, (place, scratch)) in plan.places.iter().zip(scratches).enumerate() {
        places.push(crew.measure(number, place, scratch, &mut told)?);
    }
    told.ticker.finish();
    if let Some(because) = told.failed.filter(|_| places.iter().all(|of| of.workloads.is_empty())) {
        return Err(Error::Failed(because));
    }
    Ok(Document {
        schema: SCHEMA.into(),
        wrote: Program::this(request.commit.clone()),
        started_at: started_at.to_string(),
        elapsed_s: began.elapsed().as_secs_f64(),
        command: request.command.clone(),
        host: host::host(Engine::probe_io_uring().err().unwrap_or_else(|| "yes".into())),
        languages,
        places,
    })
}

/// Refuses a comparison of nobody.
fn refuse_nobody(chosen: &[Chosen], languages: &[Language]) -> Result<(), Error> {
    if !chosen.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = languages.iter().map(missing_text).collect();
    Err(Error::Usage(format!("nothing can be run: {}", missing.join("; "))))
}

/// Refuses programs none of which does anything that was asked for.
fn refuse_idlers(chosen: &[Chosen], tables: &[Table]) -> Result<(), Error> {
    let works = |of: &Chosen| tables.iter().any(|table| of.does(table.task));
    if chosen.iter().any(works) {
        return Ok(());
    }
    let names: Vec<&str> = chosen.iter().map(|of| of.variant.name.as_str()).collect();
    Err(Error::Usage(format!(
        "nothing can be run: none of these workloads is done by {}",
        names.join(", ")
    )))
}

/// What is said of a language that is not there: `Zig is missing (zig: not found): pip install ziglang`.
fn missing_text(language: &Language) -> String {
    let because = language.because.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let install = language.install.as_ref().map_or_else(String::new, |how| format!(": {how}"));
    format!("{} is missing{because}{install}", language.name)
}

/// The runs of drives that are ahead, and the time for them.
fn beside(plan: &Plan) -> (u32, Duration) {
    let drives = || plan.places.iter().filter_map(|place| place.drive.as_ref());
    (drives().map(|drive| drive.runs).sum(), drives().map(|drive| drive.estimate).sum())
}

/// Builds every program, or finds it built. One that can't be built is told of, and is no longer ahead.
fn build_all(
    chosen: &[Chosen],
    cache: &Path,
    languages: &mut [Language],
    stop: &Stop,
    told: &mut Told,
) -> Result<Vec<Ready>, Error> {
    let mut ready = Vec::new();
    for (program, of) in chosen.iter().enumerate() {
        stop.check()?;
        let (id, name) = (of.variant.id.clone(), of.variant.name.clone());
        told.ticker.within(&format!("building {name}"), 0.0);
        match build(of, cache, stop)? {
            Ok(built) => {
                let tasks = Task::ALL.into_iter().filter(|task| of.does(*task)).collect();
                ready.push(Ready { program, id, name, built, tasks });
            }
            Err(because) => {
                told.note(&format!("{name} could not be built: {because}"));
                told.leave_out(|cell| cell.program == program);
                if let Some(language) = languages.iter_mut().find(|known| known.id == id) {
                    language.state = State::BuildFailed;
                    language.because = Some(because);
                }
            }
        }
    }
    Ok(ready)
}

impl Crew<'_> {
    /// Measures one place, in a folder that is gone afterwards.
    fn measure(
        &self,
        number: usize,
        planned: &PlannedPlace,
        scratch: Scratch,
        told: &mut Told,
    ) -> Result<Place, Error> {
        let target = &planned.target;
        let mut shown = shown_target(target, File::open(scratch.lock_file()).ok().as_ref());
        shown.limits = machine::limits(device_of(target));
        let site = Site {
            scenario: "langs",
            target,
            scratch: &scratch,
            stop: self.stop,
            keep: false,
            speed: &OnceLock::new(),
            peers: &Alone,
        };
        let drive = match &planned.drive {
            // Of a drive alone nobody asked.
            Some(planned) if !self.ready.is_empty() => {
                told.foresee();
                let drive = planned.measure(&site, &mut told.ticker)?;
                told.beside.0 -= planned.runs;
                told.beside.1 -= planned.estimate;
                drive
            }
            _ => None,
        };
        let mut workloads = Vec::new();
        for table in 0..self.tables.len() {
            match table::measure(self, (number, table), planned, &site, told) {
                Ok(workload) => workloads.extend(workload),
                // A disk that was filled or pulled out meanwhile spoils this, and nothing that was measured.
                Err(Error::Failed(because)) => {
                    let (name, path) = (self.tables[table].name(), planned.path.display());
                    told.note(&format!("{name} is left out in {path}: {because}"));
                    told.leave_out(|of| (of.place, of.table) == (number, table));
                    told.failed.get_or_insert(because);
                }
                Err(error) => return Err(error),
            }
        }
        // What a program left there is no reason to throw away what the others gave.
        if let Err(left) = scratch.remove() {
            told.note(&left.to_string());
        }
        Ok(Place { target: shown, drive, workloads })
    }
}

impl Told<'_> {
    /// A run begins; the last that were like it tell how long all of them will take.
    fn tick(&mut self, row: &str) {
        self.foresee();
        self.ticker.tick(row);
    }

    fn foresee(&mut self) {
        let (runs, time) = self.beside;
        self.ticker.foresee(self.ahead.runs_left() + runs, self.ahead.time_left() + time);
    }

    fn note(&mut self, text: &str) {
        self.ticker.note(text);
    }

    fn leave_out(&mut self, is_left_out: impl Fn(&Cell) -> bool) {
        let runs = self.ahead.leave_out(is_left_out);
        self.ticker.leave_out(runs);
    }
}
