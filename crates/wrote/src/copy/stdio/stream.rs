//! An open file that is read or written from its start to its end, without waiting for ever.

use super::failed;
use crate::{Action, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, read, write};
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// How long nothing may come or go before the caller is asked whether to go on.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The most that is written at once where the kernel can't write without waiting: what a pipe holds
/// when it is empty (`pipe(7)`).
const WAITING_WRITE_BYTES_MAX: usize = 64 << 10;

/// The offset that means "where the file stands" (`pwritev2(2)`).
const WHERE_IT_STANDS: u64 = u64::MAX;

/// Asked how many bytes are done; may end it.
type Tick<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

/// A pipe, a socket, a terminal, or a file.
pub(super) struct Stream<'a> {
    file: BorrowedFd<'a>,
    name: PathBuf,
    /// Bytes that came or went.
    moved: u64,
    /// Writes may say that they would have to wait (`RWF_NOWAIT`): files through the page cache and
    /// terminals have no such thing, pipes since Linux 6.4.
    nowait: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(file: BorrowedFd<'a>) -> Stream<'a> {
        let name = match file.as_raw_fd() {
            0 => "standard input".into(),
            1 => "standard output".into(),
            number => format!("/proc/self/fd/{number}").into(),
        };
        Stream { file, name, moved: 0, nowait: true }
    }

    /// What errors are told of.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Reads until the buffer is full or there is no more, which is then the end.
    pub(super) fn fill(&mut self, buffer: &mut [u8], tick: Tick) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.is_ready(PollFlags::IN, Action::Read)? {
                match read(self.file, &mut buffer[filled..]) {
                    Ok(0) => break,
                    Ok(bytes) => filled += self.count(bytes),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(errno) => return Err(self.failed(Action::Read, errno)),
                }
            }
            stop_if(tick(filled))?;
        }
        Ok(filled)
    }

    /// Writes all of the bytes.
    pub(super) fn pour(&mut self, bytes: &[u8], tick: Tick) -> Result<(), Error> {
        let mut poured = 0;
        while poured < bytes.len() {
            if self.is_ready(PollFlags::OUT, Action::Write)? {
                match self.write(&bytes[poured..]) {
                    Ok(bytes) => poured += self.count(bytes),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.nowait => self.nowait = false,
                    Err(errno) => return Err(self.failed(Action::Write, errno)),
                }
            }
            stop_if(tick(poured))?;
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

    fn count(&mut self, bytes: usize) -> usize {
        self.moved += bytes as u64;
        bytes
    }

    fn failed(&self, action: Action, errno: Errno) -> Error {
        failed(&self.name, action, self.moved, errno)
    }
}

fn stop_if(asked: ControlFlow<()>) -> Result<(), Error> {
    match asked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}
