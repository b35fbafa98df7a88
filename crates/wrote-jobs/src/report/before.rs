//! The context of a group's rows: the files and the disk before the run, and the earlier groups.

use crate::jobs::{GroupReport, Permissions};
use crate::machine::counters::Counters;
use crate::machine::target::{device_of, shown_target};
use crate::machine::watch as machine;
use crate::machine::watch::{Watch, Watched};
use crate::spec::JobSpec;
use rustix::fs::{SeekFrom, seek};
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wrote::device::{self, Target};
use wrote_result::document::Limit;
use wrote_result::{Error, document as result};

/// The disk under the jobs' files, before the jobs run.
///
/// It is examined beforehand, because the jobs change the free space, and which blocks have been
/// written.
#[derive(Clone, Debug)]
pub struct Before {
    /// The first file of the first job.
    first: PathBuf,
    /// The disk under the first file.
    pub(super) target: Target,
    /// The disks under the files that are on a different mount than the first file.
    others: HashMap<PathBuf, Target>,
    /// The files whose used bytes have all been written and flushed.
    pub(super) settled: HashSet<PathBuf>,
    /// Whether the first file's device counts its transfers.
    pub(super) device_counts: bool,
    /// The limits of this process's control groups.
    limits: Vec<Limit>,
    /// The state of the machine, if it was examined.
    watch: Option<Watch>,
}

impl Before {
    /// Examines the disks under the files of all jobs. Flushes existing files that may be
    /// overwritten, so that their blocks are settled. Writes no data.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] if there is no job or no file; [`Error::Failed`], with the kernel's
    /// message, if a path cannot be examined.
    pub fn examine(jobs: &[JobSpec], permissions: Permissions) -> Result<Before, Error> {
        let no_file = || Error::Usage("there is no job with a file".into());
        let first = jobs.iter().find_map(|job| job.files.paths.first()).ok_or_else(no_file)?;
        let target = target_of(first)?;
        let device_counts = device_of(&target).and_then(Counters::of).is_some();
        let mut before = Before::new(first.clone(), target, HashSet::new(), device_counts);
        let (mut settled, mut unsettled) = (HashSet::new(), HashSet::new());
        for job in jobs {
            for file in &job.files.paths {
                let target = target_of(file)?;
                if target.mount_point != before.target.mount_point {
                    before.others.insert(file.clone(), target);
                }
                // Another job that uses the file may have less strict requirements.
                if permissions.overwrite && job.order.rw.write && !unsettled.contains(file) {
                    let set = if is_settled(file, job) { &mut settled } else { &mut unsettled };
                    set.insert(file.clone());
                }
            }
        }
        before.limits = machine::limits(device_of(&before.target));
        before.watch = Some(Watch::begin(device_of(&before.target)));
        before.settled = settled.difference(&unsettled).cloned().collect();
        Ok(before)
    }

    /// Returns a state that is already known. `target` is the disk of all files, and the blocks of
    /// the files in `settled` have been written and flushed.
    pub fn new(
        first: PathBuf,
        target: Target,
        settled: HashSet<PathBuf>,
        device_counts: bool,
    ) -> Before {
        let (others, limits, watch) = (HashMap::new(), Vec::new(), None);
        Before { first, target, others, settled, device_counts, limits, watch }
    }

    /// Returns the kernel's name for the device below the first job's files; `None` if there is no
    /// device.
    pub fn device(&self) -> Option<&str> {
        device_of(&self.target).map(|device| device.name.as_str())
    }

    pub(super) fn target(&self, file: &Path) -> &Target {
        self.others.get(file).unwrap_or(&self.target)
    }

    /// Returns the disk under the first file, with the alignment that the file requires if it
    /// exists now.
    pub(super) fn shown(&self) -> result::Target {
        let shown = shown_target(&self.target, open(&self.first).as_ref());
        result::Target { limits: self.limits.clone(), ..shown }
    }

    /// Returns the machine's effects since it was examined at the start.
    pub(super) fn watched(&self) -> Watched {
        let watch = self.watch.as_ref();
        watch.map_or_else(Watched::default, |watch| watch.end(device_of(&self.target)))
    }
}

/// Returns the disk under a file. For a file that does not exist yet, this is the disk under its
/// future folder.
fn target_of(file: &Path) -> Result<Target, Error> {
    if is_block_device(file) {
        return Ok(device::examine(file)?);
    }
    let absolute = std::path::absolute(file)
        .map_err(|error| Error::Failed(format!("{}: {error}", file.display())))?;
    let there = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let mut target = device::examine(there)?;
    if !target.path.is_dir() {
        target.path.pop();
    }
    Ok(target)
}

fn is_block_device(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Returns whether all bytes of the file that the job uses have been written and flushed. Flushes
/// the file, which affects only what its data survives.
fn is_settled(file: &Path, job: &JobSpec) -> bool {
    if is_block_device(file) {
        return true;
    }
    let Some(opened) = open(file) else { return false };
    let Ok(length) = opened.metadata().map(|metadata| metadata.len()) else { return false };
    let end = match job.files.file_bytes {
        Some(bytes) => job.files.offset_bytes.saturating_add(bytes),
        None => length,
    };
    end > job.files.offset_bytes
        && end <= length
        && opened.sync_all().is_ok()
        // Blocks that are only allocated are holes, too (lseek(2), on ext4, XFS and Btrfs).
        && seek(&opened, SeekFrom::Hole(job.files.offset_bytes)).is_ok_and(|hole| hole >= end)
}

/// Opens a regular file for reading; `None` if it is not a regular file or cannot be opened. Never
/// waits, as opening a pipe normally would.
fn open(file: &Path) -> Option<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(nonblocking).open(file).ok()?;
    opened.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(opened)
}

/// The context of a group's rows: the disk before the run, and the earlier groups.
#[derive(Debug)]
pub(super) struct Known<'a> {
    /// The disk under the files, before the first group.
    pub before: &'a Before,
    /// Whether jobs may read blocks that were never written.
    pub read_unwritten: bool,
    pub names: Names,
    /// The files that earlier groups used.
    files: HashSet<PathBuf>,
}

/// The names in use. Each row has a different name.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// Returns the wanted name, with a number appended if it is already in use.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let numbered = (2..).map(|number| format!("{wanted}#{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names.find(|name| self.0.insert(name.clone())).expect("there is no end of numbers")
    }
}

impl<'a> Known<'a> {
    pub(super) fn new(before: &'a Before, read_unwritten: bool) -> Known<'a> {
        Known { before, read_unwritten, names: Names::default(), files: HashSet::new() }
    }

    /// Returns whether all bytes of the file that a job uses had been written and flushed when the
    /// clock started. This is the case if it was so before the run, or if the run prepares the
    /// file, as it does when the job also reads (M9).
    pub(super) fn is_settled(&self, file: &Path, spec: &JobSpec) -> bool {
        let overwrites = spec.files.overwrite && spec.order.rw.write;
        let made_ready = overwrites || spec.order.rw.read && !self.read_unwritten;
        let made_ready = made_ready && !self.is_changed(file);
        self.before.settled.contains(file) || made_ready
    }

    /// Returns whether an earlier group has used the file.
    pub(super) fn is_changed(&self, file: &Path) -> bool {
        self.files.contains(file)
    }

    /// Adds the files of a group that has finished.
    pub(super) fn is_over(&mut self, group: &GroupReport) {
        self.files.extend(group.jobs.iter().flat_map(|job| job.spec.files.paths.iter().cloned()));
    }
}
