//! walrus: one topic, with `FsyncSchedule::SyncEach`. `WALRUS_QUIET=1` stops its messages.
//! Apart, as each peer is.

use super::check;
use std::env::{current_dir, set_current_dir};
use std::path::Path;
use trial::Result;
use trial::append::{Messages, crew};
use trial::outcome::Outcome;
use trial::place::Place;
use walrus_rust::{FsyncSchedule, ReadConsistency, Walrus};

const TOPIC: &str = "messages";
/// The bytes that are read at once for the check.
const READ_BYTES: usize = 64 << 20;

/// Appends each message by itself. walrus writes below the current folder.
pub fn each(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(&std::path::absolute(path)?)?;
    let before = current_dir()?;
    set_current_dir(folder.path())?;
    let (mode, schedule) = (ReadConsistency::StrictlyAtOnce, FsyncSchedule::SyncEach);
    let log = Walrus::with_consistency_and_schedule(mode, schedule)?;
    let step = |message: &[u8]| Ok(log.append_for_topic(TOPIC, message)?);
    let appended = crew::append_each(messages, step)?;
    let mut stored = 0;
    loop {
        match log.batch_read_for_topic(TOPIC, READ_BYTES, true)?.len() {
            0 => break,
            read => stored += read as u64,
        }
    }
    set_current_dir(before)?;
    check("walrus", stored, appended)
}
