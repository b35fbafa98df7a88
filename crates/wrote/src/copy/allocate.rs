//! Space that is set aside for a copy before its bytes come.

use super::extents::Extents;
use super::stream::{Cut, End};
use crate::{Completion, Engine, Error, Op};

/// Sets space aside in `target` for the data of `source`, and so tells of a full disk before anything
/// is copied. `false` where the file system can't.
///
/// ext4 takes direct writes into allocated blocks side by side, and those that have to allocate one
/// by one.
///
/// # Errors
///
/// With the kernel's words.
pub(super) fn allocate(
    engine: &mut Engine,
    source: End,
    target: End,
    cut: Cut,
) -> Result<bool, Error> {
    let allocated = allocate_extents(engine, source, target, cut);
    if allocated.is_err() {
        // What is in flight ends here, and the error is the one to tell of.
        let _ = engine.drain();
    }
    match allocated {
        Err(error) if matches!(error.errno(), libc::EOPNOTSUPP | libc::ENOSYS) => Ok(false),
        allocated => allocated.map(|()| true),
    }
}

fn allocate_extents(engine: &mut Engine, source: End, target: End, cut: Cut) -> Result<(), Error> {
    let mut extents = Extents::new(cut.len, cut.block_bytes);
    let mut completions = Vec::new();
    loop {
        let found = extents.next(engine.descriptor(source.file));
        let Some(extent) = found.map_err(|errno| source.seek_failed(errno))? else { break };
        let len = extent.end.next_multiple_of(cut.block_bytes) - extent.start;
        engine.queue(0, Op::Fallocate { file: target.file, offset: extent.start, len });
        engine.reap(usize::from(engine.is_full()), &mut completions)?;
        check(&mut completions, target)?;
    }
    engine.reap(usize::MAX, &mut completions)?;
    check(&mut completions, target)
}

fn check(completions: &mut Vec<Completion>, target: End) -> Result<(), Error> {
    let mut results = completions.drain(..).map(|completion| completion.result);
    results.try_for_each(|result| result.map(drop).map_err(|error| error.about(target.named)))
}
