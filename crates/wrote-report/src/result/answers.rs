//! The answers: a card for each piece of advice, with the figures of its row.

use crate::figures::{latency, operations_per_s, p99, range, ranged};
use crate::group::COUNTED_BYTES_MAX;
use crate::tree::{Card, Code};
use itertools::Itertools;
use wrote_result::document::{Advice, Document, Row, View};
use wrote_result::recipes::RUST;
use wrote_result::units;

/// Returns a card for each piece of advice.
pub fn cards(document: &Document) -> Vec<Card> {
    document.advice.iter().map(|advice| card(advice, row_of(advice, document))).collect()
}

/// Returns the row whose name begins the reason of a piece of advice.
fn row_of<'a>(advice: &Advice, document: &'a Document) -> Option<&'a Row> {
    document.row(advice.because.split_once(": ")?.0)
}

fn card(advice: &Advice, row: Option<&Row>) -> Card {
    let card = Card {
        purpose: advice.purpose.clone(),
        action: advice.action.clone(),
        because: advice.because.clone(),
        codes: codes(advice),
        ..Card::default()
    };
    let Some(row) = row else { return card };
    let (figure, more) = figures(row);
    Card {
        way: row.name.clone(),
        figure,
        spread: if row.view() == View::Saves { String::new() } else { range(row) },
        more,
        survives: row.survives.map(|survives| survives.to_string()).unwrap_or_default(),
        ..card
    }
}

/// Returns the code, with titles. The code that uses this library comes first, if there is any.
fn codes(advice: &Advice) -> Vec<Code> {
    let code = |title, label, text: &String| {
        let language = advice.language.clone().unwrap_or_else(|| RUST.into());
        Code { title, label, language, text: text.clone() }
    };
    let by_wrote =
        advice.with_wrote.iter().map(|text| code("With the library wrote", "wrote", text));
    let (title, label) = match advice.with_wrote {
        Some(_) => ("With the standard library", "or std"),
        None => ("Code", "code"),
    };
    let codes = by_wrote.chain([code(title, label, &advice.code)]);
    codes.filter(|code| !code.text.is_empty()).collect()
}

/// Returns the figure that answers, and further figures. The figure is the operations per second if
/// operations are small, and the time of a save for saves.
fn figures(row: &Row) -> (String, String) {
    let p99 = p99(row.latency());
    let p99 = Some(p99).filter(|of| !of.is_empty()).map(|of| format!("P99 {of}"));
    if row.view() == View::Saves {
        let p50 = latency(row.latency(), |of| Some(of.p50));
        return (p50, ["P50 of a save".into()].into_iter().chain(p99).join("; "));
    }
    let of = &row.throughput_bytes_per_s;
    let is_counted = row.view() != View::Files
        && (1..=COUNTED_BYTES_MAX).contains(&row.settings.effective.bs_bytes);
    let ([median, low, high], unit) = ranged(of, &units::RATES);
    let rate = format!("{median} {unit}");
    let (figure, median) = match is_counted {
        true => (operations_per_s(row), rate),
        false => (rate, String::new()),
    };
    let interval = match row.runs.len() {
        0 | 1 => "one run, so no interval".into(),
        _ => format!("95 %: {low} to {high} {unit}"),
    };
    let more = [median, interval].into_iter().filter(|text| !text.is_empty());
    (figure, more.chain(p99).join("; "))
}
