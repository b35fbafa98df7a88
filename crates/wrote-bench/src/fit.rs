//! Tests whether a disk suits programs: runs each program's write patterns, and judges the disk by
//! the program's published rules.

mod neighbour;
mod programs;
mod scenario;
#[cfg(test)]
mod tests;

pub use neighbour::Neighbour;
pub use programs::{Pattern, Program, Rule, all, find};

use crate::bench::Bench;
use crate::progress::Observer;
use crate::request::Request;
use scenario::{Suits, row_name};
use std::path::PathBuf;
use std::time::Duration;
use wrote::{Survives, device};
use wrote_result::document::{Document, Fit, FitRule, FitVerdict, Row, Source};
use wrote_result::{Error, Stop};

/// A request to test whether a disk suits programs.
#[derive(Clone, Debug)]
pub struct FitRequest {
    /// The programs for which the disk is tested.
    pub programs: Vec<Program>,
    /// The folder in which runs create their folders.
    pub path: PathBuf,
    /// The time limit; if `None`, [`FitRequest::usual_time`], or longer on a slow disk.
    pub time: Option<Duration>,
    /// The number of runs of each pattern, alone and under each background load, however long they
    /// take. If `None`, as many as the time allows: [`FitRequest::RUNS`], or a few more if runs
    /// finish early.
    pub runs: Option<u32>,
    /// The time to write at the start to use up the drive's cache and a volume's credit. Each run
    /// is then preceded by more such writes.
    pub sustained: Option<Duration>,
    /// The background loads under which the disk is tested.
    pub neighbours: Vec<Neighbour>,
    /// The folder for the files of the background load; `path` if `None`.
    pub neighbour_path: Option<PathBuf>,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit of this program, for the result.
    pub commit: Option<String>,
}

impl FitRequest {
    /// The default number of runs per pattern.
    pub const RUNS: u32 = 8;
    /// The usual time for one program, and for several programs.
    const TIMES: [Duration; 2] = [Duration::from_secs(40), Duration::from_secs(300)];

    /// Returns the usual time. Each background load gets as much time as the runs without one.
    pub fn usual_time(&self) -> Duration {
        let is_one = self.programs.len() == 1;
        Self::TIMES[usize::from(!is_one)] * (1 + self.neighbours.len() as u32)
    }
}

/// Runs the patterns of the programs in turn, and judges the disk by the programs' rules.
///
/// # Errors
///
/// Like [`crate::Bench::run`].
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
    let mut document =
        Bench::new(&of_bench).scenarios(&[&Suits(request.clone())]).run(stop, observer)?;
    let rows: Vec<&Row> = document.rows().collect();
    let survives = device::examine(&request.path)
        .map_or(Survives::PowerLoss, |target| target.survives(Survives::PowerLoss));
    let is_lost = survives < Survives::PowerLoss;
    let fits =
        request.programs.iter().map(|program| judged(program, &request.neighbours, &rows, is_lost));
    (document.source, document.fit) = (Some(Source::Fit), Some(fits.collect()));
    Ok(document)
}

/// Judges the disk by a program's rules, from its rows. If `is_lost`, no flush survives a power
/// loss, and the rules of patterns with flushes are judged as broken. Patterns without a published
/// rule are reported without a verdict.
fn judged(program: &Program, neighbours: &[Neighbour], rows: &[&Row], is_lost: bool) -> Fit {
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
        let client = program.client.as_ref().filter(|_| pattern.job.think_us > 0);
        let by = client.map_or(String::new(), |client| format!(" by {client}"));
        let rate = figure("iops", &format!("per second{by}"));
        if asked.iter().all(|rule| rule.of != rate.of) {
            asked.push(rate);
        }
        let row_of = |neighbour: Option<Neighbour>| {
            let name = row_name(program, pattern, neighbour);
            rows.iter().find(|row| row.name == name).copied()
        };
        // If there was no time for a row, its rules remain undecided.
        let missing = Row { name: row_name(program, pattern, None), ..Row::default() };
        let alone = row_of(None).unwrap_or(&missing);
        for mut rule in asked {
            rule.row.clone_from(&alone.name);
            rule.judge(alone);
            for neighbour in neighbours {
                if let Some(row) = row_of(Some(*neighbour)) {
                    rule.judge_beside(neighbour.as_str(), alone, row);
                }
            }
            // Such a flush returns from memory or from a cache, so its time is not the disk's.
            if is_lost && pattern.job.has_flushes() {
                rule.refuse();
            }
            rules.push(rule);
        }
    }
    let verdict = FitVerdict::of_all(rules.iter().flat_map(FitRule::verdicts));
    Fit { program: program.name.clone(), version: program.version.clone(), verdict, rules }
}
