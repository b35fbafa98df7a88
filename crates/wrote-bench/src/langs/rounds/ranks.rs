//! One run of a program by all ranks at once, and what all of them decide by.

use super::super::answer::Answer;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wrote_jobs::histogram;
use wrote_jobs::peers::{Facts, Part, Peers, Places, merged};
use wrote_jobs::report::Repeated;
use wrote_result::langs::Run;
use wrote_result::{Error, document};

/// The outcome of a run; `Err` is its program's failure, one line.
pub(super) type RunOutcome = Result<(Run, Answer), String>;

/// A run as one rank knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ProgramFacts {
    ran: RunOutcome,
    parts: Vec<Part>,
    device: String,
}

/// Returns the time of the rank that took longest.
pub(super) fn longest(peers: &dyn Peers, took: Duration) -> Result<Duration, Error> {
    peers.agree("the time", took, |all| Ok(all.into_iter().max().unwrap_or_default()))
}

/// Returns the first reason of any rank, or none on all of them.
pub(super) fn all_or_none(
    peers: &dyn Peers,
    mine: Result<(), String>,
) -> Result<Result<(), String>, Error> {
    peers.agree("the files", mine, |all| Ok(all.into_iter().collect()))
}

/// Returns the run of all ranks, the same on each; the failure of any rank is the program's. The
/// timings of all are on rank 0 alone: they grow with the number of ranks.
pub(super) fn of_all(
    peers: &dyn Peers,
    ran: RunOutcome,
    parts: &[Part],
    device: String,
) -> Result<RunOutcome, Error> {
    if !peers.are_many() {
        return Ok(ran);
    }
    let mine = ProgramFacts { ran, parts: parts.to_vec(), device };
    let mut whole = None;
    let told = peers.agree("the end of a run", mine, |all| {
        let ran = together(all, peers.places())?;
        let short =
            |(run, answer): (Run, Answer)| (run, Answer { elapsed_ns: Vec::new(), ..answer });
        let told = ran.clone().map(short);
        whole = Some(ran);
        Ok(told)
    })?;
    Ok(whole.unwrap_or(told))
}

/// Adds up the run as those of a scenario are, which have no time of a process.
fn together(all: Vec<ProgramFacts>, places: &Places) -> Result<RunOutcome, Error> {
    let (mut facts, mut runs, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for (rank, ProgramFacts { ran, parts, device }) in all.into_iter().enumerate() {
        let (run, answer) = match ran {
            Ok(ran) => ran,
            Err(because) => {
                return Ok(Err(format!("rank {rank} on {}: {because}", places.node(rank as u32))));
            }
        };
        let row = document::Row::of_run(of_scenario(&run, answer.elapsed_ns.len()));
        facts.push(Facts { run: Repeated::one(row, histogram()), parts, device });
        runs.push(run);
        answers.push(answer);
    }
    let mut merged = merged(facts, places)?;
    let of_all = merged.rows.remove(0).runs.remove(0);
    let run = Run {
        bytes: of_all.bytes,
        elapsed_s: of_all.elapsed_s,
        process_s: runs.iter().map(|run| run.process_s).fold(0.0, f64::max),
        cpu_user_s: of_all.cpu_user_s,
        cpu_system_s: of_all.cpu_system_s,
        max_rss_bytes: of_all.max_rss_bytes,
        device_written_bytes: of_all.device_written_bytes,
        device_read_bytes: of_all.device_read_bytes,
        dropped: runs[0].dropped,
        ranks: of_all.ranks,
    };
    let mut answer = answers[0].clone();
    answer.elapsed_ns = answers.into_iter().flat_map(|answer| answer.elapsed_ns).collect();
    Ok(Ok((run, answer)))
}

fn of_scenario(run: &Run, timings: usize) -> document::Run {
    document::Run {
        bytes: run.bytes,
        elapsed_s: run.elapsed_s,
        iops: timings as f64 / run.elapsed_s,
        cpu_user_s: run.cpu_user_s,
        cpu_system_s: run.cpu_system_s,
        max_rss_bytes: run.max_rss_bytes,
        device_written_bytes: run.device_written_bytes,
        device_read_bytes: run.device_read_bytes,
        ..document::Run::default()
    }
}
