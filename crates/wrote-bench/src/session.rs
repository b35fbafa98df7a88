//! The rounds of a benchmark: every row in turn, and what they add up to.

use crate::bench::Ticker;
use crate::data::Data;
use crate::job::{Blocks, Flush, Job};
use crate::ladder::{Sizes, Way, Workload};
use crate::plan::{CALIBRATION_TIME, Plan, WHOLE};
use crate::result::{self, Direction, Fallback, Row, Run, Settings, SettingsPair};
use crate::run::{self, Measured, Place};
use crate::scratch::Scratch;
use crate::worker::histogram;
use crate::{Error, Stop, stats};
use hdrhistogram::Histogram;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use wrote::device::{Backing, BlockDevice, Target};
use wrote::{Ioengine, Survives};

/// Files with numbers from here on are written over by every round, and stay until the end.
const SETTLED_STREAM: u32 = 1000;
const SETTLED_SMALL: u32 = 2000;

/// A benchmark while it runs.
pub(crate) struct Session<'a> {
    plan: &'a Plan,
    target: &'a Target,
    scratch: &'a Scratch,
    stop: &'a Stop,
    stream: Sizes,
    small: Sizes,
    rows: Vec<RowSoFar>,
    generator_bytes_per_s: f64,
    written_bytes: u64,
}

/// What a benchmark found out, once it is over.
pub(crate) struct Outcome {
    /// What lies under the path, as it was before the run.
    pub target: result::Target,
    pub rows: Vec<Row>,
    /// How fast the data is made ready.
    pub generator_bytes_per_s: f64,
    /// File bytes written in all.
    pub written_bytes: u64,
}

/// What is known of a row before its runs.
pub(crate) struct Named<'a> {
    pub name: &'a str,
    pub workload: &'a str,
    pub words: &'a str,
    pub survives: Survives,
    pub asked: Settings,
}

/// What a row's runs gave so far.
pub(crate) struct RowSoFar {
    runs: Vec<Run>,
    latencies: Histogram<u64>,
    effective: Option<Settings>,
    fallbacks: Vec<Fallback>,
}

impl RowSoFar {
    pub(crate) fn new() -> RowSoFar {
        RowSoFar {
            runs: Vec::new(),
            latencies: histogram(),
            effective: None,
            fallbacks: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, measured: Measured) {
        self.runs.push(measured.run);
        self.latencies.add(&measured.latencies).expect("all histograms have the same bounds");
        self.fallbacks.extend(measured.fallbacks);
        match &mut self.effective {
            Some(effective) => effective.weaken(&measured.effective),
            None => self.effective = Some(measured.effective),
        }
    }

    /// What was in effect in all runs.
    pub(crate) fn effective(&self) -> Settings {
        self.effective.clone().unwrap_or_default()
    }

    /// The row that the runs add up to.
    pub(crate) fn row(self, named: Named<'_>) -> Row {
        let values = |value: fn(&Run) -> f64| self.runs.iter().map(value).collect::<Vec<f64>>();
        let effective = self.effective();
        let mut fallbacks = self.fallbacks.clone();
        fallbacks.sort();
        fallbacks.dedup();
        let timed = !self.latencies.is_empty();
        Row {
            name: named.name.into(),
            workload: named.workload.into(),
            way: named.words.into(),
            direction: Direction::Write,
            survives: Some(named.survives.as_str().into()),
            bytes_per_run: stats::median(&values(|run| run.bytes as f64)) as u64,
            settings: SettingsPair { asked: named.asked, effective, fallbacks },
            throughput_bytes_per_s: stats::interval(&values(|run| run.throughput_bytes_per_s)),
            latency_ns: timed.then(|| stats::latency(&self.latencies)),
            runs: self.runs,
        }
    }
}

/// The block device below the target, where there is one.
pub(crate) fn device_of(target: &Target) -> Option<&BlockDevice> {
    match &target.backing {
        Backing::Block(device) => Some(device),
        Backing::None { .. } => None,
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        target: &'a Target,
        scratch: &'a Scratch,
        stop: &'a Stop,
    ) -> Session<'a> {
        // Until the calibration tells better: those of a fast device.
        let fast = f64::MAX;
        Session {
            plan,
            target,
            scratch,
            stop,
            stream: plan.sizes(Workload::Stream, fast),
            small: plan.sizes(Workload::Small, fast),
            rows: plan.ways.iter().map(|_| RowSoFar::new()).collect(),
            generator_bytes_per_s: 0.0,
            written_bytes: 0,
        }
    }

    /// Measures the generator, and the device for as long as it takes to choose sizes by it.
    pub(crate) fn calibrate(&mut self) -> Result<(), Error> {
        let bs_bytes = self.stream.bs_bytes.min(16 << 20) as usize;
        self.generator_bytes_per_s = Data::new(0, 0).measure(bs_bytes);
        if !self.plan.needs_calibration() {
            return Ok(());
        }
        let sizes = self.plan.calibration();
        let job = Job {
            ioengine: Ioengine::IoUring,
            direct: true,
            bs_bytes: sizes.bs_bytes,
            size_bytes: sizes.size_bytes,
            iodepth: sizes.iodepth,
            numjobs: 1,
            // Where direct I/O is refused, the flush still shows the device's speed.
            flush: Flush::FdatasyncAtEnd,
            blocks: Blocks::Allocated,
        };
        let files = [self.scratch.job_file(0)];
        let measured = run::run(&job, &self.place(&files, CALIBRATION_TIME))?;
        run::clear(&files, self.scratch.path())?;
        self.written_bytes += measured.run.bytes;
        let bytes_per_s = measured.run.throughput_bytes_per_s;
        self.stream = self.plan.sizes(Workload::Stream, bytes_per_s);
        self.small = self.plan.sizes(Workload::Small, bytes_per_s);
        Ok(())
    }

    /// Runs every row in turn (M8).
    pub(crate) fn rounds(&mut self, ticker: &mut Ticker) -> Result<(), Error> {
        let order = self.plan.order();
        let writes_new = |index: &usize| self.plan.ways[*index].blocks != Blocks::Written;
        let last_new = order.iter().rposition(writes_new);
        for (run, index) in order.into_iter().enumerate() {
            let way = self.plan.ways[index];
            ticker.tick(way.name);
            let stays = way.blocks == Blocks::Written || self.plan.keep && last_new == Some(run);
            self.run(index, stays)?;
        }
        Ok(())
    }

    /// Runs a row once; its files stay, or go.
    fn run(&mut self, index: usize, stays: bool) -> Result<(), Error> {
        let way = self.plan.ways[index];
        let job = way.job(self.sizes(way));
        let first = match (way.blocks, way.workload) {
            (Blocks::Written, Workload::Stream) => SETTLED_STREAM,
            (Blocks::Written, Workload::Small) => SETTLED_SMALL,
            _ => 0,
        };
        let files: Vec<PathBuf> =
            (0..job.numjobs).map(|number| self.scratch.job_file(first + number)).collect();
        if way.blocks == Blocks::Written && !files[0].exists() {
            self.settle(&job, &files)?;
        }
        let measured = run::run(&job, &self.place(&files, self.plan.time(way.workload)))?;
        if !stays {
            run::clear(&files, self.scratch.path())?;
        }
        self.written_bytes += measured.run.bytes;
        self.rows[index].add(measured);
        Ok(())
    }

    /// Writes and flushes the files that are then written over.
    fn settle(&mut self, job: &Job, files: &[PathBuf]) -> Result<(), Error> {
        // In large writes, where the file is a multiple of them: small ones might take minutes.
        let large = Some(self.stream.bs_bytes)
            .filter(|large| job.file_bytes().is_multiple_of(*large))
            .unwrap_or(job.bs_bytes);
        let job = Job {
            ioengine: Ioengine::IoUring,
            direct: true,
            bs_bytes: large.max(job.bs_bytes),
            iodepth: self.stream.iodepth,
            flush: Flush::FdatasyncAtEnd,
            blocks: Blocks::Allocated,
            ..*job
        };
        let measured = run::run(&job, &self.place(files, WHOLE))?;
        self.written_bytes += measured.run.bytes;
        Ok(())
    }

    fn sizes(&self, way: &Way) -> &Sizes {
        match way.workload {
            Workload::Stream => &self.stream,
            Workload::Small => &self.small,
        }
    }

    fn place<'b>(&'b self, files: &'b [PathBuf], time: Duration) -> Place<'b> {
        Place { files, device: device_of(self.target), time, stop: self.stop }
    }

    /// Adds up what the rounds gave. The folder must still be there.
    pub(crate) fn finish(mut self) -> Outcome {
        let rows = self.plan.ways.iter().zip(std::mem::take(&mut self.rows));
        Outcome {
            target: self.target(),
            rows: rows.map(|(way, so_far)| self.row(way, so_far)).collect(),
            generator_bytes_per_s: self.generator_bytes_per_s,
            written_bytes: self.written_bytes,
        }
    }

    fn row(&self, way: &Way, so_far: RowSoFar) -> Row {
        let survives = way.survives(&so_far.effective(), self.target);
        so_far.row(Named {
            name: way.name,
            workload: way.workload.as_str(),
            words: way.words,
            survives,
            asked: way.job(self.sizes(way)).asked(),
        })
    }

    /// What lies under the path, for the result. The alignments are a file's.
    fn target(&self) -> result::Target {
        shown_target(self.target, File::open(self.scratch.lock_file()).ok().as_ref())
    }
}

/// What lies under a path, for the result; the alignments are those of `file`, which lies there.
pub(crate) fn shown_target(target: &Target, file: Option<&File>) -> result::Target {
    let alignment = file.and_then(|file| wrote::device::alignment(file, target));
    result::Target {
        path: target.path.display().to_string(),
        filesystem: target.filesystem.clone(),
        mount_options: target.mount_options.clone(),
        capacity_bytes: target.capacity_bytes,
        free_bytes: target.free_bytes,
        dio_offset_align_bytes: alignment.map(|alignment| alignment.offset_bytes),
        dio_memory_align_bytes: alignment.map(|alignment| alignment.memory_bytes),
        device: device_of(target).map(shown),
        no_device_because: match &target.backing {
            Backing::None { because } => Some(because.clone()),
            Backing::Block(_) => None,
        },
    }
}

fn shown(device: &BlockDevice) -> result::Device {
    result::Device {
        name: device.name.clone(),
        disks: device.disks.clone(),
        model: device.model.clone(),
        capacity_bytes: device.capacity_bytes,
        rotational: device.rotational,
        scheduler: device.scheduler.clone(),
        logical_block_bytes: device.logical_block_bytes,
        physical_block_bytes: device.physical_block_bytes,
        write_cache: device.write_cache.clone(),
        fua: device.fua,
        io_poll: device.io_poll,
        nr_requests: device.nr_requests,
    }
}
