//! A long run: described by its rates, their changes and the verdict of SNIA's rule, and drawn over
//! the bytes written.

use crate::Screen;
use crate::figures::ends;
use crate::paint::Tone;
use crate::text::Page;
use std::io::{self, Write};
use wrote_result::document::{Change, Interval, Sample, SteadyState, Sustained};
use wrote_result::units;

/// Returns a line for each level and each change, and one for the verdict.
pub fn notes(sustained: &Sustained) -> Vec<String> {
    let levels = levels(sustained).into_iter().map(|(name, interval, words)| {
        let range = ends(&interval, &units::RATES);
        format!("{name}: {} ({range}), {words}", units::rate(interval.median))
    });
    let changes = sustained.changes.iter().map(|of| format!("changed {}", change(of)));
    levels.chain(changes).chain(sustained.steady_state.iter().map(verdict)).collect()
}

/// Returns the levels `burst`, `sustained` and `recovered`, each with a description of its extent.
fn levels(sustained: &Sustained) -> Vec<(&'static str, Interval, String)> {
    let written = units::bytes(sustained.written_bytes());
    let from = |change: &Change| format!("from {} on", units::bytes(change.at_bytes));
    let last = sustained.changes.last();
    let Some(cliff) = sustained.cliffs().next() else {
        let changed = last.map(|last| from(last) + "; ").unwrap_or_default();
        let told = sustained.tells_changes();
        let claim = if told { "no slowdown" } else { "too short to show a slowdown: none" };
        let words = format!("{changed}{claim} within {written}");
        return vec![("sustained", sustained.sustained_bytes_per_s, words)];
    };
    let until = units::bytes(cliff.at_bytes);
    let until = format!("until {until} were written, in {}", units::seconds(cliff.at_s));
    let from = format!("{}, to {written}", from(last.unwrap_or(cliff)));
    let mut levels = vec![
        ("burst", sustained.burst_bytes_per_s, until),
        ("sustained", sustained.sustained_bytes_per_s, from),
    ];
    if let (Some(recovered), Some(idle_s)) = (sustained.recovered_bytes_per_s, sustained.idle_s) {
        levels.push(("recovered", recovered, format!("after {} of rest", units::seconds(idle_s))));
    }
    levels
}

/// Returns a description of a change: `at 2.00 GB from 3.21 GB/s to 320 MB/s`.
pub fn change(change: &Change) -> String {
    format!(
        "at {} from {} to {}",
        units::bytes(change.at_bytes),
        units::rate(change.before_bytes_per_s),
        units::rate(change.after_bytes_per_s),
    )
}

/// Returns the verdict according to SNIA's rule.
fn verdict(state: &SteadyState) -> String {
    let rounds = format!(
        "rounds {} to {} of {}",
        state.first_round,
        state.last_round,
        state.rounds_bytes_per_s.len()
    );
    let figures = format!(
        "their range is {:.0} % of the mean (20 % at most), their trend {:.0} % (10 % at most)",
        state.range_share * 100.0,
        state.slope_share * 100.0
    );
    if state.reached {
        format!("steady state, by SNIA's rule: reached in {rounds}; {figures}")
    } else {
        format!("steady state, by SNIA's rule: not reached; of {rounds} {figures}")
    }
}

/// The number of lines of the drawing, and its maximum width.
const HEIGHT: usize = 8;
const WIDTH_MAX: usize = 100;

/// Writes an empty line and the drawing.
pub fn write_drawing(samples: &[Sample], page: Page, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    let mut lines = drawing(samples, page.screen).into_iter();
    lines.try_for_each(|line| writeln!(out, "{}", page.paint(Tone::Faint, &line)))
}

/// Draws the throughput over the bytes written, as wide as the screen. The rate of a column is its
/// share of the bytes divided by the time that they took.
fn drawing(samples: &[Sample], screen: Screen) -> Vec<String> {
    let Some(last) = samples.last() else { return Vec::new() };
    let (line, corner, dash) = if screen.unicode { ("│", "└", "─") } else { ("|", "+", "-") };
    let columns = screen.width.min(WIDTH_MAX).saturating_sub(12).max(10);
    let rates: Vec<f64> = (0..columns)
        .map(|column| {
            let at = |number: usize| (last.end_bytes as f64) * number as f64 / columns as f64;
            (at(column + 1) - at(column))
                / (Sample::time_at(samples, at(column + 1)) - Sample::time_at(samples, at(column)))
                    .max(1e-9)
        })
        .collect();
    let most = rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut lines: Vec<String> = (0..HEIGHT)
        .rev()
        .map(|level| {
            let label = if level + 1 == HEIGHT { units::rate(most) } else { String::new() };
            let cells =
                rates.iter().map(|rate| cell(rate / most * HEIGHT as f64 - level as f64, screen));
            format!("{label:>9} {line}{}", cells.collect::<String>()).trim_end().to_owned()
        })
        .collect();
    lines.push(format!("{:>9} {corner}{}", "0", dash.repeat(columns)));
    let end = units::bytes(last.end_bytes);
    lines.push(format!("{:>11}{end:>1$}", "0", columns));
    lines
}

/// Returns the character for a column that is filled up to `part`.
fn cell(part: f64, screen: Screen) -> char {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let part = part.clamp(0.0, 1.0);
    match screen.unicode {
        true => EIGHTHS[(part * 8.0).round() as usize],
        false if part >= 0.5 => '#',
        false => ' ',
    }
}

#[cfg(test)]
mod sustained_tests {
    use super::*;

    #[test]
    fn the_verdict_names_the_rounds_and_the_limits() {
        let state = SteadyState {
            reached: true,
            rounds_bytes_per_s: vec![1.0; 25],
            first_round: 8,
            last_round: 12,
            range_share: 0.031,
            slope_share: 0.012,
        };
        assert_eq!(
            verdict(&state),
            "steady state, by SNIA's rule: reached in rounds 8 to 12 of 25; their range is 3 % of \
             the mean (20 % at most), their trend 1 % (10 % at most)"
        );
        assert!(verdict(&SteadyState { reached: false, ..state }).contains("not reached"));
    }
}

#[cfg(test)]
mod drawing_tests {
    use super::*;

    const SCREEN: Screen = Screen { width: 32, colour: false, unicode: true };

    /// Returns two samples: 10 MB at 10 MB/s, then 10 MB at 5 MB/s.
    fn samples() -> Vec<Sample> {
        let sample = |end_bytes, end_s, throughput_bytes_per_s| Sample {
            end_bytes,
            end_s,
            throughput_bytes_per_s,
        };
        vec![sample(10_000_000, 1.0, 10e6), sample(20_000_000, 3.0, 5e6)]
    }

    #[test]
    fn a_column_is_as_high_as_its_throughput_over_the_bytes() {
        let lines = drawing(&samples(), SCREEN);
        let half = "█".repeat(10);
        assert_eq!(lines[0], format!("10.0 MB/s │{half}"));
        assert_eq!(lines[3], format!("          │{half}"));
        assert_eq!(lines[4], format!("          │{half}{half}"));
        assert_eq!(lines[8], format!("        0 └{}", "─".repeat(20)));
        assert_eq!(lines[9], "          0             20.0 MB");
    }

    #[test]
    fn nothing_written_is_nothing_drawn_and_ascii_is_ascii() {
        assert!(drawing(&[], SCREEN).is_empty());
        let lines = drawing(&samples(), Screen { unicode: false, ..SCREEN });
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
    }
}
