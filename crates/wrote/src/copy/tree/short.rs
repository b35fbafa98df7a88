//! A short file into a folder that is being built: through the page cache, and flushed with the rest.

use super::failed;
use crate::metadata::{Metadata, Parts};
use crate::{Action, Completion, Engine, Error, FileId, FileOptions, Op};
use rustix::fs::Stat;
use std::path::Path;

/// Files up to this length: of a longer one the bytes take longer than to be waited for. (2000 files
/// of 4 KiB took ten times as long directly, each of them waiting for the device alone.)
const BYTES_MAX: i64 = 256 << 10;

/// Whether a file is short, and without holes, which would be filled.
pub(super) fn is_short(stat: &Stat) -> bool {
    // In units of 512 bytes (stat(3type)).
    stat.st_size <= BYTES_MAX && stat.st_blocks * 512 >= stat.st_size
}

/// Copies the file to `to`, where nothing is yet, and says how many bytes those were. Nothing is
/// flushed.
///
/// # Errors
///
/// With the kernel's words. Then a part of the file may be there.
pub(super) fn copy(engine: &mut Engine, from: &Path, to: &Path, mode: u32) -> Result<u64, Error> {
    let source = engine.open_file(from, &FileOptions::default())?;
    let options =
        FileOptions { create_new: true, write: true, mode: Some(mode), ..FileOptions::default() };
    let copied = engine.open_file(to, &options).and_then(|target| {
        let bytes = move_bytes(engine, source, target)
            .and_then(|bytes| give_metadata(engine, (source, from), (target, to)).and(Ok(bytes)));
        engine.close_file(target).and(bytes)
    });
    engine.close_file(source).and(copied)
}

fn move_bytes(engine: &mut Engine, source: FileId, target: FileId) -> Result<u64, Error> {
    let mut offset = 0;
    loop {
        let buffer = engine.lease()?;
        let capacity = buffer.len();
        engine.queue(0, Op::Read { file: source, offset, buffer });
        let read = only_completion(engine)?;
        let bytes = read.result?;
        let mut buffer = read.buffer.expect("a read gives its buffer back");
        if bytes > 0 {
            buffer.set_len(bytes);
            engine.queue(0, Op::Write { file: target, offset, buffer, durable: false });
            only_completion(engine)?.result?;
        }
        offset += bytes as u64;
        if bytes < capacity {
            return Ok(offset);
        }
    }
}

fn only_completion(engine: &mut Engine) -> Result<Completion, Error> {
    let mut completions = Vec::with_capacity(1);
    engine.reap(1, &mut completions)?;
    Ok(completions.pop().expect("one operation was queued"))
}

fn give_metadata(
    engine: &Engine,
    (source, from): (FileId, &Path),
    (target, to): (FileId, &Path),
) -> Result<(), Error> {
    let real = |file, path| {
        let simulated = || std::io::Error::from_raw_os_error(libc::EBADF);
        engine.descriptor(file).ok_or_else(|| failed(path, Action::Examine, &simulated()))
    };
    let parts = Parts { owner: false, times: true };
    Metadata::of(real(source, from)?, from)?.give(real(target, to)?, to, parts)
}
