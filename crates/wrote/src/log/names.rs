//! Finds segments by name, while a writer creates and removes them.

use super::format::Format;
use super::input::LogFiles;
use super::lock::LOCK;
use super::segment;
use crate::Error;
use std::path::{Path, PathBuf};

/// Attempts of a reader that finds a segment removed between listing and opening. No writer removes
/// segments that often.
const TRIES: u32 = 100;

/// Segments in order: number and path.
pub(super) type SegmentNames = Vec<(u64, PathBuf)>;

/// The segment after another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Follows(u64, PathBuf),
    /// The first remaining one, after retention removed the segment before it.
    IsLeft(u64, PathBuf),
    Nothing,
}

/// Lists the segments in the folder, in order and without a gap.
///
/// A listing may miss a file created concurrently, and yet contain a later one (`readdir(3)`). So
/// this lists again, up to the last segment of the first listing: every earlier one exists by then.
pub(super) fn all(files: &LogFiles, folder: &Path, format: Format) -> Result<SegmentNames, Error> {
    let Some((last, _)) = of_format(files.engine().list(folder)?, format).pop() else {
        return Ok(SegmentNames::new());
    };
    let mut names = of_format(files.engine().list(folder)?, format);
    names.retain(|(number, _)| *number <= last);
    Ok(names)
}

pub(super) fn of_format(paths: Vec<PathBuf>, format: Format) -> SegmentNames {
    let numbered = |path: PathBuf| Some((segment::number(&path, format)?, path));
    paths.into_iter().filter_map(numbered).collect()
}

/// Returns the format of the log in the folder; `None` if it has no segment.
pub(super) fn format(files: &LogFiles, folder: &Path) -> Result<Option<Format>, Error> {
    files.engine().list(folder).map(|paths| format_among(&paths))
}

fn format_among(paths: &[PathBuf]) -> Option<Format> {
    let is_of = |format: &Format| paths.iter().any(|path| segment::number(path, *format).is_some());
    [Format::Framed, Format::Lines].into_iter().find(is_of)
}

/// Like [`format`](fn@format), but refuses a folder that has neither a segment nor the lock, which
/// a writer creates first.
pub(super) fn format_of_log(files: &LogFiles, folder: &Path) -> Result<Option<Format>, Error> {
    let paths = files.engine().list(folder)?;
    let format = format_among(&paths);
    if format.is_none() && !paths.iter().any(|path| path.ends_with(LOCK)) {
        return Err(Error::refused(folder, "there is no log here"));
    }
    Ok(format)
}

/// Finds the segment after `number`; the one that follows it directly has the number `follows`.
pub(super) fn next(names: SegmentNames, number: u64, follows: u64) -> Next {
    let is_behind = names.iter().any(|(of, _)| *of <= number && *of != follows);
    match names.into_iter().find(|(of, _)| *of > number || *of == follows) {
        Some((of, path)) if of == follows => Next::Follows(of, path),
        // Retention removes the oldest first, so this segment and all before it are gone.
        Some((of, path)) if !is_behind => Next::IsLeft(of, path),
        _ => Next::Nothing,
    }
}

/// Returns whether the error means that retention removed segment `removed` after the listing. Then
/// every segment before it is gone too.
pub(super) fn was_removed(
    files: &LogFiles,
    folder: &Path,
    format: Format,
    removed: u64,
    error: &Error,
) -> Result<bool, Error> {
    if error.errno() != libc::ENOENT {
        return Ok(false);
    }
    Ok(all(files, folder, format)?.iter().all(|(number, _)| *number > removed))
}

/// Calls `looking`, which lists names and then opens files. Repeats if a file is gone by then, or
/// if it returns `None`.
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
