//! Reads a file one piece at a time, on demand.

use crate::engine::Op;
use crate::error::Tried;
use crate::{Action, Completion, Engine, Error, FileId, FileOptions};
use rustix::fs::{OFlags, fcntl_getfl};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

pub(super) struct Plain {
    way: Way,
    path: PathBuf,
}

enum Way {
    /// An ordinary file or a block device, read at any offset. Its file position does not change.
    At(File),
    /// A pipe, a terminal or another character device, which is read in order.
    InOrder(File),
    Folder,
    /// A file without a descriptor.
    Engine(Box<Engine>, FileId),
}

impl Plain {
    pub(super) fn of(file: File, path: &Path) -> Plain {
        let way = match file.metadata().map(|metadata| metadata.file_type()) {
            Ok(kind) if kind.is_file() || kind.is_block_device() => Way::At(file),
            Ok(kind) if kind.is_dir() => Way::Folder,
            _ => Way::InOrder(file),
        };
        Plain { way, path: path.to_owned() }
    }

    pub(super) fn given(file: File) -> Plain {
        let link = descriptor_path(&file);
        // A file opened with `O_DIRECT` accepts only aligned reads, so it is reopened without that
        // flag.
        let is_direct = fcntl_getfl(&file).is_ok_and(|flags| flags.contains(OFlags::DIRECT));
        let reopened = is_direct.then(|| File::open(&link).ok()).flatten();
        let path = std::fs::read_link(&link).unwrap_or(link);
        if let (Some(mut reopened), Ok(place)) = (reopened.as_ref(), (&file).stream_position()) {
            // If seeking fails, the first read also fails, and reports the error.
            let _ = reopened.seek(SeekFrom::Start(place));
        }
        Plain::of(reopened.unwrap_or(file), &path)
    }

    /// Opens a file through an engine. The engine then reads it only if the file has no descriptor.
    pub(super) fn open(mut engine: Engine, path: &Path) -> Result<Plain, Error> {
        let id = engine.open_file(path, &FileOptions::new())?;
        if let Some(open) = engine.descriptor(id) {
            let file = open.try_clone_to_owned().tried(path, Action::Open)?;
            return Ok(Plain::of(file.into(), path));
        }
        Ok(Plain { way: Way::Engine(Box::new(engine), id), path: path.to_owned() })
    }

    pub(super) fn is_folder(&self) -> bool {
        matches!(self.way, Way::Folder)
    }

    /// Returns whether the file can be read at any offset.
    pub(super) fn is_at(&self) -> bool {
        matches!(self.way, Way::At(_) | Way::Engine(..))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.way {
            Way::At(file) | Way::InOrder(file) => Some(file.as_fd()),
            Way::Folder | Way::Engine(..) => None,
        }
    }

    /// Returns a path through which the open file can be reopened, even if the file has lost its
    /// name.
    pub(super) fn path_of_descriptor(&self) -> PathBuf {
        match &self.way {
            Way::At(file) => descriptor_path(file),
            _ => self.path.clone(),
        }
    }

    /// Returns the open file's position; 0 if it has none.
    pub(super) fn place(&self) -> u64 {
        match &self.way {
            Way::At(file) => (&*file).stream_position().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the current length, in bytes.
    pub(super) fn len(&self) -> Result<u64, Error> {
        let failed = |error| Error::file(&self.path, Action::Examine, None, &error);
        match &self.way {
            Way::At(file) => {
                let metadata = file.metadata().map_err(failed)?;
                if metadata.is_file() {
                    return Ok(metadata.len());
                }
                // The length of a block device (`lseek(2)`).
                (&*file).seek(SeekFrom::End(0)).map_err(failed)
            }
            Way::InOrder(file) => Ok(file.metadata().map_err(failed)?.len()),
            Way::Folder => Ok(0),
            Way::Engine(engine, file) => engine.file_len(*file),
        }
    }

    /// Reads up to `into`'s length at `offset`, which must be the end of the last read if the file
    /// is read in order. Returns 0 at the end of the file.
    pub(super) fn read(&mut self, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        let read = match &mut self.way {
            Way::At(file) => uninterrupted(|| file.read_at(into, offset)),
            Way::InOrder(file) => uninterrupted(|| file.read(into)),
            Way::Folder => Err(io::Error::from_raw_os_error(libc::EISDIR)),
            Way::Engine(engine, file) => return read_by(engine, *file, into, offset),
        };
        read.map_err(|error| Error::file(&self.path, Action::Read, Some(offset), &error))
    }

    /// Moves the position of a file that is read in order, and returns the new position.
    pub(super) fn seek(&mut self, to: SeekFrom) -> Result<u64, Error> {
        let Plain { way, path } = self;
        match way {
            Way::InOrder(file) => file.seek(to).tried(path, Action::Read),
            _ => Ok(0),
        }
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("path", &self.path).finish_non_exhaustive()
    }
}

fn read_by(
    engine: &mut Engine,
    file: FileId,
    into: &mut [u8],
    offset: u64,
) -> Result<usize, Error> {
    let mut buffer = engine.lease()?;
    let len = into.len().min(buffer.capacity());
    buffer.set_len(len);
    engine.queue(0, Op::Read { file, offset, buffer });
    let mut completions = Vec::new();
    engine.reap(1, &mut completions)?;
    let Completion { result, buffer, .. } = completions.pop().expect("one was queued");
    let (read, buffer) = (result?, buffer.expect("a read returns its buffer"));
    into[..read].copy_from_slice(&buffer[..read]);
    Ok(read)
}

fn uninterrupted(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Returns a link that leads to the open file itself, not to whichever file has its name
/// (`proc(5)`).
fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
