//! One run of a program by all ranks at once, and what all of them decide by.

use super::super::answer::Answer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use wrote_jobs::peers::Part;
use wrote_jobs::peers::Peers;
use wrote_result::document::{RankRun, Spread};
use wrote_result::langs::Run;
use wrote_result::{Error, stats};

/// The outcome of a run; `Err` is its program's failure, one line.
pub(super) type RunOutcome = Result<(Run, Answer), String>;

/// A run as one rank knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    ran: Result<(Run, Answer), String>,
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
pub(super) fn merged(
    peers: &dyn Peers,
    ran: RunOutcome,
    parts: &[Part],
    device: String,
) -> Result<RunOutcome, Error> {
    if !peers.are_many() {
        return Ok(ran);
    }
    let mine = Facts { ran, parts: parts.to_vec(), device };
    let mut whole = None;
    let told = peers.agree("the end of a run", mine, |all| {
        let ran = together(all, peers);
        let short =
            |(run, answer): (Run, Answer)| (run, Answer { elapsed_ns: Vec::new(), ..answer });
        let told = ran.clone().map(short);
        whole = Some(ran);
        Ok(told)
    })?;
    Ok(whole.unwrap_or(told))
}

fn together(all: Vec<Facts>, peers: &dyn Peers) -> RunOutcome {
    let places = peers.places();
    let (mut runs, mut answers, mut began_s, mut ended_s) = (Vec::new(), Vec::new(), f64::MAX, 0.0);
    let mut devices: BTreeMap<(usize, String), [u64; 2]> = BTreeMap::new();
    let (mut starts, mut first_end_s) = (Vec::new(), f64::MAX);
    for (rank, facts) in all.into_iter().enumerate() {
        let (run, answer) = facts
            .ran
            .map_err(|because| format!("rank {rank} on {}: {because}", places.node(rank as u32)))?;
        let (began, ended) = facts.parts.first().copied().unwrap_or_default();
        (began_s, ended_s) = (f64::min(began_s, began), f64::max(ended_s, ended));
        first_end_s = f64::min(first_end_s, ended);
        starts.push(began);
        let moved = devices.entry((places.of_rank[rank], facts.device)).or_default();
        let of_run = [run.device_written_bytes, run.device_read_bytes];
        for (most, bytes) in moved.iter_mut().zip(of_run) {
            *most = (*most).max(bytes.unwrap_or(0));
        }
        runs.push(run);
        answers.push(answer);
    }
    let counts = runs.iter().all(|run| run.device_written_bytes.is_some());
    let moved = |which: usize| counts.then(|| devices.values().map(|moved| moved[which]).sum());
    let sum = |figure: fn(&Run) -> f64| runs.iter().map(figure).sum::<f64>();
    let run = Run {
        bytes: runs.iter().map(|run| run.bytes).sum(),
        elapsed_s: (ended_s - began_s).max(1e-9),
        process_s: runs.iter().map(|run| run.process_s).fold(0.0, f64::max),
        cpu_user_s: sum(|run| run.cpu_user_s),
        cpu_system_s: sum(|run| run.cpu_system_s),
        max_rss_bytes: runs.iter().filter_map(|run| run.max_rss_bytes).max(),
        device_written_bytes: moved(0),
        device_read_bytes: moved(1),
        dropped: runs[0].dropped,
        ranks: None,
    };
    let timings = |rank: usize| answers[rank].elapsed_ns.len() as f64 / runs[rank].elapsed_s;
    let of_rank = |rank: usize| RankRun {
        rank: rank as u32,
        node: places.node(rank as u32).into(),
        bytes: runs[rank].bytes,
        elapsed_s: runs[rank].elapsed_s,
        iops: timings(rank),
    };
    let ranks: Vec<RankRun> = (0..runs.len()).map(of_rank).collect();
    let by_rate = |a: &&RankRun, b: &&RankRun| a.iops.total_cmp(&b.iops);
    let rates: Vec<f64> = ranks.iter().map(|rank| rank.iops).collect();
    let until_first = |(run, began): (&Run, &f64)| {
        run.bytes as f64 * ((first_end_s - began) / run.elapsed_s).clamp(0.0, 1.0)
    };
    let stonewalled: f64 = runs.iter().zip(&starts).map(until_first).sum();
    let last_start_s = starts.iter().copied().fold(f64::MIN, f64::max);
    let spread = Spread {
        slowest: ranks.iter().min_by(by_rate).expect("there are ranks").clone(),
        fastest: ranks.iter().max_by(by_rate).expect("there are ranks").clone(),
        median_iops: stats::median(&rates),
        started_within_s: last_start_s - began_s,
        stonewalled_bytes_per_s: stonewalled / (first_end_s - began_s).max(1e-9),
    };
    let mut answer = answers[0].clone();
    answer.elapsed_ns = answers.into_iter().flat_map(|answer| answer.elapsed_ns).collect();
    Ok((Run { ranks: Some(spread), ..run }, answer))
}
