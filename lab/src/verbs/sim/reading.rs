//! Readers that are checked against the model.

use crate::verbs::sim::Trouble;
use crate::verbs::sim::model::Model;
use std::time::Duration;
use wrote::{Error, LogReader};

/// A reader, and the next sequence that it is expected to return.
#[derive(Debug)]
pub struct CheckedReader {
    reader: LogReader,
    next: u64,
    last: Option<u64>,
}

impl CheckedReader {
    /// Wraps a reader opened at `from`.
    pub fn new(reader: LogReader, from: u64) -> CheckedReader {
        CheckedReader { reader, next: from, last: None }
    }

    /// Reads to the end, or until nothing more is available for now. Returns the last record that
    /// this reader has ever found; `None` if there is none. Records before `removed` may be
    /// missing, and all records before `least` must exist.
    pub fn go_on(
        &mut self,
        model: &Model,
        removed: u64,
        least: u64,
    ) -> Result<Option<u64>, Trouble> {
        while let Some(record) = self.reader.next_within(Duration::ZERO)? {
            model.found(record.sequence, &record.bytes, self.next, removed)?;
            self.next = record.sequence + 1;
            self.last = Some(record.sequence);
        }
        self.has_reached(model, removed, least)?;
        if let Some(last) = self.last {
            model.splits_no_group(last + 1)?;
        }
        Ok(self.last)
    }

    /// Returns whether the reader has read the record `sequence`.
    pub fn has_passed(&self, sequence: u64) -> bool {
        self.last.is_some_and(|last| last >= sequence)
    }

    /// Checks that a reader of records that were later cut fails repeatedly, and that it continues
    /// at the cut after a seek.
    pub fn is_told_of_cut(&mut self, cut: u64) -> Result<(), Trouble> {
        for _ in 0..2 {
            match self.reader.next_within(Duration::ZERO) {
                Err(Error::Truncated { sequence, .. }) if sequence == cut => {}
                Err(Error::Truncated { sequence, .. }) => {
                    let because = format!("cut at {cut}, and a reader is told of {sequence}");
                    return Err(Trouble::Ended(because));
                }
                Err(error) => return Err(error.into()),
                Ok(None) => {
                    let because = format!("a reader behind the cut at {cut} is not told of it");
                    return Err(Trouble::Ended(because));
                }
                Ok(Some(record)) => {
                    let found = record.sequence;
                    let because = format!("a reader behind the cut at {cut} finds {found}");
                    return Err(Trouble::Broken(because));
                }
            }
        }
        self.reader.seek(cut)?;
        (self.next, self.last) = (cut, None);
        Ok(())
    }

    /// Reads like [`CheckedReader::go_on`], but without copying the records.
    pub fn read_lent(&mut self, model: &Model, removed: u64, least: u64) -> Result<(), Trouble> {
        while let Some(record) = self.reader.next_lent()? {
            model.found(record.sequence, record.bytes, self.next, removed)?;
            self.next = record.sequence + 1;
        }
        self.has_reached(model, removed, least)
    }

    /// Checks that no record before `least` is missing.
    fn has_reached(&self, model: &Model, removed: u64, least: u64) -> Result<(), Trouble> {
        match model.passes_over(self.next.max(removed), least) {
            Err(Trouble::Broken(because)) => Err(Trouble::Ended(because)),
            reached => reached,
        }
    }

    /// Checks that the reader returns nothing more after its end.
    pub fn has_ended(&mut self) -> Result<(), Trouble> {
        let more = self.reader.next().transpose()?;
        match more {
            None => Ok(()),
            Some(_) => Err(Trouble::Ended("a reader that had ended went on".to_owned())),
        }
    }
}
