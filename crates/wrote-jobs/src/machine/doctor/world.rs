//! The input of the checks: files below a root, facts about the path, and the results of system
//! calls.

use super::stack::{Root, Stack};
use crate::machine::target::device_of;
use rustix::fs::{IFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use wrote::device::Target;
use wrote_result::Error;

/// The input of the checks. Tests create an artificial root.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub root: Root,
    /// The file system under the path, and its device.
    pub target: Target,
    /// The devices below the file system; empty if none is visible.
    pub stack: Stack,
    /// Whether io_uring may be used; the error is the kernel's refusal.
    pub io_uring: Result<(), String>,
    /// The file system's total number of inodes, and its number of free inodes. The former is 0 if
    /// the file system creates inodes on demand.
    pub inodes: (u64, u64),
    pub file: FileFacts,
    /// The file at the path, or one in the folder, if it can be opened.
    pub example: Option<Arc<File>>,
}

impl World {
    /// Examines the input of the checks for `path`.
    pub fn of(path: &Path) -> Result<World, Error> {
        crate::machine::target::examined(path)?;
        let target = wrote::device::examine(path)?;
        let inodes = rustix::fs::statvfs(&target.path)
            .map_or((0, 0), |space| (space.f_files, space.f_favail));
        let root = Root::new("/");
        Ok(World {
            stack: device_of(&target).map_or_else(Stack::default, |of| Stack::of(&root, &of.name)),
            io_uring: wrote::engine::Engine::probe_io_uring(),
            inodes,
            file: FileFacts::of(&target.path),
            example: example_of(&target.path).map(Arc::new),
            target,
            root,
        })
    }

    /// Returns whether this mount option is in effect.
    pub fn is_mounted_with(&self, option: &str) -> bool {
        self.target.mount_options.iter().any(|known| known == option)
    }

    /// Returns the value of the mount option `name=value`; `None` if the option is not in effect.
    pub fn mount_value(&self, name: &str) -> Option<&str> {
        let options = &self.target.mount_options;
        options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the kernel's major and minor version; `None` if it is unknown.
    pub fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.root.text("proc/sys/kernel/osrelease")?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

const PIECES_MAX: usize = 65_536;

#[derive(Clone, Debug, Default)]
pub(super) struct FileFacts {
    pub is_folder: bool,
    pub is_file: bool,
    /// The attributes (ioctl_iflags(2)), or why they are unknown; `None` if the file system has
    /// none.
    pub attributes: Option<Result<IFlags, String>>,
    /// The allocated and the written bytes of a file, or why they are unknown.
    pub room: Option<Result<FileRoom, String>>,
}

/// The maximum number of entries of a folder that are searched for a file.
const ENTRIES_MAX: usize = 1000;

/// Opens the file at the path, or a file in the folder, because the kernel describes transfers only
/// for files. Returns `None` if no file can be opened.
fn example_of(path: &Path) -> Option<File> {
    if !path.is_dir() {
        return path.is_file().then(|| File::open(path).ok())?;
    }
    let entries = std::fs::read_dir(path).ok()?.flatten().take(ENTRIES_MAX);
    let mut files = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()));
    files.find_map(|entry| File::open(entry.path()).ok())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileRoom {
    pub allocated_bytes: u64,
    pub written_bytes: u64,
}

impl FileFacts {
    /// Examines the path. Opens the file but does not read from it.
    pub fn of(path: &Path) -> FileFacts {
        let Ok(metadata) = path.metadata() else { return FileFacts::default() };
        let (is_folder, is_file) = (metadata.is_dir(), metadata.is_file());
        let mut facts = FileFacts { is_folder, is_file, ..FileFacts::default() };
        // Opening a FIFO waits for its other end, and opening a device may have any effect.
        if !is_folder && !is_file {
            return facts;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: OwnedFd = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(errno) => {
                let because = format!("it can't be opened for reading: {errno}");
                facts.attributes = Some(Err(because.clone()));
                facts.room = is_file.then_some(Err(because));
                return facts;
            }
        };
        facts.attributes = attributes_of(&file);
        facts.room = is_file.then(|| {
            let allocated_bytes = metadata.blocks() * 512;
            Ok(FileRoom { allocated_bytes, written_bytes: written_bytes(&file)? })
        });
        facts
    }
}

/// Returns the attributes; `None` if the file system does not support any.
fn attributes_of(file: impl AsFd) -> Option<Result<IFlags, String>> {
    match rustix::fs::ioctl_getflags(file) {
        Ok(flags) => Some(Ok(flags)),
        Err(Errno::NOTTY | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => None,
        Err(errno) => Some(Err(format!("FS_IOC_GETFLAGS: {errno}"))),
    }
}

/// Counts the bytes in the ranges that `SEEK_DATA` finds (lseek(2)). On ext4, XFS and Btrfs,
/// `SEEK_DATA` skips unwritten blocks.
fn written_bytes(file: impl AsFd) -> Result<u64, String> {
    let file = file.as_fd();
    let (mut at, mut written_bytes) = (0, 0);
    for _ in 0..PIECES_MAX {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // There is no more data.
            Err(Errno::NXIO) => return Ok(written_bytes),
            Err(errno) => return Err(format!("lseek, SEEK_DATA: {errno}")),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start))
            .map_err(|errno| format!("lseek, SEEK_HOLE: {errno}"))?;
        written_bytes += end.saturating_sub(start);
        at = end;
    }
    Err(format!("it lies in more than {PIECES_MAX} pieces"))
}
