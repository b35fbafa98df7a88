//! The lock file in a run's folder, which shows whether the run is alive.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use wrote_jobs::jobs::mark::start_time;

pub(super) const NAME: &str = "lock";

/// The first line of every lock file. A folder without this line is never taken for a run's folder.
const MAGIC: &str = "wrote scratch folder 1";

/// The maximum length of a lock file. A longer file is not ours.
const LENGTH_BYTES_MAX: u64 = 4096;

/// The state of the run to which a lock file belongs.
#[derive(Debug)]
pub(super) enum State {
    Alive,
    /// The run is dead. This process holds the run's lock while this value exists.
    Dead(#[allow(dead_code, reason = "held, not read")] Option<File>),
    /// The file is not the lock file of a run.
    Foreign,
}

/// Creates the lock file in `folder`, records its owner in it, and locks it (`flock(2)`) until the
/// returned file is dropped.
///
/// If the file system has no locks (as some FUSE file systems), the recorded process shows whether
/// the run is alive.
pub(super) fn make(folder: &Path) -> io::Result<File> {
    let mut file = File::create_new(folder.join(NAME))?;
    // The file is locked before its first line is written, because its readers ignore a lock file
    // without that line.
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
        Err(errno) => return Err(errno.into()),
    }
    let pid = std::process::id();
    let started = start_time(pid).unwrap_or_default();
    let now = jiff::Timestamp::now();
    file.write_all(
        format!("{MAGIC}\npid {pid}\nprocess-started-ticks {started}\nmade-at {now:.0}\n")
            .as_bytes(),
    )?;
    Ok(file)
}

/// Returns the state of the lock file in `folder`; `None` if there is no readable lock file.
pub(super) fn state(folder: impl AsFd) -> Option<State> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, NAME, flags, Mode::empty()).ok()?);
    if !file.metadata().is_ok_and(|m| m.is_file() && m.len() <= LENGTH_BYTES_MAX) {
        return Some(State::Foreign);
    }
    let mut text = String::new();
    if (&file).take(LENGTH_BYTES_MAX).read_to_string(&mut text).is_err() {
        return Some(State::Foreign);
    }
    // If the file is empty, its run was killed between creating and writing it, or is about to
    // write to it.
    if !text.is_empty() && text.lines().next() != Some(MAGIC) {
        return Some(State::Foreign);
    }
    if names_a_living_process(&text) {
        return Some(State::Alive);
    }
    Some(match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => State::Alive,
        Ok(()) => State::Dead(Some(file)),
        Err(_) => State::Dead(None),
    })
}

/// Returns whether the recorded process is alive: a process with the same ID and start time.
fn names_a_living_process(text: &str) -> bool {
    let figure = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse().ok()
    };
    let Some(pid) = figure("pid ").and_then(|pid| u32::try_from(pid).ok()) else {
        return false;
    };
    let started = figure("process-started-ticks ");
    started.is_some_and(|ticks| ticks > 0) && start_time(pid) == started
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use tempfile::TempDir;

    fn state_of(folder: &Path) -> Option<State> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        state(openat(CWD, folder, flags, Mode::empty()).unwrap())
    }

    fn folder_with(text: &str) -> TempDir {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join(NAME), text).unwrap();
        folder
    }

    #[test]
    fn a_held_lock_is_alive() {
        let folder = TempDir::new().unwrap();
        let lock = make(folder.path()).unwrap();
        assert!(matches!(state_of(folder.path()), Some(State::Alive)));
        drop(lock);
        // The lock is released, but the recorded process is alive, which decides if the file system
        // has no locks.
        assert!(matches!(state_of(folder.path()), Some(State::Alive)));
    }

    #[test]
    fn a_lock_is_alive_by_flock_alone_when_its_process_is_in_another_container() {
        let folder = folder_with(&format!("{MAGIC}\npid 1\nprocess-started-ticks 999999999\n"));
        let file = File::open(folder.path().join(NAME)).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        assert!(matches!(state_of(folder.path()), Some(State::Alive)));
        drop(file);
        assert!(matches!(state_of(folder.path()), Some(State::Dead(_))));
    }

    #[test]
    fn a_pid_that_was_given_to_another_process_is_dead() {
        let pid = std::process::id();
        let other = start_time(pid).unwrap() + 1;
        let folder = folder_with(&format!("{MAGIC}\npid {pid}\nprocess-started-ticks {other}\n"));
        assert!(matches!(state_of(folder.path()), Some(State::Dead(_))));
    }

    #[test]
    fn an_empty_lock_file_is_that_of_a_run_killed_at_its_beginning() {
        assert!(matches!(state_of(folder_with("").path()), Some(State::Dead(_))));
    }

    #[test]
    fn a_lock_file_without_our_first_line_is_not_ours() {
        for text in ["hello\n", "wrote scratch folder 12\n", &"x".repeat(5000)] {
            assert!(matches!(state_of(folder_with(text).path()), Some(State::Foreign)));
        }
        assert!(state_of(TempDir::new().unwrap().path()).is_none());
    }
}
