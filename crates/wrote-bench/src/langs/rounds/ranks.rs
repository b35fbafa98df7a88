//! One run of a program by all ranks at once, and what all of them decide by.

use super::super::answer::Answer;
use super::super::workload::Table;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wrote_jobs::histogram;
use wrote_jobs::peers::{Facts, Part, Peers, merged};
use wrote_jobs::report::Repeated;
use wrote_result::document::{self, Row};
use wrote_result::{Error, stats};

/// One run of a program, as of a row of a scenario, and what such a row has not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProgramRun {
    /// One row with one run.
    pub row: Repeated,
    /// From the start of the process to its end.
    pub process_s: f64,
}

/// The outcome of a run; `Err` is its program's failure, one line.
pub(super) type RunOutcome = Result<ProgramRun, String>;

impl ProgramRun {
    /// Makes a run by the program's own clock, with the cost that ours found. Only saves have
    /// latencies.
    pub(super) fn new(
        cost: document::Run,
        process_s: f64,
        table: &Table,
        answer: &Answer,
    ) -> ProgramRun {
        let (bytes, elapsed_s) = (table.run_bytes(), answer.elapsed_s());
        let mut latencies = histogram();
        let timings = answer.elapsed_ns.iter().filter(|_| table.task.is_save());
        timings.for_each(|elapsed_ns| latencies.saturating_record(*elapsed_ns));
        let run = document::Run {
            bytes,
            elapsed_s,
            throughput_bytes_per_s: bytes as f64 / elapsed_s,
            iops: answer.elapsed_ns.len() as f64 / elapsed_s,
            latency_ns: table.task.is_save().then(|| stats::latency(&latencies)),
            ..cost
        };
        ProgramRun { row: Repeated::one(Row::default().with_run(run), latencies), process_s }
    }

    pub(super) fn run(&self) -> &document::Run {
        &self.row.rows[0].runs[0]
    }
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

/// Returns the run of all ranks, the same on each; the failure of any rank is the program's.
pub(super) fn of_all(
    peers: &dyn Peers,
    ran: RunOutcome,
    parts: Vec<Part>,
    device: String,
) -> Result<RunOutcome, Error> {
    if !peers.are_many() {
        return Ok(ran);
    }
    let places = peers.places();
    peers.agree("the end of a run", (ran, parts, device), |all| {
        let (mut facts, mut process_s) = (Vec::new(), 0.0);
        for (rank, (ran, parts, device)) in all.into_iter().enumerate() {
            match ran {
                Ok(ran) => {
                    process_s = f64::max(process_s, ran.process_s);
                    facts.push(Facts { run: ran.row, parts, device });
                }
                Err(because) => {
                    let node = places.node(rank as u32);
                    return Ok(Err(format!("rank {rank} on {node}: {because}")));
                }
            }
        }
        Ok(Ok(ProgramRun { row: merged(facts, places)?, process_s }))
    })
}
