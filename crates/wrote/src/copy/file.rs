//! Copies single files, with their metadata: through the engine, by sharing blocks, or by the file
//! system's server.

use super::ends::{Place, Source};
use super::pieces::{self, Checksum, Extents, PieceSizes, source_shrank};
use super::settings::{CopySettings, Filled, engine_for};
use super::streams::{Filler, Pipe};
use crate::metadata::MODE_PRIVATE;
use crate::progress::{Watch, Watcher};
use crate::staged::{StagedFile, complete};
use crate::{Action, Engine, Error, Fallback, FileId, FileOptions, Method, Written, device};
use rustix::fd::BorrowedFd;
use rustix::fs::{copy_file_range, ioctl_ficlone};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

pub(super) fn copy(
    from: &Path,
    to: &Path,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Written, Error> {
    let engine = &mut engine_for(from, settings)?;
    let began = Instant::now();
    let mut source = Source::open(engine, from, settings.bs_bytes)?;
    let place = Place::find(engine, Some(&source), to, settings.replace);
    let made = place.and_then(|place| {
        // Only the owner may read the copy until it is complete and has its final permissions.
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
    closed.map(|()| filled.written(engine, began, settings.durable))
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

    /// Copies the bytes. Does not set the metadata, flush or rename.
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
        // Moving a single piece is as fast as examining the file systems.
        let has_pieces = sizes.len > sizes.piece_bytes;
        if has_pieces && self.copy_on_server()? {
            return Ok(Method::CopyFileRange);
        }
        let (source, target) = (self.source.file, self.target);
        let progress = &mut self.progress;
        // A single piece is one write. It needs no prior allocation, because it detects a full disk
        // by itself.
        if has_pieces && !pieces::allocate(self.engine, source, target, sizes, progress)? {
            let because = format!("fallocate: {}", io::Error::from(Errno::OPNOTSUPP));
            self.fell_back("allocated space", "length alone", because);
            self.give_len()?;
        }
        let progress = &mut self.progress;
        pieces::copy_data(self.engine, source, Some(target), sizes, checksum, progress)?;
        Ok(Method::of(self.engine, target))
    }

    /// Shares the blocks if the options and the file system allow it, and returns whether it did.
    fn reflink(&mut self) -> Result<bool, Error> {
        if self.settings.reflink == Some(false) {
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
        if self.settings.reflink == Some(true) {
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

    /// Returns the file system types of source and destination; `?` if unknown.
    fn filesystems(&self) -> (String, String) {
        let filesystem = |path| device::examine(path).map_or("?".into(), |found| found.filesystem);
        (filesystem(self.source.named), filesystem(self.engine.path(self.target)))
    }

    /// Has the file system's server copy the data. Returns `false` if there is no server, or if it
    /// refuses before copying anything.
    fn copy_on_server(&mut self) -> Result<bool, Error> {
        let (source, target) = (self.source.file, self.target);
        let (on_source, on_target) = self.filesystems();
        if !copies_on_server(&on_source, &on_target) {
            return Ok(false);
        }
        let Some((from, to)) = descriptors(self.engine, source, target) else { return Ok(false) };
        let counted = |bytes| self.progress.add(unread(self.settings, bytes));
        let errno = match copy_ranges(from, to, self.source.len, counted) {
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

    /// Sets the copy's length to the source's. This truncates the padding of the last block, or
    /// adds a hole at the end.
    fn give_len(&mut self) -> Result<(), Error> {
        if self.engine.file_len(self.target)? == self.source.len {
            return Ok(());
        }
        self.engine.truncate(self.target, self.source.len)
    }

    /// Compares the bytes on disk with the source, and returns their checksum.
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
                pieces::checksum_of(self.engine, source, sizes, &mut self.progress)?
            }
        };
        pieces::read_back(self.engine, self.target, sizes, wanted, &mut self.progress)?;
        Ok(wanted)
    }

    fn fell_back(&mut self, wanted: &'static str, got: &'static str, because: String) {
        self.fallbacks.push(Fallback { wanted, got, because });
    }
}

/// Returns the two open files; `None` on a simulated disk.
fn descriptors(
    engine: &Engine,
    source: FileId,
    target: FileId,
) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
    Some((engine.descriptor(source)?, engine.descriptor(target)?))
}

/// Returns how many of the `bytes` that were moved without being read are reported as done. With
/// `verify`, that is 0, because they are reported later, when they are read.
fn unread(settings: &CopySettings, bytes: u64) -> u64 {
    if settings.verify { 0 } else { bytes }
}

/// The maximum number of bytes copied by one call, which can't be interrupted while the server
/// works.
const CALL_BYTES_MAX: u64 = 64 << 20;

/// Returns whether a server can copy between two files, judging by the types of their file systems.
/// A local file system would copy through the page cache, which is slower than the engine.
fn copies_on_server(source: &str, target: &str) -> bool {
    source == target && matches!(source, "nfs4" | "cifs" | "smb3" | "ceph")
}

/// The reason why a server did not copy everything.
#[derive(Debug)]
enum RangeError<E> {
    /// The server refused before copying anything.
    AtOnce(Errno),
    /// The copy failed at this offset.
    Midway(u64, Errno),
    /// The source ended before its expected length.
    Short,
    /// The progress callback requested a stop.
    Interrupted(E),
}

/// Copies the data of the first `len` bytes (`copy_file_range(2)`), and reports the length of each
/// part and hole to `done`.
fn copy_ranges<E>(
    source: BorrowedFd,
    target: BorrowedFd,
    len: u64,
    mut done: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), RangeError<E>> {
    let mut extents = Extents::new(len, rustix::param::page_size() as u64);
    let mut end = 0;
    let mut tried = false;
    while let Some(extent) = extents.next(Some(source)).map_err(|errno| stopped(tried, 0, errno))? {
        done(extent.start - end).map_err(RangeError::Interrupted)?;
        end = extent.end;
        let (mut from, mut to) = (extent.start, extent.start);
        while from < extent.end {
            let bytes = (extent.end - from).min(CALL_BYTES_MAX) as usize;
            match copy_file_range(source, Some(&mut from), target, Some(&mut to), bytes) {
                Ok(0) => return Err(RangeError::Short),
                Ok(moved) => done(moved as u64).map_err(RangeError::Interrupted)?,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(stopped(tried, from, errno)),
            }
            tried = true;
        }
    }
    done(len - end).map_err(RangeError::Interrupted)
}

fn stopped<E>(tried: bool, offset: u64, errno: Errno) -> RangeError<E> {
    if tried { RangeError::Midway(offset, errno) } else { RangeError::AtOnce(errno) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    /// Creates a file in the build folder, which is usually on a disk.
    fn file() -> File {
        let program = std::env::current_exe().unwrap();
        tempfile::tempfile_in(program.parent().unwrap()).unwrap()
    }

    fn contents(file: &File, len: usize) -> Vec<u8> {
        let mut bytes = vec![1; len];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn only_a_server_that_has_both_files_copies_by_itself() {
        for name in ["nfs4", "cifs", "smb3", "ceph"] {
            assert!(copies_on_server(name, name));
            assert!(!copies_on_server(name, "ext4") && !copies_on_server("ext4", name));
        }
        for name in ["ext4", "xfs", "btrfs", "tmpfs", "nfs", "fuse.sshfs"] {
            assert!(!copies_on_server(name, name));
        }
    }

    #[test]
    fn ranges_arrive_at_their_places_and_every_byte_is_told_of() {
        let (source, target) = (file(), file());
        let len = 5_000_001;
        source.set_len(len).unwrap();
        source.write_all_at(&[7; 9_000], 0).unwrap();
        source.write_all_at(b"in the middle", 3_000_000).unwrap();
        target.set_len(len).unwrap();
        let mut told = 0;
        copy_ranges(source.as_fd(), target.as_fd(), len, |bytes| {
            told += bytes;
            Ok::<(), Infallible>(())
        })
        .unwrap();
        assert_eq!(told, len);
        assert!(contents(&target, len as usize) == contents(&source, len as usize));
    }

    #[test]
    fn a_source_that_ends_early_is_noticed() {
        let (source, target) = (file(), file());
        source.write_all_at(&[7; 10_000], 0).unwrap();
        let copied =
            copy_ranges(source.as_fd(), target.as_fd(), 20_000, |_| Ok::<(), Infallible>(()));
        assert!(matches!(copied, Err(RangeError::Short)), "{copied:?}");
    }

    #[test]
    fn a_receiver_of_progress_can_stop_the_copy() {
        let (source, target) = (file(), file());
        source.write_all_at(&[7; 10_000], 0).unwrap();
        let copied = copy_ranges(source.as_fd(), target.as_fd(), 10_000, |_| Err("stop"));
        assert!(matches!(copied, Err(RangeError::Interrupted("stop"))));
    }
}
