//! An open file that is read or written from start to end without blocking forever.

use crate::progress::Watcher;
use crate::{Action, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, read, write};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// The watcher is called after this time without bytes.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The longest write that may block: the capacity of an empty pipe (`pipe(7)`).
const WAITING_WRITE_BYTES_MAX: usize = 64 << 10;

/// The offset that means the file's current position (`pwritev2(2)`).
const WHERE_IT_STANDS: u64 = u64::MAX;

/// A pipe, a socket, a terminal, or a file.
pub(super) struct Pipe<'a> {
    file: BorrowedFd<'a>,
    name: PathBuf,
    moved: u64,
    /// Whether writes are non-blocking (`RWF_NOWAIT`): not for terminals, and for pipes since Linux
    /// 6.4. Never for ordinary files, which are always ready (`poll(2)`): XFS and Btrfs might
    /// refuse forever, for an allocation or a time update that no other write performs.
    nowait: bool,
}

impl<'a> Pipe<'a> {
    pub(super) fn new(file: BorrowedFd<'a>) -> Pipe<'a> {
        let name = match file.as_raw_fd() {
            0 => "standard input".into(),
            1 => "standard output".into(),
            number => format!("/proc/self/fd/{number}").into(),
        };
        Pipe::named(file, name)
    }

    /// Like [`Pipe::new`], with a name for errors.
    pub(super) fn named(file: BorrowedFd<'a>, name: PathBuf) -> Pipe<'a> {
        let is_ordinary = fstat(file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Pipe { file, name, moved: 0, nowait: !is_ordinary }
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Reads until the buffer is full or the stream ends.
    pub(super) fn fill(
        &mut self,
        buffer: &mut [u8],
        progress: &mut Watcher,
    ) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            let mut bytes = 0;
            if self.is_ready(PollFlags::IN, Action::Read)? {
                bytes = match read(self.file, &mut buffer[filled..]) {
                    Ok(0) => break,
                    Ok(bytes) => bytes,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(errno) => return Err(self.failed(Action::Read, errno)),
                };
            }
            filled += bytes;
            self.moved += bytes as u64;
            progress.add(bytes as u64)?;
        }
        Ok(filled)
    }

    pub(super) fn pour(&mut self, bytes: &[u8], progress: &mut Watcher) -> Result<(), Error> {
        let mut left = bytes;
        while !left.is_empty() {
            let mut bytes = 0;
            if self.is_ready(PollFlags::OUT, Action::Write)? {
                bytes = match self.write(left) {
                    Ok(bytes) => bytes,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.nowait => {
                        self.nowait = false;
                        0
                    }
                    Err(errno) => return Err(self.failed(Action::Write, errno)),
                };
            }
            left = &left[bytes..];
            self.moved += bytes as u64;
            progress.add(bytes as u64)?;
        }
        Ok(())
    }

    /// Writes without blocking. A pipe with room for one page is ready, but would block a longer
    /// write.
    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.nowait {
            let all = [IoSlice::new(bytes)];
            return pwritev2(self.file, &all, WHERE_IT_STANDS, ReadWriteFlags::NOWAIT);
        }
        write(self.file, &bytes[..bytes.len().min(WAITING_WRITE_BYTES_MAX)])
    }

    /// Returns whether a read, write or error is possible at once. Ordinary files are always ready
    /// (`poll(2)`).
    fn is_ready(&self, wanted: PollFlags, action: Action) -> Result<bool, Error> {
        let mut files = [PollFd::new(&self.file, wanted)];
        match poll(&mut files, Some(&PATIENCE)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR | Errno::AGAIN) => Ok(false),
            Err(errno) => Err(self.failed(action, errno)),
        }
    }

    fn failed(&self, action: Action, errno: Errno) -> Error {
        Error::file(&self.name, action, Some(self.moved), &errno.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn an_ordinary_file_is_not_asked_to_write_without_waiting() {
        // On XFS and Btrfs it would return EAGAIN forever.
        let file = tempfile::tempfile().unwrap();
        assert!(!Pipe::new(file.as_fd()).nowait);
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(Pipe::new(writer.as_fd()).nowait);
    }
}
