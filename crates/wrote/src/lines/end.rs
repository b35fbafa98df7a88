//! Finds the end of a line file, and repairs it after a crash.
//!
//! A crash damages only bytes that were never flushed, which are at the end of the file. Such a
//! file ends in bytes without a line feed, or has NULs where its length had grown before its data
//! was written. Opening the file moves the bytes after the last line feed. Complete lines are kept,
//! even after a NUL: another program may have written the NUL, and the lines may have been
//! acknowledged. So only the end of a file is read, however long the file is.

use crate::engine::folder_of;
use crate::log::{Input, LogFiles, copy_aside, is_same_file};
use crate::{Error, FileId};
use rustix::fs::{Advice, fadvise};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// The number of bytes that are searched for a line feed at once.
const STEP_BYTES: u64 = 1 << 20;
/// The maximum length of a torn end that is moved, in bytes.
const END_BYTES: u64 = 256 << 20;
/// The minimum size of a sector, in bytes. A disk loses only entire sectors.
const SECTOR_BYTES: u64 = 512;

/// The outcome of a repair.
pub(super) struct Repaired {
    /// The file to which the torn end was moved.
    pub torn: Option<PathBuf>,
}

/// Flushes the file, and moves its torn end to a file next to it. Returns `None` if the path no
/// longer leads to the `locked` file. This is not checked on a simulated disk, which has no
/// descriptors and no other programs.
pub(super) fn repair(
    files: &LogFiles,
    path: &Path,
    locked: Option<BorrowedFd<'_>>,
) -> Result<Option<Repaired>, Error> {
    loop {
        let mut input = match Input::open(files, path, false, true) {
            Err(error) if error.errno() == libc::ENOENT => return Ok(None),
            opened => opened?,
        };
        if !is_locked(files, input.file, locked) {
            return Ok(None);
        }
        // Otherwise, a failed write of the previous writer could still remove the bytes found below
        // (W2).
        files.engine().flush(input.file)?;
        let end = end(&mut input)?;
        if end == input.len_bytes {
            return Ok(Some(Repaired { torn: None }));
        }
        check_begin(&mut input)?;
        if let Some(torn) = moved(files, &mut input, end)? {
            return Ok(Some(Repaired { torn: Some(torn) }));
        }
    }
}

fn is_locked(files: &LogFiles, file: FileId, locked: Option<BorrowedFd<'_>>) -> bool {
    let engine = files.engine();
    let both = locked.zip(engine.descriptor(file));
    both.is_none_or(|(locked, found)| is_same_file(locked, found))
}

/// Moves all bytes after `end` to a new file. If another program changes the file's length in the
/// meantime, it may have completed the line, so nothing is moved and `None` is returned.
fn moved(files: &LogFiles, input: &mut Input, end: u64) -> Result<Option<PathBuf>, Error> {
    let torn = copy_aside(input, end, input.len_bytes, "torn")?;
    let mut engine = files.engine();
    // The copy must be durable before the original is removed.
    engine.sync_folder(folder_of(&input.path))?;
    if engine.file_len(input.file)? != input.len_bytes {
        engine.remove(&torn)?;
        return Ok(None);
    }
    engine.truncate(input.file, end)?;
    engine.flush(input.file)?;
    Ok(Some(torn))
}

/// Drops the clean pages from offset `from` on from the page cache, so that they are read from the
/// disk. The rest is kept: the whole file may have millions of pages, and other programs may be
/// reading them.
fn drop_pages(input: &Input, from: u64) {
    let engine = input.files.engine();
    if let Some(descriptor) = engine.descriptor(input.file) {
        // This is only advice: a refusal changes nothing.
        let _ = fadvise(descriptor, from, None, Advice::DontNeed);
    }
}

/// Returns the end of the last complete line, or 0 if there is none. Fails if a file's last 256 MiB
/// contain no line feed.
fn end(input: &mut Input) -> Result<u64, Error> {
    let mut before = input.len_bytes;
    let least = before.saturating_sub(END_BYTES);
    while before > least {
        let from = before.saturating_sub(STEP_BYTES).max(least);
        drop_pages(input, from);
        let bytes = bytes(input, from, before)?;
        if let Some(at) = bytes.iter().rposition(|&byte| byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        before = from;
    }
    if least > 0 {
        let because = "its last 256 MiB have no line feed, so it does not hold lines";
        return Err(Error::refused(&input.path, because));
    }
    Ok(0)
}

/// Refuses a file that begins like a database, not like lines: before the first line feed, its
/// first sector has a NUL followed by other bytes. A crash does not cause that, because it loses a
/// sector as a whole, or everything after some offset.
fn check_begin(input: &mut Input) -> Result<(), Error> {
    let sector = bytes(input, 0, SECTOR_BYTES.min(input.len_bytes))?;
    let line = sector.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut rest = line.iter().skip_while(|&&byte| byte != 0);
    if rest.any(|&byte| byte != 0) {
        let because = "it begins with NULs and does not end with a line feed, so it does not hold \
                       lines";
        return Err(Error::refused(&input.path, because));
    }
    Ok(())
}

fn bytes(input: &mut Input, from: u64, to: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut at = from;
    while at < to {
        let piece_bytes = input.files.engine().pool().buffer_bytes().min((to - at) as usize);
        let piece = input.bytes(at, piece_bytes)?;
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(piece);
        at = from + bytes.len() as u64;
    }
    input.pause()?;
    Ok(bytes)
}
