//! Rows that run jobs of steps, for `fit` and `pages`.

use crate::site::Site;
use std::fs::File;
use std::path::PathBuf;
use wrote::device::{self, Target};
use wrote_jobs::data::seed;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_jobs::steps::{Done, FileSpec, Running, Start, Step, Steps};
use wrote_result::document::{
    Blocks, Flush, Ioengine, Row, Run, Settings, SettingsPair, Survives, Torn, View,
};
use wrote_result::{Error, units};

/// Prepares the files of a job. The sets of files are numbered from `first` on.
pub(crate) fn ready<'a>(job: &'a Steps, first: u32, site: &Site) -> Result<Running<'a>, Error> {
    Running::new(job, &|name, set| site.file(name, first + set), seed())
}

/// Returns the paths of the files of a job.
pub(crate) fn files(job: &Steps, first: u32, site: &Site) -> Vec<PathBuf> {
    let of = |set| job.files.iter().map(move |file| site.file(&file.name, first + set));
    (0..job.sets()).flat_map(of).collect()
}

/// Returns the row of a run whose transactions amount to `bytes`.
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

/// Returns the indices of the jobs whose atomic writes this disk does not support, with the
/// reasons. All ranks leave out the same jobs.
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
            Err(because) => format!("no atomic writes here: {because}"),
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

/// Returns the row of a job on this disk, without names. A method that is never torn relies on
/// flushes. If flushes don't reach the disk, nothing keeps its writes in order.
pub(crate) fn composed(job: &Steps, torn: Option<Torn>, target: &Target) -> Row {
    let survives = target.survives(Survives::of_write(job.is_durable(), false));
    let asked = settings(job);
    let effective = Settings { bs_bytes: job.moved_bytes(), ..asked.clone() };
    let is_lost = survives < Survives::PowerLoss;
    Row {
        view: Some(View::Operations),
        survives: Some(survives),
        torn: torn.map(|torn| if is_lost { Torn::Possible } else { torn }),
        settings: SettingsPair { asked, effective, fallbacks: Vec::new() },
        ..Row::default()
    }
}

/// Returns the settings of a job of steps, as far as the settings of one operation can describe
/// them.
fn settings(job: &Steps) -> Settings {
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
