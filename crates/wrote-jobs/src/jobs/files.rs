//! Prepares a group's files before the clock starts: creates, writes, allocates and flushes them,
//! and drops their pages.

use super::layout::lay_out;
use super::made::Made;
use super::place::{Kind, file_key, folder_of, kind};
use super::{Permissions, mark};
use crate::spec::{Fallocate, JobSpec};
use crate::written::{first_unwritten, unwritten_bytes};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use std::fmt::Display;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use wrote::Ioengine;
use wrote_result::document::Fallback;
use wrote_result::{Error, Stop};

/// The fallback for a new file on a file system without `fallocate(2)`: the file grows as it is
/// written.
pub const NEW_BLOCKS: &str = "new blocks";

/// Returns whether the error means that the file system does not support `fallocate(2)`.
fn cannot_allocate(errno: i32) -> bool {
    use rustix::io::Errno;
    [Errno::OPNOTSUPP, Errno::NOSYS].iter().any(|known| known.raw_os_error() == errno)
}

/// The state in which a group finds a file.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub kind: Kind,
    /// Whether this run creates the file, now or in an earlier group.
    pub ours: bool,
    /// Whether an earlier group writes to the file, so that its holes are not known yet.
    pub will_change: bool,
}

impl Found {
    /// Returns the current state of the file, before the run creates any files.
    pub fn now(path: &Path) -> Result<Found, Error> {
        let kind = kind(path)?;
        Ok(Found { kind, ours: kind == Kind::Missing, will_change: false })
    }

    /// Returns the current state of the file. `made` shows whether this run has created it.
    pub(crate) fn among(made: &Made, path: &Path) -> Result<Found, Error> {
        let found = Found::now(path)?;
        let ours = found.ours || std::fs::metadata(path).is_ok_and(|there| made.has(&there));
        Ok(Found { ours, ..found })
    }
}

/// One use of one file by one job of the group.
pub struct Use<'a> {
    pub spec: &'a JobSpec,
    pub path: &'a Path,
    pub found: Found,
    pub region: Range<u64>,
    /// Whether the job reads beyond the file's end and the file may be extended.
    extends: bool,
}

/// The state of a job's files when the clock starts.
#[derive(Clone, Debug, Default)]
pub struct Ready {
    /// The range of bytes that the job uses in each file.
    pub regions: Vec<Range<u64>>,
    pub fallbacks: Vec<Fallback>,
    /// The number of bytes to be read that were never written; `None` if the kernel does not report
    /// it.
    pub unwritten_bytes: Option<u64>,
}

/// The files of a group, examined before the run creates any of them.
pub struct Files<'a> {
    uses: Vec<Vec<Use<'a>>>,
}

impl<'a> Files<'a> {
    /// Examines all files of the group's jobs, and refuses jobs that must not use them. `find`
    /// returns the state in which the group finds a file.
    pub fn examine(
        jobs: &[&'a JobSpec],
        find: impl Fn(&Path) -> Result<Found, Error>,
        permissions: Permissions,
    ) -> Result<Files<'a>, Error> {
        let uses = |spec: &'a JobSpec| -> Result<Vec<Use<'a>>, Error> {
            let use_of = |path| Ok(Use::new(spec, path, find(path)?, permissions.extend));
            spec.files.paths.iter().map(|path| use_of(path)).collect()
        };
        let uses = jobs.iter().map(|spec| uses(spec)).collect::<Result<Vec<_>, Error>>()?;
        let files = Files { uses };
        files.all().try_for_each(|using| using.check(permissions))?;
        Ok(files)
    }

    pub fn all(&self) -> impl Iterator<Item = &Use<'a>> {
        self.uses.iter().flatten()
    }

    /// Returns the range of bytes that each job uses in each of its files.
    pub fn regions(&self) -> impl Iterator<Item = Vec<Range<u64>>> {
        self.uses.iter().map(|uses| uses.iter().map(|using| using.region.clone()).collect())
    }

    /// Returns the number of bytes that the run writes before the clock starts.
    pub fn laid_out_bytes(&self) -> Result<u64, Error> {
        let missing = self.all().filter(|using| using.is_laid_out()).map(|using| {
            let bytes = using.region.end - using.region.start;
            match using.found.kind {
                Kind::File { .. } => {
                    let file = open(using.path)?;
                    unwritten_bytes(&file, using.region.clone()).map_err(using.failed("lseek"))
                }
                _ => Ok(bytes),
            }
        });
        missing.sum()
    }

    pub fn make_ready(&self, made: &mut Made, stop: &Stop) -> Result<Vec<Ready>, Error> {
        let mut ready = Vec::new();
        for uses in &self.uses {
            uses.iter().try_for_each(|using| using.make(made))?;
            ready.push(Ready {
                regions: uses.iter().map(|using| using.region.clone()).collect(),
                fallbacks: Vec::new(),
                unwritten_bytes: uses.iter().map(|using| using.never_written_bytes()).sum(),
            });
        }
        // Files that jobs read are written first. The files allocated after that are only written
        // by the jobs.
        for using in self.all().filter(|using| using.is_laid_out()) {
            lay_out(using.path, &open(using.path)?, using.region.clone(), stop)?;
        }
        for (uses, job) in self.uses.iter().zip(&mut ready) {
            for using in uses {
                using.allocate(&mut job.fallbacks, stop)?;
            }
        }
        for (uses, job) in self.uses.iter().zip(&mut ready) {
            for using in uses {
                using.drop_cache(&mut job.fallbacks)?;
            }
            job.fallbacks.sort();
            job.fallbacks.dedup();
        }
        Ok(ready)
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(Error::at(path, "open"))
}

impl<'a> Use<'a> {
    fn new(spec: &'a JobSpec, path: &'a Path, found: Found, extend: bool) -> Use<'a> {
        let there = match found.kind {
            Kind::Missing => 0,
            Kind::File { len_bytes } | Kind::Device { len_bytes } => len_bytes,
        };
        let start = spec.files.offset_bytes;
        let end = spec.files.end_bytes().unwrap_or(there).max(start);
        let is_short = matches!(found.kind, Kind::File { len_bytes } if len_bytes < end);
        let extends = extend && is_short && spec.order.rw.read && !spec.only_verifies();
        Use { spec, path, found, region: start..end, extends }
    }

    pub fn failed<E: Display>(&self, what: &str) -> impl Fn(E) -> Error {
        Error::at(self.path, what)
    }

    /// Returns whether the run writes the file before the clock starts. It does so if it created
    /// the file and the job reads it, or if the job is to overwrite written blocks.
    pub fn is_laid_out(&self) -> bool {
        let Found { kind, ours, .. } = self.found;
        let overwrites = self.spec.files.overwrite && self.spec.order.rw.write;
        // A file whose job only verifies is left as it is.
        self.extends
            || ours && self.spec.order.rw.read && !self.spec.only_verifies()
            || overwrites && !matches!(kind, Kind::Device { .. })
    }

    fn check(&self, permissions: Permissions) -> Result<(), Error> {
        let Found { kind, ours, will_change } = self.found;
        let overwrite = permissions.overwrite || ours;
        kind.check_write(self.path, self.spec, overwrite, permissions.devices)?;
        let refuse = |what: &str| {
            let shown = self.path.display();
            Err(Error::Usage(format!("{shown}: {what}")))
        };
        if self.spec.files.unlink && kind != Kind::Missing && !ours {
            return refuse("exists, and unlink removes only files that the run creates");
        }
        match kind {
            Kind::Missing
                if self.spec.files.makes_folders_in.is_none() && !folder_of(self.path).is_dir() =>
            {
                let folder = folder_of(self.path).display();
                Err(Error::Usage(format!("{folder}: no such folder")))
            }
            Kind::Missing if self.spec.files.file_bytes.is_none() => {
                refuse("does not exist, and creating it needs a size")
            }
            Kind::Missing if self.spec.only_verifies() => {
                refuse("does not exist, so there is nothing in it to verify")
            }
            Kind::Device { len_bytes } => self.check_length(len_bytes),
            Kind::File { len_bytes } if self.spec.order.rw.read && !ours => {
                if !self.extends {
                    self.check_length(len_bytes)?;
                }
                let is_allowed =
                    permissions.read_unwritten || will_change || self.spec.only_verifies();
                if is_allowed { Ok(()) } else { self.check_written() }
            }
            Kind::File { .. } | Kind::Missing => Ok(()),
        }
    }

    fn check_length(&self, len_bytes: u64) -> Result<(), Error> {
        if self.region.end <= len_bytes {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{}: has {len_bytes} bytes, fewer than the {} to read; give a smaller size",
            self.path.display(),
            self.region.end
        )))
    }

    /// Refuses blocks that were never written, because the kernel reads these without the device
    /// (M9).
    fn check_written(&self) -> Result<(), Error> {
        let file = open(self.path)?;
        file.sync_all().map_err(self.failed("fsync"))?;
        let unwritten = first_unwritten(&file, self.spec.touched(self.region.clone()));
        match unwritten.map_err(self.failed("lseek"))? {
            None => Ok(()),
            Some(unwritten) => Err(Error::Usage(format!(
                "{}: was never written from byte {} to {}, and reading that measures no device: \
                 write the file first, or allow it with --read-unwritten",
                self.path.display(),
                unwritten.start,
                unwritten.end
            ))),
        }
    }

    /// Returns the number of unwritten bytes that the job is to read; `None` if the kernel does not
    /// report it.
    fn never_written_bytes(&self) -> Option<u64> {
        match self.found.kind {
            _ if !self.spec.order.rw.read || self.is_laid_out() => Some(0),
            Kind::Device { .. } => None,
            Kind::Missing => Some(0),
            Kind::File { .. } => {
                let file = open(self.path).ok()?;
                file.sync_all().ok()?;
                unwritten_bytes(&file, self.spec.touched(self.region.clone())).ok()
            }
        }
    }

    /// Creates the file, unless it exists or another job of the group has created it.
    fn make(&self, made: &mut Made) -> Result<(), Error> {
        if self.spec.order.rw.write && !self.found.ours {
            // A file that a killed run left becomes the user's, so its mark is removed.
            mark::remove(self.path);
        }
        if self.found.kind != Kind::Missing
            || std::fs::metadata(self.path).is_ok_and(|found| made.has(&found))
        {
            return Ok(());
        }
        if self.spec.files.makes_folders_in.is_some() {
            made.make_folders(self.path).map_err(self.failed("create"))?;
        }
        // This fails if another program has created the file since it was examined (W7).
        made.make(self.path)?;
        // The new name must be on the disk before the clock starts. Some FUSE file systems cannot
        // flush a folder.
        if let Some(folder) = file_key(self.path).parent() {
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    /// Allocates the blocks of a new file as the job requests; for a mapping, also the blocks of an
    /// existing file.
    fn allocate(&self, fallbacks: &mut Vec<Fallback>, stop: &Stop) -> Result<(), Error> {
        let mapped = self.spec.io.ioengine == Ioengine::Mmap;
        let exists = self.found.kind != Kind::Missing;
        if !self.spec.order.rw.write || !mapped && (exists || self.spec.is_laid_out()) {
            return Ok(());
        }
        let (start, end) = (self.region.start, self.region.end);
        let file =
            File::options().read(true).write(true).open(self.path).map_err(self.failed("open"))?;
        let native = |flags| fallocate(&file, flags, start, end - start).map_err(Into::into);
        let done = match self.spec.files.fallocate {
            _ if start == end => Ok(()),
            _ if mapped => native(FallocateFlags::empty()),
            Fallocate::Native => native(FallocateFlags::empty()),
            Fallocate::Keep => native(FallocateFlags::KEEP_SIZE),
            Fallocate::None => Ok(()),
            Fallocate::Truncate => {
                let longer = file.metadata().is_ok_and(|found| found.len() >= end);
                if longer { Ok(()) } else { file.set_len(end) }
            }
        };
        match done {
            Ok(()) => {}
            Err(error) if error.raw_os_error().is_some_and(cannot_allocate) => {
                let got = if mapped { "blocks that were written" } else { NEW_BLOCKS };
                if mapped && self.found.ours {
                    lay_out(self.path, &file, self.region.clone(), stop)?;
                } else if mapped {
                    return Err(self.failed("fallocate")(error));
                }
                fallbacks.push(Fallback {
                    wanted: "allocated blocks".into(),
                    got: got.into(),
                    because: format!("fallocate: {error}"),
                });
            }
            Err(error) => return Err(self.failed("fallocate")(error)),
        }
        file.sync_all().map_err(self.failed("fsync"))
    }

    /// Drops the file's pages from the page cache if the job uses the file through it (M9).
    fn drop_cache(&self, fallbacks: &mut Vec<Fallback>) -> Result<(), Error> {
        if self.spec.io.direct || !self.spec.files.invalidate {
            return Ok(());
        }
        let file = open(self.path)?;
        // Pages that have not been written to the device cannot be dropped.
        file.sync_all().map_err(self.failed("fsync"))?;
        let len = std::num::NonZeroU64::new(self.region.end - self.region.start);
        let dropped = fadvise(&file, self.region.start, len, Advice::DontNeed);
        let mut kept = |because: String| {
            let (wanted, got) = ("invalidate".into(), "what the page cache held".into());
            fallbacks.push(Fallback { wanted, got, because });
        };
        if let Err(errno) = dropped {
            kept(format!("posix_fadvise: {}", std::io::Error::from(errno)));
        } else if !matches!(self.found.kind, Kind::Device { .. })
            && let Ok(target) = wrote::device::examine(self.path)
            && target.filesystem == "tmpfs"
        {
            kept("tmpfs keeps its files in memory".into());
        }
        Ok(())
    }
}
