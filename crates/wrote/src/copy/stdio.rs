//! A stream to a file, and a file to a stream, in constant memory: what stands behind `-`.

mod pipe;
mod read_ahead;

use super::checksum::Checksum;
use super::progress::Progress;
use super::source::Source;
use super::stream::{Cut, End};
use super::{CopyOptions, Method, Watch, engine_options, len_hint, transferred, verify};
use crate::metadata::{Metadata, Parts};
use crate::staged::{MODE_PRIVATE, Staged};
use crate::{Action, Completion, Copied, Engine, Error, FileOptions, Found, Op};
use pipe::Pipe;
use read_ahead::ReadAhead;
use rustix::fs::fstat;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

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
/// With the kernel's words; `EEXIST` where there is a file and `replace` was not asked;
/// [`Error::Refused`] where `to` is a folder or a device; [`Error::Interrupted`] when `watch` says so.
/// What was at `to` is then as it was, unless only the flush of its folder failed, the last step.
pub fn copy_in(
    from: BorrowedFd,
    to: &Path,
    options: &CopyOptions,
    watch: Watch,
) -> Result<Copied, Error> {
    // Nobody knows how long it will be: as if it were longer than all buffers.
    copy_in_through(
        &mut Engine::open(&engine_options(u64::MAX, options))?,
        from,
        to,
        options,
        watch,
    )
}

/// As [`copy_in`], through an engine of the caller's, of which nothing is outstanding.
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
    check_place(to, place.found, options.replace)?;
    let replaced = match place.found {
        Found::File => metadata_of(engine, &place.path).map_err(|error| error.about(to))?,
        _ => None,
    };
    let mode = replaced.is_some().then_some(MODE_PRIVATE);
    let file_options = FileOptions { direct: true, mode, ..FileOptions::default() };
    let staged = Staged::new(engine, &place.path, options.replace, &file_options)
        .map_err(|error| error.about(to))?;
    let mut filling = Filling {
        engine: &mut *engine,
        end: End { file: staged.file, named: to },
        bytes: 0,
        checksum: options.verify.then(Checksum::default),
        completions: Vec::new(),
    };
    let filled = filling.all(Pipe::new(from), options, replaced.as_ref(), watch);
    let bytes = filling.bytes;
    let checksum = match filled {
        Ok(checksum) => checksum,
        Err(error) => {
            // What else fails of this file is not what is to be told.
            let _ = engine.drain();
            staged.abandon(engine);
            return Err(error);
        }
    };
    let method = transferred(engine, staged.file);
    staged.put(engine, options.durable).map_err(|error| error.about(to))?;
    let effective = engine.effective().clone();
    Ok(Copied { bytes, method, elapsed: began.elapsed(), checksum, effective })
}

/// Copies the ordinary file `from` to the open file `to`, a stream: what it takes is not synced.
///
/// As many reads as [`CopyOptions::iodepth`] are under way ahead of what is written; of the options
/// only the sizes mean something here. `watch` is asked at least ten times a second, also while
/// nothing is taken, where the kernel can write without waiting (pipes since Linux 6.4, sockets).
///
/// # Errors
///
/// With the kernel's words, of which `EPIPE` means that the reader has gone; [`Error::Refused`] where
/// `from` is no ordinary file, or is what `to` leads to, or [`CopyOptions::verify`] is asked for,
/// since a stream is not read back; [`Error::Differs`] when `from` becomes shorter meanwhile;
/// [`Error::Interrupted`] when `watch` says so.
pub fn copy_out(
    from: &Path,
    to: BorrowedFd,
    options: &CopyOptions,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let mut pipe = Pipe::new(to);
    if options.verify {
        return Err(refused(pipe.name(), "a stream can't be read back to verify it"));
    }
    let mut engine = Engine::open(&engine_options(len_hint(from), options))?;
    let source = Source::open(&mut engine, from, options.bs_bytes)?;
    if engine.descriptor(source.file).is_some_and(|file| is_same(file, to)) {
        return Err(refused(from, "is the file that the output goes to"));
    }
    let cut = Cut::new(&engine, &[source.file], source.len, options.bs_bytes)?;
    let mut progress = Progress::new(watch, Some(source.len));
    let mut reads = ReadAhead::new(source.end(), cut);
    while let Some(piece) = reads.next(&mut engine)? {
        pipe.pour(&piece, &mut progress)?;
    }
    // What takes them is no file, or one that is open as its opener wanted it.
    let (bytes, method, effective) = (source.len, Method::Cached, engine.effective().clone());
    Ok(Copied { bytes, method, elapsed: began.elapsed(), checksum: None, effective })
}

/// W7: only an ordinary file is replaced, and only when that was said.
fn check_place(to: &Path, found: Found, replace: bool) -> Result<(), Error> {
    match found {
        Found::Nothing if to.as_os_str().as_bytes().ends_with(b"/") => {
            Err(refused(to, "names a folder, and there is none"))
        }
        Found::File if !replace => {
            let (path, errno) = (to.to_owned(), libc::EEXIST);
            Err(Error::File { path, action: Action::Open, offset: None, errno })
        }
        Found::Folder => Err(refused(to, "is a folder")),
        Found::Other => {
            Err(refused(to, "is a device, a pipe or a socket: copies are made as files only"))
        }
        Found::Nothing | Found::File => Ok(()),
    }
}

/// What the file has besides its bytes; nothing is known of one on a simulated disk.
fn metadata_of(engine: &mut Engine, path: &Path) -> Result<Option<Metadata>, Error> {
    let file = engine.open_file(path, &FileOptions::default())?;
    let metadata = engine.descriptor(file).map(|descriptor| Metadata::of(descriptor, path));
    let metadata = metadata.transpose();
    engine.close_file(file)?;
    metadata
}

fn is_same(one: BorrowedFd, other: BorrowedFd) -> bool {
    let identity = |file: BorrowedFd| fstat(file).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

fn refused(path: &Path, because: &str) -> Error {
    Error::Refused { path: path.to_owned(), because: because.into() }
}

/// A file that what comes is written to.
struct Filling<'a> {
    engine: &'a mut Engine,
    end: End<'a>,
    /// How many have come.
    bytes: u64,
    checksum: Option<Checksum>,
    completions: Vec<Completion>,
}

impl Filling<'_> {
    /// Everything but the place; gives the checksum, where one was compared.
    fn all(
        &mut self,
        mut from: Pipe,
        options: &CopyOptions,
        replaced: Option<&Metadata>,
        watch: Watch,
    ) -> Result<Option<u128>, Error> {
        self.fill(&mut from, options, &mut Progress::new(watch, None))?;
        self.about(|filling| filling.engine.truncate(filling.end.file, filling.bytes))?;
        let checksum = self.verify(options, watch)?;
        if let (Some(metadata), Some(file)) = (replaced, self.engine.descriptor(self.end.file)) {
            metadata.give(file, self.end.named, Parts { owner: true, times: false })?;
        }
        if options.durable {
            self.engine.queue(0, Op::Fsync { file: self.end.file });
            self.about(|filling| filling.engine.drain())?;
        }
        Ok(checksum)
    }

    /// Writes what comes until there is no more; the file may be longer then, by what is missing to
    /// a whole block.
    fn fill(
        &mut self,
        from: &mut Pipe,
        options: &CopyOptions,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        let End { file, .. } = self.end;
        let cut = Cut::new(self.engine, &[file], u64::MAX, options.bs_bytes)?;
        loop {
            let mut buffer = self.engine.lease()?;
            buffer.set_len(cut.piece_bytes as usize);
            let filled = from.fill(&mut buffer, progress)?;
            if let Some(checksum) = &mut self.checksum {
                checksum.add(&buffer[..filled]);
            }
            if filled > 0 {
                // Only the end is no whole block: it is cut to its length when all is written.
                buffer.set_len(filled.next_multiple_of(cut.block_bytes as usize));
                buffer[filled..].fill(0);
                self.engine
                    .queue(0, Op::Write { file, offset: self.bytes, buffer, durable: false });
                self.bytes += filled as u64;
                self.reap(0)?;
            }
            if (filled as u64) < cut.piece_bytes {
                return self.reap(usize::MAX);
            }
        }
    }

    fn reap(&mut self, min: usize) -> Result<(), Error> {
        self.engine.reap(min, &mut self.completions)?;
        let mut completions = self.completions.drain(..);
        let all = completions.try_for_each(|completion| completion.result.map(drop));
        all.map_err(|error| error.about(self.end.named))
    }

    /// Reads the file back, and gives the checksum of what came if it is that.
    fn verify(&mut self, options: &CopyOptions, watch: Watch) -> Result<Option<u128>, Error> {
        let Some(wanted) = self.checksum.take().map(|checksum| checksum.value()) else {
            return Ok(None);
        };
        let cut = Cut::new(self.engine, &[self.end.file], self.bytes, options.bs_bytes)?;
        let mut progress = Progress::new(watch, Some(self.bytes.saturating_mul(2)));
        progress.add(self.bytes)?;
        verify::read_back(self.engine, self.end, cut, wanted, &mut progress)?;
        Ok(Some(wanted))
    }

    /// An error is told of the file that the user named.
    fn about<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        act(self).map_err(|error| error.about(self.end.named))
    }
}
