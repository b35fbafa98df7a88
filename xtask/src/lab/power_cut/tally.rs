//! Sums of all moments: the evidence that the lab sees something.

use super::moment::Seen;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Counts the moments in which a promise was broken.
pub fn broken(all: &[Seen]) -> usize {
    count(all, |seen| !seen.faults.is_empty())
}

/// Returns the sums of one subject in some lines under its name.
pub fn describe(name: &str, all: &[Seen]) -> String {
    let promises: usize = all.iter().map(|seen| seen.promises).sum();
    let (moments, early) = (all.len(), count(all, |seen| seen.promises == 0));
    let mut text = format!(
        "  {name}: {promises} promises in {moments} moments, {early} moments before the first"
    );
    let refused = counts(all.iter().map(|seen| &seen.refused.0));
    let _ = write!(text, "\n    hit in the middle of: {refused}");
    let in_flight = all.iter().map(|seen| &seen.in_flight);
    let in_flight = counts(in_flight.filter(|word| !word.is_empty()));
    let _ = write!(text, "\n    what was under way was then: {in_flight}");
    if let times @ 1.. = all.iter().map(|seen| seen.reopened).sum::<u32>() {
        let moments = count(all, |seen| seen.reopened > 0);
        let _ =
            write!(text, "\n    opened again {times} times in {moments} moments with a second cut");
    }
    if let left @ 1.. = count(all, |seen| seen.temporary_files > 0) {
        let _ = write!(text, "\n    temporary files left in {left} moments");
    }
    if let late @ 1.. = all.iter().map(|seen| seen.late).sum::<u32>() {
        let _ = write!(text, "\n    promises made when the power was gone: {late}");
    }
    if let Some(fault) = all.iter().find_map(|seen| seen.faults.first()) {
        let _ = write!(text, "\n    promises broken in {} moments, first: {fault}", broken(all));
    }
    text
}

fn count(all: &[Seen], is_meant: impl Fn(&Seen) -> bool) -> usize {
    all.iter().filter(|seen| is_meant(seen)).count()
}

/// Returns "fdatasync 12, write 30".
fn counts<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let mut counts = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_insert(0) += 1);
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if each.is_empty() { "nothing".to_owned() } else { each.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_added_up() {
        let seen = |promises, action: &str, faults: &[&str]| Seen {
            promises,
            late: 0,
            refused: (action.into(), 5),
            in_flight: "old".into(),
            reopened: 2,
            temporary_files: 1,
            faults: faults.iter().map(|&fault| fault.into()).collect(),
        };
        let all = [
            seen(0, "write", &[]),
            seen(3, "rename", &["lost", "mixed"]),
            seen(4, "write", &["empty"]),
        ];
        assert_eq!(broken(&all), 2);
        assert_eq!(
            describe("save", &all),
            "  save: 7 promises in 3 moments, 1 moments before the first
    hit in the middle of: rename 1, write 2
    what was under way was then: old 3
    opened again 6 times in 3 moments with a second cut
    temporary files left in 3 moments
    promises broken in 2 moments, first: lost"
        );
    }
}
