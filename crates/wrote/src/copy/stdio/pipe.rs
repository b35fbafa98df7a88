//! An open file that is read or written from its start to its end, without waiting for ever.

use crate::copy::progress::Watcher;
use crate::{Action, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, read, write};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// How long nothing may come or go before the caller is asked whether to go on.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The most that is written at once where the kernel can't write without waiting: what a pipe holds
/// when it is empty (`pipe(7)`).
const WAITING_WRITE_BYTES_MAX: usize = 64 << 10;

/// The offset that means "where the file stands" (`pwritev2(2)`).
const WHERE_IT_STANDS: u64 = u64::MAX;

/// A pipe, a socket, a terminal, or a file.
pub(super) struct Pipe<'a> {
    file: BorrowedFd<'a>,
    name: PathBuf,
    /// Bytes that came or went.
    moved: u64,
    /// Writes may say that they would have to wait (`RWF_NOWAIT`): terminals have no such thing, pipes
    /// since Linux 6.4. Never asked of an ordinary file, which is always ready (`poll(2)`): where the
    /// file system knows it for the page cache (XFS, Btrfs), it may refuse as long as it is asked, for
    /// an allocation or the file's times that nobody else is going to do.
    nowait: bool,
}

impl<'a> Pipe<'a> {
    pub(super) fn new(file: BorrowedFd<'a>) -> Pipe<'a> {
        let name = match file.as_raw_fd() {
            0 => "standard input".into(),
            1 => "standard output".into(),
            number => format!("/proc/self/fd/{number}").into(),
        };
        let is_ordinary = fstat(file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Pipe { file, name, moved: 0, nowait: !is_ordinary }
    }

    /// What errors are told of.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Reads until the buffer is full or there is no more, which is then the end.
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

    /// Writes all of the bytes.
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

    /// A pipe that has room for one page is ready, and would then make a write of more wait.
    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.nowait {
            let all = [IoSlice::new(bytes)];
            return pwritev2(self.file, &all, WHERE_IT_STANDS, ReadWriteFlags::NOWAIT);
        }
        write(self.file, &bytes[..bytes.len().min(WAITING_WRITE_BYTES_MAX)])
    }

    /// Whether there is something to read or room to write, or an error to be had. Ordinary files
    /// always are (`poll(2)`).
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
        // On XFS and Btrfs it would answer EAGAIN for ever.
        let file = tempfile::tempfile().unwrap();
        assert!(!Pipe::new(file.as_fd()).nowait);
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(Pipe::new(writer.as_fd()).nowait);
    }
}
