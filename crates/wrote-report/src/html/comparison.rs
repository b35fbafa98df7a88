//! The article about a comparison of two results.

use super::article::article as begun;
use super::chapters::remarks;
use super::chart::{Dot, Frame, Reference, dots, ratio};
use super::page::Article;
use crate::comparison::{Line, WARNINGS, sections, verdict};
use crate::tree::{Block, Figure, Remarks, Role, Section};
use wrote_result::compare::{Comparison, Verdict};
use wrote_result::units::significant;

/// A chart shows at most this many rows; the table beneath has all.
const ROWS_MAX: usize = 60;
/// Returns the article of a comparison.
pub fn article<'a>(comparison: &'a Comparison, name: &str) -> Article<'a> {
    let command = &comparison.new.command;
    let both = comparison.results.len() == 2;
    let mut article = begun(comparison, name, if both { command } else { &[] });
    article.kicker = if both { "wrote bench --vs" } else { "wrote compare" }.into();
    article.title =
        format!("What changed from {} to {}?", comparison.old.name, comparison.new.name);
    article.ledes = vec![answer(comparison)];
    article.sections = sections(comparison);
    // A page has the warnings of each side with their evidence.
    article.sections.retain(|section| section.title != WARNINGS);
    // The rows come first.
    article.sections.swap(0, 1);
    article.sections[0].lede =
        "The ratio of the medians, NEW over OLD, with its 95 % interval.".into();
    for (title, of) in [("Warnings of OLD", &comparison.old), ("Warnings of NEW", &comparison.new)]
    {
        if !of.warnings.is_empty() {
            let remarks = Remarks { remarks: remarks(&of.warnings), is_brief: false };
            let blocks = vec![Block::Remarks(remarks)];
            article.sections.push(Section::new(Role::Page, title, "", blocks));
        }
    }
    article
}

/// The number of rows by verdict: `2 rows are slower, 1 is faster, ..`.
fn answer(comparison: &Comparison) -> String {
    let count = |of: Verdict| comparison.rows.iter().filter(|row| row.verdict == of).count();
    let told = [
        (count(Verdict::Slower), "slower"),
        (count(Verdict::Faster), "faster"),
        (count(Verdict::NoDetectableDifference), "without a detectable difference"),
        (count(Verdict::OneRun), "of one run, which tells nothing"),
    ];
    let told = told.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, words)| format!("{count} {words}")).collect();
    format!("Of {} rows: {}.", comparison.rows.len(), told.join(", "))
}

/// Returns the class of a verdict.
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
    let key =
        [("slower", "slower"), ("faster", "faster"), ("undecided", "no measurable difference")];
    let key = key.into_iter().filter(|(class, _)| drawn.iter().any(|of| of.class == *class));
    let label = format!("Ratios of {title}");
    let reference = Reference { value: 1.0, title: "no change: a ratio of 1".into(), word: "" };
    let frame =
        Frame { label: &label, names: &names, word: ratio, axis, reference: Some(&reference) };
    let note = match lines.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("The first {ROWS_MAX} rows; the table has the other {more}."),
    };
    Figure {
        question: match is_of_latencies {
            true => "Which latencies changed?",
            false => "Which rows became faster or slower?",
        }
        .into(),
        picture: dots(&frame, &drawn),
        legend: key.map(|(class, words)| (class.into(), words.into())).collect(),
        note,
    }
}
