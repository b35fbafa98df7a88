//! Files next to the segments that keep the bytes that recovery cuts off and repair replaces. This
//! module is separate because recovery and repair both use it.

use super::input::Input;
use crate::metadata::{Metadata, mode_at_first};
use crate::{Engine, Error, FileId, FileOptions};
use std::path::{Path, PathBuf};

/// Copies a range of a segment into a new file next to it, named `.KIND-N`, and returns its path.
/// The copy is flushed; its name becomes durable once the folder is synced. After an error, such as
/// a full disk, the copy is removed.
pub(crate) fn copy(input: &mut Input, from: u64, to: u64, kind: &str) -> Result<PathBuf, Error> {
    let files = input.files.clone();
    let old = Metadata::of_replaced(&input.path)?;
    let options = FileOptions::new().create_new(true).write(true).mode(mode_at_first(old.as_ref()));
    let open = |path: &Path| files.engine().open_file(path, &options);
    let (path, file) = under_free_name(&input.path, kind, open)?;
    let copied = copy_into(file, input, from, to);
    let closed = files.engine().close_file(file);
    if let Err(error) = copied.and(closed) {
        // If the removal fails too, the first error is reported.
        let _ = files.engine().remove(&path);
        return Err(error);
    }
    Ok(path)
}

fn copy_into(file: FileId, input: &mut Input, from: u64, to: u64) -> Result<(), Error> {
    let files = input.files.clone();
    let mut place = input.data_from(from)?;
    while place < to {
        let len = (to - place).min(files.engine().pool().buffer_bytes() as u64) as usize;
        let bytes = input.bytes(place, len)?.to_vec();
        input.pause()?;
        files.engine().write(file, place - from, &bytes)?;
        place = input.data_from(place + bytes.len() as u64)?;
    }
    let mut engine = files.engine();
    // If the range ends in a hole, the last write ends before it, so the length is set explicitly.
    engine.truncate(file, to - from)?;
    engine.flush(file)
}

/// Renames a complete segment to `.torn-N`, which is not the name of a segment, and returns the new
/// path. The file is flushed before it is renamed; the new name becomes durable once the folder is
/// synced.
pub(super) fn rename(engine: &mut Engine, segment: &Path) -> Result<PathBuf, Error> {
    let options = FileOptions::new().write(true);
    let file = engine.open_file(segment, &options)?;
    engine.flush(file)?;
    engine.close_file(file)?;
    let renamed = under_free_name(segment, "torn", |path| engine.rename(segment, path, false));
    renamed.map(|(path, ())| path)
}

/// Calls `make` with the numbered names of this kind in turn until one does not exist yet. Returns
/// that path and the result.
fn under_free_name<T>(
    segment: &Path,
    kind: &str,
    mut make: impl FnMut(&Path) -> Result<T, Error>,
) -> Result<(PathBuf, T), Error> {
    for number in 0.. {
        let mut name = segment.as_os_str().to_owned();
        name.push(format!(".{kind}-{number}"));
        let path = PathBuf::from(name);
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(error) if error.errno() == libc::EEXIST => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("there are fewer files than numbers")
}
