//! What recovery cuts off and repair replaces is kept: in files beside the segments that nobody overwrites.

use super::super::input::Input;
use crate::{Engine, Error, FileId, FileOptions, Op};
use std::path::{Path, PathBuf};

/// Copies a range of a segment into a new file beside it, named `.KIND-N`, which is on stable storage afterwards, its name
/// once the folder was synced.
pub(in crate::log) fn copy(
    engine: &mut Engine,
    input: &mut Input,
    from: u64,
    to: u64,
    kind: &str,
) -> Result<PathBuf, Error> {
    let (path, file) = create(engine, &input.path.clone(), kind)?;
    let mut place = from;
    while place < to {
        let len = (to - place).min(engine.pool().buffer_bytes() as u64) as usize;
        let bytes = input.bytes(engine, place, len)?.to_vec();
        input.pause(engine)?;
        let mut buffer = engine.lease()?;
        buffer.set_len(bytes.len());
        buffer.copy_from_slice(&bytes);
        engine.queue(0, Op::Write { file, offset: place - from, buffer, durable: false });
        engine.drain()?;
        place += bytes.len() as u64;
    }
    engine.flush(file)?;
    engine.close_file(file)?;
    Ok(path)
}

/// Gives a whole segment a name under which it is none. What is in it is on stable storage then, its name
/// once the folder was synced.
pub(in crate::log) fn rename(engine: &mut Engine, segment: &Path) -> Result<PathBuf, Error> {
    let options = FileOptions { write: true, ..FileOptions::default() };
    let file = engine.open_file(segment, &options)?;
    engine.flush(file)?;
    engine.close_file(file)?;
    for number in 0.. {
        let path = name(segment, "torn", number);
        match engine.rename(segment, &path, false) {
            Ok(()) => return Ok(path),
            Err(error) if error.errno() == libc::EEXIST => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("there are fewer files than numbers")
}

fn create(engine: &mut Engine, segment: &Path, kind: &str) -> Result<(PathBuf, FileId), Error> {
    let options = FileOptions { create_new: true, write: true, ..FileOptions::default() };
    for number in 0.. {
        let path = name(segment, kind, number);
        match engine.open_file(&path, &options) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.errno() == libc::EEXIST => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("there are fewer files than numbers")
}

fn name(segment: &Path, kind: &str, number: u64) -> PathBuf {
    let mut name = segment.as_os_str().to_owned();
    name.push(format!(".{kind}-{number}"));
    name.into()
}
