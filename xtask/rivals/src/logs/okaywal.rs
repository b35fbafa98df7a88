//! okaywal: its commit flushes for all that wait by itself.

use okaywal::{Configuration, LogVoid};
use std::path::Path;
use trial::Done;
use trial::append::{Crew, Messages, Timed, Work};
use trial::outcome::Outcome;
use trial::place::Folder;

/// A segment is as long as one of `wrote::Log`; what has filled it is thrown away, so that it is used
/// again. With the 1 MiB that it takes by default it spends its time with throwing away.
const SEGMENT_BYTES: u32 = 64 << 20;

/// An entry for each message.
pub fn each(work: &Work, messages: &Messages, path: &Path) -> Done<Outcome> {
    let folder = Folder::make(path)?;
    let log = Configuration::default_for(folder.path())
        .preallocate_bytes(SEGMENT_BYTES)
        .checkpoint_after_bytes(SEGMENT_BYTES.into())
        .open(LogVoid)?;
    let step = |message: &[u8]| {
        let mut entry = log.begin_entry()?;
        entry.write_chunk(message)?;
        entry.commit()?;
        Ok(())
    };
    let crew = Crew { work, messages, timed: Timed::Each };
    let appended = crew.run(vec![step; work.producers as usize], || Ok(()))?;
    log.shutdown()?;
    Ok(appended)
}
