//! The throughput of a long run, drawn against the bytes written.

use crate::Screen;
use crate::page::Page;
use crate::paint::Tone;
use std::io::{self, Write};
use wrote_result::document::Sample;
use wrote_result::units;

/// Lines of the drawing, and its greatest width.
const HEIGHT: usize = 8;
const WIDTH_MAX: usize = 100;

/// Writes the drawing below an empty line.
pub fn write(samples: &[Sample], page: Page, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    let mut lines = drawing(samples, page.screen).into_iter();
    lines.try_for_each(|line| writeln!(out, "{}", page.paint(Tone::Faint, &line)))
}

/// Draws the throughput against the bytes written, as wide as the screen. A column's rate is its
/// part of the bytes over their time.
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

/// Returns the character of a column filled to `part` of it.
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
mod tests {
    use super::*;

    const SCREEN: Screen = Screen { width: 32, colour: false, unicode: true };

    /// 10 MB at 10 MB/s, then 10 MB at 5 MB/s.
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
