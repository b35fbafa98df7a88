//! One table in one place: every program in turn, each watched, and its file checked.

use super::super::answer::Answer;
use super::super::pace::{Pace, share_of_run, share_of_table};
use super::super::plan::{Cell, PlacePlan, fixed, order};
use super::super::program::Call;
use super::super::workload::Table;
use super::super::{answer, program};
use super::file::Subject;
use super::ranks::{self, RunOutcome};
use super::{Contestant, Crew, LangsReporter};
use crate::budget::RUNS_MIN;
use crate::scenario::Site;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wrote_jobs::clock::{Together, counters, now_s};
use wrote_jobs::histogram;
use wrote_machine::held_memory::HeldMemory;
use wrote_result::langs::{Cache, Failure, Row, Run, Workload};
use wrote_result::{Error, stats};

/// The part of the time that is kept for what shares do not hold: files of reads, first looks that
/// take longer than a share, the removal of the folder.
const KEPT_PART: u32 = 10;
/// Names that one file may take, where a program leaves folders in place of its file.
const FILE_NUMBERS: u32 = 1000;

struct Turns<'a> {
    crew: &'a Crew<'a>,
    site: &'a Site<'a>,
    table: &'a Table,
    /// The files, by the amount that is moved.
    subjects: BTreeMap<u64, Subject<'a>>,
    /// Memory for writes through the page cache.
    held: HeldMemory,
    /// The time at which further rounds would take another table's share.
    until: Option<Duration>,
}

struct ProgramRuns<'a> {
    ready: &'a Contestant,
    so_far: RowBuilder,
    failed: Option<String>,
    pace: Pace,
    /// The whole time of its last run.
    took: Duration,
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

/// The time of one table: of all its runs, and of one.
struct TableTime {
    until: Option<Duration>,
    of_run: Duration,
}

impl TableTime {
    /// Divides the time that is left to a place between the tables ahead.
    fn of(
        crew: &Crew,
        (place, number): (usize, usize),
        programs: usize,
    ) -> Result<TableTime, Error> {
        let table = &crew.tables[number];
        let now = crew.now()?;
        let until = crew.within * (place as u32 + 1) - crew.within / KEPT_PART;
        let doing = |table: &Table| {
            crew.ready.iter().filter(|ready| ready.tasks.contains(&table.task)).count()
        };
        let ahead: Vec<(Table, usize)> =
            crew.tables[number..].iter().map(|table| (*table, doing(table))).collect();
        let fixed: Duration = ahead.iter().filter(|(table, _)| !table.in_time).map(fixed).sum();
        let left = until.saturating_sub(now).saturating_sub(fixed);
        let of_table = share_of_table(left, &ahead);
        Ok(TableTime {
            until: table.in_time.then_some(now + of_table),
            of_run: share_of_run(of_table, table, programs),
        })
    }
}

impl<'a> Turns<'a> {
    fn new(crew: &'a Crew<'a>, site: &'a Site<'a>, table: &'a Table, held_bytes: u64) -> Turns<'a> {
        let wanted = if table.fills_page_cache() { table.run_bytes() } else { 0 };
        Turns {
            crew,
            site,
            table,
            subjects: BTreeMap::new(),
            held: HeldMemory::new(site.file("held", 0), wanted.min(held_bytes)),
            until: None,
        }
    }

    fn measure(
        &mut self,
        (place, number): (usize, usize),
        planned: &PlacePlan,
        reporter: &mut LangsReporter,
    ) -> Result<Option<Workload>, Error> {
        let (crew, table) = (self.crew, self.table);
        let doing: Vec<&Contestant> =
            crew.ready.iter().filter(|ready| ready.tasks.contains(&table.task)).collect();
        let time = TableTime::of(crew, (place, number), doing.len())?;
        self.until = time.until;
        let new = |ready: &'a Contestant| {
            let known = reporter.rates.get(&(table.task, ready.program)).copied();
            let pace = Pace::new(*table, time.of_run, known.filter(|_| table.task.is_save()));
            let took = Duration::ZERO;
            ProgramRuns { ready, so_far: RowBuilder::new(), failed: None, pace, took }
        };
        let mut doing: Vec<ProgramRuns> = doing.into_iter().map(new).collect();
        for (turn, index) in order(doing.len(), table.runs, number).into_iter().enumerate() {
            let round = (turn / doing.len().max(1)) as u32;
            if turn.is_multiple_of(doing.len().max(1)) && self.is_out_of_time(round, &doing)? {
                reporter.leave_out(|of| (of.place, of.table) == (place, number));
                break;
            }
            let doing = &mut doing[index];
            if doing.failed.is_some() {
                continue;
            }
            let cell = Cell { place, table: number, program: doing.ready.program };
            let began = Instant::now();
            let name = row_name(crew, planned, table, doing.ready);
            let ran =
                match self.turn(doing, round, &mut |ticked| reporter.tick_once(&name, ticked))? {
                    Ok(ran) => ran,
                    Err(because) => {
                        self.finish()?;
                        let name = table.name();
                        reporter.note(&format!(
                            "{name} is left out in {}: {because}",
                            planned.path.display()
                        ));
                        reporter.leave_out(|of| (of.place, of.table) == (place, number));
                        return Ok(None);
                    }
                };
            doing.took = ranks::longest(crew.peers, began.elapsed())?;
            reporter.ahead.is_over(cell, doing.took);
            let rate = doing.pace.rate().filter(|_| table.in_time);
            reporter.rates.extend(rate.map(|rate| ((table.task, cell.program), rate)));
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
        let spilled = self.subjects.values().find_map(Subject::spilled);
        if let Some(because) = spilled {
            reporter.note(&format!("{} in {}: {because}", table.name(), planned.path.display()));
        }
        let cache = if spilled.is_some() { Cache::PartlyPageCache } else { table.cache() };
        Ok((!doing.is_empty()).then(|| workload(table, self.site, cache, doing)))
    }

    /// Whether another round would take another table's time. The least number of rounds is made in
    /// any time.
    fn is_out_of_time(&self, round: u32, doing: &[ProgramRuns]) -> Result<bool, Error> {
        let takes: Duration = doing.iter().map(|of| of.took).sum();
        let least = RUNS_MIN + u32::from(self.table.runs > 1);
        let Some(until) = self.until.filter(|_| round >= least) else { return Ok(false) };
        Ok(self.crew.now()? + takes > until)
    }

    /// Runs a program for one turn: as often as it takes to know its amount in its first turn, else
    /// once. `Ok(Err(..))`: the table cannot be measured here.
    fn turn(
        &mut self,
        doing: &mut ProgramRuns,
        round: u32,
        tick: &mut dyn FnMut(bool),
    ) -> Result<Result<RunOutcome, String>, Error> {
        let is_dropped = self.table.runs > 1 && round == 0;
        let mut last = None;
        while round == 0
            && let Some(of) = doing.pace.next_look()
        {
            match self.run_once(doing, of, round, &mut || tick(last.is_some()))? {
                Ok(Ok(ran)) => last = Some(ran),
                other => return Ok(other),
            }
        }
        // The last look is the run that is dropped, where one is.
        match last.take_if(|_| is_dropped) {
            Some(look) => Ok(Ok(Ok(look))),
            None => {
                let of = doing.pace.table();
                self.run_once(doing, of, round, &mut || tick(last.is_some()))
            }
        }
    }

    /// Prepares the file, and runs a program once.
    fn run_once(
        &mut self,
        doing: &mut ProgramRuns,
        of: Table,
        round: u32,
        tick: &mut dyn FnMut(),
    ) -> Result<Result<RunOutcome, String>, Error> {
        let (site, number) = (self.site, FILE_NUMBERS * self.subjects.len() as u32);
        let subject = self.subjects.entry(of.amount());
        let subject = subject.or_insert_with(|| Subject::new(of, site, number));
        let is_ready = subject.make_ready()?;
        if let Err(because) = ranks::all_or_none(self.crew.peers, is_ready)? {
            return Ok(Err(because));
        }
        tick();
        let began = Instant::now();
        let is_dropped = self.table.runs > 1 && round == 0;
        let ran = self.run(doing.ready, of, is_dropped)?;
        // All counted runs of a row move the same amount.
        if let (0, Ok((run, _))) = (round, &ran) {
            let took = ranks::longest(self.crew.peers, began.elapsed())?;
            doing.pace.is_over(of.amount(), took, run.elapsed_s);
        }
        Ok(Ok(ran))
    }

    /// Runs a program once, on a prepared file and between two readings of the device's counters
    /// (M7); checks the file and then the program's report, and cleans up.
    fn run(
        &mut self,
        ready: &Contestant,
        table: Table,
        dropped: bool,
    ) -> Result<RunOutcome, Error> {
        self.held.take(self.site.stop)?;
        self.held.give_back()?;
        let Turns { site, crew, .. } = *self;
        let table = &table;
        let subject = self.subjects.get_mut(&table.amount()).expect("it was made ready");
        let path = subject.path();
        let call = Call { table, path: &path, folder: crew.folder, timeout: crew.timeout };
        let together = Together::new(crew.peers);
        together.begin()?;
        let began_s = now_s();
        let before = counters(site.device());
        let ended = program::run(&ready.built, call, site.stop)?;
        let moved = counters(site.device()).zip(before);
        let moved = moved.map(|(after, before)| after.since(&before));
        let answered = ended.and_then(|ended| Ok((answer::parse(&ended.stdout)?, ended)));
        let ran = match answered {
            Ok((answer, ended)) => {
                let says_whole = answer.bytes == table.timing_bytes();
                let checked = subject.check(says_whole)?;
                let judged = checked.and_then(|()| answer::judge(&answer, table, ended.process_s));
                let run = Run {
                    bytes: table.run_bytes(),
                    elapsed_s: answer.elapsed_s(),
                    process_s: ended.process_s,
                    cpu_user_s: ended.cpu_user_s,
                    cpu_system_s: ended.cpu_system_s,
                    max_rss_bytes: ended.max_rss_bytes,
                    device_written_bytes: moved.map(|moved| moved.written_bytes),
                    device_read_bytes: moved.map(|moved| moved.read_bytes),
                    dropped,
                    ranks: None,
                };
                together.is_over((began_s, began_s + run.elapsed_s));
                judged.map(|()| (run, answer))
            }
            Err(because) => Err(because),
        };
        subject.is_done(ran.is_ok())?;
        let device = site.device().map_or(String::new(), |device| device.name.clone());
        ranks::merged(crew.peers, ran, &together.parts(), device)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.held.give_back()?;
        self.subjects.values_mut().try_for_each(Subject::clear)
    }
}

fn workload(table: &Table, site: &Site, cache: Cache, doing: Vec<ProgramRuns>) -> Workload {
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for ProgramRuns { ready, so_far, failed, .. } in doing {
        match failed {
            Some(because) => failures.push(Failure { language: ready.id.clone(), because }),
            None => rows.extend(so_far.row(&ready.id, table.task.is_save())),
        }
    }
    sort(&mut rows);
    let moved = rows.iter().flat_map(|row: &Row| &row.runs).map(|run| run.bytes).max();
    let bytes = if table.task.is_save() || !table.in_time { None } else { moved };
    Workload {
        name: table.name(),
        words: table.words(),
        bytes: bytes.unwrap_or_else(|| table.timing_bytes()),
        cache,
        survives: table.survives(site.target).map(Into::into),
        rows,
        failures,
    }
}

struct RowBuilder {
    runs: Vec<Run>,
    /// Latencies of all timings that count.
    latencies_ns: Histogram<u64>,
}

impl RowBuilder {
    fn new() -> RowBuilder {
        RowBuilder { runs: Vec::new(), latencies_ns: histogram() }
    }

    fn add(&mut self, run: Run, answer: &Answer) {
        if !run.dropped {
            for elapsed_ns in &answer.elapsed_ns {
                self.latencies_ns.saturating_record(*elapsed_ns);
            }
        }
        self.runs.push(run);
    }

    /// Builds the row of a language; `None` without a run that counts. Only saves have latencies.
    fn row(self, language: &str, is_save: bool) -> Option<Row> {
        let counts = || self.runs.iter().filter(|run| !run.dropped);
        counts().next()?;
        let values = |value: fn(&Run) -> f64| counts().map(value).collect::<Vec<f64>>();
        let sum = |value: fn(&Run) -> f64| counts().map(value).sum::<f64>();
        let cpu_s_per_gb =
            |run: &Run| (run.cpu_user_s + run.cpu_system_s) / (run.bytes as f64 / 1e9);
        Some(Row {
            language: language.into(),
            throughput_bytes_per_s: stats::interval(&values(|run| {
                run.bytes as f64 / run.elapsed_s
            })),
            throughput_mean_bytes_per_s: sum(|run| run.bytes as f64) / sum(|run| run.elapsed_s),
            cpu_s_per_gb: stats::median(&values(cpu_s_per_gb)),
            max_rss_bytes: self.runs.iter().filter_map(|run| run.max_rss_bytes).max(),
            latency_ns: is_save.then(|| stats::latency(&self.latencies_ns)),
            runs: self.runs,
        })
    }
}

/// Sorts the fastest first: by throughput, or by the median save where each save was timed.
fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| match (&a.latency_ns, &b.latency_ns) {
        (Some(a), Some(b)) => a.p50.cmp(&b.p50),
        _ => b.throughput_bytes_per_s.median.total_cmp(&a.throughput_bytes_per_s.median),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(elapsed_s: f64, dropped: bool) -> Run {
        Run {
            bytes: 1_000_000_000,
            elapsed_s,
            cpu_user_s: elapsed_s / 2.0,
            cpu_system_s: elapsed_s / 4.0,
            max_rss_bytes: Some((elapsed_s * 1e6) as u64),
            dropped,
            ..Run::default()
        }
    }

    fn row(runs: &[Run], elapsed_ns: &[u64], is_save: bool) -> Option<Row> {
        let mut so_far = RowBuilder::new();
        let answer = Answer { elapsed_ns: elapsed_ns.to_vec(), bytes: 1, sum: None };
        runs.iter().for_each(|run| so_far.add(run.clone(), &answer));
        so_far.row("go", is_save)
    }

    #[test]
    fn a_run_that_is_dropped_is_shown_and_counts_for_nothing_but_memory() {
        let runs = [run(10.0, true), run(1.0, false), run(2.0, false), run(4.0, false)];
        let row = row(&runs, &[1000], false).unwrap();
        assert_eq!(row.runs.len(), 4);
        assert_eq!(row.throughput_bytes_per_s.median, 0.5e9);
        let mean = row.throughput_mean_bytes_per_s;
        assert!((mean - 3e9 / 7.0).abs() < 1.0, "{mean}");
        assert_eq!(row.cpu_s_per_gb, 1.5);
        assert_eq!(row.max_rss_bytes, Some(10_000_000));
        assert_eq!(row.latency_ns, None);
    }

    #[test]
    fn of_saves_every_timing_is_told_and_none_of_a_run_that_is_dropped() {
        let runs = [run(1.0, true), run(1.0, false)];
        let latency = row(&runs, &[100, 200, 300], true).unwrap().latency_ns.unwrap();
        assert_eq!((latency.count, latency.min, latency.p50, latency.max), (3, 100, 200, 300));
    }

    #[test]
    fn a_language_without_a_run_that_counts_has_no_row() {
        assert!(row(&[], &[1], false).is_none());
        assert!(row(&[run(1.0, true)], &[1], false).is_none());
    }

    #[test]
    fn the_fastest_is_first_and_among_saves_the_one_with_the_shortest_median() {
        let named = |name: &str, elapsed_s, elapsed_ns: &[u64], is_save| {
            let row = row(&[run(elapsed_s, false)], elapsed_ns, is_save).unwrap();
            Row { language: name.into(), ..row }
        };
        let mut rows = [named("slow", 2.0, &[1], false), named("fast", 1.0, &[1], false)];
        sort(&mut rows);
        assert_eq!(rows[0].language, "fast");
        // One very slow save slows the whole, not the median save.
        let mut rows = [
            named("usually-slow", 1.0, &[50, 50, 50], true),
            named("usually-fast", 2.0, &[10, 10, 900], true),
        ];
        sort(&mut rows);
        assert_eq!(rows[0].language, "usually-fast");
    }
}
