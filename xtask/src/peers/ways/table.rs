//! The lines of the table of the ways to write, in Markdown.

use super::super::ratio::{Asked, Figures};
use super::super::table::three_digits;
use super::super::trial::Outcome;

/// The head of the table.
pub const HEAD: &str = "\
| ways to write | wrote's | peer | wrote's / peer (range) | wrote's | peer | wrote's CPU | peer's CPU | wrote's memory | peer's memory | asked |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|";

/// What a line counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// MB/s, and CPU seconds per GB.
    Stream,
    /// Pieces of work of this many bytes a second, and CPU microseconds each.
    Saves(u64),
    /// Thousands of messages a second, and CPU microseconds each.
    Messages,
}

/// What one peer came to beside ours.
#[derive(Debug)]
pub struct Line {
    /// What is done.
    pub what: String,
    /// What it is counted in.
    pub unit: Unit,
    /// Ours.
    pub ours: String,
    /// The peer.
    pub peer: String,
    /// Ours and the peer's of each round.
    pub pairs: Vec<(Outcome, Outcome)>,
    /// What is asked of the ratio.
    pub asked: Option<Asked>,
}

impl Unit {
    /// "3492 MB/s", "812 saves/s".
    pub fn rate(self, outcome: &Outcome) -> String {
        self.rate_of(self.rate_number(outcome))
    }

    fn rate_of(self, rate: f64) -> String {
        let rate = three_digits(rate);
        match self {
            Unit::Stream => format!("{rate} MB/s"),
            Unit::Saves(_) => format!("{rate} saves/s"),
            Unit::Messages => format!("{rate} k/s"),
        }
    }

    /// The figure alone: of two outcomes the better has more.
    pub fn rate_number(self, outcome: &Outcome) -> f64 {
        let bytes_per_s = outcome.measured.throughput_bytes_per_s();
        match self {
            Unit::Stream => bytes_per_s / 1e6,
            Unit::Saves(bytes) => bytes_per_s / bytes as f64,
            Unit::Messages => outcome.messages as f64 / outcome.measured.elapsed_s / 1e3,
        }
    }

    fn cpu_number(self, outcome: &Outcome) -> f64 {
        let s_per_gb = outcome.measured.cpu_s_per_gb();
        match self {
            Unit::Stream => s_per_gb,
            Unit::Saves(bytes) => s_per_gb * bytes as f64 / 1e3,
            Unit::Messages => outcome.measured.cpu_s / outcome.messages as f64 * 1e6,
        }
    }

    fn cpu_of(self, number: f64) -> String {
        match self {
            Unit::Stream => format!("{number:.2} s/GB"),
            Unit::Saves(_) => format!("{number:.0} µs/save"),
            Unit::Messages => format!("{number:.2} µs"),
        }
    }
}

impl Line {
    /// The line of the table.
    pub fn row(&self) -> String {
        let Line { what, unit, ours, peer, pairs, asked } = self;
        let median = |figure: &dyn Fn(&(Outcome, Outcome)) -> f64| {
            Figures::new(pairs.iter().map(figure)).median()
        };
        let rate = |outcome: &Outcome| unit.rate_number(outcome);
        let cpu = |outcome: &Outcome| unit.cpu_number(outcome);
        let memory = |outcome: &Outcome| outcome.memory_bytes as f64;
        let ratios = Figures::new(pairs.iter().map(|(ours, peer)| rate(ours) / rate(peer)));
        format!(
            "| {what} | {ours} | {peer} | {ratios} | {} | {} | {} | {} | {} | {} | {} |",
            unit.rate_of(median(&|(ours, _)| rate(ours))),
            unit.rate_of(median(&|(_, peer)| rate(peer))),
            unit.cpu_of(median(&|(ours, _)| cpu(ours))),
            unit.cpu_of(median(&|(_, peer)| cpu(peer))),
            mebibytes(median(&|(ours, _)| memory(ours))),
            mebibytes(median(&|(_, peer)| memory(peer))),
            asked.map_or("–".to_owned(), |asked| asked.verdict(&ratios)),
        )
    }
}

/// "12.5 MiB".
pub fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::super::super::measured::Measured;
    use super::*;

    fn outcome(bytes: u64, elapsed_s: f64, cpu_s: f64, mib: u64) -> Outcome {
        Outcome::new(Measured { bytes, elapsed_s, cpu_s }, mib << 20)
    }

    fn line(unit: Unit, pairs: Vec<(Outcome, Outcome)>, asked: Option<Asked>) -> Line {
        let (what, ours, peer) = ("work".into(), "Writer".into(), "File".into());
        Line { what, unit, ours, peer, pairs, asked }
    }

    #[test]
    fn a_line_holds_the_ratios_and_the_medians_of_rate_cpu_and_memory() {
        let giga = 1_000_000_000;
        let pairs = vec![
            (outcome(giga, 0.5, 0.1, 4), outcome(giga, 1.0, 0.3, 1)),
            (outcome(giga, 0.5, 0.1, 6), outcome(giga, 0.8, 0.3, 1)),
            (outcome(giga, 0.5, 0.1, 5), outcome(giga, 0.6, 0.3, 1)),
        ];
        assert_eq!(
            line(Unit::Stream, pairs, Some(Asked::AtLeast(1.5))).row(),
            "| work | Writer | File | **1.60** (1.20–2.00) | 2000 MB/s | 1250 MB/s | 0.10 s/GB \
             | 0.30 s/GB | 5.0 MiB | 1.0 MiB | ≥ 1.50, met |"
        );
    }

    #[test]
    fn saves_are_counted_and_cost_microseconds_each() {
        let pair = (outcome(500_000, 1.0, 0.1, 1), outcome(500_000, 2.0, 0.2, 1));
        assert_eq!(
            line(Unit::Saves(1000), vec![pair], None).row(),
            "| work | Writer | File | **2.00** (2.00–2.00) | 500 saves/s | 250 saves/s \
             | 200 µs/save | 400 µs/save | 1.0 MiB | 1.0 MiB | – |"
        );
    }

    #[test]
    fn messages_are_counted_by_thousands_and_cost_microseconds_each() {
        let of = |messages, elapsed_s| Outcome { messages, ..outcome(500_000, elapsed_s, 0.1, 1) };
        let pair = (of(400_000, 0.5), of(10_000, 0.1));
        assert_eq!(
            line(Unit::Messages, vec![pair], None).row(),
            "| work | Writer | File | **8.00** (8.00–8.00) | 800 k/s | 100 k/s | 0.25 µs | 10.00 µs \
             | 1.0 MiB | 1.0 MiB | – |"
        );
    }

    #[test]
    fn the_head_has_as_many_columns_as_a_line() {
        let row = line(Unit::Stream, vec![], None).row();
        let columns = |line: &str| line.matches('|').count();
        assert!(HEAD.lines().all(|line| columns(line) == columns(&row)));
    }
}
