//! okaywal: a commit flushes for all waiting producers.

use okaywal::{Configuration, LogVoid};
use std::path::Path;
use trial::Result;
use trial::append::Messages;
use trial::outcome::Outcome;
use trial::place::Place;

/// Bytes of a segment, as of `wrote::Log`. A full segment is discarded and reused. With the default
/// of 1 MiB okaywal spends its time on that.
const SEGMENT_BYTES: u32 = 64 << 20;

/// Commits an entry for each message.
pub fn each(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
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
    let appended = messages.append_each(step)?;
    log.shutdown()?;
    Ok(appended)
}
