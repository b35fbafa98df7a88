//! A plain job in a folder, and functions that run jobs.

use std::path::Path;
use wrote_jobs::jobs::{GroupReport, JobReport, Permissions, Watcher, run};
use wrote_jobs::peers::Peers;
use wrote_jobs::spec::{JobSpec, Rw, Verify};
pub use wrote_jobs::spec::{READ, WRITE};
use wrote_result::{Error, Stop};

pub const MIX: Rw = Rw { read: true, write: true, random: false };
pub const BLOCK: u64 = 4096;
pub const FILE: u64 = 64 * BLOCK;
pub const VERIFY: Option<Verify> = Some(Verify { after_writes: true });

pub fn random(rw: Rw) -> Rw {
    Rw { random: true, ..rw }
}

/// Returns a job on 64 blocks of 4 KiB, in one file with the name of the job.
pub fn job(folder: &Path, name: &str, rw: Rw) -> JobSpec {
    JobSpec::new(name, rw, BLOCK).with(|job| {
        job.io.iodepth = 8;
        job.files.paths = vec![folder.join(name)];
        job.files.file_bytes = Some(FILE);
    })
}

/// A watcher that records, for each group, its number, its number of jobs, and its laid-out bytes.
#[derive(Default)]
pub struct Told(pub Vec<(u32, usize, u64)>);
impl Watcher for Told {
    fn group(&mut self, group: u32, jobs: &[&JobSpec], laid_out_bytes: u64) {
        self.0.push((group, jobs.len(), laid_out_bytes));
    }
}

pub fn go_with(jobs: &[JobSpec], permissions: Permissions) -> Result<Vec<GroupReport>, Error> {
    run(jobs, permissions, &Stop::new(), &mut (), Peers::ALONE)
}

pub fn go(jobs: &[JobSpec]) -> Vec<GroupReport> {
    go_with(jobs, Permissions::default()).unwrap()
}

pub fn one(job: JobSpec) -> JobReport {
    go(&[job]).remove(0).jobs.remove(0)
}

pub fn refusal_with(jobs: &[JobSpec], permissions: Permissions) -> String {
    let error = go_with(jobs, permissions).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

pub fn refusal(jobs: &[JobSpec]) -> String {
    refusal_with(jobs, Permissions::default())
}

/// Returns whether every block of the file contains data, and all blocks differ.
pub fn all_blocks_differ(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    let blocks: std::collections::HashSet<&[u8]> = bytes.chunks(BLOCK as usize).collect();
    blocks.len() == bytes.len() / BLOCK as usize && !blocks.contains([0; BLOCK as usize].as_slice())
}
