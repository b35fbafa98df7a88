//! The rescue of damaged logs: proves that records are lost, and saves the others.

pub(super) mod end;
pub(super) mod repair;
mod salvage;
pub(super) mod scan;
mod summary;
#[cfg(test)]
mod tests;
pub(super) mod verify;

pub use summary::{LogSummary, summary};

use super::input::LogFiles;
use super::lock::Lock;
use super::names;
use crate::Error;
use crate::engine::Folder;
use crate::progress::{Watch, unwatched};
use std::path::{Path, PathBuf};

/// Reads every byte of the log in `folder` and reports damage. `watch` receives the progress, and
/// can stop the reading.
///
/// A process may be writing the log, so a record may arrive after its position was read, but before
/// the proof that it was durable was read. So a damaged log is read twice, and only damage found
/// both times is reported. A write in flight may look like a torn end. Segments that retention
/// removes before they are read are skipped.
///
/// Fails with [`Error::Refused`] if the folder has no log. Damage and garbage are not errors, but
/// part of the result.
///
/// ```
/// use wrote::Log;
/// use wrote::log::{repair, verify};
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("events");
/// # let log = Log::open(&folder)?;
/// # log.append(b"hello")?.wait()?;
/// # log.close()?;
/// let found = verify(&folder, None)?;
/// for damage in &found.damage {
///     println!("{} at byte {}: {}", damage.path.display(), damage.offset_bytes, damage.because);
/// }
/// if !found.damage.is_empty() {
///     println!("{} records are left", repair(&folder)?.records);
/// }
/// # assert_eq!(found.records, 1);
/// # Ok(())
/// # }
/// ```
pub fn verify(folder: impl AsRef<Path>, watch: Option<Watch>) -> Result<LogSummary, Error> {
    let files = LogFiles::open_in(None, &Folder::open(folder.as_ref())?)?;
    names::check_log(&files)?;
    let mut unwatched = unwatched;
    let watch = watch.unwrap_or(&mut unwatched);
    let first = verify::verify(&files, watch)?;
    if first.is_clean() {
        return Ok(first);
    }
    let mut second = verify::verify(&files, watch)?;
    let place = |damage: &Damage| (damage.path.clone(), damage.offset_bytes, damage.sequence);
    second.damage.retain(|damage| first.damage.iter().any(|known| place(known) == place(damage)));
    second.garbage.retain(|garbage| first.garbage.contains(garbage));
    Ok(second)
}

/// Repairs a damaged log, so that it can be read and written again.
///
/// Segments that have each other's names get their own names back. Every intact record keeps its
/// sequence, even if it was found at a different position from the one it was written to, or if the
/// header of its batch is lost. Lost records leave a gap. Damaged segments and garbage are kept
/// aside in files named `.damaged-N`. A torn end is left to the next open.
///
/// Fails with [`Error::Refused`] if the folder has no log, or if the log is open for writing. After
/// a power loss at any moment, the log can still be repaired.
pub fn repair(folder: impl AsRef<Path>) -> Result<LogSummary, Error> {
    let held = Folder::open(folder.as_ref())?;
    names::check_log(&LogFiles::open_in(None, &held)?)?;
    let lock = Lock::take(&held)?;
    let files = LogFiles::open_in(None, &held.with_mode(lock.mode()?))?;
    repair::repair(&files)
}

/// A position at which a log can't be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The path of the segment.
    pub path: PathBuf,
    /// The offset of the first damaged byte.
    pub offset_bytes: u64,
    /// The sequence of the first record that was lost at this position.
    pub sequence: u64,
    /// The number of lost records, if known.
    pub records: Option<u64>,
    /// A description of the damage.
    pub because: String,
}
