//! Compares two settings by interleaved runs (ABBA). The module is separate because nothing else
//! uses two requests.

use crate::bench::Bench;
use crate::plan::RUNS;
use crate::progress::Observer;
use crate::request::Request;
use crate::settings::{Common, Wear};
use wrote_jobs::peers::Peers;
use wrote_result::compare::{Allowed, Comparison, compare_allowing};
use wrote_result::document::Document;
use wrote_result::{Error, Stop};

/// Measures `old` and `new` in turn, and compares their results.
///
/// The rows of both take turns: A B in one round, B A in the next, so that a steady drift affects
/// both alike (M8). The number of rounds is the number of runs that `old` requests, five by
/// default. The comparison contains both results.
///
/// # Errors
///
/// [`Error::Usage`] if either request is invalid, before anything is measured; [`Error::Failed`] if
/// the two have no row in common; otherwise like [`Bench::run`].
pub fn versus(
    old: &Request,
    new: &Request,
    peers: Peers,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Comparison, Error> {
    let rounds = old.common.runs.unwrap_or(RUNS);
    let [first, second] = [old, new].map(|request| one_of_two(request, rounds));
    let bench = Bench::new(&first).beside(&second).ranks(peers);
    let mut results = bench.run_all(stop, observer)?;
    // A comparison needs both sides to be complete.
    stop.check()?;
    for Document { advice, answers, .. } in &mut results {
        // The comparison states which of the two settings is better.
        (*advice, *answers) = (Vec::new(), None);
    }
    let mut comparison = compare_allowing(&results[0], &results[1], &Allowed::Everything)?;
    comparison.results = results;
    Ok(comparison)
}

/// Returns the request of one side, which writes half of the usual bytes.
fn one_of_two(request: &Request, rounds: u32) -> Request {
    let usual = Common { runs: None, ..request.common.clone() };
    let wear = request.common.wear.or((!usual.has_amount()).then_some(Wear::Normal));
    let common = Common { runs: Some(rounds), wear, wear_parts: 2, ..request.common.clone() };
    Request { common, ..request.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Asked, entries};
    use wrote_jobs::peers::Peers;

    #[test]
    fn each_side_is_measured_in_its_own_folder_in_turn_and_leaves_nothing() {
        let folders = [fixtures::folder(), fixtures::folder()];
        let [old, new] = folders.each_ref().map(|folder| {
            let (only, runs) = (vec!["small/cached".into()], Some(3));
            let size_bytes = Some(1 << 20);
            Asked { only, runs, size_bytes, ..Asked::new(folder.path().to_owned()) }.request()
        });
        let compared = versus(&old, &new, Peers::ALONE, &Stop::new(), &mut ()).unwrap();
        for (folder, result) in folders.iter().zip(&compared.results) {
            assert_eq!(result.target.path, folder.path().display().to_string());
            assert_eq!(result.scenarios[0].rows[0].runs.len(), 3);
            assert!(entries(folder.path()).is_empty());
        }
        assert!(compared.results.iter().all(|result| result.advice.is_empty()));
    }
}
