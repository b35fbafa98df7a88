//! The files of ranks, one for each or regions of one, and the rank whose data a rank reads.

use super::{Made, lay_out};
use crate::peers::Peers;
use crate::spec::{Fallocate, JobSpec};
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use wrote_result::document::RankFiles;
use wrote_result::{Error, Stop};

/// Where the jobs of a rank read and write.
#[derive(Clone, Copy, Debug)]
pub struct Regions<'a> {
    /// The ranks.
    pub peers: Peers<'a>,
    /// Whether they share files.
    pub files: RankFiles,
    /// By how many ranks reads are shifted.
    pub shift: u32,
}

/// A file as the jobs of one rank use it, before it is divided.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// The end of the farthest region.
    end_bytes: u64,
    /// The first group that uses it reads it, or writes over blocks that were written.
    is_laid_out: bool,
    group: Option<u32>,
    fallocate: Fallocate,
}

impl Regions<'_> {
    /// Gives each job its rank's files or regions. `name` returns a rank's file.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] if a job can't be divided this way.
    pub fn place(
        &self,
        jobs: &[JobSpec],
        name: impl Fn(&Path, u32) -> PathBuf,
    ) -> Result<Vec<JobSpec>, Error> {
        let extents = self.extents(jobs);
        let place = |job: &JobSpec| {
            let mut placed = job.clone();
            // Only pure reads are shifted.
            let shift = if job.rw.read && !job.rw.write { self.shift } else { 0 };
            let whose = (self.peers.rank() + shift) % self.peers.ranks();
            match self.files {
                RankFiles::PerRank => {
                    placed.files = job.files.iter().map(|file| name(file, whose)).collect();
                }
                _ => self.divide(&mut placed, whose, &extents, jobs)?,
            }
            Ok(placed)
        };
        jobs.iter().map(place).collect()
    }

    /// Makes the files that ranks share, and the files that other ranks read first. Returns the
    /// files that this rank made; where any rank fails, none of them stays. `jobs` are as before
    /// [`Regions::place`].
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] where a file can't be made, and as [`Peers::agree`].
    pub fn prepare(
        &self,
        jobs: &[JobSpec],
        name: impl Fn(&Path, u32) -> PathBuf,
        stop: &Stop,
    ) -> Result<Made, Error> {
        let (rank, ranks) = (self.peers.rank(), u64::from(self.peers.ranks()));
        let mut made = Made::default();
        for (path, extent) in self.extents(jobs) {
            if self.files == RankFiles::PerRank {
                let own = name(&path, rank);
                if self.shift > 0 && extent.is_laid_out && !own.exists() {
                    let file = made.make(&own)?;
                    lay_out(&own, &file, 0..extent.end_bytes, stop)?;
                }
                continue;
            }
            let is_missing = self.peers.is_first() && !path.exists();
            if is_missing {
                let file = made.make(&path)?;
                if !extent.is_laid_out && extent.fallocate == Fallocate::Native {
                    // Where the file system can't, the file grows.
                    let _ = fallocate(&file, FallocateFlags::empty(), 0, ranks * extent.end_bytes);
                    file.sync_all().map_err(Error::at(&path, "fsync"))?;
                }
            }
            if self.peers.of_first("a shared file", is_missing)? && extent.is_laid_out {
                let file = File::options().read(true).write(true).open(&path);
                let file = file.map_err(Error::at(&path, "open"))?;
                let start = u64::from(rank) * extent.end_bytes;
                lay_out(&path, &file, start..start + extent.end_bytes, stop)?;
            }
        }
        self.peers.barrier("the files")?;
        Ok(made)
    }

    fn extents(&self, jobs: &[JobSpec]) -> BTreeMap<PathBuf, Extent> {
        let mut extents: BTreeMap<PathBuf, Extent> = BTreeMap::new();
        for job in jobs {
            for file in &job.files {
                let len_bytes = || file.metadata().map_or(0, |found| found.len());
                let part_bytes = || len_bytes() / u64::from(self.peers.ranks());
                let bytes = job.file_bytes.unwrap_or_else(part_bytes);
                let bytes = bytes / job.bs_bytes_max().max(1) * job.bs_bytes_max();
                let extent = extents.entry(file.clone()).or_default();
                extent.end_bytes = extent.end_bytes.max(job.offset_bytes + bytes);
                if extent.group.is_none_or(|group| group == job.group) {
                    extent.group = Some(job.group);
                    extent.is_laid_out |= job.rw.read || job.overwrite;
                    extent.fallocate = job.fallocate;
                }
            }
        }
        extents
    }

    fn divide(
        &self,
        job: &mut JobSpec,
        whose: u32,
        extents: &BTreeMap<PathBuf, Extent>,
        jobs: &[JobSpec],
    ) -> Result<(), Error> {
        let refuse = |what: &str| {
            let how = self.files;
            Err(Error::Usage(format!("--shared-file={how}: {}: {what}", job.name)))
        };
        let mut ends = job.files.iter().map(|file| extents[file].end_bytes);
        let Some(end_bytes) = ends.next() else { return Ok(()) };
        if ends.any(|other| other != end_bytes) {
            return refuse("its files are of several sizes");
        }
        if end_bytes == 0 {
            return refuse("a rank's region of its file is empty; give a size");
        }
        let (whose, ranks) = (u64::from(whose), u64::from(self.peers.ranks()));
        if self.files == RankFiles::Segments {
            job.file_bytes = job.file_bytes.or(Some(end_bytes - job.offset_bytes));
            job.offset_bytes += whose * end_bytes;
            return Ok(());
        }
        let uses = |other: &&JobSpec| {
            other.group == job.group && other.files.iter().any(|file| job.files.contains(file))
        };
        let is_alone = jobs.iter().filter(uses).count() == 1 && job.offset_bytes == 0;
        let is_in_order = !job.rw.random && job.step_bytes == 0;
        let Some(bs_bytes) = job.one_size().filter(|_| is_in_order && is_alone) else {
            return refuse(
                "blocks take turns only where one sequential job of one block size has the whole \
                 file",
            );
        };
        job.io_bytes = Some(job.io_bytes.unwrap_or(end_bytes));
        job.offset_bytes = whose * bs_bytes;
        job.file_bytes = Some(ranks * end_bytes - whose * bs_bytes);
        job.step_bytes = (ranks - 1) as i64 * bs_bytes as i64;
        Ok(())
    }
}

/// The file of a rank, as IOR names it: `FILE.00000003`.
pub fn file_of_rank(path: &Path, rank: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{rank:08}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::tests::{LONG, ranks};
    use crate::spec::Rw;

    fn reads(path: &Path) -> JobSpec {
        let (rw, files) = (Rw { read: true, ..Rw::default() }, vec![path.to_owned()]);
        JobSpec { files, file_bytes: Some(64 << 10), ..JobSpec::new("reads", rw, 4096) }
    }

    #[test]
    fn files_that_a_rank_made_for_the_others_go_where_another_rank_fails() {
        for files in [RankFiles::Segments, RankFiles::PerRank] {
            let folder = fixtures::folder();
            let job = [reads(&folder.path().join("data"))];
            let made = ranks(2, LONG, |peers| {
                let regions = Regions { peers, files, shift: 1 };
                match peers.rank() {
                    0 => regions.prepare(&job, file_of_rank, &Stop::new()).map(Made::keep),
                    _ => peers.end(Err(Error::Failed("the disk is full".into()))),
                }
            });
            let error = made[0].as_ref().unwrap_err().to_string();
            assert!(error.contains("rank 1 on node0: the disk is full"), "{error}");
            assert_eq!(fixtures::names(folder.path()), [""; 0], "{files:?}");
        }
    }
}
