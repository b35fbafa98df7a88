//! Two settings held against each other, measured in turn: A B B A A B.

mod merge;
mod turns;

use crate::bench;
use crate::progress::Observer;
use crate::request::{Common, Request};
use crate::rounds::RUNS;
use crate::scenarios::Scenarios;
use std::sync::OnceLock;
use turns::Turns;
use wrote_result::compare::{Allowed, Comparison, compare_allowing};
use wrote_result::{Error, Stop};

/// Measures what `old` asks and what `new` asks in turn, and holds the two against each other.
///
/// Each round is a whole benchmark of one run of each row; the rounds go A B, B A, A B, so that a
/// steady drift falls on both alike and none is always the one that comes after (M8). There are as
/// many as `old` asks for runs, five by default. The sizes that a side's first calibration chose
/// are those of all its runs. The comparison has both results in it.
///
/// # Errors
///
/// [`Error::Usage`] when either side makes no sense, before anything is measured; else as
/// [`crate::bench()`], and [`Error::Failed`] where the two have no row in common.
pub fn versus(
    old: &Request,
    new: &Request,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Comparison, Error> {
    let rounds = old.common.runs.unwrap_or(RUNS);
    let sides = [one_run(old, rounds), one_run(new, rounds)];
    let outlooks = [bench::outlook(&sides[0])?, bench::outlook(&sides[1])?];
    let mut turns = Turns::new(observer, outlooks, rounds);
    let speeds = [OnceLock::new(), OnceLock::new()];
    let mut documents = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let request = &sides[side];
            let scenarios = request.scenarios.all();
            let document = bench::bench_at(&scenarios, request, &speeds[side], stop, &mut turns)?;
            documents[side].push(document);
            turns.is_over(side);
        }
    }
    let [first, second] = documents.map(merge::merged);
    let mut comparison = compare_allowing(&first, &second, &Allowed::Everything)?;
    comparison.results = vec![first, second];
    Ok(comparison)
}

/// The request of one round of a side: one run of each row.
fn one_run(request: &Request, rounds: u32) -> Request {
    let latency = request.scenarios.latency.divided(rounds);
    Request {
        common: Common { runs: Some(1), ..request.common.clone() },
        scenarios: Scenarios { latency, ..request.scenarios.clone() },
        ..request.clone()
    }
}
