//! Tries a group's files with the run's own requests to the kernel, as far as they change nothing.

use super::files::{Files, Use};
use super::place::{Kind, folder_there};
use crate::machine::target::{self, Access};
use crate::worker::sequence::Sequence;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use wrote::engine::{Engine, Options};
use wrote::{Action, FileOptions, Ioengine};
use wrote_result::{Error, units};

/// The most descriptors that the process has open beside the jobs' own: three standard streams, a
/// signal's pipe, a result, a folder.
const OWN_DESCRIPTORS: usize = 8;

/// The operations of a job whose offsets and lengths are examined: the first ones.
const OPERATIONS: usize = 1000;

/// Tries the files of groups that have not begun. It opens files, and makes none with a name.
pub struct Trial {
    engine: Engine,
}

impl Trial {
    pub fn new() -> Result<Trial, Error> {
        let options = Options::new(Ioengine::Psync, 1, rustix::param::page_size());
        Ok(Trial { engine: Engine::open(&options)? })
    }

    /// Refuses a group when the kernel would refuse one of its files, or the first direct
    /// operations of a job. `sequences` has the operations of each job.
    pub fn group(&mut self, files: &Files, sequences: Vec<Sequence>) -> Result<(), Error> {
        check_descriptors(files)?;
        for (uses, sequence) in files.jobs().zip(sequences) {
            let mut aligns_bytes = Vec::new();
            for using in uses {
                check_length(using)?;
                aligns_bytes.push(self.align_bytes(using)?);
            }
            check_alignment(uses, &aligns_bytes, sequence)?;
        }
        Ok(())
    }

    /// Opens the file like the run, or finds out whether it can be created. Returns the alignment
    /// of its transfers: 1 where they are not direct, or where only the run can find out.
    fn align_bytes(&mut self, using: &Use) -> Result<u32, Error> {
        let Use { path, spec, .. } = using;
        let direct = spec.direct && spec.ioengine != Ioengine::Mmap;
        if path.exists() {
            let write = spec.rw.write;
            let wanted = if write { Access::READ_OK | Access::WRITE_OK } else { Access::READ_OK };
            target::check_access(path, wanted).map_err(using.failed("open"))?;
            // An overlay copies a file of its lower folders when it is opened for writing.
            let write = write && filesystem(path).as_deref() != Some("overlay");
            return Ok(self.open(path, write, direct)?);
        }
        let folder = folder_there(path);
        check_new(path, folder).map_err(using.failed("create"))?;
        let align_bytes = if direct { self.new_align_bytes(folder) } else { None };
        Ok(align_bytes.unwrap_or(1))
    }

    /// Returns the alignment of a new direct file in the folder, found with an unnamed file: mount
    /// options and flags decide it. `None` if the file system has no unnamed files.
    fn new_align_bytes(&mut self, folder: &Path) -> Option<u32> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let unnamed = open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?;
        let path = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
        self.open(path.as_ref(), true, true).ok()
    }

    fn open(&mut self, path: &Path, write: bool, direct: bool) -> Result<u32, wrote::Error> {
        let options = FileOptions::new().write(write).direct(direct);
        let file = self.engine.open_file(path, &options)?;
        let align_bytes = self.engine.align_bytes(file);
        self.engine.close_file(file)?;
        Ok(align_bytes)
    }
}

fn filesystem(path: &Path) -> Option<String> {
    wrote::device::examine(path).ok().map(|target| target.filesystem)
}

/// Fails if a missing file cannot be created, or its name is a dangling link.
fn check_new(path: &Path, folder: &Path) -> io::Result<()> {
    if path.is_symlink() {
        return Err(Errno::EXIST.into());
    }
    target::check_new(folder)
}

/// Refuses a file that would exceed the process's limit (`RLIMIT_FSIZE`).
fn check_length(using: &Use) -> Result<(), Error> {
    let Use { spec, found, region, .. } = using;
    let Some(limit_bytes) = getrlimit(Resource::Fsize).current else { return Ok(()) };
    // The kernel applies the limit to the allocation of a mapping, not to its writes.
    let is_long = matches!(found.kind, Kind::File { len_bytes } if len_bytes >= region.end);
    let is_exempt = spec.ioengine == Ioengine::Mmap && is_long;
    if region.end <= limit_bytes || is_exempt || !spec.rw.write && !using.is_laid_out() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{}: File too large: it is written up to byte {}, and this process may write up to {} \
         (ulimit -f)",
        using.path.display(),
        units::bytes(region.end),
        units::bytes(limit_bytes)
    )))
}

/// Refuses a group with more files than the process may have open (`RLIMIT_NOFILE`).
fn check_descriptors(files: &Files) -> Result<(), Error> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let has_ring =
        |uses: &&[Use]| uses.iter().any(|using| using.spec.ioengine == Ioengine::IoUring);
    let (used, rings) = (files.all().count(), files.jobs().filter(has_ring).count());
    if (used + rings + OWN_DESCRIPTORS) as u64 <= limit {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "Too many open files: the jobs of a group have {used} files open at once, and this process \
         may have {limit} descriptors (ulimit -n)"
    )))
}

/// Refuses a job whose first operations a direct file would refuse.
fn check_alignment(uses: &[Use], aligns_bytes: &[u32], sequence: Sequence) -> Result<(), Error> {
    if aligns_bytes.iter().all(|bytes| *bytes == 1) {
        return Ok(());
    }
    for next in sequence.take(OPERATIONS) {
        let align_bytes = aligns_bytes[next.file];
        if [next.offset, next.len as u64].iter().all(|at| at.is_multiple_of(align_bytes.into())) {
            continue;
        }
        let action = if next.write { Action::Write } else { Action::Read };
        let (path, offset) = (uses[next.file].path.to_owned(), next.offset);
        return Err(wrote::Error::Alignment { path, action, offset, align_bytes }.into());
    }
    Ok(())
}
