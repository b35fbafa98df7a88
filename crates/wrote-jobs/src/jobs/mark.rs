//! The mark that a run sets on a file it creates, and removes when it leaves the file to the user.
//! `wrote clean` uses the mark to find what killed runs have left. This is a separate file because
//! the code that sets marks and the code that looks for them are far apart.

use rustix::fs::{XattrFlags, fsetxattr, lgetxattr, lremovexattr};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The name of an extended attribute that holds the process, the clock tick when the process
/// started, and the file's inode number, which a copy of the file does not share. On a file system
/// without extended attributes, files are not marked.
const NAME: &str = "user.wrote.run";

/// Marks a new file.
pub(super) fn set(file: &File, metadata: &Metadata) {
    let pid = std::process::id();
    let text = format!("{pid} {} {}", start_time(pid).unwrap_or(0), metadata.ino());
    let _ = fsetxattr(file, NAME, text.as_bytes(), XattrFlags::empty());
}

/// Removes the mark from a file that now belongs to the user.
pub(super) fn remove(path: &Path) {
    let _ = lremovexattr(path, NAME);
}

/// Returns whether the run that marked the file is still alive; `None` if the file has no valid
/// mark.
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
/// (proc_pid_stat(5)). `None` if there is no such process.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 2, the name, is in parentheses and may contain anything. Field 3 follows the last
    // closing parenthesis.
    let (_, after) = stat.rsplit_once(") ")?;
    after.split(' ').nth(22 - 3)?.parse().ok()
}
