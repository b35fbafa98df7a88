//! The segments that are found by their names, while a writer makes and removes them.

use super::{Format, segment};
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// How often a reader begins again because a segment was removed between the look at its name and the
/// opening: more often than any writer removes them.
const TRIES: u32 = 100;

/// The segment after another.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The one that follows it.
    Follows(u64, PathBuf),
    /// The first that is left, after the one that was read and those behind it were removed.
    IsLeft(u64, PathBuf),
    /// There is none.
    Nothing,
}

/// The segments in the folder, in order and without one left out.
///
/// A file that is made while names are listed may be missed, and one that is made after it be seen:
/// `readdir(3)`. So they are listed again, up to the last that was seen: those before it were made by then.
pub(super) fn all(
    engine: &mut Engine,
    folder: &Path,
    format: Format,
) -> Result<Vec<(u64, PathBuf)>, Error> {
    let Some((last, _)) = listed(engine, folder, format)?.pop() else { return Ok(Vec::new()) };
    let mut names = listed(engine, folder, format)?;
    names.retain(|(number, _)| *number <= last);
    Ok(names)
}

fn listed(
    engine: &mut Engine,
    folder: &Path,
    format: Format,
) -> Result<Vec<(u64, PathBuf)>, Error> {
    let numbered = |path: PathBuf| Some((segment::number(&path, format)?, path));
    Ok(engine.list(folder)?.into_iter().filter_map(numbered).collect())
}

/// The format of the log in the folder; `None` where no segment is there.
pub(super) fn format(engine: &mut Engine, folder: &Path) -> Result<Option<Format>, Error> {
    let names = engine.list(folder)?;
    let is_of = |format: &Format| names.iter().any(|path| segment::number(path, *format).is_some());
    Ok([Format::Framed, Format::Lines].into_iter().find(is_of))
}

/// Whether the folder has neither a segment nor the lock that a writer makes first.
pub(super) fn is_empty(engine: &mut Engine, folder: &Path) -> Result<bool, Error> {
    let names = engine.list(folder)?;
    let is_lock = |path: &PathBuf| path.file_name().is_some_and(|name| name == "lock");
    Ok(!names.iter().any(is_lock) && format(engine, folder)?.is_none())
}

/// What comes after segment `number` where the one that follows it has the number `follows`.
pub(super) fn next(names: Vec<(u64, PathBuf)>, number: u64, follows: u64) -> Next {
    let is_behind = names.iter().any(|(of, _)| *of <= number && *of != follows);
    match names.into_iter().find(|(of, _)| *of > number || *of == follows) {
        Some((of, path)) if of == follows => Next::Follows(of, path),
        // Segments are removed from the oldest on: this one is gone, and so are those up to there.
        Some((of, path)) if !is_behind => Next::IsLeft(of, path),
        _ => Next::Nothing,
    }
}

/// Whether the error is that retention has removed this segment since its name was looked at: then those
/// before it are gone too.
pub(super) fn was_removed(
    engine: &mut Engine,
    folder: &Path,
    format: Format,
    removed: u64,
    error: &Error,
) -> Result<bool, Error> {
    if error.errno() != libc::ENOENT {
        return Ok(false);
    }
    Ok(all(engine, folder, format)?.iter().all(|(number, _)| *number > removed))
}

/// Does what looks at names and then opens files, again where one is gone in between: `None` from it asks
/// for that too.
pub(super) fn unless_removed<T>(
    mut looking: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        match looking() {
            Ok(Some(found)) => return Ok(found),
            Err(error) if error.errno() != libc::ENOENT || tries == TRIES => return Err(error),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_retention_removed_are_passed_over_and_others_are_not() {
        let next_of = |numbers: &[u64], number| {
            let names = numbers.iter().map(|&number| (number, PathBuf::new())).collect();
            next(names, number, number + 1)
        };
        assert_eq!(next_of(&[1, 2, 3], 1), Next::Follows(2, PathBuf::new()));
        assert_eq!(next_of(&[4, 5], 3), Next::Follows(4, PathBuf::new()));
        assert_eq!(next_of(&[5, 6], 3), Next::IsLeft(5, PathBuf::new()));
        assert_eq!(next_of(&[3, 5], 3), Next::Nothing);
        assert_eq!(next_of(&[1, 2, 3], 3), Next::Nothing);
    }
}
