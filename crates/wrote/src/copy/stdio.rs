//! Copies from a stream to a file and from a file to a stream: the `-` of `wrote copy`.

mod pipe;

use super::checksum::Checksum;
use super::options::{CopyOptions, CopySettings, Method, engine_for, len_hint};
use super::progress::{Watch, Watcher};
use super::source::{Source, find_place, identity};
use super::stream::{PieceSizes, read_back, source_shrank};
use crate::engine::{Found, Op};
use crate::metadata::{Metadata, MetadataParts};
use crate::read_ahead::ReadAhead;
use crate::staged::{MODE_PRIVATE, StagedFile};
use crate::{Copied, Engine, Error, FileId, FileOptions};
use pipe::Pipe;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

/// Copies the open file `from` (a pipe, a socket, a terminal, a file from its current offset) up to
/// its end to `to`, where it appears when it is whole.
///
/// A new file has the permissions 0o666 less the umask; a replaced file keeps its own. With
/// [`CopyOptions::verify`] the file is read back past the page cache and its checksum compared.
/// [`CopyOptions::reflink`] has no effect. The watcher of [`CopyOptions::watch`] is called at least
/// ten times a second, even while nothing comes. The copy, with its name, survives a power loss
/// when this returns.
///
/// # Errors
///
/// With the kernel's words; `EEXIST` for an existing file without [`CopyOptions::replace`];
/// [`Error::Refused`] where `to` is a folder or a device; [`Error::Interrupted`] when the watcher
/// asks to stop. A file at `to` is then unchanged, unless only the last step failed, the flush of
/// its folder.
pub fn copy_in(from: impl AsFd, to: impl AsRef<Path>) -> Result<Copied, Error> {
    CopyOptions::new().copy_in(from, to)
}

impl CopyOptions<'_> {
    /// Copies an open file or a stream to a file, as the function [`copy_in`] does.
    pub fn copy_in(self, from: impl AsFd, to: impl AsRef<Path>) -> Result<Copied, Error> {
        let (from, to) = (from.as_fd(), to.as_ref());
        self.run(|settings, watch| {
            // The length is unknown: the engine gets all buffers.
            copy_in_through(&mut engine_for(u64::MAX, settings)?, from, to, settings, watch)
        })
    }

    /// As [`CopyOptions::copy_in`], through an engine of the caller's with nothing outstanding.
    pub fn copy_in_through(
        self,
        engine: &mut Engine,
        from: impl AsFd,
        to: impl AsRef<Path>,
    ) -> Result<Copied, Error> {
        let (from, to) = (from.as_fd(), to.as_ref());
        self.run(|settings, watch| copy_in_through(engine, from, to, settings, watch))
    }

    /// Copies an ordinary file to a stream, as the function [`copy_out`] does.
    pub fn copy_out(self, from: impl AsRef<Path>, to: impl AsFd) -> Result<Copied, Error> {
        let (from, to) = (from.as_ref(), to.as_fd());
        self.run(|settings, watch| copy_out_watched(from, to, settings, watch))
    }
}

fn copy_in_through(
    engine: &mut Engine,
    from: BorrowedFd,
    to: &Path,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let located = find_place(engine, None, to, settings.replace)?;
    let replaced = match located.found {
        Found::File => metadata_of(engine, &located.path).map_err(|error| error.about(to))?,
        _ => None,
    };
    let mode = replaced.is_some().then_some(MODE_PRIVATE);
    let file_options = FileOptions::new().direct(true).mode(mode);
    let last_step = (settings.replace, settings.durable);
    let save = |engine: &mut Engine, file| {
        let checksum = settings.verify.then(Checksum::default);
        let filler = Filler { engine, file, bytes: 0, checksum };
        filler.fill(Pipe::new(from), settings, replaced.as_ref(), watch)
    };
    let (bytes, method, checksum) =
        StagedFile::save(engine, (&located.path, to), last_step, &file_options, save)?;
    let effective = engine.effective().clone();
    Ok(Copied { bytes, method, elapsed: began.elapsed(), checksum, effective })
}

/// Copies the ordinary file `from` to the open file `to`, a stream, which is not synced.
///
/// [`CopyOptions::iodepth`] reads are in flight ahead of the writes; of the other options only
/// [`CopyOptions::bs_bytes`] has an effect. The watcher is called at least ten times a second, even
/// while the stream takes nothing, where the kernel can write without waiting (pipes since Linux
/// 6.4, sockets).
///
/// # Errors
///
/// With the kernel's words; `EPIPE` means that the reader has gone. [`Error::Refused`] where `from`
/// is no ordinary file or is `to` itself, or with [`CopyOptions::verify`], since a stream can't be
/// read back. [`Error::Differs`] when `from` becomes shorter meanwhile; [`Error::Interrupted`] when
/// the watcher asks to stop.
pub fn copy_out(from: impl AsRef<Path>, to: impl AsFd) -> Result<Copied, Error> {
    CopyOptions::new().copy_out(from, to)
}

fn copy_out_watched(
    from: &Path,
    to: BorrowedFd,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let mut pipe = Pipe::new(to);
    if settings.verify {
        return Err(Error::refused(pipe.name(), "a stream can't be read back to verify it"));
    }
    let mut engine = engine_for(len_hint(from), settings)?;
    let source = Source::open(&mut engine, from, settings.bs_bytes)?;
    let own = engine.descriptor(source.file).and_then(identity);
    if own.is_some() && own == identity(to) {
        return Err(Error::refused(from, "is the file that the output goes to"));
    }
    let sizes = PieceSizes::new(&engine, &[source.file], source.len, settings.bs_bytes)?;
    let mut progress = Watcher::new(watch, Some(source.len));
    let mut pieces = ReadAhead::new(source.file, sizes.piece_bytes as usize);
    let mut left = source.len;
    while left > 0 {
        let piece = pieces.next(&mut engine, source.len)?;
        let len = left.min(sizes.piece_bytes);
        let bytes = piece.get(..len as usize);
        pipe.pour(bytes.ok_or_else(|| source_shrank(&engine, source.file))?, &mut progress)?;
        left -= len;
    }
    // The stream is no file, or was opened by its owner.
    let (bytes, method, effective) = (source.len, Method::Cached, engine.effective().clone());
    Ok(Copied { bytes, method, elapsed: began.elapsed(), checksum: None, effective })
}

/// Reads the file's metadata; `None` on a simulated disk.
fn metadata_of(engine: &mut Engine, path: &Path) -> Result<Option<Metadata>, Error> {
    let file = engine.open_file(path, &FileOptions::default())?;
    let metadata = engine.descriptor(file).map(|open| Metadata::of(open, path)).transpose();
    engine.close_file(file)?;
    metadata
}

struct Filler<'a> {
    engine: &'a mut Engine,
    file: FileId,
    bytes: u64,
    checksum: Option<Checksum>,
}

impl Filler<'_> {
    /// Does everything but the last step, the rename. Returns the length, the method and a checksum
    /// that was compared.
    fn fill(
        mut self,
        mut from: Pipe,
        settings: &CopySettings,
        replaced: Option<&Metadata>,
        watch: Watch,
    ) -> Result<(u64, Method, Option<u128>), Error> {
        self.write_all(&mut from, settings, &mut Watcher::new(watch, None))?;
        self.engine.truncate(self.file, self.bytes)?;
        let checksum = self.verify(settings, watch)?;
        if let (Some(metadata), Some(file)) = (replaced, self.engine.descriptor(self.file)) {
            let parts = MetadataParts { owner: true, times: false };
            metadata.give(file, self.engine.path(self.file), parts)?;
        }
        if settings.durable {
            self.engine.queue(0, Op::Fsync { file: self.file });
            self.engine.drain()?;
        }
        Ok((self.bytes, Method::of(self.engine, self.file), checksum))
    }

    /// Writes the stream to its end. The file may then be longer, by the padding of its last block.
    fn write_all(
        &mut self,
        from: &mut Pipe,
        settings: &CopySettings,
        progress: &mut Watcher,
    ) -> Result<(), Error> {
        let file = self.file;
        let sizes = PieceSizes::new(self.engine, &[file], u64::MAX, settings.bs_bytes)?;
        loop {
            let mut buffer = self.engine.lease()?;
            buffer.set_len(sizes.piece_bytes as usize);
            let filled = from.fill(&mut buffer, progress)?;
            if let Some(checksum) = &mut self.checksum {
                checksum.update(&buffer[..filled]);
            }
            if filled > 0 {
                // Pads the last block, which is cut when all is written.
                buffer.set_len(filled.next_multiple_of(sizes.block_bytes as usize));
                buffer[filled..].fill(0);
                self.engine
                    .queue(0, Op::Write { file, offset: self.bytes, buffer, durable: false });
                self.bytes += filled as u64;
                self.engine.reap_results(0)?;
            }
            if (filled as u64) < sizes.piece_bytes {
                return self.engine.drain();
            }
        }
    }

    /// Reads the file back, and returns the checksum if it is that of the stream.
    fn verify(&mut self, settings: &CopySettings, watch: Watch) -> Result<Option<u128>, Error> {
        let Some(checksum) = self.checksum.take() else { return Ok(None) };
        let wanted = checksum.digest128();
        let sizes = PieceSizes::new(self.engine, &[self.file], self.bytes, settings.bs_bytes)?;
        let mut progress = Watcher::new(watch, Some(self.bytes.saturating_mul(2)));
        progress.add(self.bytes)?;
        read_back(self.engine, self.file, sizes, wanted, &mut progress)?;
        Ok(Some(wanted))
    }
}
