//! A stream to a file, and a file to a stream, in constant memory: what stands behind `-`.

mod read_ahead;
mod stream;

use super::{CopyOptions, CopyProgress, Method, Watch};
use crate::cached::cached_bytes;
use crate::metadata::{Metadata, Parts};
use crate::staged::Staged;
use crate::{
    Action, Completion, Copied, Engine, Error, FileId, FileOptions, Found, Ioengine, Op, Options,
};
use read_ahead::ReadAhead;
use rustix::fs::fstat;
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;
use stream::Stream;
use xxhash_rust::xxh3::Xxh3;

/// Permissions of a file while nobody but its owner may see it.
const MODE_PRIVATE: u32 = 0o600;

/// Copies everything that comes from the open file `from` (a pipe, a socket, a terminal, a file from
/// where it stands) to `to`, where it appears when `from` has ended.
///
/// A new file has the permissions 0o666 less the umask; one that is replaced keeps its own. With
/// [`CopyOptions::verify`] the file is read back past the page cache, and its checksum compared with
/// that of what came. [`CopyOptions::reflink`] means nothing here. `watch` is asked at least ten times
/// a second, also while nothing comes.
///
/// # Errors
///
/// With the kernel's words; [`Error::Refused`] where something is at `to` that is not to be replaced;
/// [`Error::Interrupted`] when `watch` says so. What was at `to` is then as it was.
pub fn copy_in(
    from: BorrowedFd,
    to: &Path,
    options: &CopyOptions,
    watch: Watch,
) -> Result<Copied, Error> {
    copy_in_through(&mut engine(options)?, from, to, options, watch)
}

/// As [`copy_in`], through an engine of the caller's.
///
/// # Errors
///
/// Those of [`copy_in`].
pub fn copy_in_through(
    engine: &mut Engine,
    from: BorrowedFd,
    to: &Path,
    options: &CopyOptions,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let place = engine.locate(to)?;
    refuse(to, place.found, options.replace)?;
    let replaced = match place.found {
        Found::File => metadata_of(engine, &place.path)?,
        _ => None,
    };
    let mode = replaced.is_some().then_some(MODE_PRIVATE);
    let file_options = FileOptions { direct: true, mode, ..FileOptions::default() };
    let staged = Staged::new(engine, &place.path, options.replace, &file_options)
        .map_err(|error| error.about(to))?;
    let mut filling = Filling {
        engine: &mut *engine,
        file: staged.file,
        to,
        len_bytes: 0,
        hash: options.verify.then(|| Box::new(Xxh3::new())),
        completions: Vec::new(),
    };
    let filled = filling.all(Stream::new(from), watch).and_then(|()| {
        filling.end(replaced.as_ref(), options)?;
        filling.verify(staged.temporary(), watch)
    });
    let bytes = filling.len_bytes;
    let checksum = match filled {
        Ok(checksum) => checksum,
        Err(error) => {
            // What else fails of this file is not what is to be told.
            let _ = engine.drain();
            staged.abandon(engine);
            return Err(error);
        }
    };
    staged.put(engine, options.durable).map_err(|error| error.about(to))?;
    Ok(Copied {
        bytes,
        method: Method::Transfers,
        elapsed: began.elapsed(),
        checksum,
        effective: engine.effective().clone(),
    })
}

/// Copies the ordinary file `from` to the open file `to`, which is a stream: what it takes is not
/// synced, and where it ends is where it stands.
///
/// As many reads as [`CopyOptions::iodepth`] are under way ahead of what is written. What the page
/// cache holds for the greater part is read through it, everything else directly. Of the options
/// only the sizes mean something here. `watch` is asked at least ten times a second, also while
/// nothing is taken, as far as the kernel can write without waiting.
///
/// # Errors
///
/// With the kernel's words, of which `EPIPE` at [`Action::Write`] means that the reader has gone;
/// [`Error::Refused`] where `from` is no ordinary file, or is what `to` leads to, or
/// [`CopyOptions::verify`] is asked for, since a stream is not read back; [`Error::Differs`] when
/// `from` becomes shorter meanwhile; [`Error::Interrupted`] when `watch` says so.
pub fn copy_out(
    from: &Path,
    to: BorrowedFd,
    options: &CopyOptions,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let mut stream = Stream::new(to);
    let refused = |path: &Path, because: &str| {
        Err(Error::Refused { path: path.to_owned(), because: because.into() })
    };
    if options.verify {
        return refused(stream.name(), "a stream can't be read back to verify it");
    }
    let mut engine = engine(options)?;
    match engine.locate(from)?.found {
        Found::Folder => return refused(from, "is a folder"),
        Found::Other => return refused(from, "is a device, a pipe or a socket, no ordinary file"),
        Found::File | Found::Nothing => {}
    }
    let file = open_to_read(&mut engine, from)?;
    if engine.descriptor(file).is_some_and(|file| is_same(file, to)) {
        return refused(from, "is the file that the output goes to");
    }
    let mut reads = ReadAhead::new(&engine, file)?;
    let total = reads.len_bytes();
    let mut bytes = 0;
    while let Some(piece) = reads.next(&mut engine, from)? {
        stream.pour(&piece, &mut |written| {
            watch(CopyProgress { bytes_done: bytes + written as u64, bytes_total: Some(total) })
        })?;
        bytes += piece.len() as u64;
    }
    Ok(Copied {
        bytes,
        method: Method::Transfers,
        elapsed: began.elapsed(),
        checksum: None,
        effective: engine.effective().clone(),
    })
}

fn engine(options: &CopyOptions) -> Result<Engine, Error> {
    Engine::open(&Options::new(Ioengine::IoUring, options.iodepth, options.bs_bytes))
}

/// W7: only an ordinary file is replaced, and only when that was said.
fn refuse(to: &Path, found: Found, replace: bool) -> Result<(), Error> {
    let because = match found {
        Found::Nothing => return Ok(()),
        Found::File if replace => return Ok(()),
        Found::File => "exists already",
        Found::Folder => "is a folder",
        Found::Other => "is a device, a pipe or a socket, no ordinary file",
    };
    Err(Error::Refused { path: to.to_owned(), because: because.into() })
}

/// What the file has besides its bytes; nothing is known of one on a simulated disk.
fn metadata_of(engine: &mut Engine, path: &Path) -> Result<Option<Metadata>, Error> {
    let file = engine.open_file(path, &FileOptions::default())?;
    let metadata = engine.descriptor(file).map(|descriptor| Metadata::of(descriptor, path));
    let metadata = metadata.transpose();
    engine.close_file(file)?;
    metadata
}

/// Through the page cache where that holds the greater part of the file, else past it.
fn open_to_read(engine: &mut Engine, path: &Path) -> Result<FileId, Error> {
    let cached = engine.open_file(path, &FileOptions::default())?;
    let len = engine.file_len(cached)?;
    let held = engine.descriptor(cached).and_then(|file| cached_bytes(file, len));
    if held.is_some_and(|held| held >= len / 2) {
        return Ok(cached);
    }
    engine.close_file(cached)?;
    engine.open_file(path, &FileOptions { direct: true, ..FileOptions::default() })
}

fn is_same(one: BorrowedFd, other: BorrowedFd) -> bool {
    let identity = |file: BorrowedFd| fstat(file.as_fd()).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// A file that a stream is written to.
struct Filling<'a> {
    engine: &'a mut Engine,
    file: FileId,
    /// What errors are told of.
    to: &'a Path,
    len_bytes: u64,
    /// Of everything that came.
    hash: Option<Box<Xxh3>>,
    completions: Vec<Completion>,
}

impl Filling<'_> {
    /// Writes what comes until there is no more; the file may be longer then, by what is missing to
    /// a whole block.
    fn all(&mut self, mut from: Stream, watch: Watch) -> Result<(), Error> {
        loop {
            let mut buffer = self.engine.lease()?;
            let usable = self.whole_blocks(buffer.capacity())?;
            let before = self.len_bytes;
            let filled = from.fill(&mut buffer[..usable], &mut |filled| {
                let bytes_done = before + filled as u64;
                watch(CopyProgress { bytes_done, bytes_total: None })
            })?;
            if let Some(hash) = &mut self.hash {
                hash.update(&buffer[..filled]);
            }
            if filled > 0 {
                let padded = filled.next_multiple_of(self.engine.align_bytes(self.file) as usize);
                buffer[filled..padded].fill(0);
                buffer.set_len(padded);
                let (file, offset) = (self.file, self.len_bytes);
                self.engine.queue(0, Op::Write { file, offset, buffer, durable: false });
                self.len_bytes += filled as u64;
                self.reap(0)?;
            }
            if filled < usable {
                return self.reap(usize::MAX);
            }
        }
    }

    /// How much of a buffer can be written directly in one piece.
    fn whole_blocks(&self, buffer_bytes: usize) -> Result<usize, Error> {
        let align_bytes = self.engine.align_bytes(self.file);
        match buffer_bytes - buffer_bytes % align_bytes as usize {
            0 => {
                let (path, action) = (self.to.to_owned(), Action::Write);
                Err(Error::Alignment { path, action, offset: 0, align_bytes })
            }
            usable => Ok(usable),
        }
    }

    fn reap(&mut self, min: usize) -> Result<(), Error> {
        self.engine.reap(min, &mut self.completions)?;
        let results = self.completions.drain(..).map(|completion| completion.result);
        let all = results.fold(Ok(()), |all, result| all.and(result.map(drop)));
        all.map_err(|error| error.about(self.to))
    }

    /// The true length and what else the file has, and then the flush that covers all of it.
    fn end(&mut self, replaced: Option<&Metadata>, options: &CopyOptions) -> Result<(), Error> {
        let about = |error: Error| error.about(self.to);
        self.engine.truncate(self.file, self.len_bytes).map_err(about)?;
        if let (Some(metadata), Some(file)) = (replaced, self.engine.descriptor(self.file)) {
            metadata.give(file, self.to, Parts { owner: true, times: false })?;
        }
        // What is not on the device yet can't be read back from it.
        if options.durable || options.verify {
            self.engine.queue(0, Op::Fsync { file: self.file });
            self.engine.drain().map_err(about)?;
        }
        Ok(())
    }

    /// Reads the file back, directly where it can be, and compares it with what came.
    fn verify(&mut self, temporary: &Path, watch: Watch) -> Result<Option<u128>, Error> {
        let Some(came) = self.hash.take().map(|hash| hash.digest128()) else {
            return Ok(None);
        };
        let about = |error: Error| error.about(self.to);
        let direct = FileOptions { direct: true, ..FileOptions::default() };
        let file = self.engine.open_file(temporary, &direct).map_err(about)?;
        let read = self.read_back(file, watch).map_err(about);
        self.engine.close_file(file).map_err(about)?;
        let (there, bytes) = read?;
        if (there, bytes) == (came, self.len_bytes) {
            return Ok(Some(came));
        }
        let because = format!(
            "what was written is not what is there: XXH3 {came:032x} of {} bytes, {there:032x} of \
             {bytes}",
            self.len_bytes
        );
        Err(Error::Differs { path: self.to.to_owned(), because })
    }

    /// The checksum of what is in the file, and how many bytes that are.
    fn read_back(&mut self, file: FileId, watch: Watch) -> Result<(u128, u64), Error> {
        let mut reads = ReadAhead::new(self.engine, file)?;
        let (mut hash, mut bytes) = (Xxh3::new(), 0);
        while let Some(piece) = reads.next(self.engine, self.to)? {
            hash.update(&piece);
            bytes += piece.len() as u64;
            let bytes_done = self.len_bytes + bytes;
            let progress = CopyProgress { bytes_done, bytes_total: Some(2 * self.len_bytes) };
            if watch(progress) == ControlFlow::Break(()) {
                return Err(Error::Interrupted);
            }
        }
        Ok((hash.digest128(), bytes))
    }
}

fn failed(name: &Path, action: Action, offset: u64, errno: Errno) -> Error {
    Error::file(name, action, Some(offset), &errno.into())
}
