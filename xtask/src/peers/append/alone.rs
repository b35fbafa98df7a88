//! What is measured alone: how many messages, and what each takes of the processor.

use super::super::ratio::{Asked, Figures};
use super::super::trial::Outcome;
use super::super::turn::in_rounds;
use super::{Appends, Measured, Work};
use crate::failure::{Failure, Tried};
use std::path::Path;

/// The head of the table.
pub const HEAD: &str = "\
| messages | wrote's | million/s (range) | CPU | cycles | asked |
|---|---|---:|---:|---:|---|";

const CPUINFO: &str = "/proc/cpuinfo";

/// A line of the table.
#[derive(Debug)]
pub struct Alone {
    what: String,
    ours: String,
    outcomes: Vec<Outcome>,
    cpu_mhz: f64,
    asked: Asked,
}

/// Short messages.
pub fn small(appends: &Appends) -> Result<Measured, Failure> {
    let work = Work { messages: 10_000_000, producers: 4, shortest: 64, longest: 64 };
    let ours = appends.by_trial("log", "`Log`, `Sync::No`", work);
    let cpu_mhz = cpu_mhz()?;
    let what = "10 M of 64 bytes, 4 producers, one sync".to_owned();
    let mut outcomes = Vec::new();
    in_rounds(appends.rounds, &[&*ours.run], |round| outcomes.extend(round))?;
    let asked = Asked::AtLeast(5.0);
    let alone = Alone { what, ours: ours.name, outcomes, cpu_mhz, asked };
    Ok(Measured { alone: vec![alone], commands: vec![ours.command], ..Measured::default() })
}

impl Alone {
    /// The line of the table.
    pub fn row(&self) -> String {
        let Alone { what, ours, outcomes, cpu_mhz, asked } = self;
        let each = |figure: fn(&Outcome) -> f64| Figures::new(outcomes.iter().map(figure));
        let rates = each(|one| one.messages as f64 / one.measured.elapsed_s / 1e6);
        let cpu_us = each(|one| one.measured.cpu_s / one.messages as f64 * 1e6).median();
        let verdict = asked.verdict(&rates);
        format!(
            "| {what} | {ours} | {rates} | {:.0} ns | {:.0} | {verdict} |",
            cpu_us * 1e3,
            cpu_us * cpu_mhz
        )
    }
}

/// How fast the first processor runs (`proc_cpuinfo(5)`): in a guest what its host says, whatever the
/// processor does at a moment.
fn cpu_mhz() -> Result<f64, Failure> {
    let text = std::fs::read_to_string(Path::new(CPUINFO)).tried(CPUINFO)?;
    parse_mhz(&text).ok_or_else(|| Failure::Failed(format!("{CPUINFO} has no cpu MHz")))
}

fn parse_mhz(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    line.split_once(':')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::super::measured;
    use super::*;

    #[test]
    fn a_line_holds_millions_a_second_and_cycles_each() {
        let measured = measured::Measured { bytes: 640, elapsed_s: 2.0, cpu_s: 3.0 };
        let outcome = Outcome { messages: 12_000_000, ..Outcome::new(measured, 0) };
        let alone = Alone {
            what: "short".into(),
            ours: "`Log`".into(),
            outcomes: vec![outcome],
            cpu_mhz: 2000.0,
            asked: Asked::AtLeast(5.0),
        };
        let row = alone.row();
        let expected = "| short | `Log` | **6.00** (6.00–6.00) | 250 ns | 500 | ≥ 5.00, met |";
        assert_eq!(row, expected);
        let columns = |line: &str| line.matches('|').count();
        assert!(HEAD.lines().all(|line| columns(line) == columns(&row)));
    }

    #[test]
    fn the_clock_rate_is_the_first_processors() {
        let text = "processor\t: 0\ncpu MHz\t\t: 2649.998\n\nprocessor\t: 1\ncpu MHz\t\t: 1.0\n";
        assert_eq!(parse_mhz(text), Some(2649.998));
        assert_eq!(parse_mhz("processor : 0\n"), None);
    }
}
