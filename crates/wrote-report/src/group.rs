//! The rows of one workload, and the statements about all of them.

use crate::figures::{
    asked_rate, block_sizes, fell_back, iterations, latency, load_percent, p99, per_second,
};
use crate::paint::Mark;
use crate::text::gathered;
use crate::tree::Note;
use itertools::Itertools;
use wrote_result::document::{
    Direction, Knee, Latency, Reached, Row, Run, Scenario, Spread, View, fastest,
};
use wrote_result::{saves, stats, units};

/// The maximum size of operations that are counted. For larger operations, the bytes matter.
pub const COUNTED_BYTES_MAX: u64 = 64 << 10;

/// The explanation of the mark for open loops.
pub const OPEN_LOOP_LEGEND: &str = "@ at a rate (an open loop): latency counts from when each \
     operation was due. In other rows it counts from the submission, and while the disk stands \
     still nothing is submitted";

/// The rows of a scenario that are compared with each other.
#[derive(Clone)]
pub struct Group<'a> {
    /// The name of the workload, which the rows share: `stream`.
    pub workload: &'a str,
    /// The rows. There is at least one.
    pub rows: Vec<&'a Row>,
    /// The knee of a curve, if it has one.
    pub knee: Option<&'a Knee>,
}

impl<'a> Group<'a> {
    /// Returns the groups of a scenario, in the order of their measurement.
    pub fn all_of(scenario: &'a Scenario) -> Vec<Group<'a>> {
        let knee = scenario.knee.as_ref();
        let groups = gathered(scenario.rows.iter().map(|row| (row.workload.as_str(), row)));
        groups.into_iter().map(|(workload, rows)| Group { workload, rows, knee }).collect()
    }

    /// Explains the marks of rows that were level with the best row, or were not measured as
    /// requested.
    pub fn marks(&self, best: &Row, is_level: impl Fn(&Row) -> bool) -> Vec<Note> {
        let rows = || self.rows.iter().copied();
        let level = "no difference found from it: the 95 % intervals touch";
        let level = rows()
            .any(|row| !std::ptr::eq(row, best) && is_level(row))
            .then(|| Note::of_mark(Mark::Level, level));
        level.into_iter().chain(self.fell_back()).collect()
    }

    /// Explains the mark of rows that were not measured as requested; `None` if there are no such
    /// rows.
    pub fn fell_back(&self) -> Option<Note> {
        let any = self.rows.iter().any(|row| fell_back(row));
        any.then(|| Note::of_mark(Mark::FellBack, "not as asked: see the findings"))
    }

    /// Returns the view that all rows share. Rows with different views are shown as operations.
    pub fn view(&self) -> View {
        self.common(Row::view).unwrap_or(View::Operations)
    }

    /// Returns the fastest row that survives a power loss, if the rows are whole files.
    pub fn best(&self) -> Option<&'a Row> {
        let durable = self.rows.iter().copied().filter(|row| row.is_durable());
        fastest(durable).filter(|_| self.view() == View::Files)
    }

    /// Returns whether the operations are small or random, so that their number matters more than
    /// their bytes.
    pub fn is_counted(&self) -> bool {
        let is_small = |row: &Row| row.settings.effective.bs_bytes <= COUNTED_BYTES_MAX;
        self.view() != View::Files && self.rows.iter().any(|row| row.is_random() || is_small(row))
    }

    /// Returns whether the cost per operation is more informative than the cost per gigabyte.
    pub fn costs_by_operation(&self) -> bool {
        let is_read = |row: &Row| row.direction == Direction::Read;
        self.is_counted() && self.rows.iter().any(|row| row.is_random() || is_read(row))
    }

    /// Returns whether the rows are jobs. The name of a job does not begin with the name of the
    /// workload.
    pub fn is_of_jobs(&self) -> bool {
        let is_way = |row: &Row| {
            row.name.strip_prefix(self.workload).is_some_and(|rest| rest.starts_with('/'))
        };
        !self.rows.iter().all(|row| is_way(row))
    }

    /// Returns the name of a row in this group.
    pub fn name<'b>(&self, row: &'b Row) -> &'b str {
        if self.is_of_jobs() { &row.name } else { row.short_name() }
    }

    /// Returns the column title for the number of operations.
    pub fn counted(&self) -> &'static str {
        match self.common(|row| row.direction) {
            Some(Direction::Write) => "WRITES/s",
            Some(Direction::Read) => "READS/s",
            None => "IOPS",
        }
    }

    /// Returns the value that all rows share; `None` if they differ.
    pub fn common<T: PartialEq>(&self, value: impl Fn(&Row) -> T) -> Option<T> {
        let first = value(self.rows[0]);
        self.rows.iter().all(|row| value(row) == first).then_some(first)
    }

    /// Returns the work and its repetition, as far as all rows share them:
    /// `512 KiB writes, 1.07 GB a run, 3 runs of each`.
    pub fn summary(&self) -> String {
        let row = self.rows[0];
        let runs = self.rows.iter().map(|row| row.runs.len()).max().unwrap_or(0);
        if self.view() == View::Saves {
            let runs = units::counted(runs as u64, "run");
            let characters = row.settings.effective.bs_bytes;
            return format!("{characters} characters, {} saves of each in {runs}", iterations(row));
        }
        let mut parts = vec![self.operations()];
        if !self.is_counted() && self.common(|row| row.settings.asked.size_bytes).is_some() {
            parts.push(format!("{} a run", units::bytes(row.bytes_per_run)));
        }
        parts.push(if runs == 1 { "1 run".into() } else { format!("{runs} runs of each") });
        let jobs = self.common(|row| row.settings.effective.numjobs);
        if let Some(jobs) = jobs.filter(|jobs| *jobs > 1) {
            parts.push(format!("{jobs} jobs"));
        }
        let summary = parts.join(", ");
        match self.open_loop() {
            Some(open_loop) => format!("{summary}; {open_loop}"),
            None => summary,
        }
    }

    /// Returns the rate that was requested for all rows; `None` unless all are open loops: `open
    /// loop: 5.00 k/s, poisson; latency from when each was due`.
    fn open_loop(&self) -> Option<String> {
        if !self.rows.iter().all(|row| row.is_open_loop()) {
            return None;
        }
        let rate = self.common(asked_rate).filter(|_| self.view() != View::Curve);
        let process = self.common(|row| row.settings.asked.rate_process).flatten();
        let process = process.map(|process| process.to_string());
        let facts: Vec<String> = rate.into_iter().chain(process).collect();
        let colon = if facts.is_empty() { "" } else { ": " };
        Some(format!("open loop{colon}{}; latency from when each was due", facts.join(", ")))
    }

    /// Returns whether some rows are open loops and others are not.
    pub fn mixes_loops(&self) -> bool {
        self.common(|row| row.is_open_loop()).is_none()
    }

    /// Returns the mark of a row that is an open loop, if other rows of the group are not;
    /// otherwise an empty text.
    pub fn loop_mark(&self, row: &Row) -> &'static str {
        if self.mixes_loops() && row.is_open_loop() { "@ " } else { "" }
    }

    /// Returns a description of the operations: `4 KiB random reads`.
    fn operations(&self) -> String {
        if let Some(sizes) = self.common(block_sizes).filter(|_| self.view() == View::Messages) {
            return format!("messages of {sizes}");
        }
        if self.view() == View::Metadata {
            let files = self.rows.iter().filter_map(|row| row.settings.effective.nrfiles);
            let files = match files.minmax().into_option() {
                Some((few, many)) if few < many => format!("{few} to {many} "),
                Some((all, _)) => format!("{all} "),
                None => String::new(),
            };
            return format!("{files}files of 3901 B");
        }
        let size = match self.common(|row| row.settings.effective.bs_bytes) {
            Some(bs_bytes) => units::block_size(bs_bytes) + " ",
            None => String::new(),
        };
        let random = if self.rows.iter().all(|row| row.is_random()) { "random " } else { "" };
        let operations = match self.common(|row| row.direction) {
            Some(Direction::Write) => "writes",
            Some(Direction::Read) => "reads",
            None => "reads and writes",
        };
        format!("{size}{random}{operations}")
    }

    /// Returns a description of a curve's knee:
    /// `the knee: 41.0 k/s (70 % of the closed loop's 58.1 k/s): P99 310 us`.
    pub fn knee_line(&self) -> String {
        let row = |knee: &Knee| self.rows.iter().find(|row| row.name == knee.row);
        let Some((knee, row)) = self.knee.and_then(|knee| Some((knee, row(knee)?))) else {
            return "no knee: latency does not bend at these rates".into();
        };
        let asked = Reached::of(row).map_or(0.0, |rate| rate.asked_per_s);
        let whole = asked / row.settings.asked.load_share.unwrap_or(1.0);
        format!(
            "the knee: {} ({} of the closed loop's {}): P99 {}",
            per_second(knee.iops),
            load_percent(row),
            per_second(whole),
            units::nanoseconds(knee.p99_ns)
        )
    }

    /// Returns lines on the time that flushes took (M11): for rows whose latencies include flushes,
    /// and for rows with a single flush at the end.
    pub fn flushes(&self) -> Vec<String> {
        let slowest = |of: Option<&Latency>| match p99(of) {
            few if few.is_empty() => format!("at most {}", latency(of, |of| Some(of.max))),
            known => format!("P99 {known}"),
        };
        let mut lines = Vec::new();
        for row in &self.rows {
            let (Some(shown), Some(flush)) = (row.latency(), &row.flush_latency_ns) else {
                continue;
            };
            if row.durable_latency_ns.as_ref() == Some(shown)
                && row.durable_latency_ns != row.latency_ns
            {
                let (write, flush) = (slowest(row.latency_ns.as_ref()), slowest(Some(flush)));
                lines.push(format!(
                    "{}: latencies last from a write to the end of the flush that covers it (a \
                     write alone: {write}; a flush: {flush})",
                    self.name(row)
                ));
            } else if flush == shown {
                let write = slowest(row.latency_ns.as_ref());
                lines.push(format!(
                    "{}: latencies are those of the flush alone (a write: {write}); fio does not \
                     record both together",
                    self.name(row)
                ));
            }
        }
        let at_end = self.rows.iter().filter(|row| row.latency().is_none());
        let flushes: Vec<&Latency> =
            at_end.filter_map(|row| row.flush_latency_ns.as_ref()).collect();
        let least = flushes.iter().map(|of| of.min).min();
        let most = flushes.iter().map(|of| of.max).max();
        if let (Some(least), Some(most)) =
            (least.map(units::nanoseconds), most.map(units::nanoseconds))
        {
            let took = if least == most { most } else { format!("{least} to {most}") };
            lines.push(format!(
                "Rows without a latency flush once, after the last write ({took}): a single write \
                 has no durable latency there"
            ));
        }
        lines
    }

    /// Describes how much the ranks differed in the rows of a group; `None` for a single rank.
    pub fn spread(&self) -> Option<String> {
        let runs = self.rows.iter().flat_map(|row| &row.runs);
        let all: Vec<(&Run, &Spread)> =
            runs.filter_map(|run| Some((run, run.ranks.as_ref()?))).collect();
        let percent = |share: fn(&Run, &Spread) -> f64| {
            let shares: Vec<f64> = all.iter().map(|(run, spread)| share(run, spread)).collect();
            stats::median(&shares) * 100.0
        };
        let line = || {
            format!(
                "ranks: the slowest reached {:.0} % of the median rank's rate, the fastest {:.0} \
                 %; the rate until the first rank was done is {:.0} % of the total",
                percent(|_, spread| spread.slowest.iops / spread.median_iops.max(1e-9)),
                percent(|_, spread| spread.fastest.iops / spread.median_iops.max(1e-9)),
                percent(|run, of| of.stonewalled_bytes_per_s / run.throughput_bytes_per_s.max(1e-9)),
            )
        };
        (!all.is_empty()).then(line)
    }

    /// Returns the cost of a sync in a workload of saves:
    /// `fs-write-fsync is 52.1 times slower than fs-write (median: 1.20 ms against 23.0 us)`.
    pub fn sync_costs(&self) -> Vec<String> {
        let p50 = |row: &Row| latency(row.latency(), |latency| Some(latency.p50));
        let costs = saves::sync_costs(&self.rows);
        let line = |cost: &saves::SyncCost| {
            let times = units::significant(cost.times);
            let (with, without) = (cost.with, cost.without);
            let medians = format!("{} against {}", p50(with), p50(without));
            let (with, without) = (self.name(with), self.name(without));
            format!("{with} is {times} times slower than {without} (median: {medians})")
        };
        costs.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_result::document::Flush;
    use wrote_result::sample;

    #[test]
    fn a_row_has_one_name_and_a_number_alone_is_none() {
        let name = |of: &str, workload: &str| {
            let row = Row { workload: workload.into(), ..sample::row(of, "os-crash", &[1e9]) };
            row.short_name().to_owned()
        };
        assert_eq!(name("stream/cached-fdatasync-at-end", "stream"), "cached-fdatasync-at-end");
        assert_eq!(name("append/log-no/64", "append"), "log-no/64");
        assert_eq!(name("rand/read/16", "rand/read"), "rand/read/16");
        assert_eq!(name("etcd/wal", "randwrite"), "etcd/wal");
    }

    #[test]
    fn the_time_of_flushes_stands_apart_from_the_writes() {
        // M11
        let latency = |p99: u64, count: u64| {
            Some(Latency { min: p99 / 2, p99, max: p99 * 2, count, ..Latency::default() })
        };
        let row = |sync: Flush, flush: Option<Latency>, durable: Option<Latency>| {
            let mut row = sample::row("group/job", "power-loss", &[1e9]);
            (row.name, row.workload) = ("job".into(), "group 0".into());
            row.settings.effective.sync = sync;
            row.latency_ns = latency(33_000, 5000);
            (row.flush_latency_ns, row.durable_latency_ns) = (flush, durable);
            row
        };
        let told = |row: Row| Group { workload: "group 0", rows: vec![&row], knee: None }.flushes();
        let flushes = latency(3_900_000, 5000);
        let durable = latency(3_940_000, 5000);
        assert_eq!(
            told(row(Flush::FdatasyncEach, flushes, durable)),
            ["job: latencies last from a write to the end of the flush that covers it (a write \
              alone: P99 33.0 us; a flush: P99 3.90 ms)"]
        );
        assert_eq!(
            told(row(Flush::FdatasyncEach, latency(3_900_000, 50), None)),
            ["job: latencies are those of the flush alone (a write: P99 33.0 us); fio does not \
              record both together"]
        );
        assert_eq!(
            told(row(Flush::FsyncAtEnd, latency(340_000_000, 1), None)),
            [
                "Rows without a latency flush once, after the last write (170 ms to 680 ms): a single \
              write has no durable latency there"
            ]
        );
        // In a benchmark, the latency of each write includes its flush.
        assert!(told(row(Flush::FdatasyncEach, flushes, latency(33_000, 5000))).is_empty());
        assert!(told(row(Flush::None, None, None)).is_empty());
    }
}
