//! Combines one run of a program over all ranks.

use super::super::answer::Answer;
use super::super::workload::Table;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wrote_jobs::histogram;
use wrote_jobs::peers::{Part, Peers};
use wrote_jobs::report::{Facts, Repeated, merged};
use wrote_result::document::{self, Row};
use wrote_result::{Error, stats};

/// One run of a program, with figures that a scenario's row lacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProgramRun {
    /// A row with one run.
    pub row: Repeated,
    /// The time from start to end of the process.
    pub process_s: f64,
}

/// The result of a run; `Err` is its program's failure, in one line.
pub(super) type RunOutcome = Result<ProgramRun, String>;

impl ProgramRun {
    /// Creates a run from the program's timings and the cost that we measured. Only saves have
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

/// Returns the time of the slowest rank.
pub(super) fn longest(peers: &dyn Peers, took: Duration) -> Result<Duration, Error> {
    peers.agree("the time", took, |all| Ok(all.into_iter().max().unwrap_or_default()))
}

/// Returns the first reason of any rank, or `None` on all of them.
pub(super) fn all_or_none(
    peers: &dyn Peers,
    mine: Result<(), String>,
) -> Result<Result<(), String>, Error> {
    peers.agree("the files", mine, |all| Ok(all.into_iter().collect()))
}

/// Combines the runs of all ranks, identically on each. A failure on any rank is the program's
/// failure.
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
