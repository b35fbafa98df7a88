//! Findings on the measurement of rows: noise, fallbacks, depths not reached, a slow generator.

use super::Evidence;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wrote_result::document::{Direction, Fallback, Finding, Row, Severity, View};
use wrote_result::finding::{finding, listed, names};
use wrote_result::stats::relative_width;
use wrote_result::units::rate;

/// A row is noisy if its interval reaches farther from the median than this share of it.
const WIDTH_MAX: f64 = 0.25;
/// The generator limits a row that is faster than this share of the generator's rate.
const GENERATOR_SHARE_MAX: f64 = 0.5;

pub(super) fn noisy(evidence: &Evidence) -> Option<Finding> {
    // One run has no width, so it is never noisy.
    let width = |row: &Row| relative_width(&row.throughput_bytes_per_s);
    let rows: Vec<&Row> = evidence.rows.iter().filter(|row| width(row) > WIDTH_MAX).collect();
    let widest = rows.iter().map(|row| width(row)).filter(|w| w.is_finite()).reduce(f64::max)?;
    let most = match widest * 100.0 {
        // Two runs that differ give millions of percent.
        percent if percent > 999.0 => ">999".into(),
        percent => format!("{percent:.0}"),
    };
    let text = format!(
        "noisy runs: the 95 % interval is wider than \u{b1}{:.0} %, up to \u{b1}{most} % ({}); more or \
         longer runs narrow it",
        WIDTH_MAX * 100.0,
        names(&rows),
    );
    let figures = [("rows", listed(&rows)), ("relative_width_max", json!(widest))];
    Some(finding("noisy", Severity::Warning, text, figures))
}

/// Makes one finding for each distinct fallback, with the rows that took it.
pub(super) fn fallbacks(evidence: &Evidence) -> Vec<Finding> {
    let mut rows: BTreeMap<&Fallback, Vec<&Row>> = BTreeMap::new();
    for row in evidence.rows {
        for fallback in &row.settings.fallbacks {
            let rows = rows.entry(fallback).or_default();
            if !rows.iter().any(|known| known.name == row.name) {
                rows.push(row);
            }
        }
    }
    rows.into_iter().map(|(fallback, rows)| fell_back(fallback, &rows)).collect()
}

fn fell_back(fallback: &Fallback, rows: &[&Row]) -> Finding {
    let Fallback { wanted, got, because } = fallback;
    let text = format!("{wanted} was wanted, {got} was used: {because} ({})", names(rows));
    let figures = [
        ("rows", listed(rows)),
        ("wanted", json!(wanted)),
        ("got", json!(got)),
        ("because", json!(because)),
    ];
    finding("fallback", Severity::Warning, text, figures)
}

pub(super) fn depth_not_reached(evidence: &Evidence) -> Option<Finding> {
    let short = |row: &Row| row.settings.effective.iodepth < row.settings.asked.iodepth;
    let mut shown = Vec::new();
    let mut figures = serde_json::Map::new();
    for row in evidence.rows_where(short)? {
        let (asked, reached) = (row.settings.asked.iodepth, row.settings.effective.iodepth);
        shown.push(format!("{} (asked {asked}, reached {reached})", row.name));
        figures.insert(row.name.clone(), json!({ "asked": asked, "reached": reached }));
    }
    let text = format!("fewer operations were in flight than were asked for: {}", shown.join(", "));
    let severity = Severity::Warning;
    Some(finding("depth-not-reached", severity, text, [("iodepth", Value::Object(figures))]))
}

pub(super) fn generator_limited(evidence: &Evidence) -> Option<Finding> {
    let limit_bytes_per_s = GENERATOR_SHARE_MAX * evidence.generator_bytes_per_s;
    // The data of whole files and messages was made before the clock started.
    let near = |row: &Row| {
        row.direction == Direction::Write
            && !matches!(View::of(row), View::Files | View::Messages)
            && row.throughput_bytes_per_s.median > limit_bytes_per_s
    };
    let rows = evidence.rows_where(near).filter(|_| limit_bytes_per_s > 0.0)?;
    let text = format!(
        "the generator may be the limit: it makes data at {}, less than twice the throughput ({}); the \
         disk may be faster: give a larger block size",
        rate(evidence.generator_bytes_per_s),
        names(&rows),
    );
    let figures =
        [("rows", listed(&rows)), ("generator_bytes_per_s", json!(evidence.generator_bytes_per_s))];
    Some(finding("generator-limited", Severity::Warning, text, figures))
}
