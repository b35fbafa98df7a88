//! The lock that a log's only writer holds: a `flock(2)` on the file `lock` in the log's folder.
//! Readers do not lock it.

use crate::engine::Folder;
use crate::error::{Action, Error, Tried};
use crate::fork::Process;
use crate::metadata::MODE_PRIVATE;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

pub(super) const LOCK: &str = "lock";
/// The number of attempts to take the lock. Another process may hold the lock briefly, in
/// [`Lock::holder`].
const TRIES: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// The right to write to a log, held until the value is dropped or the process exits.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    process: Process,
}

impl Lock {
    /// Takes the lock of the log in `folder`, and writes this process's ID into the lock file.
    pub(super) fn take(folder: &Folder) -> Result<Lock, Error> {
        let path = folder.path().join(LOCK);
        // The file is not truncated before it is locked, because another process may hold the lock.
        let flags = OFlags::RDWR | OFlags::CREATE;
        let Some(mut file) = open(folder, flags).tried(&path, Action::Open)? else {
            let because = "is not an ordinary file, so it can't be the lock of a log";
            return Err(Error::refused(&path, because));
        };
        let is_taken = lock(&file, FlockOperation::NonBlockingLockExclusive, TRIES);
        if !is_taken.tried(&path, Action::Examine)? {
            let holder = process_in(&mut file)
                .map_or("another process".to_owned(), |process| format!("process {process}"));
            let because = format!("open for writing by {holder}; only one writer is allowed");
            return Err(Error::refused_as(libc::EBUSY, folder.path(), because));
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.tried(&path, Action::Write)?;
        Ok(Lock { file, process: Process::this() })
    }

    /// Returns the permissions of the lock file, which every new file of the log gets. They always
    /// allow the owner to read and write.
    pub(super) fn mode(&self) -> Result<u32, Error> {
        let metadata = self.file.metadata().tried(Path::new(LOCK), Action::Examine)?;
        Ok(metadata.mode() & 0o666 | MODE_PRIVATE)
    }

    /// Returns the ID of the process that has the log open for writing; `None` if there is none, or
    /// if it is invisible to this process.
    pub(super) fn holder(folder: &Folder) -> Option<u32> {
        let mut file = open(folder, OFlags::RDONLY).ok()??;
        let is_free = lock(&file, FlockOperation::NonBlockingLockShared, 1).ok()?;
        if is_free {
            drop(Lock { file, process: Process::this() });
            return None;
        }
        process_in(&mut file)
    }
}

impl Drop for Lock {
    /// Releases the lock. Closing the file would not be enough: a child process that another thread
    /// is starting has a copy of the descriptor until its `execve(2)`. In a child process that
    /// inherited the log, dropping the copy does not release the parent's lock.
    fn drop(&mut self) {
        if self.process.is_this() {
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Opens the lock file without blocking; `None` if it is not an ordinary file, such as a pipe.
fn open(folder: &Folder, flags: OFlags) -> std::io::Result<Option<File>> {
    let file = folder.open_file(&folder.path().join(LOCK), flags | OFlags::NONBLOCK)?;
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

    fn holder(folder: &tempfile::TempDir) -> Option<u32> {
        Lock::holder(&Folder::open(folder.path()).unwrap())
    }

    fn take(folder: &tempfile::TempDir) -> Result<Lock, Error> {
        Lock::take(&Folder::open(folder.path()).unwrap())
    }

    #[test]
    fn a_log_has_one_writer_and_its_name_is_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(holder(&folder), None);
        let first = take(&folder).unwrap();
        assert_eq!(holder(&folder), Some(std::process::id()));
        let error = take(&folder).unwrap_err();
        let process = std::process::id();
        let because = format!("open for writing by process {process}; only one writer is allowed");
        assert_eq!(error.to_string(), format!("{}: {because}", folder.path().display()));
        drop(first);
        assert_eq!(holder(&folder), None);
        take(&folder).unwrap();
    }

    #[test]
    fn a_pipe_is_no_lock_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(holder(&folder), None);
        let because = "is not an ordinary file, so it can't be the lock of a log";
        let error = take(&folder).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: {because}", path.display()));
    }

    #[test]
    fn a_copy_of_the_descriptor_does_not_hold_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = take(&folder).unwrap();
        let _copy = lock.file.try_clone().unwrap();
        drop(lock);
        assert_eq!(holder(&folder), None);
    }

    #[test]
    fn a_file_that_says_nothing_is_a_lock_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("lock"), b"999999999999 and more\n").unwrap();
        assert_eq!(holder(&folder), None);
        take(&folder).unwrap();
        let text = std::fs::read_to_string(folder.path().join("lock")).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
    }
}
