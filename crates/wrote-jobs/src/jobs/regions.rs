//! The files of several ranks: one for each rank, or a shared file with a region for each rank.

use super::{Made, Permissions, check, lay_out};
use crate::peers::Peers;
use crate::spec::{Fallocate, JobSpec};
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use wrote_result::{Error, Stop};

/// A file as the jobs of a rank use it.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// The highest end of all regions.
    end_bytes: u64,
    /// Whether the first group that uses the file reads it, or overwrites written blocks.
    is_laid_out: bool,
    group: Option<u32>,
    fallocate: Fallocate,
}

/// Returns the jobs with files for this rank alone, named as IOR does: `FILE.00000003`. For a
/// single process, returns the jobs unchanged.
pub fn on_own_files(jobs: &[JobSpec], peers: Peers) -> Vec<JobSpec> {
    if !peers.are_many() {
        return jobs.to_vec();
    }
    let name = |path: &PathBuf| {
        let mut name = path.clone().into_os_string();
        name.push(format!(".{:08}", peers.rank()));
        PathBuf::from(name)
    };
    let mut jobs = jobs.to_vec();
    jobs.iter_mut().flat_map(|job| &mut job.files.paths).for_each(|path| *path = name(path));
    jobs
}

/// Returns the jobs with this rank's regions of the shared files, and the files that this rank
/// created for all ranks. If any rank fails, these files are removed.
///
/// # Errors
///
/// The errors of [`check`] and [`Peers::agree`], [`Error::Usage`] if a job cannot be divided this
/// way, and [`Error::Failed`] if a file cannot be created.
pub fn share(
    jobs: &[JobSpec],
    permissions: Permissions,
    peers: Peers,
    stop: &Stop,
) -> Result<(Vec<JobSpec>, Permissions, Made), Error> {
    check(jobs, permissions, &mut ())?;
    // No rank creates a file before all ranks have checked that they may write to it.
    peers.barrier("the checks")?;
    let (extents, mut made) = (extents(jobs, peers), Made::default());
    for (path, extent) in &extents {
        let is_missing = peers.is_first() && !path.exists();
        if is_missing {
            let file = made.make(path)?;
            if !extent.is_laid_out && extent.fallocate == Fallocate::Native {
                let all_bytes = u64::from(peers.ranks()) * extent.end_bytes;
                // If the file system cannot allocate blocks, the file grows as it is written.
                let _ = fallocate(&file, FallocateFlags::empty(), 0, all_bytes);
                file.sync_all().map_err(Error::at(path, "fsync"))?;
            }
        }
        if peers.of_first("a shared file", is_missing)? && extent.is_laid_out {
            let file = File::options().read(true).write(true).open(path);
            let file = file.map_err(Error::at(path, "open"))?;
            let start = u64::from(peers.rank()) * extent.end_bytes;
            lay_out(path, &file, start..start + extent.end_bytes, stop)?;
        }
    }
    peers.barrier("the files")?;
    // Each rank's region follows the previous rank's.
    let place = |job: &JobSpec| {
        let refuse = |what| Err(Error::Usage(format!("--shared-file: {}: {what}", job.name)));
        let mut ends = job.files.paths.iter().map(|file| extents[file].end_bytes);
        let end_bytes = ends.next().unwrap_or_default();
        if ends.any(|other| other != end_bytes) {
            return refuse("its files are of several sizes");
        }
        if end_bytes == 0 {
            return refuse("a rank's region of its file is empty; give a size");
        }
        let mut job = job.clone();
        let files = &mut *job.files;
        files.file_bytes.get_or_insert(end_bytes - files.offset_bytes);
        files.offset_bytes += u64::from(peers.rank()) * end_bytes;
        Ok(job)
    };
    let jobs = jobs.iter().map(place).collect::<Result<_, Error>>()?;
    Ok((jobs, Permissions { overwrite: true, ..permissions }, made))
}

fn extents(jobs: &[JobSpec], peers: Peers) -> BTreeMap<PathBuf, Extent> {
    let mut extents: BTreeMap<PathBuf, Extent> = BTreeMap::new();
    for job in jobs {
        for file in &job.files.paths {
            let part_bytes = |file: &Path| {
                file.metadata().map_or(0, |found| found.len()) / u64::from(peers.ranks())
            };
            let bytes = job.files.file_bytes.unwrap_or_else(|| part_bytes(file));
            let bytes = bytes / job.bs_bytes_max().max(1) * job.bs_bytes_max();
            let extent = extents.entry(file.clone()).or_default();
            extent.end_bytes = extent.end_bytes.max(job.files.offset_bytes + bytes);
            if extent.group.is_none_or(|group| group == job.group) {
                extent.group = Some(job.group);
                extent.is_laid_out |= job.is_laid_out();
                extent.fallocate = job.files.fallocate;
            }
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::tests::{LONG, ranks};
    use crate::spec::READ;

    #[test]
    fn a_file_that_a_rank_made_for_all_goes_where_another_rank_fails() {
        let folder = fixtures::folder();
        let files = vec![folder.path().join("data")];
        let mut job = JobSpec::new("reads", READ, 4096);
        (job.files.paths, job.files.file_bytes) = (files, Some(64 << 10));
        let made = ranks(2, LONG, |peers| match peers.rank() {
            0 => {
                let jobs = std::slice::from_ref(&job);
                share(jobs, Permissions::default(), peers, &Stop::new())
                    .map(|(.., made)| made.keep())
            }
            _ => {
                peers.barrier("the checks").unwrap();
                peers.end(Err(Error::Failed("the disk is full".into())))
            }
        });
        let error = made[0].as_ref().unwrap_err().to_string();
        assert!(error.contains("rank 1 on node0: the disk is full"), "{error}");
        assert_eq!(fixtures::names(folder.path()), [""; 0]);
    }
}
