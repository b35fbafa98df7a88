//! One table in one place: runs every program in turn, and checks its file.

use super::super::pace::{Pace, Rate, share_of_run, share_of_table};
use super::super::plan::{PlacePlan, fixed, is_backwards, usual};
use super::super::program::Call;
use super::super::workload::{Table, Task};
use super::super::{answer, program};
use super::file::Subject;
use super::ranks::{self, ProgramRun, RunOutcome};
use super::{Contestant, Crew, LangsReporter};
use crate::plan::{Plan, RUNS_MIN, RowSpec, Turn, Work};
use crate::progress::Ticker;
use crate::site::Site;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use wrote_jobs::clock::{Timer, Together, clocked, now_s};
use wrote_jobs::machine::held_memory::HeldMemory;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_result::langs::{Cache, Failure, Row, Run, Workload};
use wrote_result::{Error, document};

/// The fraction of the time reserved for work outside the shares: preparing files, trial runs
/// longer than a share, removing the folder.
const KEPT_PART: u32 = 10;
/// Alternative names for the file, if a program leaves folders in its place.
const FILE_NUMBERS: u32 = 1000;

/// The programs of one table, as rows that the common loop runs in turn.
struct TablePlan<'a> {
    crew: &'a Crew<'a>,
    site: &'a Site<'a>,
    table: &'a Table,
    programs: Vec<ProgramRuns<'a>>,
    /// The rates of saves, by task and program.
    rates: &'a mut HashMap<(Task, usize), Rate>,
    /// The files, by amount.
    subjects: BTreeMap<u64, Subject<'a>>,
    /// Memory for writes through the page cache.
    held: HeldMemory,
    /// When further rounds would use another table's share.
    until: Option<Duration>,
    /// The current round.
    round: u32,
    is_out_of_time: bool,
    /// Why the table can't be measured here.
    unfit: Option<String>,
}

struct ProgramRuns<'a> {
    ready: &'a Contestant,
    row_name: String,
    so_far: RowBuilder,
    failed: Option<String>,
    pace: Pace,
    /// The total time of the last run.
    took: Option<Duration>,
}

/// Runs every program of the task in turn (M8). A program that fails is not run again. Returns
/// `None` if there is no such program, or if the task can't be done here, which is noted.
pub(super) fn measure(
    crew: &Crew,
    (place, number): (usize, usize),
    planned: &PlacePlan,
    site: &Site,
    reporter: &mut LangsReporter,
) -> Result<Option<Workload>, Error> {
    let LangsReporter { ticker, rates, .. } = reporter;
    let mut table = TablePlan::new(crew, (place, number), planned, site, rates)?;
    let is_backwards = is_backwards(table.table.runs, number);
    if is_backwards {
        table.programs.reverse();
    }
    table.plan().measure(None, site, ticker)?;
    if is_backwards {
        table.programs.reverse();
    }
    let (name, path) = (table.table.name(), planned.path.display());
    if let Some(because) = table.unfit {
        ticker.note(&format!("{name} is left out in {path}: {because}"));
        return Ok(None);
    }
    let spilled = table.subjects.values().find_map(Subject::spilled);
    if let Some(because) = spilled {
        ticker.note(&format!("{name} in {path}: {because}"));
    }
    let cache = if spilled.is_some() { Cache::PartlyPageCache } else { table.table.cache() };
    let is_done = !table.programs.is_empty();
    Ok(is_done.then(|| workload(table.table, site, cache, table.programs)))
}

/// The time of one table: of all its runs, and of one.
struct TableTime {
    until: Option<Duration>,
    of_run: Duration,
}

impl TableTime {
    /// Divides a place's remaining time between the remaining tables.
    fn of(crew: &Crew, (place, number): (usize, usize)) -> Result<TableTime, Error> {
        let table = &crew.tables[number];
        let now = crew.now()?;
        let until = crew.within * (place as u32 + 1) - crew.within / KEPT_PART;
        let ahead: Vec<(Table, usize)> =
            crew.tables[number..].iter().map(|table| (*table, crew.programs(table))).collect();
        let fixed: Duration = ahead.iter().filter(|(table, _)| !table.in_time).map(fixed).sum();
        let left = until.saturating_sub(now).saturating_sub(fixed);
        let of_table = share_of_table(left, &ahead);
        Ok(TableTime {
            until: table.in_time.then_some(now + of_table),
            of_run: share_of_run(of_table, table, crew.programs(table)),
        })
    }
}

impl Work for &mut TablePlan<'_> {
    /// Before each round: returns whether it would use another table's time. The minimum rounds are
    /// always made.
    fn gives_up(&mut self, turn: Turn, now: Duration) -> bool {
        let least = RUNS_MIN + u32::from(self.table.runs > 1);
        if turn.round > self.round && turn.round >= least {
            let takes: Duration = self.programs.iter().filter_map(|program| program.took).sum();
            self.is_out_of_time = self.until.is_some_and(|until| now + takes > until);
        }
        self.round = turn.round;
        self.is_out_of_time || self.unfit.is_some() || self.programs[turn.row].failed.is_some()
    }

    /// Its figures are kept with the programs, not as benchmark rows.
    fn run(
        &mut self,
        _: &document::Row,
        turn: Turn,
        _: &Site,
        ticker: &mut Ticker,
    ) -> Result<Repeated, Error> {
        let began = Instant::now();
        let Some(ran) = self.turn(turn)? else { return Ok(Repeated::default()) };
        let program = &mut self.programs[turn.row];
        program.took = Some(ranks::longest(self.crew.peers, began.elapsed())?);
        let rate = program.pace.rate().filter(|_| self.table.in_time);
        self.rates.extend(rate.map(|rate| ((self.table.task, program.ready.program), rate)));
        match ran {
            Ok(ran) => program.so_far.add(ran, self.table.runs > 1 && turn.round == 0),
            Err(because) => {
                let (name, table) = (&program.ready.name, self.table.name());
                ticker.note(&format!("{name}: {table}: {because}"));
                program.failed = Some(because);
            }
        }
        Ok(Repeated::default())
    }

    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        self.held.give_back()?;
        self.subjects.values_mut().try_for_each(Subject::clear)
    }
}

impl<'a> TablePlan<'a> {
    fn new(
        crew: &'a Crew<'a>,
        (place, number): (usize, usize),
        planned: &PlacePlan,
        site: &'a Site<'a>,
        rates: &'a mut HashMap<(Task, usize), Rate>,
    ) -> Result<TablePlan<'a>, Error> {
        let table = &crew.tables[number];
        let time = TableTime::of(crew, (place, number))?;
        // Ranks may have different paths, but must measure the same rows.
        let within = match crew.drives.len() {
            1 => String::new(),
            _ => crew.peers.of_first("the place", format!(" in {}", planned.path.display()))?,
        };
        let of = |ready: &'a Contestant| {
            let known = rates.get(&(table.task, ready.program)).copied();
            ProgramRuns {
                ready,
                row_name: format!("{}: {}{within}", table.name(), ready.name),
                so_far: RowBuilder::default(),
                failed: None,
                pace: Pace::new(*table, time.of_run, known.filter(|_| table.task.is_save())),
                took: None,
            }
        };
        let does = |ready: &&Contestant| ready.tasks.contains(&table.task);
        let programs = crew.ready.iter().filter(does).map(of).collect();
        let wanted = if table.fills_page_cache() { table.run_bytes() } else { 0 };
        Ok(TablePlan {
            crew,
            site,
            table,
            programs,
            rates,
            subjects: BTreeMap::new(),
            held: HeldMemory::new(site.file("held", 0), wanted.min(planned.held_bytes)),
            until: time.until,
            round: 0,
            is_out_of_time: false,
            unfit: None,
        })
    }

    /// Returns the plan of the programs.
    fn plan(&mut self) -> Plan<'_> {
        let time = usual(self.table);
        let spec = |program: &ProgramRuns| RowSpec {
            row: document::Row { name: program.row_name.clone(), ..document::Row::default() },
            time,
            ..RowSpec::default()
        };
        let rows = self.programs.iter().map(spec).collect();
        let (runs, question) = (self.table.runs, self.table.words());
        Plan { runs, ..Plan::new("langs", &question, rows, self) }
    }

    /// Runs a program for one turn: in its first turn as often as needed to determine its amount,
    /// then once. `None`: the table can't be measured.
    fn turn(&mut self, turn: Turn) -> Result<Option<RunOutcome>, Error> {
        let is_dropped = self.table.runs > 1 && turn.round == 0;
        let mut last = None;
        while turn.round == 0
            && let Some(of) = self.programs[turn.row].pace.next_look()
        {
            match self.run_once(turn, of)? {
                Some(Ok(ran)) => last = Some(ran),
                other => return Ok(other),
            }
        }
        // The last trial counts as the dropped run, if there is one.
        match last.filter(|_| is_dropped) {
            Some(look) => Ok(Some(Ok(look))),
            None => self.run_once(turn, self.programs[turn.row].pace.table()),
        }
    }

    /// Prepares the file, and runs a program once. `None`: the table can't be measured.
    fn run_once(&mut self, turn: Turn, of: Table) -> Result<Option<RunOutcome>, Error> {
        let (site, number) = (self.site, FILE_NUMBERS * self.subjects.len() as u32);
        let subject = self.subjects.entry(of.amount());
        let subject = subject.or_insert_with(|| Subject::new(of, site, number));
        let is_ready = subject.make_ready()?;
        if let Err(because) = ranks::all_or_none(self.crew.peers, is_ready)? {
            self.unfit = Some(because);
            return Ok(None);
        }
        let began = Instant::now();
        let ran = self.run_program(self.programs[turn.row].ready, of)?;
        // All counted runs of a row process the same amount.
        if let (0, Ok(ran)) = (turn.round, &ran) {
            let took = ranks::longest(self.crew.peers, began.elapsed())?;
            self.programs[turn.row].pace.is_over(of.amount(), took, ran.run().elapsed_s);
        }
        Ok(Some(ran))
    }

    /// Runs a program once on a prepared file, between two readings of the device's counters (M7).
    /// Checks the file and then the program's report, and cleans up.
    fn run_program(&mut self, ready: &Contestant, table: Table) -> Result<RunOutcome, Error> {
        self.held.take(self.site.stop)?;
        self.held.give_back()?;
        let TablePlan { site, crew, .. } = *self;
        let table = &table;
        let subject = self.subjects.get_mut(&table.amount()).expect("it was made ready");
        let path = subject.path();
        let call = Call { table, path: &path, folder: crew.folder, timeout: crew.timeout };
        let together = Together::new(crew.peers);
        together.begin()?;
        let began_s = now_s();
        let timer = Timer::new(site.device(), None);
        let program = || program::run(&ready.built, call, site.stop);
        let (ended, cost) = clocked(&timer, Usage::of_children, program)?;
        let answered = ended.and_then(|ended| Ok((answer::parse(&ended.stdout)?, ended)));
        let ran = match answered {
            Ok((answer, ended)) => {
                let says_whole = answer.bytes == table.timing_bytes();
                let checked = subject.check(says_whole)?;
                let judged = checked.and_then(|()| answer::judge(&answer, table, ended.process_s));
                together.is_over((began_s, began_s + answer.elapsed_s()));
                let cost = document::Run { max_rss_bytes: ended.max_rss_bytes, ..cost };
                judged.map(|()| ProgramRun::new(cost, ended.process_s, table, &answer))
            }
            Err(because) => Err(because),
        };
        subject.is_done(ran.is_ok())?;
        let device = site.device().map_or(String::new(), |device| device.name.clone());
        ranks::of_all(crew.peers, ran, together.parts(), device)
    }
}

fn workload(table: &Table, site: &Site, cache: Cache, doing: Vec<ProgramRuns>) -> Workload {
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for ProgramRuns { ready, so_far, failed, .. } in doing {
        match failed {
            Some(because) => failures.push(Failure { language: ready.id.clone(), because }),
            None => rows.extend(so_far.row(&ready.id)),
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
        survives: table.survives(site.target),
        rows,
        failures,
    }
}

/// A program's runs. Dropped ones are not in its row.
#[derive(Default)]
struct RowBuilder {
    runs: Vec<Run>,
    counted: Repeated,
}

impl RowBuilder {
    fn add(&mut self, ran: ProgramRun, dropped: bool) {
        let run = ran.run();
        self.runs.push(Run {
            bytes: run.bytes,
            elapsed_s: run.elapsed_s,
            process_s: ran.process_s,
            cpu_user_s: run.cpu_user_s,
            cpu_system_s: run.cpu_system_s,
            max_rss_bytes: run.max_rss_bytes,
            device_written_bytes: run.device_written_bytes,
            device_read_bytes: run.device_read_bytes,
            dropped,
            ranks: run.ranks.clone(),
        });
        if !dropped {
            self.counted.add(ran.row);
        }
    }

    /// Builds a language's row; `None` without a run that counts.
    fn row(self, language: &str) -> Option<Row> {
        let row = self.counted.rows().pop()?;
        let sum = |value: fn(&document::Run) -> f64| row.runs.iter().map(value).sum::<f64>();
        Some(Row {
            language: language.into(),
            throughput_bytes_per_s: row.throughput_bytes_per_s,
            throughput_mean_bytes_per_s: sum(|run| run.bytes as f64) / sum(|run| run.elapsed_s),
            cpu_s_per_gb: row.cpu_s_per_gb(),
            max_rss_bytes: self.runs.iter().filter_map(|run| run.max_rss_bytes).max(),
            latency_ns: row.latency_ns,
            runs: self.runs,
        })
    }
}

/// Sorts fastest first: by throughput, or by the median save if each save was timed.
fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| match (&a.latency_ns, &b.latency_ns) {
        (Some(a), Some(b)) => a.p50.cmp(&b.p50),
        _ => b.throughput_bytes_per_s.median.total_cmp(&a.throughput_bytes_per_s.median),
    });
}

#[cfg(test)]
mod tests {
    use super::super::super::answer::Answer;
    use super::*;

    /// Builds a row from runs of a gigabyte each; some are dropped.
    fn row(task: Task, runs: &[(&[u64], bool)]) -> Option<Row> {
        let size = 1_000_000_000;
        let table = Table { task, size, count: 1, runs: 1, cold: false, in_time: false };
        let mut so_far = RowBuilder::default();
        for (elapsed_ns, dropped) in runs {
            let answer = Answer { elapsed_ns: elapsed_ns.to_vec(), bytes: size, sum: None };
            let elapsed_s = answer.elapsed_s();
            let cost = document::Run {
                cpu_user_s: elapsed_s / 2.0,
                cpu_system_s: elapsed_s / 4.0,
                max_rss_bytes: Some((elapsed_s * 1e6) as u64),
                ..document::Run::default()
            };
            so_far.add(ProgramRun::new(cost, elapsed_s, &table, &answer), *dropped);
        }
        so_far.row("go")
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_run_that_is_dropped_is_shown_and_counts_for_nothing_but_memory() {
        let runs = [(10, true), (1, false), (2, false), (4, false)];
        let runs = runs.map(|(seconds, dropped)| ([seconds * S], dropped));
        let runs: Vec<(&[u64], bool)> =
            runs.iter().map(|(ns, dropped)| (&ns[..], *dropped)).collect();
        let row = row(Task::BytesWrite, &runs).unwrap();
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
        let runs: [(&[u64], bool); 2] = [(&[900; 5], true), (&[100, 200, 300], false)];
        let latency = row(Task::Save, &runs).unwrap().latency_ns.unwrap();
        assert_eq!((latency.count, latency.min, latency.p50, latency.max), (3, 100, 200, 300));
    }

    #[test]
    fn a_language_without_a_run_that_counts_has_no_row() {
        assert!(row(Task::Lines, &[]).is_none());
        assert!(row(Task::Lines, &[(&[S], true)]).is_none());
    }

    #[test]
    fn the_fastest_is_first_and_among_saves_the_one_with_the_shortest_median() {
        let named = |name: &str, task, elapsed_ns: &[u64]| {
            let row = row(task, &[(elapsed_ns, false)]).unwrap();
            Row { language: name.into(), ..row }
        };
        let lines = Task::Lines;
        let mut rows = [named("slow", lines, &[2 * S]), named("fast", lines, &[S])];
        sort(&mut rows);
        assert_eq!(rows[0].language, "fast");
        // One very slow save slows the total, but not the median save.
        let mut rows = [
            named("usually-slow", Task::Save, &[50, 50, 50]),
            named("usually-fast", Task::Save, &[10, 10, 900]),
        ];
        sort(&mut rows);
        assert_eq!(rows[0].language, "usually-fast");
    }
}
