//! The rows of one workload, and what a reader is shown of them together.

use crate::figures::{
    OPEN_LOOP_MARK, block_sizes, bs_bytes, held_to, is_durable, is_random, iterations,
};
use wrote_result::document::{Direction, Row, Scenario};
use wrote_result::units;

/// Operations up to this size are counted: what matters of them is how many there are a second.
pub const COUNTED_BYTES_MAX: u64 = 64 << 10;

/// The rows of one scenario that are compared with each other.
pub struct Group<'a> {
    /// The name that they share: `stream`.
    pub workload: &'a str,
    /// Never empty.
    pub rows: Vec<&'a Row>,
}

impl<'a> Group<'a> {
    /// A scenario's groups, in the order in which they were measured.
    pub fn all_of(scenario: &'a Scenario) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for row in &scenario.rows {
            match groups.iter_mut().find(|group| group.workload == row.workload) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { workload: &row.workload, rows: vec![row] }),
            }
        }
        groups
    }

    /// Whether whole files were timed: no operation has a latency, and what a way takes of the memory
    /// is told.
    pub fn is_of_whole_files(&self) -> bool {
        self.rows.iter().all(|row| row.is_of_whole_files())
    }

    /// Whether messages were appended: what counts is how many there were a second.
    pub fn is_of_messages(&self) -> bool {
        self.rows.iter().all(|row| row.is_of_messages())
    }

    /// Whether a small text was saved again and again: what counts is how long that took.
    pub fn is_of_saves(&self) -> bool {
        self.rows.iter().all(|row| row.is_of_saves())
    }

    /// The fastest row that may be the best.
    pub fn fastest_durable(&self) -> Option<&'a Row> {
        let durable = |row: &&&Row| is_durable(row);
        let faster = |a: &&&Row, b: &&&Row| {
            a.throughput_bytes_per_s.median.total_cmp(&b.throughput_bytes_per_s.median)
        };
        self.rows.iter().filter(durable).max_by(faster).copied()
    }

    /// Whether the operations are so small or so scattered that one counts them.
    pub fn is_counted(&self) -> bool {
        !self.is_of_whole_files()
            && self.rows.iter().any(|row| is_random(row) || bs_bytes(row) <= COUNTED_BYTES_MAX)
    }

    /// Whether what an operation costs says more than what a gigabyte costs.
    pub fn costs_by_operation(&self) -> bool {
        self.is_counted()
            && self.rows.iter().any(|row| is_random(row) || row.direction == Direction::Read)
    }

    /// Whether the rows are known by their names, as jobs are; else the way says what they are.
    pub fn has_names(&self) -> bool {
        let is_of_workload = |row: &Row| {
            row.name.strip_prefix(self.workload).is_some_and(|rest| rest.starts_with('/'))
        };
        !self.rows.iter().all(|row| is_of_workload(row))
    }

    /// What tells the rows apart: the title over it, and the text of each row.
    pub fn label(&self) -> (&'static str, fn(&Row) -> &str) {
        if self.has_names() { ("JOB", |row| &row.name) } else { ("WAY", |row| &row.way) }
    }

    /// What is counted, as a title.
    pub fn counted(&self) -> &'static str {
        match self.direction() {
            Some(Direction::Write) => "WRITES/s",
            Some(Direction::Read) => "READS/s",
            None => "IOPS",
        }
    }

    /// The direction of all rows, where they have the same.
    pub fn direction(&self) -> Option<Direction> {
        self.common(|row| row.direction)
    }

    /// What all rows have, where it is the same.
    pub fn common<T: PartialEq>(&self, of: impl Fn(&Row) -> T) -> Option<T> {
        let first = of(self.rows[0]);
        self.rows.iter().all(|row| of(row) == first).then_some(first)
    }

    /// The throughput of the fastest row, in bytes per second.
    pub fn fastest_bytes_per_s(&self) -> f64 {
        self.rows.iter().map(|row| row.throughput_bytes_per_s.median).fold(0.0, f64::max)
    }

    /// What was done, and how often: `512 KiB writes, 1.07 GB a run, 3 runs`. Says what all rows
    /// have in common.
    pub fn summary(&self) -> String {
        let row = self.rows[0];
        let runs = self.rows.iter().map(|row| row.runs.len()).max().unwrap_or(0);
        if self.is_of_saves() {
            let runs = if runs == 1 { "1 run".into() } else { format!("{runs} runs") };
            return format!(
                "{} characters, {} saves of each in {runs}",
                bs_bytes(row),
                iterations(row)
            );
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

    /// What all rows are held to, where all are at a rate: `open loop: 5000/s, poisson; latency from
    /// when each was due`.
    pub fn open_loop(&self) -> Option<String> {
        if !self.rows.iter().all(|row| row.is_open_loop()) {
            return None;
        }
        let process = self.common(|row| row.settings.asked.rate_process).flatten();
        let rate = self.common(held_to).filter(|_| !self.is_of_load());
        let facts: Vec<String> =
            rate.into_iter().chain(process.map(|process| process.to_string())).collect();
        let facts =
            if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
        Some(format!("open loop{facts}; latency from when each was due"))
    }

    /// Whether the rows are one workload at parts of the load that a closed loop reaches.
    pub fn is_of_load(&self) -> bool {
        self.rows.iter().all(|row| row.settings.asked.load_share.is_some())
    }

    /// Whether some rows are at a rate and others are not: then those are marked.
    pub fn mixes_loops(&self) -> bool {
        let open = self.rows.iter().filter(|row| row.is_open_loop()).count();
        0 < open && open < self.rows.len()
    }

    /// The mark of a row that is at a rate among others that are not.
    pub fn loop_mark(&self, row: &Row) -> &'static str {
        if self.mixes_loops() && row.is_open_loop() { OPEN_LOOP_MARK } else { "" }
    }

    /// `4 KiB random reads`.
    pub fn operations(&self) -> String {
        if let Some(sizes) = self.common(block_sizes).filter(|_| self.is_of_messages()) {
            return format!("messages of {sizes}");
        }
        let size = match self.common(bs_bytes) {
            Some(bs_bytes) => units::block_size(bs_bytes) + " ",
            None => String::new(),
        };
        let random = if self.rows.iter().all(|row| is_random(row)) { "random " } else { "" };
        let operations = match self.direction() {
            Some(Direction::Write) => "writes",
            Some(Direction::Read) => "reads",
            None => "reads and writes",
        };
        format!("{size}{random}{operations}")
    }
}
