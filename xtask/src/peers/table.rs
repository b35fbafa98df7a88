//! The tables' lines, in Markdown.

use super::measured::Measured;
use super::ratio::{Asked, Figures};

/// What a table counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Streams: MB/s, and CPU seconds per GB.
    Stream,
    /// Reads of this many bytes: thousands a second, and CPU microseconds each.
    Reads(u64),
}

impl Unit {
    /// The head of the table.
    pub fn head(self) -> String {
        let (what, rate, cpu) = match self {
            Unit::Stream => ("streams and writes", "MB/s", "CPU s/GB"),
            Unit::Reads(_) => ("small reads", "kIOPS", "CPU µs/read"),
        };
        format!(
            "| {what} | blocks | peer | wrote / peer (range) | wrote, {rate} | peer, {rate} | \
             wrote, {cpu} | peer, {cpu} | CPU, wrote / peer (range) | asked |\n\
             |---|---|---|---:|---:|---:|---:|---:|---:|---|"
        )
    }

    fn rate(self, measured: &Measured) -> f64 {
        match self {
            Unit::Stream => measured.throughput_bytes_per_s() / 1e6,
            Unit::Reads(bytes) => measured.throughput_bytes_per_s() / bytes as f64 / 1e3,
        }
    }

    fn cpu(self, measured: &Measured) -> f64 {
        match self {
            Unit::Stream => measured.cpu_s_per_gb(),
            Unit::Reads(bytes) => measured.cpu_s_per_gb() * bytes as f64 / 1e3,
        }
    }
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// What is done.
    pub what: String,
    /// What the blocks are that it is done on.
    pub blocks: &'static str,
    /// Who else does it.
    pub peer: &'static str,
    /// What is asked of the throughput's ratio.
    pub throughput: Option<Asked>,
    /// What is asked of the ratio of the CPU time.
    pub cpu: Option<Asked>,
}

/// Pairs of runs of one comparison.
#[derive(Debug)]
pub struct Line {
    /// The table that it belongs to.
    pub unit: Unit,
    subject: Subject,
    pairs: Vec<(Measured, Measured)>,
    /// Why there are none.
    missing: Option<String>,
}

impl Line {
    /// A comparison without runs.
    pub fn new(unit: Unit, subject: Subject) -> Line {
        Line { unit, subject, pairs: Vec::new(), missing: None }
    }

    /// A comparison that cannot be made here.
    pub fn missing(unit: Unit, subject: Subject, because: String) -> Line {
        Line { unit, subject, pairs: Vec::new(), missing: Some(because) }
    }

    /// Adds a pair of runs, wrote's and the peer's, and says it.
    pub fn add(&mut self, wrote: Measured, peer: Measured) {
        let unit = if self.unit == Unit::Stream { "MB/s" } else { "kIOPS" };
        eprintln!(
            "{}: wrote {} {unit}, {} {} {unit}",
            self.subject.what,
            three_digits(self.unit.rate(&wrote)),
            self.subject.peer,
            three_digits(self.unit.rate(&peer)),
        );
        self.pairs.push((wrote, peer));
    }

    /// The line of the table.
    pub fn row(&self) -> String {
        let Subject { what, blocks, peer, throughput, cpu } = &self.subject;
        if let Some(because) = &self.missing {
            let asked = throughput.map(|asked| format!("{asked}, not run"));
            let asked = asked.as_deref().unwrap_or("–");
            return format!(
                "| {what} | {blocks} | {peer} | not run: {because} | | | | | | {asked} |"
            );
        }
        let unit = self.unit;
        let each = |figure: &dyn Fn(&Measured, &Measured) -> f64| {
            Figures::new(self.pairs.iter().map(|(wrote, peer)| figure(wrote, peer)))
        };
        let ratios = each(&|wrote, peer| unit.rate(wrote) / unit.rate(peer));
        let cpu_ratios = each(&|wrote, peer| unit.cpu(wrote) / unit.cpu(peer));
        let asked = [
            throughput.map(|asked| asked.verdict(&ratios)),
            cpu.map(|asked| format!("CPU {}", asked.verdict(&cpu_ratios))),
        ];
        let asked: Vec<String> = asked.into_iter().flatten().collect();
        format!(
            "| {what} | {blocks} | {peer} | {ratios} | {} | {} | {:.2} | {:.2} | {cpu_ratios} | {} |",
            three_digits(each(&|wrote, _| unit.rate(wrote)).median()),
            three_digits(each(&|_, peer| unit.rate(peer)).median()),
            each(&|wrote, _| unit.cpu(wrote)).median(),
            each(&|_, peer| unit.cpu(peer)).median(),
            if asked.is_empty() { "–".to_owned() } else { asked.join("; ") },
        )
    }
}

/// Three digits that count.
pub fn three_digits(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
}

/// The head of the table of instructions.
pub const COUNTED_HEAD: &str = "\
| instructions in user space | counted by | peer | wrote / peer (range) | wrote, per read | peer, per read | asked |
|---|---|---|---:|---:|---:|---|";

/// Instructions per read, in pairs.
#[derive(Debug)]
pub struct Counted {
    /// What is done, and where.
    pub what: String,
    /// What counts.
    pub by: &'static str,
    /// What is asked of the ratio.
    pub asked: Asked,
    /// wrote's and fio's.
    pub pairs: Vec<(f64, f64)>,
}

impl Counted {
    /// The line of the table.
    pub fn row(&self) -> String {
        let ratios = Figures::new(self.pairs.iter().map(|(wrote, peer)| wrote / peer));
        let wrote = Figures::new(self.pairs.iter().map(|pair| pair.0)).median();
        let peer = Figures::new(self.pairs.iter().map(|pair| pair.1)).median();
        let (what, by, verdict) = (&self.what, self.by, self.asked.verdict(&ratios));
        format!("| {what} | {by} | fio | {ratios} | {wrote:.0} | {peer:.0} | {verdict} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(megabytes_per_s: f64, cpu_s: f64) -> Measured {
        Measured { bytes: 1_000_000_000, elapsed_s: 1000.0 / megabytes_per_s, cpu_s }
    }

    fn subject(what: &str) -> Subject {
        Subject { what: what.into(), blocks: "new", peer: "fio", throughput: None, cpu: None }
    }

    #[test]
    fn a_line_holds_the_medians_and_ranges_of_the_pairs_ratios_and_all_medians() {
        let mut line = Line::new(Unit::Stream, subject("stream"));
        line.add(run(2000.0, 0.1), run(2000.0, 0.2));
        line.add(run(1200.0, 0.2), run(1000.0, 0.5));
        line.add(run(900.0, 0.4), run(1000.0, 0.5));
        assert_eq!(
            line.row(),
            "| stream | new | fio | **1.00** (0.90–1.20) | 1200 | 1000 | 0.20 | 0.50 \
             | **0.50** (0.40–0.80) | – |"
        );
    }

    #[test]
    fn slow_writes_keep_a_digit_more() {
        let mut line = Line::new(Unit::Stream, subject("4 KiB"));
        line.add(run(5.0, 2.0), run(4.0, 4.0));
        line.add(run(5.5, 2.0), run(4.0, 4.0));
        assert_eq!(
            line.row(),
            "| 4 KiB | new | fio | **1.31** (1.25–1.38) | 5.2 | 4.0 | 2.00 | 4.00 \
             | **0.50** (0.50–0.50) | – |"
        );
    }

    #[test]
    fn what_is_asked_of_both_ratios_is_said_with_whether_it_is_met() {
        let asked = (Some(Asked::AtLeast(1.0)), Some(Asked::AtMost(0.7)));
        let subject = Subject { throughput: asked.0, cpu: asked.1, ..subject("stream") };
        let mut line = Line::new(Unit::Stream, subject);
        line.add(run(1100.0, 0.3), run(1000.0, 0.4));
        assert!(line.row().ends_with("| ≥ 1.00, met; CPU ≤ 0.70, not met |"), "{}", line.row());
    }

    #[test]
    fn reads_are_counted_in_thousands_and_cost_microseconds() {
        let mut line = Line::new(Unit::Reads(4096), subject("4 KiB"));
        let run = |elapsed_s, cpu_s| Measured { bytes: 4096 * 600_000, elapsed_s, cpu_s };
        line.add(run(1.0, 0.9), run(2.0, 1.8));
        assert_eq!(
            line.row(),
            "| 4 KiB | new | fio | **2.00** (2.00–2.00) | 600 | 300 | 1.50 | 3.00 \
             | **0.50** (0.50–0.50) | – |"
        );
    }

    #[test]
    fn a_line_without_runs_says_why_in_as_many_columns() {
        let subject = Subject { throughput: Some(Asked::AtLeast(1.5)), ..subject("4 KiB") };
        let unit = Unit::Reads(4096);
        let row = Line::missing(unit, subject, "not root".into()).row();
        let expected = "| 4 KiB | new | fio | not run: not root | | | | | | ≥ 1.50, not run |";
        assert_eq!(row, expected);
        let columns = |line: &str| line.matches('|').count();
        assert!(unit.head().lines().all(|line| columns(line) == columns(&row)));
    }

    #[test]
    fn instructions_have_a_line_of_their_own() {
        let counted = Counted {
            what: "4 KiB".into(),
            by: "callgrind",
            asked: Asked::AtMost(0.5),
            pairs: vec![(1300.0, 2600.0), (1310.0, 2600.4), (1250.0, 2500.0)],
        };
        assert_eq!(
            counted.row(),
            "| 4 KiB | callgrind | fio | **0.50** (0.50–0.50) | 1300 | 2600 | ≤ 0.50, met |"
        );
    }
}
