//! What was sent to a log and what it has promised of that; and whether what is found is in keeping.

use crate::trouble::{Trouble, holds};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What may stand at one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// This record.
    Record(Vec<u8>),
    /// No record: whoever claimed the place panicked.
    Passed,
}

impl Sent {
    fn is_record(&self) -> bool {
        matches!(self, Sent::Record(_))
    }

    fn takes(&self, found: &[u8]) -> bool {
        matches!(self, Sent::Record(bytes) if bytes == found)
    }
}

/// The log as it should be.
#[derive(Debug, Default)]
pub struct Model {
    /// By sequence.
    sent: Vec<Sent>,
    /// Everything before this sequence survives a power loss.
    durable: u64,
    /// Everything before this sequence survives the log, while the power is on.
    written: u64,
    /// Everything before this sequence may have been removed.
    first: u64,
    /// The last record that a reader found since the log was last open.
    last_seen: Option<Option<u64>>,
    /// Whether everything that is on the disk is stable, but for what an opening that failed has done.
    settled: bool,
    /// Whether the power went since the log was last open.
    lost_power: bool,
    /// Files with what was cut off, as they were when an opening named them.
    pub kept_aside: BTreeMap<PathBuf, Vec<u8>>,
}

impl Model {
    /// The sequence behind everything that was sent.
    pub fn end(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Everything before this sequence survives a power loss.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// What was appended next, and the sequence that its ticket says.
    pub fn append(&mut self, sent: Sent, sequence: u64) -> Result<(), Trouble> {
        let expected = self.end();
        self.sent.push(sent);
        self.settled = false;
        holds(sequence == expected, || {
            format!("the ticket says sequence {sequence} where {expected} is next")
        })
    }

    /// A place was taken that nobody has a ticket of.
    pub fn pass_over(&mut self) {
        self.sent.push(Sent::Passed);
        self.settled = false;
    }

    /// The log has promised that everything before `sequence` survives a power loss.
    pub fn promise_durable(&mut self, sequence: u64) {
        self.durable = self.durable.max(sequence);
        self.promise_written(sequence);
    }

    /// The log has promised that everything before `sequence` survives itself.
    pub fn promise_written(&mut self, sequence: u64) {
        self.written = self.written.max(sequence);
    }

    /// The power went.
    pub fn lose_power(&mut self) {
        if !self.settled {
            self.last_seen = None;
        }
        self.settled = true;
        self.lost_power = true;
    }

    /// What a reader finds now is what the next opening has to find.
    pub fn saw(&mut self, last_record: Option<u64>) -> Result<(), Trouble> {
        if let Some(before) = self.last_seen.filter(|&before| before != last_record) {
            return Err(Trouble::Broken(format!(
                "an opening that failed changed the log: its last record was {before:?} and is \
                 {last_record:?}"
            )));
        }
        self.last_seen = Some(last_record);
        Ok(())
    }

    /// The least that has to be there: everything before this sequence.
    pub fn least(&self) -> u64 {
        if self.lost_power { self.durable } else { self.written }
    }

    /// The log was opened, and says that its records are those from `first` to before `next`.
    pub fn open(&mut self, first: u64, next: u64) -> Result<(), Trouble> {
        let (least, end) = (self.least(), self.end());
        holds((least..=end).contains(&next), || {
            format!("the log goes on at {next}; {least} were promised, {end} were sent")
        })?;
        if self.lost_power {
            // A name whose removal was not stable is there again.
            self.first = self.first.min(first);
        }
        self.remove(first)?;
        self.sent.truncate(next as usize);
        if let Some(seen) = self.last_seen.take() {
            let last = self.last_record();
            let is_same = last == seen || last.is_none_or(|last| last < first);
            holds(is_same, || {
                format!("before the opening the last record was {seen:?}, now it is {last:?}")
            })?;
        }
        // What is found has been made durable before it is trusted.
        (self.durable, self.written) = (next, next);
        (self.lost_power, self.settled) = (false, false);
        Ok(())
    }

    /// The log says that it begins at `first` now.
    pub fn remove(&mut self, first: u64) -> Result<(), Trouble> {
        let (before, end) = (self.first, self.end());
        holds((before..=end).contains(&first), || {
            format!("the first record is {first}; it was {before}, and {end} were sent")
        })?;
        self.first = first;
        Ok(())
    }

    /// The sequence of the first record that is there.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// A record was found where `next` was to come. Of what lies between, all may have been removed where
    /// that is before `removed`, and the rest are no records.
    pub fn found(
        &self,
        sequence: u64,
        bytes: &[u8],
        next: u64,
        removed: u64,
    ) -> Result<(), Trouble> {
        holds(sequence >= next, || format!("record {sequence} came where {next} was to come"))?;
        self.passes_over(next.max(removed), sequence)?;
        let Some(sent) = self.sent.get(sequence as usize) else {
            let end = self.end();
            return Err(Trouble::Broken(format!("record {sequence} is there, {end} were sent")));
        };
        holds(sent.takes(bytes), || {
            format!("record {sequence} has {} bytes that were not sent there", bytes.len())
        })
    }

    /// No record was found from `from` to before `to`.
    pub fn passes_over(&self, from: u64, to: u64) -> Result<(), Trouble> {
        let lost = (from..to.min(self.end())).find(|&lost| self.sent[lost as usize].is_record());
        lost.map_or(Ok(()), |lost| Err(Trouble::Broken(format!("record {lost} is not there"))))
    }

    fn last_record(&self) -> Option<u64> {
        self.sent.iter().rposition(Sent::is_record).map(|last| last as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(records: &[&[u8]]) -> Model {
        let mut model = Model::default();
        for (sequence, record) in records.iter().enumerate() {
            model.append(Sent::Record(record.to_vec()), sequence as u64).unwrap();
        }
        model
    }

    fn broken<T>(result: Result<T, Trouble>) -> bool {
        matches!(result, Err(Trouble::Broken(_)))
    }

    #[test]
    fn what_was_promised_has_to_be_there_and_what_was_not_may_be() {
        for next in 0..=4 {
            let mut model = with(&[b"a", b"b", b"c"]);
            model.promise_durable(1);
            model.promise_written(2);
            assert_eq!(model.open(0, next).is_ok(), (2..=3).contains(&next), "{next}");
            let mut model = with(&[b"a", b"b", b"c"]);
            model.promise_durable(1);
            model.promise_written(2);
            model.lose_power();
            assert_eq!(model.open(0, next).is_ok(), (1..=3).contains(&next), "{next}");
        }
    }

    #[test]
    fn what_was_found_once_is_durable() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.lose_power();
        model.open(0, 2).unwrap();
        model.lose_power();
        assert!(broken(model.open(0, 1)));
    }

    #[test]
    fn a_record_is_found_at_its_place_only_and_none_is_left_out() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.pass_over();
        model.append(Sent::Record(b"e".to_vec()), 4).unwrap();
        model.found(0, b"a", 0, 0).unwrap();
        assert!(broken(model.found(0, b"b", 0, 0)));
        assert!(broken(model.found(1, b"b", 0, 0)));
        assert!(broken(model.found(0, b"a", 1, 0)));
        model.found(1, b"b", 0, 1).unwrap();
        assert!(broken(model.found(3, b"", 3, 0)));
        model.found(4, b"e", 3, 0).unwrap();
        assert!(broken(model.found(5, b"f", 5, 0)));
        assert!(broken(model.passes_over(2, 4)));
        model.passes_over(3, 4).unwrap();
    }

    #[test]
    fn an_opening_that_failed_changes_nothing_that_can_be_read() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.lose_power();
        model.saw(Some(1)).unwrap();
        model.lose_power();
        assert!(broken(model.saw(Some(0))));
        assert!(broken(model.open(0, 3)));
    }

    #[test]
    fn a_log_that_was_written_to_may_end_anywhere_after_a_power_loss() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.saw(Some(2)).unwrap();
        model.lose_power();
        model.saw(Some(0)).unwrap();
        model.open(0, 1).unwrap();
    }

    #[test]
    fn what_was_removed_comes_back_by_a_power_loss_only() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.remove(2).unwrap();
        assert!(broken(model.remove(1)));
        assert!(broken(model.remove(4)));
        model.lose_power();
        model.open(1, 3).unwrap();
    }
}
