//! The mark of a file that a run makes, until the run leaves it to the user: `wrote clean` finds by
//! it what a killed run left. Apart, because the one who marks and the one who looks are far from
//! each other.

use rustix::fs::{XattrFlags, fsetxattr, lgetxattr, lremovexattr};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An extended attribute with the process, the tick in which it started, and the file's number,
/// which a copy of the file does not have. A file system without attributes has no marks.
const NAME: &str = "user.wrote.run";

/// Marks a new file.
pub(super) fn set(file: &File, metadata: &Metadata) {
    let pid = std::process::id();
    let text = format!("{pid} {} {}", start_time(pid).unwrap_or(0), metadata.ino());
    let _ = fsetxattr(file, NAME, text.as_bytes(), XattrFlags::empty());
}

/// Removes the mark of a file that is the user's from now on.
pub(super) fn remove(path: &Path) {
    let _ = lremovexattr(path, NAME);
}

/// Returns whether the run lives that marked the file; `None` for any other file.
pub fn of(path: &Path) -> Option<bool> {
    let metadata = std::fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let mut text = [0; 64];
    let len = lgetxattr(path, NAME, &mut text).ok()?;
    let numbers = std::str::from_utf8(&text[..len]).ok()?.split(' ').map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    let [pid, started, ino] = numbers[..] else { return None };
    let lives = start_time(pid.try_into().ok()?) == Some(started);
    (ino == metadata.ino()).then_some(lives)
}

/// Returns when a process started, in clock ticks since boot: field 22 of `/proc/PID/stat`
/// (proc_pid_stat(5)).
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 2, the name, is in parentheses and may contain anything; field 3 follows the last one.
    let (_, after) = stat.rsplit_once(") ")?;
    after.split(' ').nth(22 - 3)?.parse().ok()
}
