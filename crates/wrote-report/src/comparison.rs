//! A comparison as text: the sections for all formats, the chart of its ratios, and its CSV.

use crate::chart::{Dot, Frame, Reference, dots, ratio};
use crate::csv::write_records;
use crate::figures::{per_second, text};
use crate::group::COUNTED_BYTES_MAX;
use crate::paint::Tone;
use crate::table::{Column, Keep, Table, Text};
use crate::text::{gathered, program};
use crate::tree::{Block, Figure, Note, On, Role, Section, Style, rest};
use itertools::Itertools;
use std::io::{self, Write};
use wrote_result::compare::{
    Because, Change, Comparison, Difference, Measure, NotCompared, RowComparison, Side, Verdict,
    shown,
};
use wrote_result::document::Finding;
use wrote_result::units::{self, significant, some_of};

/// The minimum width of a name. Names are broken into lines, but never into narrower ones.
const NAME_WIDTH_MIN: usize = 16;
/// The verdict if the intervals overlap.
const NOT_FOUND: &str = "no difference found";

/// The title of the warnings of both sides.
pub const WARNINGS: &str = "Warnings";

/// The maximum number of rows that a line names. Of the other rows, it states only the number.
const NAMES_MAX: usize = 4;

/// Returns the title of the Markdown report.
pub fn title(comparison: &Comparison) -> String {
    format!("{} against {}", comparison.new.name, comparison.old.name)
}

/// Returns the number of rows by verdict: `2 rows are slower, 1 is faster, ..`.
pub fn answer(comparison: &Comparison) -> String {
    let count = |of: Verdict| comparison.rows.iter().filter(|row| row.verdict == of).count();
    let told = [
        (count(Verdict::Slower), "slower"),
        (count(Verdict::Faster), "faster"),
        (count(Verdict::NoDetectableDifference), "without a difference found"),
        (count(Verdict::OneRun), "with one run, which proves nothing"),
    ];
    let rows = units::counted(comparison.rows.len() as u64, "row");
    let is_late = |row: &&RowComparison| row.by != Measure::P99LatencyNs && latency(row).is_some();
    let late = match comparison.rows.iter().filter(is_late).count() as u64 {
        0 => String::new(),
        count => format!(", but the P99 latency changed in {}", units::counted(count, "row")),
    };
    if told[2].0 == comparison.rows.len() {
        return format!("No difference found in any of {rows}{late}");
    }
    let told = told.iter().filter(|(count, _)| *count > 0);
    let told = told.map(|(count, words)| format!("{count} {words}")).join(", ");
    format!("Of {rows}: {told}{late}")
}

/// Returns the sections of a comparison.
pub fn sections(comparison: &Comparison) -> Vec<Section<'_>> {
    let sides = [("OLD", side(&comparison.old)), ("NEW", side(&comparison.new))];
    let mut sections = vec![Section::facts("What was compared", sides)];
    let mut rows = Vec::new();
    for block in blocks(comparison) {
        rows.push(Block::Heading(block.title.clone(), String::new()));
        let table = Block::Table(block.table());
        rows.push(Block::figures(move || vec![picture(&block.title, &block.lines)]));
        rows.push(table);
    }
    rows.push(Block::notes(Style::Apart, other_latencies(comparison)));
    sections.push(Section::new(Role::Answer, "The rows", "", rows));
    sections.extend(Section::list("What differs (OLD | NEW)", differences(comparison)));
    sections.extend(Section::list("Not compared", not_compared(comparison)));
    sections.extend(Section::list(WARNINGS, warnings(comparison)));
    sections.extend(Section::list("Notes", comparison.notes.clone()));
    let legend = [
        "RATIO is the median of NEW divided by that of OLD; 95 % is its bootstrap interval.",
        "No difference found: the interval contains 1.00; more runs may find one.",
        "Verdicts are corrected for multiple comparisons (Holm, at 5 %).",
    ];
    let legend = legend.map(|text| Note { on: On::Screen, ..text.to_owned().into() });
    let last = Note { tone: Tone::Strong, on: On::Screen, ..answer(comparison).into() };
    let legend = vec![Block::notes(Style::Foot, legend), Block::notes(Style::Apart, [last])];
    sections.push(Section::new(Role::Foot, "", "", legend));
    sections
}

/// The rows of one workload, or the rows whose latency is reported.
pub struct Rows<'a> {
    pub title: String,
    pub lines: Vec<Line<'a>>,
}

/// A row in the words of a table.
pub struct Line<'a> {
    /// The name of the row, without the name of its workload.
    pub name: String,
    pub old: String,
    pub new: String,
    pub change: &'a Change,
}

impl Rows<'_> {
    /// Returns the table of the lines. Its first column contains the names, its last the verdicts.
    pub fn table(&self) -> Table {
        let (lines, always) = (&self.lines, Keep::Always);
        let told = |line: &Line| {
            let tone = match line.change.verdict {
                Verdict::Faster => Tone::Green,
                Verdict::Slower => Tone::Red,
                Verdict::OneRun | Verdict::NoDetectableDifference => Tone::Faint,
            };
            Text { tone, ..verdict(line.change.verdict).into() }
        };
        let columns = vec![
            Column::words("ROW", always, lines, |line| &*line.name)
                .titled("row")
                .flexible(NAME_WIDTH_MIN, usize::MAX),
            Column::figures("OLD", Keep::If(1), lines, |line| &*line.old),
            Column::figures("NEW", Keep::If(0), lines, |line| &*line.new),
            Column::figures("RATIO", always, lines, |line| significant(line.change.ratio))
                .titled("ratio"),
            Column::figures("95 %", always, lines, |line| interval(line.change)),
            Column::words("VERDICT", always, lines, told).titled("verdict"),
        ];
        Table::of(&format!("Ratios of {}", self.title), columns)
    }
}

/// Returns the tables of a comparison: one for each workload, and one for the latencies.
fn blocks(comparison: &Comparison) -> Vec<Rows<'_>> {
    let lines = comparison.rows.iter().map(|row| (row.workload.clone(), throughput(row)));
    let blocks = gathered(lines).into_iter().map(|(title, lines)| Rows { title, lines });
    let mut blocks: Vec<Rows> = blocks.collect();
    let latencies: Vec<Line> = comparison.rows.iter().filter_map(latency).collect();
    if !latencies.is_empty() {
        let title = "P99 latency: a ratio above 1 is slower".into();
        blocks.push(Rows { title, lines: latencies });
    }
    blocks
}

fn throughput(row: &RowComparison) -> Line<'_> {
    let change = &row.throughput_bytes_per_s;
    let figure = |bytes_per_s: f64| match row.bs_bytes {
        Some(bytes) if bytes <= COUNTED_BYTES_MAX && bytes > 0 => {
            per_second(bytes_per_s / bytes as f64)
        }
        _ => units::rate(bytes_per_s),
    };
    let prefix = format!("{}/", row.workload);
    let short = |name: &str| name.strip_prefix(&prefix).unwrap_or(name).to_owned();
    let name = match &row.new_name {
        Some(new) => format!("{} : {}", short(&row.name), short(new)),
        None => short(&row.name),
    };
    Line { name, old: figure(change.old), new: figure(change.new), change }
}

/// Returns the latency of a row if it differs, or if it is more informative than the throughput.
fn latency(row: &RowComparison) -> Option<Line<'_>> {
    let change = row.p99_latency_ns.as_ref()?;
    let differs = matches!(change.verdict, Verdict::Faster | Verdict::Slower);
    let figure = |ns: f64| units::nanoseconds(ns.round() as u64);
    (differs || row.by == Measure::P99LatencyNs).then(|| Line {
        name: row.name.clone(),
        old: figure(change.old),
        new: figure(change.new),
        change,
    })
}

/// Returns a sentence about the latencies without a detectable difference, which no table contains;
/// `None` if there are none.
fn other_latencies(comparison: &Comparison) -> Option<String> {
    let timed = comparison.rows.iter().filter(|row| row.p99_latency_ns.is_some());
    let judged = timed.filter(|row| {
        let is_judged = |change: &Change| change.verdict == Verdict::NoDetectableDifference;
        latency(row).is_none() && row.p99_latency_ns.as_ref().is_some_and(is_judged)
    });
    let judged: Vec<&str> = judged.map(|row| &*row.name).collect();
    let told = || format!("P99 latency of {}: {NOT_FOUND}", some_of(&judged, 1));
    (!judged.is_empty()).then(told)
}

/// Returns text such as `0.94..1.01`; empty if there is no interval.
fn interval(change: &Change) -> String {
    match (change.ci95_low, change.ci95_high) {
        (Some(low), Some(high)) => format!("{}..{}", significant(low), significant(high)),
        _ => String::new(),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDetectableDifference => NOT_FOUND,
        Verdict::OneRun => "one run",
    }
}

/// Returns text such as `before.json, wrote 0.1.0 (abc), 2026-01-31T12:00:00Z`.
fn side(side: &Side) -> Vec<String> {
    let known = [side.name.clone(), program(&side.wrote), side.started_at.clone()];
    known.into_iter().filter(|text| !text.is_empty()).collect()
}

/// Returns the differences between the two documents. A line names its rows unless it applies to
/// all rows.
fn differences(comparison: &Comparison) -> Vec<String> {
    let of_rows = gathered(comparison.rows.iter().flat_map(|row| {
        row.differences.iter().map(move |difference| (difference, row.name.as_str()))
    }));
    let of_rows = of_rows.into_iter().map(|(of, names)| match names.len() {
        all if all == comparison.rows.len() => difference(of),
        _ => format!("{} ({})", difference(of), some_of(&names, NAMES_MAX)),
    });
    comparison.differences.iter().map(difference).chain(of_rows).collect()
}

/// Returns text such as `host.kernel: 6.17.1 | 6.18.5`.
fn difference(difference: &Difference) -> String {
    let (old, new) = (shown(difference.old.as_ref()), shown(difference.new.as_ref()));
    format!("{}: {old} | {new}", difference.key)
}

/// Returns the rows that were not compared, in one line for each reason.
fn not_compared(comparison: &Comparison) -> Vec<String> {
    let reasons = comparison.not_compared.iter().map(|row| (reason(row), row.name.as_str()));
    let reasons = gathered(reasons).into_iter();
    reasons.map(|(reason, names)| format!("{}: {reason}", some_of(&names, NAMES_MAX))).collect()
}

fn reason(row: &NotCompared) -> String {
    match row.because {
        Because::OnlyInOld => "only in OLD".into(),
        Because::OnlyInNew => "only in NEW".into(),
        Because::NothingMoved => "a run moved no bytes".into(),
        Because::OtherWork => format!("other work: {}", row.differences.iter().join("; ")),
    }
}

/// Returns the warnings of both sides, each with the name of its side. For a warning that both
/// sides have, returns the text of the new side, because the figures in the two texts may differ.
fn warnings(comparison: &Comparison) -> Vec<String> {
    let (old, new) = (&comparison.old.warnings, &comparison.new.warnings);
    let has = |side: &[Finding], id: &str| side.iter().any(|finding| finding.id == id);
    let olds = old.iter().filter(|finding| !has(new, &finding.id));
    let olds = olds.map(|finding| format!("OLD: {}", finding.text));
    let news = new.iter().map(|finding| match has(old, &finding.id) {
        true if old.iter().any(|known| known.text == finding.text) => {
            format!("both: {}", finding.text)
        }
        true => format!("both (NEW's figures): {}", finding.text),
        false => format!("NEW: {}", finding.text),
    });
    olds.chain(news).collect()
}

/// The suffix of a column's name, and the function that returns the figure of a change.
type NamedFigure = (&'static str, fn(&Change) -> String);

const FIGURES: [NamedFigure; 8] = [
    ("old", |change| change.old.to_string()),
    ("new", |change| change.new.to_string()),
    ("ratio", |change| change.ratio.to_string()),
    ("ci95_low", |change| text(change.ci95_low)),
    ("ci95_high", |change| text(change.ci95_high)),
    ("p_value", |change| text(change.p_value)),
    ("old_runs", |change| change.old_runs.to_string()),
    ("new_runs", |change| change.new_runs.to_string()),
];

/// Writes a line of names, followed by a line for each row. A value that does not apply is empty.
pub fn write_csv(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let names = ["scenario", "row", "new_row", "workload", "verdict", "by"].map(str::to_owned);
    let of = |measure: &str| FIGURES.map(|(figure, _)| format!("{measure}_{figure}"));
    let names = [&names[..], &of("throughput_bytes_per_s"), &of("p99_latency_ns")].concat();
    write_records(std::iter::once(names).chain(comparison.rows.iter().map(values)), out)
}

fn values(row: &RowComparison) -> Vec<String> {
    let by = match row.by {
        Measure::Throughput => "throughput",
        Measure::P99LatencyNs => "p99_latency_ns",
    };
    let mut values = vec![
        row.scenario.clone(),
        row.name.clone(),
        text(row.new_name.as_ref()),
        row.workload.clone(),
        // These words are part of the format.
        verdict(row.verdict).replace(NOT_FOUND, "no detectable difference"),
        by.into(),
    ];
    for change in [Some(&row.throughput_bytes_per_s), row.p99_latency_ns.as_ref()] {
        values.extend(FIGURES.iter().map(|(_, figure)| text(change.map(figure))));
    }
    values
}

/// The maximum number of rows in a chart. The table below it contains all rows.
const ROWS_MAX: usize = 60;
/// Returns the class for a verdict.
pub fn class(of: Verdict) -> &'static str {
    match of {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDetectableDifference | Verdict::OneRun => "undecided",
    }
}

pub fn picture(title: &str, lines: &[Line]) -> Figure {
    let dot = |(row, line): (usize, &Line)| {
        let change = line.change;
        let interval = change.ci95_low.zip(change.ci95_high);
        let within = interval.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", significant(low), significant(high))
        });
        let (name, figure) = (&line.name, significant(change.ratio));
        Dot {
            row,
            class: class(change.verdict).into(),
            value: change.ratio,
            interval,
            title: format!(
                "{name}: {} to {}, x {figure}{within}, {}",
                line.old,
                line.new,
                verdict(change.verdict)
            ),
            figure,
            ..Dot::default()
        }
    };
    let drawn: Vec<Dot> = lines.iter().take(ROWS_MAX).enumerate().map(dot).collect();
    let names: Vec<String> = lines.iter().take(ROWS_MAX).map(|line| line.name.clone()).collect();
    let is_of_latencies = title.starts_with("P99");
    let axis = match is_of_latencies {
        true => "ratio of P99, less is better",
        false => "ratio of throughput, more is better",
    };
    let key = [("slower", "slower"), ("faster", "faster"), ("undecided", NOT_FOUND)];
    let key = key.into_iter().filter(|(class, _)| drawn.iter().any(|of| of.class == *class));
    let label = format!("Ratios of {title}");
    let reference = Reference { value: 1.0, title: "no change: a ratio of 1".into(), word: "" };
    let frame =
        Frame { label: &label, names: &names, word: ratio, axis, reference: Some(&reference) };
    Figure {
        question: match is_of_latencies {
            true => "Which latencies changed?",
            false => "Which rows became faster or slower?",
        }
        .into(),
        picture: dots(&frame, &drawn),
        legend: key.map(|(class, words)| (class.into(), words.into())).collect(),
        note: rest(drawn.len(), lines.len()),
    }
}
