//! A copy in the making: everything that is done under its temporary name, until it takes its place.

use super::allocate::allocate;
use super::checksum::Checksum;
use super::progress::Progress;
use super::server::Stopped;
use super::source::Source;
use super::stream::{Cut, End};
use super::{CopyOptions, Method, Reflink, Watch, place, server, stream, transferred, verify};
use crate::metadata::Parts;
use crate::staged::{MODE_PRIVATE, Staged};
use crate::{Action, Engine, Error, Fallback, FileOptions, Op, device};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// What came of it.
pub(super) struct Made {
    pub method: Method,
    pub checksum: Option<u128>,
    pub fallbacks: Vec<Fallback>,
}

/// Makes the copy and gives it its place.
pub(super) fn make(
    engine: &mut Engine,
    source: &Source,
    to: &Path,
    options: &CopyOptions,
    watch: Watch,
) -> Result<Made, Error> {
    let place = place::find(engine, source, to, options.replace)?;
    // Until it is whole, and has the permissions of the source, it is nobody else's to read.
    let direct = !source.small;
    let private = FileOptions { direct, mode: Some(MODE_PRIVATE), ..FileOptions::default() };
    let staged =
        Staged::new(engine, &place, options.replace, &private).map_err(|error| error.about(to))?;
    let passes = if options.verify { 2 } else { 1 };
    let mut making = Making {
        engine,
        source,
        target: End { file: staged.file, named: to },
        temporary: staged.temporary(),
        options,
        progress: Progress::new(watch, Some(source.len.saturating_mul(passes))),
        fallbacks: Vec::new(),
    };
    let filled = making.fill();
    let fallbacks = std::mem::take(&mut making.fallbacks);
    match filled {
        Ok((method, checksum)) => {
            staged.put(engine, options.durable)?;
            Ok(Made { method, checksum, fallbacks })
        }
        Err(error) => {
            staged.abandon(engine);
            Err(error)
        }
    }
}

struct Making<'a, 'w> {
    engine: &'a mut Engine,
    source: &'a Source<'a>,
    target: End<'a>,
    temporary: &'a Path,
    options: &'a CopyOptions,
    progress: Progress<'w>,
    fallbacks: Vec<Fallback>,
}

impl Making<'_, '_> {
    /// Everything but the place.
    fn fill(&mut self) -> Result<(Method, Option<u128>), Error> {
        let ends = [self.source.file, self.target.file];
        let cut = Cut::new(self.engine, &ends, self.source.len, self.options.bs_bytes)?;
        let mut checksum = self.options.verify.then(Checksum::default);
        let method = self.move_bytes(cut, checksum.as_mut())?;
        self.source.check_len(self.engine)?;
        self.give_len()?;
        let verified = match checksum {
            Some(checksum) => Some(self.verify(cut, method, &checksum)?),
            None => None,
        };
        self.give_metadata()?;
        if self.options.durable {
            self.engine.queue(0, Op::Fsync { file: self.target.file });
            self.engine.drain().map_err(|error| error.about(self.target.named))?;
        }
        Ok((method, verified))
    }

    fn move_bytes(&mut self, cut: Cut, checksum: Option<&mut Checksum>) -> Result<Method, Error> {
        if self.reflink()? {
            return Ok(Method::Reflink);
        }
        // What fits into one piece is as soon moved as the file systems are looked up.
        if cut.len > cut.piece_bytes && self.has_server() && self.copy_on_server()? {
            return Ok(Method::CopyFileRange);
        }
        self.transfer(cut, checksum)?;
        Ok(transferred(self.engine, self.target.file))
    }

    /// Shares the blocks, where that was asked and the file system can.
    fn reflink(&mut self) -> Result<bool, Error> {
        if self.options.reflink == Reflink::Never {
            return Ok(false);
        }
        let because = match self.descriptors().map(|(from, to)| server::reflink(from, to)) {
            Some(Ok(())) => {
                if self.engine.file_len(self.target.file)? < self.source.len {
                    return Err(self.source.end().shorter());
                }
                return self.passed(self.source.len).and(Ok(true));
            }
            Some(Err(errno)) => format!("FICLONE: {}", io::Error::from(errno)),
            None => "a simulated disk shares no blocks".to_owned(),
        };
        if self.options.reflink == Reflink::Always {
            return Err(self.no_reflink(&because));
        }
        self.fallbacks.push(Fallback { wanted: "reflink", got: "copy", because });
        Ok(false)
    }

    fn no_reflink(&self, because: &str) -> Error {
        let filesystem = |path| device::examine(path).map_or("?".into(), |found| found.filesystem);
        let (from, to) = (filesystem(self.source.named), filesystem(self.temporary));
        let place = if from == to { format!("{to} does") } else { format!("{from} and {to} do") };
        let because = format!("{place} not share blocks between these files: {because}");
        Error::Refused { path: self.target.named.to_owned(), because }
    }

    /// Whether both files are on a file system with a server that copies.
    fn has_server(&self) -> bool {
        let filesystem = |path| device::examine(path).map(|found| found.filesystem);
        let names = (filesystem(self.source.named), filesystem(self.temporary));
        matches!(names, (Ok(source), Ok(target)) if server::copies_on_server(&source, &target))
    }

    /// `false` where the server does not after all.
    fn copy_on_server(&mut self) -> Result<bool, Error> {
        let (source, target) = (self.source.file, self.target.file);
        let (Some(from), Some(to)) =
            (self.engine.descriptor(source), self.engine.descriptor(target))
        else {
            return Ok(false);
        };
        let (verify, progress) = (self.options.verify, &mut self.progress);
        let told = |bytes| progress.add(if verify { 0 } else { bytes });
        let errno = match server::copy_ranges(from, to, self.source.len, told) {
            Ok(()) => return Ok(true),
            Err(Stopped::Told(error)) => return Err(error),
            Err(Stopped::Short) => return Err(self.source.end().shorter()),
            Err(Stopped::Midway(offset, errno)) => {
                let (path, error) = (self.target.named, errno.into());
                return Err(Error::file(path, Action::Write, Some(offset), &error));
            }
            Err(Stopped::AtOnce(errno)) => errno,
        };
        let because = format!("copy_file_range: {}", io::Error::from(errno));
        self.fallbacks.push(Fallback { wanted: "copy_file_range", got: "transfers", because });
        Ok(false)
    }

    fn transfer(&mut self, cut: Cut, checksum: Option<&mut Checksum>) -> Result<(), Error> {
        let (source, target) = (self.source.end(), self.target);
        // One piece is one write: nothing is side by side, and it tells of a full disk itself.
        if cut.len > cut.piece_bytes && !allocate(self.engine, source, target, cut)? {
            let because = format!("fallocate: {}", io::Error::from(Errno::OPNOTSUPP));
            self.fallbacks.push(Fallback {
                wanted: "allocated space",
                got: "length alone",
                because,
            });
            self.give_len()?;
        }
        stream::copy_data(self.engine, source, target, cut, checksum, &mut self.progress)
    }

    /// Makes the copy as long as the source: what was written to fill a block goes, and a hole at the
    /// end comes.
    fn give_len(&mut self) -> Result<(), Error> {
        let about = |error: Error| error.about(self.target.named);
        if self.engine.file_len(self.target.file).map_err(about)? == self.source.len {
            return Ok(());
        }
        self.engine.truncate(self.target.file, self.source.len).map_err(about)
    }

    /// Compares what is on the disk with the source, and gives the checksum of both.
    fn verify(&mut self, cut: Cut, method: Method, moved: &Checksum) -> Result<u128, Error> {
        let wanted = match method {
            Method::Direct | Method::Cached => moved.value(),
            Method::Reflink | Method::CopyFileRange => {
                let source = self.source.end();
                stream::checksum_of(self.engine, source, cut, &mut self.progress)?
            }
        };
        verify::read_back(self.engine, self.target, cut, wanted, &mut self.progress)?;
        Ok(wanted)
    }

    fn give_metadata(&self) -> Result<(), Error> {
        let file = self.engine.descriptor(self.target.file);
        match (&self.source.metadata, file) {
            (Some(metadata), Some(file)) => {
                metadata.give(file, self.target.named, Parts { owner: false, times: true })
            }
            _ => Ok(()),
        }
    }

    /// Bytes that were moved without being read: those are counted when they are, to be verified.
    fn passed(&mut self, bytes: u64) -> Result<(), Error> {
        self.progress.add(if self.options.verify { 0 } else { bytes })
    }

    /// Both files, where they are real.
    fn descriptors(&self) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
        let source = self.engine.descriptor(self.source.file)?;
        Some((source, self.engine.descriptor(self.target.file)?))
    }
}
