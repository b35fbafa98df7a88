//! Whether a disk suits programs: each program's pattern is run, and its published rules judged.

mod neighbour;
mod programs;
mod scenario;
#[cfg(test)]
mod tests;

pub use neighbour::Neighbour;
pub use programs::{Pattern, Program, Rule, all, find};

use crate::bench::bench_of;
use crate::progress::Observer;
use crate::request::Request;
use scenario::{Suits, row_name};
use std::path::PathBuf;
use std::time::Duration;
use wrote_result::document::{Document, Fit, FitRule, FitVerdict, Row, Source};
use wrote_result::{Error, Stop};

/// The question of whether a disk suits programs.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// The programs.
    pub programs: Vec<Program>,
    /// The folder to write in. A run makes a folder of its own below it.
    pub path: PathBuf,
    /// The time of all runs.
    pub time: Duration,
    /// Runs of each pattern, alone and beside each neighbour.
    pub runs: u32,
    /// Writes for this time first, and before each run: the drive's cache and a volume's credit are
    /// used up.
    pub sustained: Option<Duration>,
    /// The other work on the disk.
    pub neighbours: Vec<Neighbour>,
    /// The folder in which the neighbours work; `path` where `None`.
    pub neighbour_path: Option<PathBuf>,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit that the program was built from, for the result.
    pub commit: Option<String>,
}

impl FitRequest {
    /// The runs of each pattern by default.
    pub const RUNS: u32 = 8;
}

/// Runs the patterns of the programs in turn, and judges their rules.
///
/// # Errors
///
/// As [`fn@crate::bench`].
pub fn fit(
    request: &FitRequest,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Document, Error> {
    let of_bench = Request {
        command: request.command.clone(),
        commit: request.commit.clone(),
        ..Request::new(request.path.clone())
    };
    let mut document = bench_of(&[&Suits(request.clone())], &of_bench, stop, observer)?;
    let rows: Vec<&Row> = document.scenarios.iter().flat_map(|scenario| &scenario.rows).collect();
    let fits = request.programs.iter().map(|program| judged(program, &request.neighbours, &rows));
    (document.source, document.fit) = (Some(Source::Fit), Some(fits.collect()));
    Ok(document)
}

/// Judges a program's rules by the rows that were measured. Patterns without a published rule have
/// their figures.
fn judged(program: &Program, neighbours: &[Neighbour], rows: &[&Row]) -> Fit {
    let mut rules = Vec::new();
    for pattern in &program.patterns {
        let of_pattern = || program.rules.iter().filter(|rule| rule.pattern == pattern.name);
        let figure = |of: &str, words: &str| FitRule {
            name: format!("{}, {words}", pattern.label),
            of: of.into(),
            ..FitRule::default()
        };
        let mut asked: Vec<FitRule> = of_pattern().map(Rule::asked).collect();
        if asked.is_empty() {
            asked.push(figure("latency_p50_ns", "P50"));
            asked.push(figure("latency_p99_ns", "P99"));
        }
        let rate = figure("iops", "per second");
        if asked.iter().all(|rule| rule.of != rate.of) {
            asked.push(rate);
        }
        let row_of = |neighbour: Option<Neighbour>| {
            let name = row_name(program, pattern, neighbour);
            rows.iter().find(|row| row.name == name).copied()
        };
        let Some(alone) = row_of(None) else { continue };
        for mut rule in asked {
            rule.row.clone_from(&alone.name);
            rule.judge(alone);
            for neighbour in neighbours {
                if let Some(row) = row_of(Some(*neighbour)) {
                    rule.judge_beside(neighbour.as_str(), alone, row);
                }
            }
            rules.push(rule);
        }
    }
    let verdict = FitVerdict::of_all(rules.iter().filter_map(|rule| rule.verdict));
    Fit { program: program.name.clone(), version: program.version.clone(), verdict, rules }
}
