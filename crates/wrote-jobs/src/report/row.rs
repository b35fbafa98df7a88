//! The rows of a group: one for each direction of a job, in which its clones are combined.

use super::before::Before;
use super::before::Known;
use super::settings;
use crate::jobs::{GroupReport, Held, JobReport, merged, span};
use crate::machine::usage::Usage;
use crate::spec::{Rw, SyncEach};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use wrote_result::document::{Direction, Flush, Latency, Row, Run, Settings, SettingsPair, View};
use wrote_result::stats;
use wrote_result::units::seconds;

/// Returns the jobs and the direction of each row of the group, in the order of the rows.
pub(super) fn jobs_of_rows(group: &GroupReport) -> Vec<(&[JobReport], Direction)> {
    let is_next_clone = |last: &JobReport, job: &JobReport| {
        last.spec.name == job.spec.name && job.spec.clone > last.spec.clone
    };
    let of_jobs = |jobs: &'_ [JobReport]| {
        let rw = jobs[0].spec.order.rw;
        let directions = [(rw.read, Direction::Read), (rw.write, Direction::Write)];
        directions.into_iter().filter(|(is_there, _)| *is_there).map(|(_, direction)| direction)
    };
    let mut all = Vec::new();
    for jobs in group.jobs.chunk_by(is_next_clone) {
        all.extend(of_jobs(jobs).map(|direction| (jobs, direction)));
    }
    all
}

/// Returns the group's rows in the order of its jobs, each with its jobs. Call this for the groups
/// in the order in which they ran.
pub(super) fn rows<'a>(
    group: &'a GroupReport,
    known: &mut Known,
) -> Vec<(Repeated, &'a [JobReport])> {
    let mut rows = Vec::new();
    for (jobs, direction) in jobs_of_rows(group) {
        let Rw { read, write, .. } = jobs[0].spec.order.rw;
        let name = &jobs[0].spec.name;
        let wanted = if read && write { format!("{name}/{direction}") } else { name.clone() };
        let name = known.names.take(&wanted);
        let row = Repeated::of_row(group, (jobs, direction), known, |direction, settings| Row {
            name,
            workload: format!("group {}", jobs[0].spec.group),
            way: way(jobs, direction, &settings.effective),
            view: Some(View::Operations),
            settings,
            ..Row::default()
        });
        rows.push((row, jobs));
    }
    known.is_over(group);
    rows
}

/// The histograms of the times of operations alone, of flushes alone, and of writes until they are
/// durable (M11). The last one is empty if nothing is flushed before the end. Ranks send the
/// histograms to each other as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Texts", into = "Texts")]
struct Timed([Histogram<u64>; 3]);

type Texts = [Option<String>; 3];

impl From<Timed> for Texts {
    fn from(Timed(times): Timed) -> Texts {
        times.map(|of| stats::encode(&of))
    }
}

impl From<Texts> for Timed {
    fn from(texts: Texts) -> Timed {
        let one = |text: Option<String>| stats::decode(&text?);
        Timed(texts.map(|text| one(text).unwrap_or_else(crate::histogram)))
    }
}

impl Timed {
    fn of(jobs: &[JobReport], direction: Direction) -> Timed {
        let operations = merged(jobs.iter().map(|job| &job.direction(direction).latency_ns));
        let writes = jobs.iter().filter(|_| direction == Direction::Write);
        let flushes = merged(writes.clone().map(|job| &job.flush_ns));
        let with_flush = jobs[0].spec.writes.latency_with_flush;
        let durable = match with_flush && direction == Direction::Write {
            true => operations.clone(),
            false => merged(writes.map(|job| &job.durable_ns)),
        };
        Timed([operations, flushes, durable])
    }

    fn add(&mut self, other: &Timed) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.add(other).expect("histograms grow, or have the same bounds");
        }
    }

    /// Sets the latencies of the row, and of its only run.
    fn describe_one(&self, row: &mut Row) {
        row.latency_ns = Some(stats::latency(&self.0[0]));
        self.describe(row);
        let run = &mut row.runs[0];
        run.latency_ns = row.latency_ns;
        (run.flush_latency_ns, run.durable_latency_ns) =
            (row.flush_latency_ns, row.durable_latency_ns);
    }

    /// Sets the latencies of a row that has any, from all of its runs.
    fn describe(&self, row: &mut Row) {
        let Timed([operations, flushes, durable]) = self;
        let some = |of: &Histogram<u64>| (!of.is_empty()).then(|| stats::latency(of));
        row.latency_ns = row.latency_ns.map(|_| stats::latency(operations));
        row.latency_histogram_ns = row.latency_ns.and_then(|_| stats::encode(operations));
        (row.flush_latency_ns, row.durable_latency_ns) = (some(flushes), some(durable));
        row.durable_histogram_ns = row.durable_latency_ns.and_then(|_| stats::encode(durable));
    }
}

fn run(group: &GroupReport, jobs: &[JobReport], direction: Direction) -> Run {
    let sum = |count: &dyn Fn(&JobReport) -> u64| jobs.iter().map(count).sum::<u64>();
    let bytes = sum(&|job| job.direction(direction).bytes);
    let operations = sum(&|job| job.direction(direction).operations);
    let operations_both = sum(&|job| job.read.operations + job.write.operations);
    // The cost of a job that reads and writes is divided between its two rows.
    let part = if operations_both == 0 { 1.0 } else { operations as f64 / operations_both as f64 };
    // Unlike a job's use, the process's use includes the threads of the engines.
    let process = group.process.filter(|_| jobs.len() == group.jobs.len());
    let used = |figure: fn(&Usage) -> f64| {
        let of_jobs = || jobs.iter().map(|job| figure(&job.usage)).sum::<f64>();
        part * process.as_ref().map_or_else(of_jobs, figure)
    };
    let elapsed_s = span(jobs).as_secs_f64().max(1e-9);
    Run {
        bytes,
        elapsed_s,
        throughput_bytes_per_s: bytes as f64 / elapsed_s,
        iops: operations as f64 / elapsed_s,
        cpu_user_s: used(|usage| usage.cpu_user_s),
        cpu_system_s: used(|usage| usage.cpu_system_s),
        context_switches: used(|usage| usage.context_switches as f64).round() as u64,
        device_written_bytes: group.device.map(|moved| moved.written_bytes),
        device_read_bytes: group.device.map(|moved| moved.read_bytes),
        max_rss_bytes: Some(group.max_rss_bytes),
        iodepth_reached: settings::iodepth_reached(jobs),
        cpu_busiest: group.cpu_busiest,
        // The kernel does not distinguish the jobs' threads, so each job gets an equal share.
        cpu_waited_s: group
            .cpu_waited_s
            .map(|s| part * s * jobs.len() as f64 / group.jobs.len() as f64),
        page_cache_bytes: page_cache_bytes(group, jobs),
        unwritten_bytes: match direction {
            Direction::Read => jobs.iter().map(|job| job.unwritten_bytes).sum(),
            Direction::Write => None,
        },
        issue_delay_ns: issue_delay(jobs),
        cached_before_bytes: group
            .cached_before_bytes
            .filter(|_| direction == Direction::Read && jobs.len() == group.jobs.len()),
        ..Run::default()
    }
}

/// Returns the number of bytes of the jobs' files that the run added to the page cache; `None` if
/// this is unknown, or if a job of the row is not direct. A direct write drops its bytes from the
/// cache; a direct read may leave them there.
fn page_cache_bytes(group: &GroupReport, jobs: &[JobReport]) -> Option<u64> {
    let uses = |job: &JobReport, held: &Held| {
        let files = &job.spec.files;
        files.offset_bytes == held.offset_bytes && files.paths.contains(&held.file)
    };
    if !jobs.iter().all(|job| job.direct) {
        return None;
    }
    let of_row = group.held.iter().filter(|held| jobs.iter().any(|job| uses(job, held)));
    let each = of_row.map(|held| {
        // Another job, which is not direct, brought this file into the cache.
        let others =
            group.jobs.iter().any(|job| !job.direct && job.spec.files.paths.contains(&held.file));
        let users = group.jobs.iter().filter(|job| uses(job, held));
        let written_bytes: u64 = users.map(|job| job.write.bytes).sum();
        let left_bytes = held.before_bytes.saturating_sub(written_bytes);
        (!others).then(|| held.after_bytes.saturating_sub(left_bytes))
    });
    each.reduce(|sum, next| Some(sum? + next?)).flatten()
}

/// Returns by how much the jobs' threads issued operations late; `None` for jobs without a rate.
fn issue_delay(jobs: &[JobReport]) -> Option<Latency> {
    let delays = merged(jobs.iter().map(|job| &job.issue_delay_ns));
    (!delays.is_empty()).then(|| stats::latency(&delays))
}

/// Returns a description of the method: `random read, direct io_uring x 64`, `write, mmap, fsync
/// each`.
fn way(jobs: &[JobReport], direction: Direction, effective: &Settings) -> String {
    let spec = &jobs[0].spec;
    let mut words = if spec.order.rw.random { "random ".to_owned() } else { String::new() };
    words += &direction.to_string();
    words += &effective.random_distribution.iter().map(|of| format!(" {of}")).collect::<String>();
    words += if effective.direct { ", direct " } else { ", " };
    words += &effective.ioengine.to_string();
    if spec.io.iodepth > 1 {
        words += &format!(" x {}", spec.io.iodepth);
    }
    let sync = match effective.sync {
        Flush::None => None,
        Flush::OSyncEach | Flush::ODsyncEach => Some(
            if spec.writes.sync == SyncEach::Sync { "O_SYNC each" } else { "O_DSYNC each" }.into(),
        ),
        other => Some(other.to_string().replace('-', " ")),
    };
    let thinks = effective.thinktime_s.map(|pause_s| format!("pauses of {}", seconds(pause_s)));
    sync.into_iter().chain(thinks).fold(words, |words, more| format!("{words}, {more}"))
}

/// The rows of one job and its clones, or of a method of writing, with the runs so far. No reports
/// are kept, so that memory use does not grow with the histograms of the runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Repeated {
    /// The rows. Their figures describe only the first run until [`Repeated::rows()`] is called.
    pub rows: Vec<Row>,
    /// The number of file bytes that all runs wrote.
    pub written_bytes: u64,
    /// The times of all runs, for each row.
    timed: Vec<Timed>,
}

impl Repeated {
    /// Returns the rows of one run of jobs. `base` creates each row from its direction and
    /// settings. `before` is the state of the files before the run.
    pub fn of(
        group: &GroupReport,
        before: &Before,
        base: impl Fn(Direction, SettingsPair) -> Row,
    ) -> Repeated {
        let (known, mut all) = (Known::new(before, false), Repeated::default());
        for of_row in jobs_of_rows(group) {
            let Repeated { rows, written_bytes, timed } =
                Repeated::of_row(group, of_row, &known, &base);
            all.rows.extend(rows);
            all.timed.extend(timed);
            all.written_bytes += written_bytes;
        }
        all
    }

    /// Returns a row of one run. `base` creates the row from its settings; this function adds what
    /// the jobs measured, and what their writes survive.
    fn of_row(
        group: &GroupReport,
        (jobs, direction): (&[JobReport], Direction),
        known: &Known,
        base: impl FnOnce(Direction, SettingsPair) -> Row,
    ) -> Repeated {
        let survives = (direction == Direction::Write).then(|| settings::survives(jobs, known));
        let row = base(direction, settings::pair(jobs, direction, known));
        let mut row = Row { direction, survives, ..row }.with_run(run(group, jobs, direction));
        let timed = Timed::of(jobs, direction);
        if jobs[0].spec.latencies {
            timed.describe_one(&mut row);
        }
        let written_bytes = if survives.is_some() { row.bytes_per_run } else { 0 };
        Repeated { rows: vec![row], written_bytes, timed: vec![timed] }
    }

    /// Returns the row of a single run of writes, with the latencies of its operations.
    pub fn one(row: Row, latencies_ns: Histogram<u64>) -> Repeated {
        let written_bytes = row.bytes_per_run;
        let timed = Timed([latencies_ns, crate::histogram(), crate::histogram()]);
        Repeated { rows: vec![row], written_bytes, timed: vec![timed] }
    }

    /// Returns the row of a single run of transactions, with the times until each was durable and
    /// the times of their flushes.
    pub fn of_transactions(
        mut row: Row,
        durable_ns: Histogram<u64>,
        flushes_ns: Histogram<u64>,
    ) -> Repeated {
        let written_bytes = row.bytes_per_run;
        let operations = durable_ns.clone();
        // If nothing is flushed, no operation is durable.
        let durable = if flushes_ns.is_empty() { crate::histogram() } else { durable_ns };
        let timed = Timed([operations, flushes_ns, durable]);
        timed.describe_one(&mut row);
        Repeated { rows: vec![row], written_bytes, timed: vec![timed] }
    }

    /// Adds a later run of the same rows.
    pub fn add(&mut self, later: Repeated) {
        if self.rows.is_empty() {
            *self = later;
            return;
        }
        self.add_times(&later);
        for (row, later) in self.rows.iter_mut().zip(later.rows) {
            join(row, later);
        }
    }

    /// Adds the bytes and times that another rank measured in the same run.
    pub(super) fn add_times(&mut self, other: &Repeated) {
        self.written_bytes += other.written_bytes;
        self.timed.iter_mut().zip(&other.timed).for_each(|(all, one)| all.add(one));
    }

    /// Sets the latencies of each row's only run, from the times of all its operations.
    pub(super) fn describe_ones(&mut self) {
        for (row, timed) in self.rows.iter_mut().zip(&self.timed) {
            let is_timed = row.runs[0].latency_ns.is_some() && row.latency_ns.is_some();
            match is_timed && !timed.0[0].is_empty() {
                true => timed.describe_one(row),
                false => (row.latency_ns, row.latency_histogram_ns) = (None, None),
            }
        }
    }

    /// Returns the rows, with figures over all of their runs.
    pub fn rows(mut self) -> Vec<Row> {
        for (row, timed) in self.rows.iter_mut().zip(&self.timed) {
            sum_up(row);
            timed.describe(row);
        }
        self.rows
    }
}

/// Adds a later run to a row. If the settings in effect differ, the row keeps the weaker ones.
pub fn join(row: &mut Row, later: Row) {
    // What a row's writes survive is what they survive in its weakest run (M3).
    row.survives = row.survives.min(later.survives);
    row.runs.extend(later.runs);
    let fallbacks = &mut row.settings.fallbacks;
    fallbacks.extend(later.settings.fallbacks);
    fallbacks.sort();
    fallbacks.dedup();
    row.settings.effective.weaken(&later.settings.effective);
}

/// Computes a row's bytes and throughput from all of its runs.
pub fn sum_up(row: &mut Row) {
    let values = |value: fn(&Run) -> f64| row.runs.iter().map(value).collect::<Vec<f64>>();
    row.bytes_per_run = stats::median(&values(|run| run.bytes as f64)) as u64;
    row.throughput_bytes_per_s = stats::interval(&values(|run| run.throughput_bytes_per_s));
}
