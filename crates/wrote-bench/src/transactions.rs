//! What `fit` and `pages` share: jobs of steps, run as rows.

use crate::site::Site;
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use wrote::device::{self, Target};
use wrote_jobs::clock::clocked;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_jobs::steps::{Done, FileSpec, Running, Start, Step, Steps};
use wrote_result::document::{Blocks, Flush, Ioengine, Row, Run, Settings, Survives, Torn};
use wrote_result::{Error, units};

/// Runs transactions for a time, or `most` of them on each set of files.
pub(crate) fn timed(
    running: Running,
    time: Duration,
    most: u64,
    site: &Site,
) -> Result<(Done, Run), Error> {
    clocked(&site.timer()?, Usage::now, || running.run(time, most, site.stop))
}

/// Composes the row of a run whose transactions count as `bytes`.
pub(crate) fn row_of(row: &Row, (done, run): (Done, Run), bytes: u64) -> Repeated {
    let run = Run {
        bytes,
        throughput_bytes_per_s: bytes as f64 / run.elapsed_s,
        iops: done.transactions as f64 / run.elapsed_s,
        iodepth_reached: row.settings.asked.numjobs,
        max_rss_bytes: Some(Usage::now().max_rss_bytes),
        ..run
    };
    let row = row.clone().with_run(run);
    let mut run = Repeated::of_transactions(row, done.latencies_ns, done.flushes_ns);
    run.written_bytes = done.counts.written_bytes;
    run
}

/// Returns the numbers of the jobs with atomic writes that this disk does not make, with reasons.
/// All ranks leave out the same.
pub(crate) fn not_atomic<'a>(
    jobs: impl Iterator<Item = &'a Steps>,
    site: &Site,
) -> Result<Vec<(usize, String)>, Error> {
    let asked = jobs.enumerate().filter_map(|(number, job)| Some((number, job.atomic_bytes()?)));
    let asked: Vec<(usize, u64)> = asked.collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let path = site.scratch.lock_file();
    let file = File::open(&path).map_err(Error::at(&path, "open"))?;
    let units = device::atomic_writes(&file, &device::examine(&path)?);
    let refused = |(number, bytes): (usize, u64)| {
        let because = match &units {
            Err(because) => format!("there are no atomic writes here: {because}"),
            Ok(of) if bytes > u64::from(of.bytes_max) => {
                format!("atomic writes have at most {} here", units::bytes(of.bytes_max.into()))
            }
            Ok(_) => return None,
        };
        Some((number, because))
    };
    let refused = asked.into_iter().filter_map(refused).collect();
    site.peers.agree("the atomic writes", refused, |all: Vec<Vec<_>>| {
        Ok(all.into_iter().max_by_key(Vec::len).unwrap_or_default())
    })
}

/// Returns whether a power loss may tear a page, whose way of writing makes it `torn`. A way relies
/// on flushes: where they don't reach a disk, nothing keeps its order.
pub(crate) fn torn(torn: Torn, survives: Survives) -> Torn {
    if survives < Survives::PowerLoss { Torn::Possible } else { torn }
}

/// Refuses a folder on a disk with too little space, if that is known (some FUSE report a capacity
/// of 0).
pub(crate) fn check_space(path: &Path, needs: u64, target: &Target) -> Result<(), Error> {
    if target.capacity_bytes == 0 || needs <= target.free_bytes {
        return Ok(());
    }
    let [needs, free] = [needs, target.free_bytes].map(units::bytes);
    Err(Error::Failed(format!("{}: needs {needs}, and {free} are free", path.display())))
}

/// Returns the settings of a job of steps, as far as one operation can describe them.
pub(crate) fn settings(job: &Steps) -> Settings {
    let is = |file: fn(&FileSpec) -> bool| job.files.iter().any(file);
    let flushes = |step: fn(&Step) -> bool| job.each.iter().any(step);
    let sync = if is(|file| file.dsync) {
        Flush::ODsyncEach
    } else if flushes(|step| matches!(step, Step::Fdatasync { .. })) {
        Flush::FdatasyncEach
    } else if flushes(|step| matches!(step, Step::Fsync { .. })) {
        Flush::FsyncEach
    } else {
        Flush::None
    };
    let blocks = match job.files[0].start {
        Start::Empty | Start::Absent => Blocks::New,
        Start::Allocated => Blocks::Allocated,
        Start::Zeros | Start::Written | Start::Kept => Blocks::Written,
    };
    Settings {
        rw: "write".into(),
        ioengine: Ioengine::Psync,
        bs_bytes: job.transaction_bytes(),
        size_bytes: job.space_bytes(),
        iodepth: 1,
        numjobs: job.clients,
        direct: is(|file| file.direct),
        sync,
        blocks,
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_space_is_refused_where_a_file_system_tells_its_size() {
        let mut target = device::examine(".").unwrap();
        target.free_bytes = 10;
        let mut check = |capacity_bytes, needs| {
            target.capacity_bytes = capacity_bytes;
            check_space(Path::new("/data"), needs, &target)
        };
        assert!(check(20, 10).is_ok() && check(0, 11).is_ok());
        let refused = check(20, 11).unwrap_err().to_string();
        assert_eq!(refused, "/data: needs 11 B, and 10 B are free");
    }
}
