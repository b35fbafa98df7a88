//! `Watch`, which sleeps until a log's files have changed (`inotify(7)`) or a bell rings
//! (`eventfd(2)`).

use crate::engine::Folder;
use crate::{Error, device};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::{Errno, read, write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The events to watch for in a log's folder and on the files in it.
const EVENTS: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// The size of the buffer for events, in bytes. It need not be large, because the kernel merges
/// equal events.
const EVENT_BYTES: usize = 4096;

/// A bell that wakes the thread that sleeps in [`Watch::sleep`]. Once rung, it keeps ringing.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<OwnedFd>);

impl Bell {
    pub(super) fn new() -> Result<Bell, Error> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let what = "making the eventfd of a log's reader";
        bell.map(|bell| Bell(Arc::new(bell)))
            .map_err(|errno| Error::Engine { what, errno: errno.raw_os_error() })
    }

    pub(super) fn ring(&self) {
        // The write can only fail if the counter is full, and then the bell has already rung.
        let _ = write(&self.0, &1u64.to_ne_bytes());
    }
}

/// The bells to ring once a log is closed or has failed. Bells whose owners no longer exist are
/// forgotten.
#[derive(Debug, Default)]
pub(super) struct Bells(Mutex<Vec<Weak<OwnedFd>>>);

impl Bells {
    pub(super) fn add(&self, bell: &Bell) {
        let mut bells = self.lock();
        bells.retain(|bell| bell.strong_count() > 0);
        bells.push(Arc::downgrade(&bell.0));
    }

    pub(super) fn ring(&self) {
        self.lock().drain(..).filter_map(|bell| bell.upgrade()).for_each(|bell| Bell(bell).ring());
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Weak<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why [`Watch::sleep`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slept {
    /// The files may have changed.
    Changed,
    /// The time has passed or a signal has arrived.
    Nothing,
    Rung,
}

/// A watch on the folder of a log.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The folder and its path in `/proc`; `None` until the folder exists, and on a simulated disk,
    /// which reports no changes.
    folder: Option<(Folder, PathBuf)>,
    /// The inotify instance, and whether the kernel sees every change in the folder.
    inotify: Option<(OwnedFd, bool)>,
    bell: Option<Bell>,
    is_reported: bool,
}

impl Watch {
    /// Watches this folder from now on, even if its path changes.
    pub(super) fn enter(&mut self, folder: &Folder) {
        self.folder = folder.proc_path().map(|path| (folder.clone(), path));
    }

    /// Returns the bell that ends a sleep.
    pub(super) fn bell(&mut self) -> Result<Bell, Error> {
        let bell = self.bell.take().map_or_else(Bell::new, Ok)?;
        Ok(self.bell.insert(bell).clone())
    }

    /// Watches the folder, so that a change after this call ends the next sleep. Returns whether
    /// the kernel reports every change. It reports none in a folder that does not exist yet, and on
    /// a network file system only changes by this machine. Besides, each user has a limited number
    /// of inotify instances.
    pub(super) fn arm(&mut self) -> bool {
        let Some((folder, path)) = &self.folder else { return false };
        let watched = watch(&mut self.inotify, folder, path);
        watched.unwrap_or_else(|errno| {
            if !std::mem::replace(&mut self.is_reported, true) {
                let folder = folder.path().display();
                log::warn!("{folder}: followed by looking every 20 ms: inotify: {errno}");
            }
            false
        })
    }

    /// Sleeps until a file changes, the bell rings, a signal arrives, or the time has passed.
    pub(super) fn sleep(&self, time: Duration) -> Slept {
        // A time that is too long for the kernel means no time limit.
        let time = Timespec::try_from(time).ok();
        let inotify = self.inotify.as_ref().map(|(inotify, _)| inotify);
        let bell = self.bell.as_ref().map(|Bell(bell)| &**bell);
        let descriptors = [bell, inotify].into_iter().flatten();
        let mut polled: Vec<PollFd> =
            descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        if !poll(&mut polled, time.as_ref()).is_ok_and(|ready| ready > 0) {
            return Slept::Nothing;
        }
        let is_rung = bell.is_some() && !polled[0].revents().is_empty();
        if is_rung { Slept::Rung } else { self.take_events() }
    }

    fn take_events(&self) -> Slept {
        let Some((inotify, _)) = &self.inotify else { return Slept::Nothing };
        let mut events = [0; EVENT_BYTES];
        // Every event, including `IN_Q_OVERFLOW`, means that the files must be examined, so the
        // events are not decoded.
        let mut slept = Slept::Nothing;
        while read(inotify, &mut events).is_ok_and(|bytes| bytes > 0) {
            slept = Slept::Changed;
        }
        slept
    }
}

/// Watches the folder itself, and returns whether the kernel sees every change there.
/// `inotify_add_watch(2)` accepts only a path. Without `/proc`, the folder's own path is used as
/// long as it leads to the folder.
fn watch(
    inotify: &mut Option<(OwnedFd, bool)>,
    folder: &Folder,
    path: &Path,
) -> Result<bool, Errno> {
    let known = match inotify.take() {
        Some(known) => known,
        None => {
            (inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?, is_local(folder.path()))
        }
    };
    let (inotify, is_local) = inotify.insert(known);
    match inotify::add_watch(&*inotify, path, EVENTS) {
        Err(Errno::NOENT) if folder.is_at_its_path().unwrap_or(false) => {
            inotify::add_watch(inotify, folder.path(), EVENTS)?;
        }
        watched => _ = watched?,
    }
    Ok(*is_local)
}

/// Returns whether files in the folder can be changed only through this kernel.
fn is_local(folder: &Path) -> bool {
    let local = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs", "ramfs",
        "overlay",
    ];
    device::examine(folder).is_ok_and(|target| local.contains(&&*target.filesystem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Log;
    use crate::SyncPolicy;
    use fixtures::{Mounted, or_skip};
    use std::fs::{self, File};
    use std::thread;

    /// A time limit that only a hang can reach.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn armed(folder: &Path) -> Watch {
        let mut watch = Watch::default();
        watch.enter(&Folder::open(folder).unwrap());
        watch.arm();
        while watch.sleep(Duration::ZERO) == Slept::Changed {}
        watch
    }

    /// Asserts that each record appended to a log in the folder wakes a watch.
    fn assert_records_wake(folder: &Path, name: &str) {
        for sync in [SyncPolicy::Always, SyncPolicy::No] {
            let path = folder.join(format!("{sync:?}"));
            let log = Log::options().sync(sync).open(&path).unwrap();
            // The first records also cause space to be prepared.
            for _ in 0..10 {
                log.append(b"hello").unwrap().wait().unwrap();
                let mut watch = armed(&path);
                assert!(watch.arm(), "{name} tells of every change");
                log.append(b"hello").unwrap().wait().unwrap();
                assert_eq!(watch.sleep(PATIENCE), Slept::Changed, "{name}, {sync:?}");
            }
            log.close().unwrap();
        }
    }

    #[test]
    fn a_record_that_a_log_writes_past_the_page_cache_wakes_a_watch() {
        assert_records_wake(fixtures::folder().path(), "the file system of the tests");
    }

    #[test]
    fn every_local_file_system_tells_of_each_record() {
        for name in ["ext4", "xfs", "btrfs"] {
            let mounted = or_skip!(Mounted::image(name, 512 << 20));
            assert_records_wake(mounted.path(), name);
        }
        let mounted = or_skip!(Mounted::tmpfs(64 << 20));
        assert_records_wake(mounted.path(), "tmpfs");
        let mounted = or_skip!(Mounted::overlay(mounted));
        assert_records_wake(mounted.path(), "overlay");
    }

    #[test]
    fn a_change_of_a_file_or_of_the_folder_itself_wakes_a_watch() {
        let folder = fixtures::folder();
        let path = folder.path().join("log");
        fs::create_dir(&path).unwrap();
        let watch = armed(&path);
        let file = File::create(path.join("file")).unwrap();
        assert_eq!(watch.sleep(PATIENCE), Slept::Changed);
        file.set_len(10).unwrap();
        assert_eq!(watch.sleep(PATIENCE), Slept::Changed);
        fs::rename(&path, folder.path().join("other")).unwrap();
        assert_eq!(watch.sleep(PATIENCE), Slept::Changed);
    }

    #[test]
    fn a_folder_that_the_kernel_does_not_watch_is_one_whose_changes_are_not_told() {
        let mut watch = Watch::default();
        assert!(!watch.arm() && !watch.arm());
        assert_eq!(watch.sleep(Duration::from_millis(1)), Slept::Nothing);
        watch.enter(&Folder::open(Path::new("/proc/self")).unwrap());
        assert!(!watch.arm(), "it has no changes of its own");
    }

    #[test]
    fn a_bell_ends_every_sleep_with_and_without_a_folder() {
        let folder = fixtures::folder();
        for mut watch in [armed(folder.path()), Watch::default()] {
            let bell = watch.bell().unwrap();
            thread::scope(|scope| {
                let sleeping = scope.spawn(|| (watch.sleep(PATIENCE), watch.sleep(PATIENCE)));
                bell.ring();
                assert_eq!(sleeping.join().unwrap(), (Slept::Rung, Slept::Rung));
            });
        }
    }
}
