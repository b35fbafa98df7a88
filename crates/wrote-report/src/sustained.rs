//! A long run in words: its rates, their changes, and SNIA's verdict.

use crate::figures::within;
use wrote_result::document::{Change, Interval, SteadyState, Sustained};
use wrote_result::units;

/// Returns a line for each level, each change, and the verdict.
pub fn notes(sustained: &Sustained) -> Vec<String> {
    let levels = levels(sustained).into_iter().map(|(name, interval, words)| {
        format!("{name}: {} {}, {words}", units::rate(interval.median), within(&interval))
    });
    let changes = sustained.changes.iter().map(|of| format!("changed {}", change(of)));
    levels.chain(changes).chain(sustained.steady_state.iter().map(verdict)).collect()
}

/// Returns the levels: `burst`, `sustained`, `recovered`, each with its extent in words.
fn levels(sustained: &Sustained) -> Vec<(&'static str, Interval, String)> {
    let written = units::bytes(sustained.written_bytes());
    let from = |change: &Change| format!("from {} on", units::bytes(change.at_bytes));
    let last = sustained.changes.last();
    let Some(cliff) = sustained.cliffs().next() else {
        let changed = last.map(|last| from(last) + "; ").unwrap_or_default();
        let told = sustained.tells_changes();
        let claim = if told { "no cliff" } else { "too short to tell a cliff" };
        let words = format!("{changed}{claim} within {written}");
        return vec![("sustained", sustained.sustained_bytes_per_s, words)];
    };
    let until = units::bytes(cliff.at_bytes);
    let until = format!("until {until} were written, in {}", units::seconds(cliff.at_s));
    let from = format!("{}, to {written}", from(last.unwrap_or(cliff)));
    let mut levels = vec![
        ("burst", sustained.burst_bytes_per_s, until),
        ("sustained", sustained.sustained_bytes_per_s, from),
    ];
    if let (Some(recovered), Some(idle_s)) = (sustained.recovered_bytes_per_s, sustained.idle_s) {
        levels.push(("recovered", recovered, format!("after {} of rest", units::seconds(idle_s))));
    }
    levels
}

/// Returns a change in words: `at 2.00 GB from 3.21 GB/s to 320 MB/s`.
pub fn change(change: &Change) -> String {
    format!(
        "at {} from {} to {}",
        units::bytes(change.at_bytes),
        units::rate(change.before_bytes_per_s),
        units::rate(change.after_bytes_per_s),
    )
}

/// Returns the verdict of SNIA's rule.
fn verdict(state: &SteadyState) -> String {
    let rounds = format!(
        "rounds {} to {} of {}",
        state.first_round,
        state.last_round,
        state.rounds_bytes_per_s.len()
    );
    let figures = format!(
        "their range is {:.0} % of the mean (20 % at most), their trend {:.0} % (10 % at most)",
        state.range_share * 100.0,
        state.slope_share * 100.0
    );
    if state.reached {
        format!("steady state, by SNIA's rule: reached in {rounds}; {figures}")
    } else {
        format!("steady state, by SNIA's rule: not reached; of {rounds} {figures}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_the_rounds_and_the_limits() {
        let state = SteadyState {
            reached: true,
            rounds_bytes_per_s: vec![1.0; 25],
            first_round: 8,
            last_round: 12,
            range_share: 0.031,
            slope_share: 0.012,
        };
        assert_eq!(
            verdict(&state),
            "steady state, by SNIA's rule: reached in rounds 8 to 12 of 25; their range is 3 % of \
             the mean (20 % at most), their trend 1 % (10 % at most)"
        );
        assert!(verdict(&SteadyState { reached: false, ..state }).contains("not reached"));
    }
}
