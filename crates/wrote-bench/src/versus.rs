//! Two settings held against each other, measured in turn: A B B A A B.

mod merge;
mod turns;

use crate::rounds::RUNS;
use crate::{Observer, Request, bench};
use std::sync::{Arc, OnceLock};
use turns::Turns;
use wrote_result::compare::{Allowed, Comparison, compare_allowing};
use wrote_result::{Error, Stop};

/// How often each scenario `latency` saves a text where nobody said it, over all runs.
const ITERATIONS: u32 = 1000;

/// Measures what `old` asks and what `new` asks in turn, and holds the two against each other.
///
/// Each round is a whole benchmark of one run of each row; the rounds go A B, B A, A B, so that a steady
/// drift falls on both alike and none is always the one that comes after (M8). There are as many as
/// `old` asks for runs, five by default. The sizes that a side's first calibration chose are those of
/// all its runs. The comparison has both results in it.
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
    let rounds = old.runs.unwrap_or(RUNS);
    let sides = [one_run(old, rounds), one_run(new, rounds)];
    let outlooks = [bench::outlook(&sides[0])?, bench::outlook(&sides[1])?];
    let mut turns = Turns::new(observer, outlooks, rounds);
    let mut documents = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let mut observer = turns.next();
            documents[side].push(bench::bench(&sides[side], stop, &mut observer)?);
            turns.is_over(side);
        }
    }
    let [first, second] = documents.map(merge::merged);
    let mut comparison = compare_allowing(&first, &second, &Allowed::Everything)?;
    comparison.results = vec![first, second];
    Ok(comparison)
}

/// What one round asks of a side.
fn one_run(request: &Request, rounds: u32) -> Request {
    let iterations = request.iterations.unwrap_or(ITERATIONS);
    Request {
        runs: Some(1),
        // They are counted over all runs.
        iterations: Some(iterations.div_ceil(rounds)),
        speed: Arc::new(OnceLock::new()),
        ..request.clone()
    }
}
