//! Space that is allocated for a copy before its bytes come.

use super::extents::Extents;
use super::stream::{PieceSizes, seek_error};
use crate::{Completion, Engine, Error, FileId, Op};

/// Allocates space in `target` for the data of `source`, which finds a full disk before anything is
/// copied. Returns `false` where the file system cannot allocate.
///
/// ext4 takes direct writes into allocated blocks side by side; writes that allocate wait for each
/// other.
pub(super) fn allocate(
    engine: &mut Engine,
    source: FileId,
    target: FileId,
    sizes: PieceSizes,
) -> Result<bool, Error> {
    match allocate_extents(engine, source, target, sizes) {
        Err(error) if matches!(error.errno(), libc::EOPNOTSUPP | libc::ENOSYS) => {
            // The first error is the one to report.
            let _ = engine.drain();
            Ok(false)
        }
        allocated => allocated.map(|()| true),
    }
}

fn allocate_extents(
    engine: &mut Engine,
    source: FileId,
    target: FileId,
    sizes: PieceSizes,
) -> Result<(), Error> {
    let mut extents = Extents::new(sizes.len, sizes.block_bytes);
    let mut completions: Vec<Completion> = Vec::new();
    loop {
        let found = extents.next(engine.descriptor(source));
        let extent = found.map_err(|errno| seek_error(engine, source, errno))?;
        if let Some(extent) = &extent {
            let len = extent.end.next_multiple_of(sizes.block_bytes) - extent.start;
            engine.queue(0, Op::Fallocate { file: target, offset: extent.start, len });
        }
        let min = if extent.is_none() { usize::MAX } else { engine.is_full().into() };
        engine.reap(min, &mut completions)?;
        completions.drain(..).try_for_each(|completion| completion.result.map(drop))?;
        if extent.is_none() {
            return Ok(());
        }
    }
}
