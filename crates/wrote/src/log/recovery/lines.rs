//! Recovery of a log of lines: the log ends behind the last whole line that has no NUL in it.

use super::super::input::Input;
use super::{Active, Found, Recovered, Sealed, aside, damaged, forget_cached};
use crate::{Engine, Error, FileId};
use rustix::fs::fstat;
use std::path::{Path, PathBuf};

/// The last files, which may not be on stable storage: those before them were flushed when the one after
/// the next was begun.
pub(in crate::log) const UNSURE_FILES: usize = 2;

/// The whole lines of a file.
pub(in crate::log) struct Lines {
    pub count: u64,
    /// Where the last of them ends.
    pub end: u64,
}

pub(super) fn recover(
    engine: &mut Engine,
    folder: &Path,
    names: &[(u64, PathBuf)],
) -> Result<Found, Error> {
    if names.is_empty() {
        return Ok(Found::nothing(0, Recovered::default()));
    }
    let mut last = names.len().saturating_sub(UNSURE_FILES);
    loop {
        let (number, path) = &names[last];
        let mut input = Input::open(engine, path, false, true)?;
        // What a process that was killed had written may be in memory only.
        engine.flush(input.file)?;
        forget_cached(engine, input.file);
        let lines = read(engine, &mut input)?;
        let next_sequence = number + lines.count;
        if let Some((next, next_path)) = names.get(last + 1) {
            if *next < next_sequence {
                let what =
                    format!("it begins with line {next}, the file before ends at {next_sequence}");
                return Err(damaged(folder, next_path, 0, &what));
            }
            // Something else may have written behind the last line: the next file knows better.
            if *next == next_sequence {
                input.close(engine)?;
                last += 1;
                continue;
            }
        }
        let created_at_ns = modified_at_ns(engine, input.file);
        let recovered = cut(engine, folder, names, last, &lines, input)?;
        return found(engine, &names[..=last], &lines, created_at_ns, recovered);
    }
}

/// Reads the whole lines of a file.
pub(in crate::log) fn read(engine: &mut Engine, input: &mut Input) -> Result<Lines, Error> {
    let piece_bytes = engine.pool().buffer_bytes();
    let mut lines = Lines { count: 0, end: 0 };
    let mut place = 0;
    while place < input.len_bytes {
        let bytes = input.bytes(engine, place, piece_bytes)?;
        let clean = bytes.iter().position(|&byte| byte == 0);
        let bytes = &bytes[..clean.unwrap_or(bytes.len())];
        lines.count += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        if let Some(last) = bytes.iter().rposition(|&byte| byte == b'\n') {
            lines.end = place + last as u64 + 1;
        }
        if clean.is_some() || bytes.is_empty() {
            break;
        }
        place += bytes.len() as u64;
    }
    input.pause(engine)?;
    Ok(lines)
}

/// Makes the end of these lines the end of the log.
fn cut(
    engine: &mut Engine,
    folder: &Path,
    names: &[(u64, PathBuf)],
    last: usize,
    lines: &Lines,
    mut input: Input,
) -> Result<Recovered, Error> {
    let mut recovered = Recovered {
        records: names[last].0 + lines.count - names[0].0,
        torn_bytes: input.len_bytes - lines.end,
        ..Recovered::default()
    };
    if input.len_bytes > lines.end {
        let to = input.len_bytes;
        recovered.kept_aside.push(aside::copy(engine, &mut input, lines.end, to, "torn")?);
        // The copy must be found before what it was copied from is gone.
        engine.sync_folder(folder)?;
    }
    // The newest goes first, so that there is never a gap.
    for (_, path) in names[last + 1..].iter().rev() {
        let later = Input::open(engine, path, false, false)?;
        let bytes = later.len_bytes;
        later.close(engine)?;
        recovered.torn_bytes += bytes;
        match bytes {
            0 => engine.remove(path)?,
            _ => recovered.kept_aside.push(aside::rename(engine, path)?),
        }
    }
    if input.len_bytes > lines.end {
        engine.truncate(input.file, lines.end)?;
        engine.flush(input.file)?;
    }
    input.close(engine)?;
    engine.sync_folder(folder)?;
    Ok(recovered)
}

fn found(
    engine: &mut Engine,
    names: &[(u64, PathBuf)],
    lines: &Lines,
    created_at_ns: u64,
    recovered: Recovered,
) -> Result<Found, Error> {
    let mut sealed = Vec::with_capacity(names.len());
    for (pair, path) in names.windows(2).map(|pair| (pair, &pair[0].1)) {
        let input = Input::open(engine, path, false, false)?;
        sealed.push(Sealed {
            path: path.clone(),
            bytes: input.len_bytes,
            end_sequence: pair[1].0,
            written_at_ns: modified_at_ns(engine, input.file),
        });
        input.close(engine)?;
    }
    let (number, path) = names.last().expect("a log with a file");
    let active = Active {
        path: path.clone(),
        number: *number,
        bytes: lines.end,
        block_bytes: 1,
        // A file does not say when it was begun: at the earliest when the one before was last written.
        created_at_ns: sealed.last().map_or(created_at_ns, |before| before.written_at_ns),
        last_checksum: 0,
        after_cut: false,
    };
    let next_sequence = number + lines.count;
    let first_sequence = names[0].0;
    Ok(Found { recovered, log_id: 0, sealed, active: Some(active), first_sequence, next_sequence })
}

/// When the file was last written, in nanoseconds since 1970; 0 on a simulated disk, which has no clock.
fn modified_at_ns(engine: &Engine, file: FileId) -> u64 {
    let stat = engine.descriptor(file).and_then(|descriptor| fstat(descriptor).ok());
    stat.map_or(0, |stat| stat.st_mtime as u64 * 1_000_000_000 + stat.st_mtime_nsec)
}
