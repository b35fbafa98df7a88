//! The threads of a group, one for each job, with its engine, its work and its report.

use super::JobReport;
use super::check::{is_synchronous, label, sequence};
use super::files::Ready;
use super::verify::read_back;
use crate::data::buffers;
use crate::gates::Gate;
use crate::spec::{BlockSizes, Distribution, JobSpec, SyncEach};
use crate::worker::sequence::{Outline, Sequence};
use crate::worker::{Progress, Shared, Worker};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use wrote::FileOptions;
use wrote::engine::{Engine, Options};
use wrote_result::document::Fallback;
use wrote_result::{Error, Stop};

/// The idle time after which fio's SQPOLL thread goes to sleep, which is the kernel's default.
const SQPOLL_IDLE_MS: u32 = 1000;

/// The jobs of a group, with the files of each.
pub struct Jobs<'a> {
    pub specs: &'a [&'a JobSpec],
    pub ready: Vec<Ready>,
    pub engines: Vec<Options>,
    pub progress: &'a [Progress],
    pub stop: &'a Stop,
    pub failed: &'a AtomicBool,
    /// Whether a job that ends its whole group (`exitall`) has finished.
    pub over: &'a AtomicBool,
}

/// Returns the options of each job's engine. Jobs that request a kernel thread on the same CPU
/// share that thread.
pub fn engine_options(specs: &[&JobSpec]) -> Vec<Options> {
    let mut served: Vec<(Option<u32>, Options)> = Vec::new();
    let mut of = |spec: &&JobSpec| {
        let bs_bytes = spec.bs_bytes_max();
        let options = Options::new(spec.io.ioengine, spec.io.iodepth, bs_bytes as usize)
            .buffers(buffers(bs_bytes, spec.io.iodepth))
            .registered_buffers(spec.io.fixedbufs)
            .registered_files(spec.io.registerfiles)
            .iopoll(spec.io.hipri);
        if !spec.io.sqthread_poll {
            return options;
        }
        let cpu = spec.io.sqthread_poll_cpu;
        if let Some((_, other)) = served.iter().find(|(known, _)| *known == cpu) {
            return options.sqpoll_of(other);
        }
        let options = options.sqpoll(SQPOLL_IDLE_MS, cpu);
        served.push((cpu, options.clone()));
        options
    };
    specs.iter().map(&mut of).collect()
}

/// Returns the fallbacks of a job, apart from its engine's.
fn fallbacks(spec: &JobSpec, outline: &Outline, iodepth: u32) -> Vec<Fallback> {
    let mut all = Vec::new();
    let mut note = |wanted: String, got: String, because: &str| {
        all.push(Fallback { wanted, got, because: because.into() });
    };
    if is_synchronous(spec.io.ioengine) && spec.io.iodepth > iodepth {
        let because = "the engine carries out one operation at a time";
        note(format!("iodepth {}", spec.io.iodepth), format!("iodepth {iodepth}"), because);
    }
    let is_uniform = spec.order.random_distribution == Distribution::Uniform;
    if spec.order.rw.random && !spec.order.norandommap && is_uniform && !outline.maps() {
        let because = "blocks of several sizes can't each come once";
        note("random map".into(), "offsets that may come again".into(), because);
    }
    if spec.writes.verify.is_some() && spec.order.rw.read && spec.order.rw.write {
        let because = "a mix reads blocks that it did not write";
        note("verify of reads".into(), "verify of what was written".into(), because);
    }
    let flushes = spec.writes.fsync.or(spec.writes.fdatasync).is_some();
    if iodepth > 1 && spec.order.rw.write && flushes {
        let because = "a flush covers only writes that were complete when it began";
        let got = "flushes that wait for the writes in flight".into();
        note("flushes in the queue beside writes".into(), got, because);
    }
    all
}

/// Refuses sizes and offsets that are not aligned as direct I/O on these files requires.
fn check_alignment(spec: &JobSpec, align_bytes: u64) -> Result<(), Error> {
    let sizes = |sizes: &BlockSizes| match sizes {
        BlockSizes::Range { least_bytes, most_bytes } => vec![*least_bytes, *most_bytes],
        BlockSizes::Split(shares) => shares.iter().map(|share| share.bytes).collect(),
    };
    let is_written = |key: &&str| spec.options.iter().any(|(name, _)| name == key);
    let size = ["bssplit", "bsrange", "bs"].into_iter().find(is_written).unwrap_or("bs");
    let sizes = spec.used_sizes().flat_map(sizes).map(|bytes| (size, bytes));
    let offset = if spec.files.offset_bytes > 0 { "offset" } else { "offset_increment" };
    let is_wrong = |(_, bytes): &(&str, u64)| !bytes.is_multiple_of(align_bytes);
    let Some((key, bytes)) = sizes.chain([(offset, spec.files.offset_bytes)]).find(is_wrong) else {
        return Ok(());
    };
    let (below, above) = (bytes - bytes % align_bytes, bytes.next_multiple_of(align_bytes));
    let instead = if below > 0 { format!("{below} or {above}") } else { above.to_string() };
    let mut written = spec.written(key, bytes);
    if !written.ends_with(&format!("={bytes}")) {
        written += &format!(": {bytes}");
    }
    Err(Error::Usage(format!(
        "{written} is not a multiple of {align_bytes}, which direct=1 needs here; use {instead}, or \
         direct=0"
    )))
}

impl<'a> Jobs<'a> {
    fn worker(&self, number: usize) -> Result<(Worker<'a>, Sequence), Error> {
        let spec = self.specs[number];
        let mut engine = Engine::open(&self.engines[number])?;
        let options = FileOptions::new()
            .write(spec.order.rw.write)
            .direct(spec.io.direct)
            .dontcache(spec.io.dontcache)
            .atomic(spec.io.atomic)
            .sync_metadata(spec.writes.sync == SyncEach::Sync);
        let open =
            |path: &std::path::PathBuf| Ok((path.clone(), engine.open_file(path, &options)?));
        let files = spec.files.paths.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let aligns = files.iter().map(|(_, file)| engine.align_bytes(*file).into());
        check_alignment(spec, aligns.max().unwrap_or(1))?;
        let sequence = sequence(spec, self.ready[number].regions.clone())?;
        let Jobs { stop, failed, progress, .. } = *self;
        let shared = Shared { stop, failed, over: self.over, progress: &progress[number] };
        Ok((Worker::new(engine, files, spec, sequence.clone(), shared)?, sequence))
    }

    /// Runs job `number`, and returns its report when all jobs have finished.
    pub fn run(&self, number: usize, gate: &Gate) -> Result<JobReport, Error> {
        let (mut worker, sequence) = gate.ready(|| self.worker(number))?;
        let done = gate.work(|| {
            worker.delay();
            let done = worker.run();
            if self.specs[number].pace.exitall {
                self.over.store(true, Ordering::Relaxed);
            }
            done
        })?;
        let spec = self.specs[number];
        self.stop.check()?;
        if done.all_ramp {
            let text = "ended before its ramp_time: nothing was counted";
            return Err(Error::Failed(format!("{}: {text}", label(spec))));
        }
        let effective = worker.engine.effective().clone();
        let mut fallbacks_all = self.ready[number].fallbacks.clone();
        fallbacks_all.extend(fallbacks(spec, sequence.outline(), effective.iodepth));
        let direct = worker.files.iter().all(|(_, file)| worker.engine.is_direct(*file));
        let after = spec.writes.verify.is_some_and(|verify| verify.after_writes);
        let read_back = (after && spec.order.rw.write).then(|| {
            let (began, Worker { engine, files, .. }) = (Instant::now(), &mut worker);
            let reads = read_back(engine, files, &sequence, done.issued, self.stop)?;
            Ok::<_, Error>((reads, began.elapsed()))
        });
        let read_back = read_back.transpose()?;
        // If a job runs alone, all threads of the process work for it, including the engine's and
        // the kernel's.
        let usage = if self.specs.len() == 1 { done.process } else { done.thread };
        let [read, write] = done.tally.directions.clone();
        Ok(JobReport {
            spec: spec.clone(),
            effective,
            fallbacks: fallbacks_all,
            direct,
            started_at: jiff::Timestamp::now() - done.began.elapsed(),
            elapsed: done.ended - done.began,
            ramp: done.ramp,
            read,
            write,
            flush_ns: done.tally.flush_ns.clone(),
            durable_ns: done.tally.durable_ns.clone(),
            unwritten_bytes: self.ready[number].unwritten_bytes,
            issue_delay_ns: done.tally.issue_delay_ns.clone(),
            trail: done.tally.trail.marks(),
            verified_bytes: read_back
                .as_ref()
                .map_or(done.verified_bytes, |(reads, _)| reads.bytes),
            read_back,
            log: done.log,
            steady: done.steady,
            usage,
            depths: done.tally.depths(),
            submitted_together: done.tally.submitted_together(),
            completed_together: done.tally.completed_together(),
        })
    }
}
