//! Copies of single files: bytes, length, checksum and metadata.

use super::checksum::Checksum;
use super::copied::{Copied, Filled};
use super::filler::Filler;
use super::options::{CopyOptions, CopySettings, Method, Reflink, engine_for};
use super::pipe::Pipe;
use super::place::Place;
use super::server::RangeError;
use super::source::Source;
use super::stream::{PieceSizes, source_shrank};
use super::{server, stream};
use crate::metadata::MODE_PRIVATE;
use crate::progress::{Watch, Watcher};
use crate::staged::{StagedFile, complete};
use crate::{Action, Disk, Engine, Error, Fallback, FileId, FileOptions, device};
use rustix::fd::BorrowedFd;
use rustix::fs::ioctl_ficlone;
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

/// Copies the file `from` to `to`, where it appears when it is whole.
///
/// The copy, with its name, survives a power loss when this returns. A file that is at `to` already
/// is an error. Symbolic links are followed on both sides. The copy gets the permissions, times and
/// extended attributes of the source; holes stay holes. Bytes that are appended to the source
/// during the copy are not copied. Files that the kernel generates (`/proc`, `/sys`) are read to
/// their end. The source may be a block device.
///
/// [`CopyOptions`] has further settings: to replace a file, to read the copy back, to see the
/// progress. Memory is 16 MiB by default, for a file of any size (W8).
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (from, to) = (folder.path().join("from"), folder.path().join("to"));
/// # std::fs::write(&from, b"precious")?;
/// let copied = wrote::copy(&from, &to)?;
/// assert_eq!(copied.bytes, 8); // and the copy survives a power loss
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// A file at `to` is then unchanged, unless only the last step failed, the flush of its folder.
///
/// - [`Error::Refused`]: `from` is a folder, a pipe or a character device, `to` is a folder, a
///   device or the same file, or blocks can't be shared with [`Reflink::Always`];
/// - [`Error::File`] with the kernel's words: `ENOENT`, `ENOSPC`, `EEXIST` for an existing file
///   without [`CopyOptions::replace`];
/// - [`Error::Differs`]: the source became shorter, or the copy was read back otherwise;
/// - [`Error::Interrupted`]: the watcher of [`CopyOptions::watch`] asked to stop.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied, Error> {
    CopyOptions::new().copy(from, to)
}

impl CopyOptions<'_> {
    /// Copies an ordinary file, as the function [`copy`] does.
    pub fn copy(self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied, Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.run(|settings, watch| {
            copy_through(&mut engine_for(from, settings)?, from, to, settings, watch)
        })
    }
}

impl Disk {
    /// Copies as the function [`copy`] does, with this disk's engine and memory
    /// ([details](CopyOptions::on)).
    pub fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied, Error> {
        CopyOptions::new().on(self).copy(from, to)
    }
}

/// Copies a file through an engine with nothing outstanding.
pub(super) fn copy_through(
    engine: &mut Engine,
    from: &Path,
    to: &Path,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let mut source = Source::open(engine, from, settings.bs_bytes)?;
    let place = Place::find(engine, Some(&source), to, settings.replace);
    let made = place.and_then(|place| {
        // Only the owner may read the copy until it is whole and has its final permissions.
        let mode = Some(MODE_PRIVATE);
        let private = FileOptions::new().direct(!source.small).mode(mode);
        let last_step = (settings.replace, settings.durable);
        let path = place.path.clone();
        let metadata = source.metadata.take();
        let inherited = metadata.map(|source| place.into_inherited(source, settings.preserve));
        StagedFile::save(engine, (&path, to), last_step, &private, |engine, target| {
            let filled = match source.as_stream(engine)? {
                Some(stream) => {
                    let pipe = Pipe::named(stream.as_fd(), from.to_owned());
                    Filler::new(engine, target, settings).fill(pipe, watch)?
                }
                None => Copier::new(engine, &source, target, settings, watch).fill()?,
            };
            complete(engine, target, inherited.as_ref(), settings.durable).map(|()| filled)
        })
    });
    let closed = engine.close_file(source.file);
    let filled = made?;
    closed.map(|()| filled.copied(engine, began))
}

struct Copier<'a, 'w> {
    engine: &'a mut Engine,
    source: &'a Source<'a>,
    target: FileId,
    settings: &'a CopySettings,
    progress: Watcher<'w>,
    fallbacks: Vec<Fallback>,
}

impl<'a, 'w> Copier<'a, 'w> {
    fn new(
        engine: &'a mut Engine,
        source: &'a Source<'a>,
        target: FileId,
        settings: &'a CopySettings,
        watch: Watch<'w>,
    ) -> Copier<'a, 'w> {
        let passes = if settings.verify { 2 } else { 1 };
        let progress = Watcher::new(watch, Some(source.len.saturating_mul(passes)));
        Copier { engine, source, target, settings, progress, fallbacks: Vec::new() }
    }

    /// Does everything but the last steps, metadata, flush and rename.
    fn fill(mut self) -> Result<Filled, Error> {
        let files = [self.source.file, self.target];
        let sizes = PieceSizes::new(self.engine, &files, self.source.len, self.settings.bs_bytes)?;
        let mut checksum = self.settings.verify.then(Checksum::default);
        let method = self.move_bytes(sizes, checksum.as_mut())?;
        self.source.check_len(self.engine)?;
        self.give_len()?;
        let checksum = checksum.map(|moved| self.verify(sizes, method, &moved)).transpose()?;
        Ok(Filled { bytes: self.source.len, method, checksum, fallbacks: self.fallbacks })
    }

    fn move_bytes(
        &mut self,
        sizes: PieceSizes,
        checksum: Option<&mut Checksum>,
    ) -> Result<Method, Error> {
        if self.reflink()? {
            return Ok(Method::Reflink);
        }
        // One piece is moved as fast as the file systems are examined.
        let has_pieces = sizes.len > sizes.piece_bytes;
        if has_pieces && self.copy_on_server()? {
            return Ok(Method::CopyFileRange);
        }
        let (source, target) = (self.source.file, self.target);
        let progress = &mut self.progress;
        // One piece is one write, which needs no allocation and finds a full disk itself.
        if has_pieces && !stream::allocate(self.engine, source, target, sizes, progress)? {
            let because = format!("fallocate: {}", io::Error::from(Errno::OPNOTSUPP));
            self.fell_back("allocated space", "length alone", because);
            self.give_len()?;
        }
        let progress = &mut self.progress;
        stream::copy_data(self.engine, source, Some(target), sizes, checksum, progress)?;
        Ok(Method::of(self.engine, target))
    }

    /// Shares the blocks, where the options and the file system allow that.
    fn reflink(&mut self) -> Result<bool, Error> {
        if self.settings.reflink == Reflink::Never {
            return Ok(false);
        }
        let files = descriptors(self.engine, self.source.file, self.target);
        let because = match files.map(|(from, to)| ioctl_ficlone(to, from)) {
            Some(Ok(())) => {
                if self.engine.file_len(self.target)? < self.source.len {
                    return Err(source_shrank(self.engine, self.source.file));
                }
                return self.progress.add(unread(self.settings, self.source.len)).and(Ok(true));
            }
            Some(Err(errno)) => format!("FICLONE: {}", io::Error::from(errno)),
            None => "a simulated disk shares no blocks".to_owned(),
        };
        if self.settings.reflink == Reflink::Always {
            return Err(self.no_reflink(&because));
        }
        self.fell_back("reflink", "copy", because);
        Ok(false)
    }

    fn no_reflink(&self, because: &str) -> Error {
        let (from, to) = self.filesystems();
        let place = if from == to { format!("{to} does") } else { format!("{from} and {to} do") };
        let because = format!("{place} not share blocks between these files: {because}");
        Error::refused(self.engine.path(self.target), because)
    }

    /// Returns the types of the file systems of source and target; `?` where it is unknown.
    fn filesystems(&self) -> (String, String) {
        let filesystem = |path| device::examine(path).map_or("?".into(), |found| found.filesystem);
        (filesystem(self.source.named), filesystem(self.engine.path(self.target)))
    }

    /// Copies by the file system's server; returns `false` if there is none, or it refuses at once.
    fn copy_on_server(&mut self) -> Result<bool, Error> {
        let (source, target) = (self.source.file, self.target);
        let (on_source, on_target) = self.filesystems();
        if !server::copies_on_server(&on_source, &on_target) {
            return Ok(false);
        }
        let Some((from, to)) = descriptors(self.engine, source, target) else { return Ok(false) };
        let counted = |bytes| self.progress.add(unread(self.settings, bytes));
        let errno = match server::copy_ranges(from, to, self.source.len, counted) {
            Ok(()) => return Ok(true),
            Err(RangeError::Interrupted(error)) => return Err(error),
            Err(RangeError::Short) => return Err(source_shrank(self.engine, source)),
            Err(RangeError::Midway(offset, errno)) => {
                let (path, error) = (self.engine.path(target), errno.into());
                return Err(Error::file(path, Action::Write, Some(offset), &error));
            }
            Err(RangeError::AtOnce(errno)) => errno,
        };
        let because = format!("copy_file_range: {}", io::Error::from(errno));
        self.fell_back("copy_file_range", "transfers", because);
        Ok(false)
    }

    /// Makes the copy as long as the source: cuts the padding of the last block, adds a hole at the
    /// end.
    fn give_len(&mut self) -> Result<(), Error> {
        if self.engine.file_len(self.target)? == self.source.len {
            return Ok(());
        }
        self.engine.truncate(self.target, self.source.len)
    }

    /// Compares the bytes on the disk with the source, and returns the checksum of both.
    fn verify(
        &mut self,
        sizes: PieceSizes,
        method: Method,
        moved: &Checksum,
    ) -> Result<u128, Error> {
        let wanted = match method {
            Method::Direct | Method::Cached => moved.digest128(),
            Method::Reflink | Method::CopyFileRange => {
                let source = self.source.file;
                stream::checksum_of(self.engine, source, sizes, &mut self.progress)?
            }
        };
        stream::read_back(self.engine, self.target, sizes, wanted, &mut self.progress)?;
        Ok(wanted)
    }

    fn fell_back(&mut self, wanted: &'static str, got: &'static str, because: String) {
        self.fallbacks.push(Fallback { wanted, got, because });
    }
}

/// Returns both open files; `None` on a simulated disk.
fn descriptors(
    engine: &Engine,
    source: FileId,
    target: FileId,
) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
    Some((engine.descriptor(source)?, engine.descriptor(target)?))
}

/// Returns the progress of bytes that were moved without being read. With `verify` they count when
/// they are read.
fn unread(settings: &CopySettings, bytes: u64) -> u64 {
    if settings.verify { 0 } else { bytes }
}
