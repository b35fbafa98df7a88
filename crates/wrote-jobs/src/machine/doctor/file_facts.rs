//! The facts about the path itself: its attributes, and the written share of a file.

use rustix::fs::{IFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PIECES_MAX: usize = 65_536;

#[derive(Clone, Debug, Default)]
pub(super) struct FileFacts {
    pub is_folder: bool,
    pub is_file: bool,
    /// Its attributes (ioctl_iflags(2)), or why they are unknown; `None` where there are none.
    pub attributes: Option<Result<IFlags, String>>,
    /// A file's allocated and written bytes, or why they are unknown.
    pub room: Option<Result<FileRoom, String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileRoom {
    pub allocated_bytes: u64,
    pub written_bytes: u64,
}

impl FileFacts {
    /// Examines the path. Opens it for reading, without reading from it.
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
        facts.attributes = attributes(&file);
        facts.room = is_file.then(|| {
            let allocated_bytes = metadata.blocks() * 512;
            Ok(FileRoom { allocated_bytes, written_bytes: written_bytes(&file)? })
        });
        facts
    }
}

/// Returns the attributes; `None` where the file system has none.
fn attributes(file: impl AsFd) -> Option<Result<IFlags, String>> {
    match rustix::fs::ioctl_getflags(file) {
        Ok(flags) => Some(Ok(flags)),
        Err(Errno::NOTTY | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => None,
        Err(errno) => Some(Err(format!("FS_IOC_GETFLAGS: {errno}"))),
    }
}

/// Counts the bytes that `SEEK_DATA` finds (lseek(2)): ext4, XFS and Btrfs skip unwritten blocks.
fn written_bytes(file: impl AsFd) -> Result<u64, String> {
    let file = file.as_fd();
    let (mut at, mut written_bytes) = (0, 0);
    for _ in 0..PIECES_MAX {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // No data follows.
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
