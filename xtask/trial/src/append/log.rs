//! Appends to `wrote::Log`.

use super::{Messages, Timing};
use crate::Result;
use crate::outcome::Outcome;
use crate::place::Place;
use std::path::Path;
use wrote::{Log, LogReader, Sync};

/// Appends without waiting, with one `sync` in the end.
pub fn at_the_end(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let log = Log::options().sync(Sync::No).open(path)?;
    let step = |message: &[u8]| {
        drop(log.append(message)?);
        Ok(())
    };
    let steps = vec![step; messages.work.producers as usize];
    let appended = messages.append(steps, Timing::None, || Ok(log.sync()?))?;
    finish(&log, appended, &folder)
}

/// Waits after each append until the message is durable.
pub fn durable_each(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let log = Log::options().sync(Sync::Always).open(path)?;
    let step = |message: &[u8]| Ok(log.append(message)?.wait()?);
    finish(&log, messages.append_each(step)?, &folder)
}

/// Closes the log, and fails unless all messages are in it.
fn finish(log: &Log, appended: Outcome, folder: &Place) -> Result<Outcome> {
    log.close()?;
    let mut reader = LogReader::open(folder.path(), 0)?;
    let (mut messages, mut bytes, mut record) = (0_u64, 0_u64, Vec::new());
    while reader.read_into(&mut record)?.is_some() {
        messages += 1;
        bytes += record.len() as u64;
        record.clear();
    }
    if (messages, bytes) == (appended.operations, appended.bytes) {
        return Ok(appended);
    }
    let path = folder.path().display();
    Err(format!("{path}: {messages} records of {bytes} bytes, not all that were sent").into())
}
