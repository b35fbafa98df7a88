//! The lock of a log's only writer: `flock(2)` on the file `lock` in its folder. Readers take no
//! lock.

use crate::error::{Action, Error, Tried};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

pub(super) const LOCK: &str = "lock";
/// Attempts to take a lock: [`Lock::holder`] in another process takes it for a moment.
const TRIES: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// The right to write to a log, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock, and writes this process's id into the file.
    pub(super) fn take(folder: &Path) -> Result<Lock, Error> {
        let path = folder.join(LOCK);
        // Not truncated before it is locked: it may belong to another process.
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let Some(mut file) = open(&options, &path).tried(&path, Action::Open)? else {
            let because = "is not an ordinary file, so it can't be the lock of a log";
            return Err(Error::refused(&path, because));
        };
        let is_taken = lock(&file, FlockOperation::NonBlockingLockExclusive, TRIES);
        if !is_taken.tried(&path, Action::Examine)? {
            let holder = process_in(&mut file)
                .map_or("another process".to_owned(), |process| format!("process {process}"));
            let because = format!("the log is open for writing in {holder}");
            return Err(Error::refused(folder, because));
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.tried(&path, Action::Write)?;
        Ok(Lock { file })
    }

    /// Returns the process that has the log open for writing; `None` if there is none, or if this
    /// process cannot see it.
    pub(super) fn holder(folder: &Path) -> Option<u32> {
        let mut file = open(File::options().read(true), &folder.join(LOCK)).ok()??;
        let is_free = lock(&file, FlockOperation::NonBlockingLockShared, 1).ok()?;
        if is_free {
            drop(Lock { file });
            return None;
        }
        process_in(&mut file)
    }
}

impl Drop for Lock {
    /// Gives the lock back. To close the file is not enough: a child process that another thread is
    /// about to start has a copy of the descriptor until its `execve(2)`.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Opens an ordinary file; `None` where it is none. The open of a pipe does not wait for its other
/// end.
fn open(options: &OpenOptions, path: &Path) -> std::io::Result<Option<File>> {
    let file = options.clone().custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

fn lock(file: &File, operation: FlockOperation, tries: u32) -> std::io::Result<bool> {
    for attempt in 1..=tries {
        match flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if attempt < tries => std::thread::sleep(TRY_AGAIN_AFTER),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

fn process_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_one_writer_and_its_name_is_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Lock::holder(folder.path()), None);
        let first = Lock::take(folder.path()).unwrap();
        assert_eq!(Lock::holder(folder.path()), Some(std::process::id()));
        let error = Lock::take(folder.path()).unwrap_err();
        let because = format!("the log is open for writing in process {}", std::process::id());
        assert_eq!(error.to_string(), format!("{}: {because}", folder.path().display()));
        drop(first);
        assert_eq!(Lock::holder(folder.path()), None);
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_pipe_is_no_lock_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(Lock::holder(folder.path()), None);
        let because = "is not an ordinary file, so it can't be the lock of a log";
        let error = Lock::take(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: {because}", path.display()));
    }

    #[test]
    fn a_copy_of_the_descriptor_does_not_hold_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        let _copy = lock.file.try_clone().unwrap();
        drop(lock);
        assert_eq!(Lock::holder(folder.path()), None);
    }

    #[test]
    fn a_file_that_says_nothing_is_a_lock_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("lock"), b"999999999999 and more\n").unwrap();
        assert_eq!(Lock::holder(folder.path()), None);
        Lock::take(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join("lock")).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
    }
}
