//! The records sent to a log, its promises about them, and the check of the records that are found.

use crate::verbs::sim::repairing::RecordsBySequence;
use crate::verbs::sim::{Trouble, holds};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// The content of a slot; each slot has a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    Record(Vec<u8>),
    /// The slot contains no record, because filling it panicked.
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

/// The expected state of a log.
#[derive(Debug, Default)]
pub struct Model {
    sent: Vec<Slot>,
    /// The sequence before which everything survives a power loss.
    durable: u64,
    /// The sequence before which everything survives a power loss, even if flushes lied.
    stable: u64,
    /// For each slot, the sequence before which records were certainly durable when the slot was
    /// sent. The slot's batch states this, unless an earlier batch did.
    proven: Vec<u64>,
    /// The sequence before which everything survives a crash of the log's process.
    written: u64,
    /// The sequence before which records may have been removed.
    first: u64,
    /// The sequence before which records were removed permanently.
    removed: u64,
    /// Whether a call has ever removed records.
    pub trimmed: bool,
    /// The ranges of records that exist either completely or not at all, in order.
    groups: Vec<Range<u64>>,
    /// The first record of a cut that was begun and may or may not have been completed.
    cut: Option<u64>,
    /// The last record that a reader found after the log was last open.
    last_seen: Option<Option<u64>>,
    /// Whether all bytes on the disk are stable, except for the changes of a failed opening.
    settled: bool,
    /// Whether the power was lost after the log was last open.
    lost_power: bool,
    /// Whether a flush may have failed after the log was last open. Until an opening drops them,
    /// the page cache then shows bytes that the disk will never contain.
    lost_pages: bool,
    /// Whether a flush lied after the log was last open, or may have.
    pub lied: bool,
    /// Whether a flush lied and the power was lost later, so that the end of the log may be
    /// missing, or an earlier end may have returned.
    is_uncertain: bool,
    /// Whether flushes may lie, so that slots that were cut are kept in `taken_off`.
    expects_lies: bool,
    /// The slots that were cut and may return, by their sequence.
    taken_off: BTreeMap<u64, Vec<Slot>>,
    /// The first slot that a cut may have rewritten; `None` if none has.
    written_anew: Option<u64>,
    /// The files that keep ends that were cut off, with their bytes at the time when an opening
    /// named them.
    pub kept_aside: BTreeMap<PathBuf, Vec<u8>>,
}

impl Model {
    /// Creates the model of an empty log. `expects_lies` says whether flushes may lie.
    pub fn new(expects_lies: bool) -> Model {
        Model { expects_lies, ..Model::default() }
    }

    /// Returns the sequence after the last slot.
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
        self.push(sent);
        self.settled = false;
        holds(sequence == expected, || {
            format!("the ticket says sequence {sequence} where {expected} is next")
        })
    }

    fn push(&mut self, sent: Slot) {
        self.sent.push(sent);
        self.proven.push(self.durable);
    }

    /// Removes the slots from `next` on.
    fn take_off(&mut self, next: u64) {
        let next = self.sent.len().min(next as usize);
        let off = self.sent.split_off(next);
        self.proven.truncate(next);
        if self.expects_lies {
            for (sequence, slot) in (next as u64..).zip(off) {
                let there = self.taken_off.entry(sequence).or_default();
                if !there.contains(&slot) {
                    there.push(slot);
                }
            }
        }
    }

    /// Records that the slots of these sequences are a group, so that either all or none of them
    /// exist.
    pub fn group(&mut self, sequences: Range<u64>) {
        self.groups.push(sequences);
    }

    /// Checks that the records before `next` do not end within a group.
    pub fn splits_no_group(&self, next: u64) -> Result<(), Trouble> {
        if self.cut == Some(next) || self.is_uncertain && !self.taken_off.is_empty() {
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

    /// Records that the slots from `next` on are about to be cut.
    pub fn begin_cut(&mut self, next: u64) {
        self.cut = Some(next);
        self.settled = false;
        self.last_seen = None;
    }

    /// Records whether the cut that was begun has been made.
    pub fn end_cut(&mut self, is_done: bool) {
        if let Some(next) = self.cut.take().filter(|_| is_done) {
            self.cut_at(next);
        }
    }

    fn cut_at(&mut self, next: u64) {
        // Each batch states at least the records that were durable when one of its records was
        // sent.
        let anew = self.proven.get(next as usize).copied();
        self.written_anew = self.written_anew.into_iter().chain(anew).min();
        self.take_off(next);
        // If a part of a group remains, its records no longer form a group.
        self.groups.retain(|group| group.end <= next);
        let end = self.end();
        (self.durable, self.written) = (end, end);
        self.stable = self.stable.min(end);
        if self.lied {
            self.unsettle_by_cut();
        }
        self.settle_stable();
    }

    /// A cut rewrites the remaining records of its batch, so a flush that lies about them loses
    /// them, too.
    fn unsettle_by_cut(&mut self) {
        self.stable = 0;
    }

    fn settle_stable(&mut self) {
        if !self.lied {
            self.stable = self.durable;
        }
    }

    /// Records the promise that records before `sequence` never return.
    pub fn promise_removed(&mut self, sequence: u64) {
        self.removed = self.removed.max(sequence);
        self.trimmed = true;
    }

    /// Records the promise that everything before `sequence` survives a power loss.
    pub fn promise_durable(&mut self, sequence: u64) {
        self.durable = self.durable.max(sequence);
        self.settle_stable();
        self.promise_written(sequence);
    }

    /// Records the promise that everything before `sequence` survives a crash of the log's process.
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
        self.may_be_uncertain();
    }

    fn may_be_uncertain(&mut self) {
        if std::mem::take(&mut self.lied) {
            if self.cut.is_some() {
                self.unsettle_by_cut();
            }
            self.is_uncertain = true;
            self.last_seen = None;
            // The bytes of the kept files may have been lost, too.
            self.kept_aside.clear();
        }
    }

    /// Returns whether a promised end of the log may be missing, or an earlier end may have
    /// returned.
    pub fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }

    /// Forgets the last record that a reader found, because the disk has changed the log.
    pub fn has_changed(&mut self) {
        self.last_seen = None;
    }

    /// Records that a failed flush may have lost records that were not durable before.
    pub fn lose_pages(&mut self) {
        self.lost_pages = true;
        self.last_seen = None;
        self.may_be_uncertain();
    }

    /// Records that a reader found this last record, which the next opening must find, too.
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

    /// Returns the sequence before which everything must exist.
    pub fn least(&self) -> u64 {
        let least = match self.lost_power || self.lost_pages {
            _ if self.is_uncertain => self.stable,
            true => self.durable,
            false => self.written,
        };
        self.unless_cut(least)
    }

    /// Returns the minimum sequence that must be found or reported as lost, after this many bits
    /// have rotted, if everything before `least` existed.
    ///
    /// One bit damages one batch. If that is the last batch, no other batch states that its records
    /// were durable, and it is treated as torn. All records that were known to be durable when its
    /// last record was sent are still proven. If an earlier batch is damaged, the last batch proves
    /// that its records were durable.
    pub fn proven(&self, least: u64, rotten: u64) -> u64 {
        match (rotten, least.checked_sub(1)) {
            (0, _) => least,
            (1, Some(last)) => self.proven.get(last as usize).map_or(0, |&all| all.min(least)),
            _ => 0,
        }
    }

    /// Returns the minimum of `sequence` and the sequence of a cut that may or may not have been
    /// completed.
    pub fn unless_cut(&self, sequence: u64) -> u64 {
        self.cut.map_or(sequence, |cut| cut.min(sequence))
    }

    /// Checks an opening that reports the records in `first..next`. Everything before `least` must
    /// exist.
    pub fn open(&mut self, first: u64, next: u64, least: u64) -> Result<(), Trouble> {
        if self.cut == Some(next) {
            self.cut_at(next);
        }
        self.cut = None;
        let end = self.end();
        let least = least.min(end);
        holds((least..=end).contains(&next), || {
            format!("the log continues at {next}; {least} were promised, {end} were sent")
        })?;
        self.splits_no_group(next)?;
        holds(first >= self.removed, || {
            format!("record {first} is there again, all before {} were removed", self.removed)
        })?;
        if self.lost_power {
            // If the removal of a file was not stable, its name exists again.
            self.first = self.first.min(first);
        }
        self.remove(first)?;
        self.take_off(next);
        self.groups.retain(|group| group.end <= next);
        if let Some(seen) = self.last_seen.take() {
            let last = self.last_record();
            let is_same = last == seen || last.is_none_or(|last| last < first);
            holds(is_same, || {
                format!("before the opening the last record was {seen:?}, now it is {last:?}")
            })?;
        }
        // An opening makes the records that it finds durable before it relies on them.
        self.trust(next);
        Ok(())
    }

    fn trust(&mut self, next: u64) {
        (self.durable, self.written) = (next, next);
        self.stable = self.stable.min(next);
        self.settle_stable();
        (self.lost_power, self.lost_pages, self.settled) = (false, false, false);
    }

    /// Accepts the records on the disk as the log. Their sequences are in `first..next`, and
    /// `found` contains them. Everything before `least` must exist, and every record must have been
    /// sent. If the log `is_repaired`, it may have lost records.
    pub fn adopt(
        &mut self,
        first: u64,
        next: u64,
        found: &RecordsBySequence,
        least: u64,
        is_repaired: bool,
    ) -> Result<(), Trouble> {
        holds(next >= least || is_repaired, || {
            format!("the log continues at {next}; {least} were promised whatever flushes say")
        })?;
        let back = found.keys().find(|&&sequence| sequence < self.removed);
        holds(back.is_none() && (first >= self.removed || is_repaired), || {
            let back = back.unwrap_or(&first);
            format!("record {back} is there again, all before {} were removed", self.removed)
        })?;
        // If a header is lost, a repaired log may begin with slots of removed records.
        self.removed = self.removed.min(first);
        let mut sent = Vec::new();
        for sequence in 0..next {
            let bytes = found.get(&sequence);
            let slot = match bytes {
                Some(bytes) => Slot::Record(bytes.clone()),
                None if sequence < first => Slot::Passed,
                None => {
                    holds(is_repaired || self.may_be(sequence, None), || {
                        format!("record {sequence} is passed over without an error")
                    })?;
                    Slot::Passed
                }
            };
            holds(bytes.is_none() || self.may_be(sequence, bytes.map(Vec::as_slice)), || {
                format!("record {sequence} has bytes that were never sent there")
            })?;
            sent.push(slot);
        }
        if !is_repaired && self.taken_off.is_empty() {
            self.splits_no_group(next)?;
        }
        self.take_off(0);
        self.proven = vec![0; sent.len()];
        self.sent = sent;
        self.groups.clear();
        (self.cut, self.last_seen, self.first) = (None, None, first);
        // If a flush lies again, no additional records become stable.
        self.trust(next);
        self.is_uncertain = false;
        Ok(())
    }

    /// Returns the end of the found records that a repair must keep.
    ///
    /// A flush that lied may bring back an earlier version of a record, and a repair may choose
    /// either version. The flush may also bring back the original of a record that a cut has
    /// copied, and lose the copy. Records after a gap are treated as torn if no batch states that
    /// the records before it were durable, although a reader that begins with one of them finds it.
    pub fn kept_end(&self, found: &RecordsBySequence) -> u64 {
        let first_of_two = self.taken_off.first_key_value().map_or(u64::MAX, |(&first, _)| first);
        let first_of_two = match self.expects_lies {
            true => first_of_two.min(self.written_anew.unwrap_or(u64::MAX)),
            false => first_of_two,
        };
        let Some((&last, _)) = found.last_key_value() else { return first_of_two };
        let is_lost =
            |sequence: &u64| !found.contains_key(sequence) && !self.may_be(*sequence, None);
        // A flush that lied may bring back removed segments.
        let first = if self.is_uncertain { 0 } else { self.first };
        let Some(gap) = (first..last).find(is_lost) else { return first_of_two };
        let said_durable = self.proven.get(last as usize).copied().unwrap_or_default();
        first_of_two.min(gap.max(said_durable))
    }

    /// Returns whether the slot may contain these bytes, or no record if there are none.
    pub fn may_be(&self, sequence: u64, bytes: Option<&[u8]>) -> bool {
        let takes = |slot: &Slot| bytes.map_or(!slot.is_record(), |bytes| slot.takes(bytes));
        if self.sent.get(sequence as usize).is_some_and(takes) {
            return true;
        }
        if !self.is_uncertain || sequence < self.stable {
            return false;
        }
        self.taken_off.get(&sequence).is_some_and(|all| all.iter().any(takes))
    }

    /// Checks that the log may now begin at `first`, and records it.
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

    /// Checks a record that was found when `next` was expected. The slots between them may have
    /// been removed if they are before `removed`; otherwise, they must contain no record.
    pub fn found(
        &self,
        sequence: u64,
        bytes: &[u8],
        next: u64,
        removed: u64,
    ) -> Result<(), Trouble> {
        holds(sequence >= next, || format!("record {sequence} came where {next} was to come"))?;
        self.passes_over(next.max(removed), sequence)?;
        if self.may_be(sequence, Some(bytes)) {
            return Ok(());
        }
        let Some(sent) = self.sent.get(sequence as usize) else {
            let end = self.end();
            return Err(Trouble::Broken(format!("record {sequence} is there, {end} were sent")));
        };
        holds(sent.takes(bytes), || {
            format!("record {sequence} has {} bytes that were not sent there", bytes.len())
        })
    }

    /// Checks that the slots in `from..to` contain no record.
    pub fn passes_over(&self, from: u64, to: u64) -> Result<(), Trouble> {
        let lost = (from..to.min(self.end())).find(|&lost| !self.may_be(lost, None));
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
    fn promised_records_have_to_be_there_and_others_may_be() {
        for next in 0..=4 {
            let mut model = with(&[b"a", b"b", b"c"]);
            model.promise_durable(1);
            model.promise_written(2);
            let least = model.least();
            assert_eq!(model.open(0, next, least).is_ok(), (2..=3).contains(&next), "{next}");
            let mut model = with(&[b"a", b"b", b"c"]);
            model.promise_durable(1);
            model.promise_written(2);
            model.lose_power();
            let least = model.least();
            assert_eq!(model.open(0, next, least).is_ok(), (1..=3).contains(&next), "{next}");
        }
    }

    #[test]
    fn a_bit_that_rots_hides_only_the_records_of_which_no_later_batch_speaks() {
        let mut model = with(&[b"a", b"b"]);
        model.promise_durable(2);
        model.append(Slot::Record(b"c".to_vec()), 2).unwrap();
        model.promise_durable(3);
        assert_eq!([0, 1, 2].map(|rotten| model.proven(3, rotten)), [3, 2, 0]);
        assert_eq!(model.proven(2, 1), 0);
    }

    #[test]
    fn a_flush_that_lies_may_bring_back_what_was_taken_off_and_nothing_else() {
        let mut model = Model::new(true);
        model.append(Slot::Record(b"a".to_vec()), 0).unwrap();
        model.promise_durable(1);
        model.append(Slot::Record(b"b".to_vec()), 1).unwrap();
        model.begin_cut(1);
        model.end_cut(true);
        model.append(Slot::Record(b"c".to_vec()), 1).unwrap();
        model.lied = true;
        model.promise_durable(2);
        model.lose_power();
        assert_eq!(model.least(), 1);
        let found = |bytes: [&[u8]; 2]| (0..).zip(bytes.map(<[u8]>::to_vec)).collect();
        assert!(broken(model.adopt(0, 2, &found([b"a", b"x"]), 1, false)));
        assert!(broken(model.adopt(0, 2, &found([b"b", b"b"]), 1, false)));
        model.adopt(0, 2, &found([b"a", b"b"]), 1, false).unwrap();
        model.lose_power();
        assert_eq!(model.least(), 2);
    }

    #[test]
    fn records_found_once_are_durable() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.lose_power();
        model.open(0, 2, 0).unwrap();
        model.lose_power();
        assert!(broken(model.open(0, 1, model.least())));
    }

    #[test]
    fn a_record_is_found_at_its_place_only_and_none_is_left_out() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.push(Slot::Passed);
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
        assert!(broken(model.open(0, 3, 0)));
    }

    #[test]
    fn a_log_that_was_written_to_may_end_anywhere_after_a_power_loss() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.saw(Some(2)).unwrap();
        model.lose_power();
        model.saw(Some(0)).unwrap();
        model.open(0, 1, 0).unwrap();
    }

    #[test]
    fn removed_records_come_back_by_a_power_loss_only() {
        let mut model = with(&[b"a", b"b", b"c"]);
        model.remove(2).unwrap();
        assert!(broken(model.remove(1)));
        assert!(broken(model.remove(4)));
        model.lose_power();
        model.open(1, 3, 0).unwrap();
    }
}
