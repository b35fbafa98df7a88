//! The rounds of the ladder: a calibration, every row in turn, and what they add up to.

use super::{NAME, QUESTION, Sizes, Way, Workload};
use crate::progress::Ticker;
use crate::measured;
use crate::measured::{OneRun, RowLabel};
use crate::scenario::{Measured, Site};
use crate::scenarios::ladder::job::Job;
use crate::scenarios::ladder::plan::{CALIBRATION_TIME, Plan, WHOLE};
use crate::scenarios::ladder::run;
use crate::scenarios::ladder::run::Place;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;
use wrote_machine::held_memory::HeldMemory;
use wrote_result::Error;
use wrote_result::document::{Blocks, Flush, Row, Scenario};

/// Looks first at how fast the disk is, and runs every row in turn, every second round backwards (M8).
pub(crate) fn measure(plan: &Plan, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
    let mut rounds = Rounds::new(plan, site);
    rounds.calibrate()?;
    rounds.run_all(ticker)?;
    rounds.finish()
}

/// The ladder while it is measured.
struct Rounds<'a> {
    plan: &'a Plan,
    site: &'a Site<'a>,
    stream: Sizes,
    small: Sizes,
    rows: Vec<Vec<OneRun>>,
    /// Files that are written over by every round.
    settled: Vec<PathBuf>,
    /// Memory for what goes through the page cache.
    held: Option<HeldMemory>,
    written_bytes: u64,
}

impl<'a> Rounds<'a> {
    fn new(plan: &'a Plan, site: &'a Site<'a>) -> Rounds<'a> {
        // Until the calibration tells better: those of a fast device.
        let fast = f64::MAX;
        Rounds {
            plan,
            site,
            stream: plan.sizes(Workload::Stream, fast),
            small: plan.sizes(Workload::Small, fast),
            rows: plan.ways.iter().map(|_| Vec::new()).collect(),
            settled: Vec::new(),
            held: None,
            written_bytes: 0,
        }
    }

    /// Measures the device for as long as it takes to choose sizes by it.
    fn calibrate(&mut self) -> Result<(), Error> {
        if !self.plan.needs_calibration() {
            return Ok(());
        }
        let bytes_per_s = match self.site.speed.get() {
            Some(bytes_per_s) => *bytes_per_s,
            None => {
                let bytes_per_s = self.look()?;
                *self.site.speed.get_or_init(|| bytes_per_s)
            }
        };
        self.stream = self.plan.sizes(Workload::Stream, bytes_per_s);
        self.small = self.plan.sizes(Workload::Small, bytes_per_s);
        Ok(())
    }

    /// How fast the disk takes a stream, in bytes per second.
    fn look(&mut self) -> Result<f64, Error> {
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
            rate: None,
        };
        let files = self.site.files("calibration", 1);
        let measured = run::run(&job, &self.place(&files, CALIBRATION_TIME))?;
        measured::clear(&files, self.site.scratch.path())?;
        self.written_bytes += measured.run.bytes;
        Ok(measured.run.throughput_bytes_per_s)
    }

    /// Runs every row in turn (M8).
    fn run_all(&mut self, ticker: &mut Ticker) -> Result<(), Error> {
        self.hold_first()?;
        let order = self.plan.order();
        let writes_new = |index: &usize| self.plan.ways[*index].blocks != Blocks::Written;
        let last_new = order.iter().rposition(writes_new);
        for (run, index) in order.into_iter().enumerate() {
            let way = self.plan.ways[index];
            ticker.tick(way.name);
            let stays = way.blocks == Blocks::Written || self.site.keep && last_new == Some(run);
            self.run(index, stays)?;
        }
        Ok(())
    }

    /// Runs a row once; its files stay, or go.
    fn run(&mut self, index: usize, stays: bool) -> Result<(), Error> {
        let way = self.plan.ways[index];
        let job = way.job(self.sizes(way));
        let part = match (way.blocks, way.workload) {
            (Blocks::Written, Workload::Stream) => "stream_written",
            (Blocks::Written, Workload::Small) => "small_written",
            _ => "new",
        };
        let files = self.site.files(part, job.numjobs);
        if way.blocks == Blocks::Written && !files[0].exists() {
            self.settle(&job, &files)?;
        }
        self.give_memory(&job)?;
        let measured = run::run(&job, &self.place(&files, self.plan.time(way.workload)))?;
        if !stays {
            measured::clear(&files, self.site.scratch.path())?;
        }
        self.hold_memory()?;
        self.written_bytes += measured.run.bytes;
        self.rows[index].push(measured);
        Ok(())
    }

    /// A run through the page cache finds memory that is there.
    fn give_memory(&mut self, job: &Job) -> Result<(), Error> {
        match &mut self.held {
            Some(held) if !job.direct => held.give_back(),
            _ => Ok(()),
        }
    }

    fn hold_memory(&mut self) -> Result<(), Error> {
        match &mut self.held {
            Some(held) => held.take(self.site.stop),
            None => Ok(()),
        }
    }

    /// Memory is held for the longest run through the page cache.
    fn hold_first(&mut self) -> Result<(), Error> {
        let cached = self.plan.ways.iter().filter(|way| !way.direct);
        let longest = cached.map(|way| self.sizes(way).size_bytes).max().unwrap_or(0);
        let bytes = longest.min(self.plan.held_bytes());
        self.held = Some(HeldMemory::new(self.site.file("held", 0), bytes));
        self.hold_memory()
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
            rate: None,
            ..*job
        };
        self.settled.extend(files.iter().cloned());
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
        Place { files, device: self.site.device(), time, stop: self.site.stop }
    }

    /// Adds up what the rounds gave.
    fn finish(mut self) -> Result<Measured, Error> {
        if let Some(held) = &mut self.held {
            held.give_back()?;
        }
        if !self.site.keep {
            measured::clear(&self.settled, self.site.scratch.path())?;
        }
        let rows = self.plan.ways.iter().zip(std::mem::take(&mut self.rows));
        let rows = rows.map(|(way, runs)| self.row(way, runs)).collect();
        Ok(Measured {
            scenario: Scenario { name: NAME.into(), question: QUESTION.into(), rows, knee: None },
            written_bytes: self.written_bytes,
            left_out: Vec::new(),
        })
    }

    fn row(&self, way: &Way, runs: Vec<OneRun>) -> Row {
        let survives = way.survives(&measured::effective(&runs), self.site.target);
        let label = RowLabel {
            name: way.name,
            workload: way.workload.as_str(),
            words: way.words,
            survives,
            asked: way.job(self.sizes(way)).asked(),
        };
        measured::row(label, runs)
    }
}
