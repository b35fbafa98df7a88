//! The end of a file of lines: found, and repaired after a crash.
//!
//! A crash leaves a torn end only in what was never flushed: bytes after the last line feed, or
//! NULs where the file was already longer than its data. So the opening looks at the end alone: it
//! searches the last bytes for a NUL, and asks the file system for a hole further back, which is
//! how blocks that were never written read. A file of any length opens equally fast.

use crate::Error;
use crate::log::{Input, LogFiles, Recovered, cut_off};
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use std::path::{Path, PathBuf};

/// The bytes that are searched for NULs and for the last line feed, and a step further back.
const STEP_BYTES: u64 = 1 << 20;
/// How far back holes are looked for. A hole before that is older than the last flush, and was made
/// on purpose.
const HOLES_BYTES: u64 = 256 << 20;

/// Flushes the file, moves its torn end to a file beside it, and returns that file's path.
pub(super) fn repair(files: &LogFiles, path: &Path) -> Result<Option<PathBuf>, Error> {
    let mut input = Input::open(files, path, false, true)?;
    // Else an error of the last writer's could still take what this finds (W2).
    input.files.engine().flush(input.file)?;
    drop_end(&input);
    let (len, end) = (input.len_bytes, end(&mut input)?);
    if end == len {
        return Ok(None);
    }
    input.pause()?;
    let mut recovered = Recovered::default();
    cut_off(&mut input, end, len, &[], &mut recovered)?;
    Ok(recovered.kept_aside.pop())
}

/// Drops the clean pages of the end, so that it is read from the disk. Those of the whole file may
/// be millions, and other programs read them.
fn drop_end(input: &Input) {
    let engine = input.files.engine();
    if let Some(descriptor) = engine.descriptor(input.file) {
        let from = input.len_bytes.saturating_sub(STEP_BYTES);
        // Only advice: a refusal changes nothing.
        let _ = fadvise(descriptor, from, None, Advice::DontNeed);
    }
}

/// Returns the end of the last whole line before the first NUL of the end.
fn end(input: &mut Input) -> Result<u64, Error> {
    let mut end = hole(input);
    let mut from = end.saturating_sub(STEP_BYTES);
    let mut search_end = end;
    // NULs before which there are only NULs may begin further back.
    loop {
        let bytes = bytes(input, from, search_end)?;
        match bytes.iter().position(|&byte| byte == 0) {
            Some(at) => end = from + at as u64,
            None => break,
        }
        if from == 0 {
            break;
        }
        (search_end, from) = (from, from.saturating_sub(STEP_BYTES));
    }
    let mut before = end;
    while before > 0 {
        let from = before.saturating_sub(STEP_BYTES);
        let bytes = bytes(input, from, before)?;
        if let Some(at) = bytes.iter().rposition(|&byte| byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        before = from;
    }
    Ok(0)
}

/// Returns the offset of the first hole near the end; the length if there is none. A file system
/// without `SEEK_HOLE`, and a simulated disk, report none.
fn hole(input: &Input) -> u64 {
    let len = input.len_bytes;
    let engine = input.files.engine();
    let Some(descriptor) = engine.descriptor(input.file) else { return len };
    let from = len.saturating_sub(HOLES_BYTES);
    match seek(descriptor, SeekFrom::Hole(from)) {
        Ok(hole) if hole < len => hole,
        _ => len,
    }
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
