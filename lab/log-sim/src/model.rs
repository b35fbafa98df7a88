//! The records that were sent to a log, its promises about them, and the check of records that are
//! found.

use crate::trouble::{Trouble, holds};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// The content of a slot, by its sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// This record.
    Record(Vec<u8>),
    /// No record: the filler of the slot panicked.
    Passed,
}

impl Slot {
    fn is_record(&self) -> bool {
        matches!(self, Slot::Record(_))
    }

    fn takes(&self, found: &[u8]) -> bool {
        matches!(self, Slot::Record(bytes) if bytes == found)
    }
}

/// The log as it should be.
#[derive(Debug, Default)]
pub struct Model {
    /// The slots by sequence.
    sent: Vec<Slot>,
    /// Everything before this sequence survives a power loss.
    durable: u64,
    /// Everything before this sequence survives the log, while the power is on.
    written: u64,
    /// Records before this sequence may have been removed.
    first: u64,
    /// Records before this sequence were removed for good.
    removed: u64,
    /// Whether records were ever removed by a call.
    pub trimmed: bool,
    /// Records that are there as a whole or not at all, in order.
    groups: Vec<Range<u64>>,
    /// A cut at this record was begun, and it is not known whether it was made.
    cut: Option<u64>,
    /// The last record that a reader found since the log was last open.
    last_seen: Option<Option<u64>>,
    /// Whether all bytes on the disk are stable, except for the changes of a failed opening.
    settled: bool,
    /// Whether the power was lost since the log was last open.
    lost_power: bool,
    /// Whether a flush may have failed since then: the page cache shows bytes that the disk never
    /// gets, until an opening drops them.
    lost_pages: bool,
    /// Files that keep cut-off ends, with their bytes when an opening named them.
    pub kept_aside: BTreeMap<PathBuf, Vec<u8>>,
}

impl Model {
    /// Returns the sequence behind all slots.
    pub fn end(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Returns the sequence before which everything survives a power loss.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Adds the next slot, and checks the sequence of its ticket.
    pub fn append(&mut self, sent: Slot, sequence: u64) -> Result<(), Trouble> {
        let expected = self.end();
        self.sent.push(sent);
        self.settled = false;
        holds(sequence == expected, || {
            format!("the ticket says sequence {sequence} where {expected} is next")
        })
    }

    /// Adds a slot that was claimed without a ticket.
    pub fn pass_over(&mut self) {
        self.sent.push(Slot::Passed);
        self.settled = false;
    }

    /// Notes that the next slots are a group: all of them are there, or none.
    pub fn group(&mut self, sequences: Range<u64>) {
        self.groups.push(sequences);
    }

    /// Checks that the records before `next` are there without a part of a group.
    pub fn splits_no_group(&self, next: u64) -> Result<(), Trouble> {
        if self.cut == Some(next) {
            return Ok(());
        }
        let behind = self.groups.partition_point(|group| group.end <= next);
        let split = self.groups.get(behind).filter(|group| group.start < next);
        split.map_or(Ok(()), |group| {
            Err(Trouble::Broken(format!(
                "of the group {group:?} only those before {next} are there"
            )))
        })
    }

    /// Notes that the records from `next` on are about to be taken off.
    pub fn begin_cut(&mut self, next: u64) {
        self.cut = Some(next);
        self.settled = false;
        self.last_seen = None;
    }

    /// Notes whether they were taken off.
    pub fn end_cut(&mut self, is_done: bool) {
        if let Some(next) = self.cut.take().filter(|_| is_done) {
            self.cut_at(next);
        }
    }

    fn cut_at(&mut self, next: u64) {
        self.sent.truncate(next as usize);
        // A part of a group may stay: its records are no group any more.
        self.groups.retain(|group| group.end <= next);
        let end = self.end();
        (self.durable, self.written) = (end, end);
    }

    /// Records the promise that records before `sequence` never come back.
    pub fn promise_removed(&mut self, sequence: u64) {
        self.removed = self.removed.max(sequence);
        self.trimmed = true;
    }

    /// Records the promise that everything before `sequence` survives a power loss.
    pub fn promise_durable(&mut self, sequence: u64) {
        self.durable = self.durable.max(sequence);
        self.promise_written(sequence);
    }

    /// Records the promise that everything before `sequence` survives the log.
    pub fn promise_written(&mut self, sequence: u64) {
        self.written = self.written.max(sequence);
    }

    /// Records a power loss.
    pub fn lose_power(&mut self) {
        if !self.settled {
            self.last_seen = None;
        }
        self.settled = true;
        self.lost_power = true;
    }

    /// A failed flush may have lost records that no flush had made durable before.
    pub fn lose_pages(&mut self) {
        self.lost_pages = true;
        self.last_seen = None;
    }

    /// Records that a reader finds this last record now: the next opening must find it too.
    pub fn saw(&mut self, last_record: Option<u64>) -> Result<(), Trouble> {
        if let Some(before) = self.last_seen.filter(|&before| before != last_record) {
            return Err(Trouble::Broken(format!(
                "an opening that failed changed the log: its last record was {before:?} and is \
                 {last_record:?}"
            )));
        }
        self.last_seen = Some(last_record).filter(|_| !self.lost_pages);
        Ok(())
    }

    /// Returns the least that must be there: everything before this sequence.
    pub fn least(&self) -> u64 {
        let least = if self.lost_power || self.lost_pages { self.durable } else { self.written };
        self.unless_cut(least)
    }

    /// Returns the sequence, or that of a cut before it of which it is not known whether it was
    /// made.
    pub fn unless_cut(&self, sequence: u64) -> u64 {
        self.cut.map_or(sequence, |cut| cut.min(sequence))
    }

    /// Checks an opening that reports records from `first` to before `next`.
    pub fn open(&mut self, first: u64, next: u64) -> Result<(), Trouble> {
        if self.cut == Some(next) {
            self.cut_at(next);
        }
        self.cut = None;
        let (least, end) = (self.least(), self.end());
        holds((least..=end).contains(&next), || {
            format!("the log continues at {next}; {least} were promised, {end} were sent")
        })?;
        self.splits_no_group(next)?;
        holds(first >= self.removed, || {
            format!("record {first} is there again, all before {} were removed", self.removed)
        })?;
        if self.lost_power {
            // A name whose removal was not stable exists again.
            self.first = self.first.min(first);
        }
        self.remove(first)?;
        self.sent.truncate(next as usize);
        self.groups.retain(|group| group.end <= next);
        if let Some(seen) = self.last_seen.take() {
            let last = self.last_record();
            let is_same = last == seen || last.is_none_or(|last| last < first);
            holds(is_same, || {
                format!("before the opening the last record was {seen:?}, now it is {last:?}")
            })?;
        }
        // An opening makes the records that it finds durable before it trusts them.
        (self.durable, self.written) = (next, next);
        (self.lost_power, self.lost_pages, self.settled) = (false, false, false);
        Ok(())
    }

    /// Checks that the log may begin at `first` now.
    pub fn remove(&mut self, first: u64) -> Result<(), Trouble> {
        let (before, end) = (self.first, self.end());
        holds((before..=end).contains(&first), || {
            format!("the first record is {first}; it was {before}, and {end} were sent")
        })?;
        self.first = first;
        Ok(())
    }

    /// Returns the sequence of the first record.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Checks a record that was found where `next` is due. Slots between them may have been removed
    /// if they are before `removed`; the others must hold no record.
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

    /// Checks that the slots from `from` to before `to` hold no record.
    pub fn passes_over(&self, from: u64, to: u64) -> Result<(), Trouble> {
        let lost = (from..to.min(self.end())).find(|&lost| self.sent[lost as usize].is_record());
        lost.map_or(Ok(()), |lost| Err(Trouble::Broken(format!("record {lost} is not there"))))
    }

    fn last_record(&self) -> Option<u64> {
        self.sent.iter().rposition(Slot::is_record).map(|last| last as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(records: &[&[u8]]) -> Model {
        let mut model = Model::default();
        for (sequence, record) in records.iter().enumerate() {
            model.append(Slot::Record(record.to_vec()), sequence as u64).unwrap();
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
        model.append(Slot::Record(b"e".to_vec()), 4).unwrap();
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
