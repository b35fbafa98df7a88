//! Temporary files and folders that killed copies and saves left behind:
//! `.NAME.wrote-PROCESS-NUMBER`.

use super::Leftover;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wrote::save::on_its_way;

/// The permissions of group and others. A temporary folder has none of them.
const MODE_OTHERS: u32 = 0o077;

/// An open file or folder that looks temporary.
pub(super) struct Candidate {
    pub(super) leftover: Leftover,
    is_folder: bool,
    /// The descriptor, which holds the lock of a dead copy, so that no other process removes the
    /// file or folder concurrently.
    _open: OwnedFd,
}

impl Candidate {
    /// Removes the file or folder. Only the copy can have written into a folder, because no other
    /// user may enter it.
    pub(super) fn remove(&self) -> io::Result<()> {
        let path = &self.leftover.path;
        if self.is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }
    }
}

/// Returns the temporary files and folders in `parent`, sorted by name.
pub(super) fn candidates(parent: &Path) -> Vec<Candidate> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut named: Vec<(PathBuf, u32)> = entries
        .filter_map(|entry| Some((entry.path(), on_its_way(&entry.file_name())?.1)))
        .collect();
    named.sort();
    named.into_iter().filter_map(|(path, process)| candidate(path, process)).collect()
}

fn candidate(path: PathBuf, process: u32) -> Option<Candidate> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(&path, flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    let is_folder = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => false,
        FileType::Directory if stat.st_mode & MODE_OTHERS == 0 => true,
        _ => return None,
    };
    if stat.st_uid != geteuid().as_raw() {
        return None;
    }
    // The lock also covers a process in another container, where the process ID has another
    // meaning.
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    let alive = locked || lives(process);
    let size_bytes = size_bytes(&path);
    Some(Candidate { leftover: Leftover { path, size_bytes, alive }, is_folder, _open: file })
}

/// Returns whether a process with this ID exists, even if it is another user's (`EPERM`).
fn lives(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Returns the space that a file, or all files in a folder, occupy. Ignores files that can't be
/// read.
fn size_bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        // The blocks are units of 512 bytes, whatever the file system's block size is (`stat(2)`).
        return metadata.blocks() * 512;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_bytes(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::clean;
    use fixtures::names;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use wrote::save::temporary_name;

    /// A number above every process ID (`/proc/sys/kernel/pid_max` is at most 2^22).
    const DEAD: u32 = 4_194_305;

    fn temporary(name: &str, process: u32) -> String {
        temporary_name(name.as_ref(), process, 7).into_string().unwrap()
    }

    #[test]
    fn a_name_that_is_no_text_is_parsed_by_its_bytes() {
        let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
        let made = temporary_name(name(b"caf\xe9"), DEAD, 7);
        assert_eq!(on_its_way(&made).map(|(_, process)| process), Some(DEAD));
        for other in [&b".\xff.wrote-\xff\xff-1"[..], b".a.wrote-1-\xff", b".wrote-1-1"] {
            assert_eq!(on_its_way(name(other)), None);
        }
    }

    #[test]
    fn leftovers_of_dead_copies_go_and_nothing_else() {
        // W7
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let [file, folder] = ["file", "folder"].map(|name| temporary(name, DEAD));
        fs::write(path(&file), "half").unwrap();
        fs::create_dir_all(path(&folder).join("below")).unwrap();
        fs::write(path(&folder).join("below/file"), "half").unwrap();
        fs::set_permissions(path(&folder), fs::Permissions::from_mode(0o700)).unwrap();
        let living = temporary("living", std::process::id());
        let locked = temporary("locked", DEAD);
        let held = fs::File::create(path(&locked)).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let [link, open] = ["link", "open"].map(|name| temporary(name, DEAD));
        symlink("precious", path(&link)).unwrap();
        fs::create_dir(path(&open)).unwrap();
        fs::set_permissions(path(&open), fs::Permissions::from_mode(0o755)).unwrap();
        // Names of other programs that look like temporary names have no mark, or a different one.
        let moved = file.replace("file", "other");
        let others = [
            ".x.wrote-1",
            ".x.wrote-1-",
            ".wrote-4194305-0",
            "x.wrote-4194305-0",
            "precious",
            ".foo.wrote-123-4",
            ".foo.wrote-4194305-7000000",
            &moved,
        ];
        for name in others.into_iter().chain([living.as_str()]) {
            fs::write(path(name), "theirs").unwrap();
        }
        let before = names(parent.path());
        let asked = clean(parent.path(), true).unwrap();
        assert_eq!(names(parent.path()), before, "a dry run removes nothing");
        let cleaned = clean(parent.path(), false).unwrap();
        assert_eq!(asked, cleaned);
        let of = |leftovers: &[Leftover]| -> Vec<PathBuf> {
            leftovers.iter().map(|leftover| leftover.path.clone()).collect()
        };
        assert_eq!(of(&cleaned.removed), [path(&file), path(&folder)]);
        assert_eq!(of(&cleaned.alive), [path(&living), path(&locked)]);
        assert!(cleaned.refused.is_empty() && cleaned.removed[1].size_bytes > 0, "{cleaned:?}");
        let left: Vec<String> =
            before.into_iter().filter(|name| ![&file, &folder].contains(&name)).collect();
        assert_eq!(names(parent.path()), left);
    }
}
