//! Sums of all moments: the evidence that the lab sees something.

use super::moment::Seen;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The sums of one subject.
#[derive(Debug, Default)]
pub struct Tally {
    moments: u32,
    promises: usize,
    /// Moments before the first promise.
    early: u32,
    /// Moments with broken promises, and the first of these.
    broken: u32,
    first_fault: Option<String>,
    /// The number of moments in which each action was the first refused.
    refused: BTreeMap<String, u32>,
    /// The number of moments with each fate of the write in flight.
    in_flight: BTreeMap<String, u32>,
    /// The number of openings before a second cut, and of moments with one.
    reopened: (u32, u32),
    /// Promises after the cut.
    late: u32,
    /// Moments that left a temporary file.
    left: u32,
}

impl Tally {
    /// Adds a moment.
    pub fn add(&mut self, seen: &Seen) {
        self.moments += 1;
        self.promises += seen.promises;
        self.late += seen.late;
        self.early += u32::from(seen.promises == 0);
        self.broken += u32::from(!seen.faults.is_empty());
        self.reopened.0 += seen.reopened;
        self.reopened.1 += u32::from(seen.reopened > 0);
        self.left += u32::from(seen.temporary_files > 0);
        if self.first_fault.is_none() {
            self.first_fault = seen.faults.first().cloned();
        }
        *self.refused.entry(seen.refused.0.clone()).or_default() += 1;
        if !seen.in_flight.is_empty() {
            *self.in_flight.entry(seen.in_flight.clone()).or_default() += 1;
        }
    }

    /// Returns the number of moments with broken promises.
    pub fn broken(&self) -> u32 {
        self.broken
    }

    /// Returns the sums in some lines under the subject's name.
    pub fn describe(&self, name: &str) -> String {
        let mut text = format!(
            "  {name}: {} promises in {} moments, {} moments before the first",
            self.promises, self.moments, self.early
        );
        let _ = write!(text, "\n    hit in the middle of: {}", counts(&self.refused));
        let _ = write!(text, "\n    what was under way was then: {}", counts(&self.in_flight));
        if let (times @ 1.., moments) = self.reopened {
            let _ = write!(
                text,
                "\n    opened again {times} times in {moments} moments with a second cut"
            );
        }
        if self.left > 0 {
            let _ = write!(text, "\n    temporary files left in {} moments", self.left);
        }
        if self.late > 0 {
            let _ = write!(text, "\n    promises made when the power was gone: {}", self.late);
        }
        if let Some(fault) = &self.first_fault {
            let _ =
                write!(text, "\n    promises broken in {} moments, first: {fault}", self.broken);
        }
        text
    }
}

/// Returns "fdatasync 12, write 30".
fn counts(counts: &BTreeMap<String, u32>) -> String {
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
        let mut tally = Tally::default();
        tally.add(&seen(0, "write", &[]));
        tally.add(&seen(3, "rename", &["lost", "mixed"]));
        tally.add(&seen(4, "write", &["empty"]));
        assert_eq!(tally.broken(), 2);
        assert_eq!(
            tally.describe("save"),
            "  save: 7 promises in 3 moments, 1 moments before the first
    hit in the middle of: rename 1, write 2
    what was under way was then: old 3
    opened again 6 times in 3 moments with a second cut
    temporary files left in 3 moments
    promises broken in 2 moments, first: lost"
        );
    }
}
