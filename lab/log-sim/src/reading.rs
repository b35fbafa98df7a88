//! What readers find, held against the model.

use crate::model::Model;
use crate::trouble::{Trouble, holds};
use std::time::Duration;
use wrote::{Error, LogReader};

/// A reader, and what must come next.
#[derive(Debug)]
pub struct Reading {
    reader: LogReader,
    next: u64,
    last: Option<u64>,
}

impl Reading {
    /// Of a reader that was opened at `from`.
    pub fn new(reader: LogReader, from: u64) -> Reading {
        Reading { reader, next: from, last: None }
    }

    /// Reads up to where the reader ends or finds nothing more for now, and tells the last record that
    /// was ever found. What is before `removed` may be gone, and all before `least` must be there.
    pub fn go_on(
        &mut self,
        model: &Model,
        removed: u64,
        least: u64,
    ) -> Result<Option<u64>, Trouble> {
        while let Some(record) = self.reader.next_within(Duration::ZERO).map_err(told)? {
            model.found(record.sequence, &record.bytes, self.next, removed)?;
            self.next = record.sequence + 1;
            self.last = Some(record.sequence);
        }
        model.passes_over(self.next.max(removed), least)?;
        Ok(self.last)
    }

    /// Reads as [`Reading::go_on`] does, into one buffer.
    pub fn read_into(&mut self, model: &Model, removed: u64, least: u64) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        loop {
            let before = bytes.len();
            let Some(sequence) = self.reader.read_into(&mut bytes).map_err(told)? else { break };
            model.found(sequence, &bytes[before..], self.next, removed)?;
            self.next = sequence + 1;
        }
        model.passes_over(self.next.max(removed), least)
    }

    /// That the reader gives nothing more once it has ended.
    pub fn has_ended(&mut self) -> Result<(), Trouble> {
        let more = self.reader.next().transpose().map_err(told)?;
        holds(more.is_none(), || "a reader that had ended went on".to_owned())
    }
}

/// Nothing that happens to a disk here damages what was durable.
pub fn told(error: Error) -> Trouble {
    match error {
        Error::Damaged { .. } => Trouble::Broken(format!("a log that is not damaged: {error}")),
        error => Trouble::Error(error),
    }
}
