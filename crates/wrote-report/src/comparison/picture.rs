//! The chart of the ratios of some rows.

use super::{Line, verdict};
use crate::chart::{Dot, Frame, Reference, dots, ratio};
use crate::tree::Figure;
use wrote_result::compare::Verdict;
use wrote_result::units::significant;

/// A chart shows at most this many rows; the table beneath has all.
const ROWS_MAX: usize = 60;
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
