//! Finds segments by name, even while a writer creates and removes them. This module is separate
//! because readers, rescue and recovery all use it.

use super::input::LogFiles;
use super::lock::LOCK;
use super::segment;
use crate::Error;
use std::path::{Path, PathBuf};

/// The number of attempts of a reader that finds a segment removed between listing and opening. No
/// writer removes segments that often.
const TRIES: u32 = 100;

/// The number and the path of each segment, in order.
pub(super) type SegmentNames = Vec<(u64, PathBuf)>;

/// Returns the segments in the folder, in order, and without gaps that concurrent changes could
/// cause.
///
/// A listing may miss a file that is created concurrently, and yet contain a later one
/// (`readdir(3)`). So the folder is listed twice. The second listing is used only up to the last
/// segment of the first, because every earlier segment exists by then.
pub(super) fn all(files: &LogFiles) -> Result<SegmentNames, Error> {
    let folder = files.path();
    let Some((last, _)) = among(files.engine().list(folder)?).pop() else {
        return Ok(SegmentNames::new());
    };
    let mut names = among(files.engine().list(folder)?);
    names.retain(|(number, _)| *number <= last);
    Ok(names)
}

pub(super) fn among(paths: Vec<PathBuf>) -> SegmentNames {
    let numbered = |path: PathBuf| Some((segment::number(&path)?, path));
    paths.into_iter().filter_map(numbered).collect()
}

/// Refuses a folder that has neither a segment nor the lock file, which a writer creates first.
/// Also refuses a folder with line files of earlier versions.
pub(super) fn check_log(files: &LogFiles) -> Result<(), Error> {
    let folder = files.path();
    let paths = files.engine().list(folder)?;
    check_format(folder, &paths)?;
    if paths.iter().any(|path| segment::number(path).is_some() || path.ends_with(LOCK)) {
        return Ok(());
    }
    Err(Error::refused(folder, "there is no log here"))
}

/// Refuses a folder with line files, which earlier versions wrote as logs.
pub(super) fn check_format(folder: &Path, paths: &[PathBuf]) -> Result<(), Error> {
    if paths.iter().any(|path| segment::number_before(path, "log").is_some()) {
        let because = "a log of lines, which this version does not write or read; `cat` of its \
                       files in the order of their names prints the lines";
        return Err(Error::refused(folder, because));
    }
    Ok(())
}

/// Returns whether the error means that retention removed segment `removed` after the listing. In
/// that case, every earlier segment has been removed, too.
pub(super) fn was_removed(files: &LogFiles, removed: u64, error: &Error) -> Result<bool, Error> {
    if error.errno() != libc::ENOENT {
        return Ok(false);
    }
    Ok(all(files)?.iter().all(|(number, _)| *number > removed))
}

/// Calls `looking`, which lists names and then opens files. Repeats the call if a listed file no
/// longer exists, or if `looking` returns `None`.
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
