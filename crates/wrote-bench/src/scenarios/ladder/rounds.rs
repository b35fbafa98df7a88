//! The rounds of the ladder: a calibration, and every row in turn.

use super::plan::{CALIBRATION_TIME, Plan};
use super::{NAME, QUESTION, Sizes, Way, Workload};
use crate::measured;
use crate::progress::Ticker;
use crate::scenario::{Measured, Site};
use std::path::PathBuf;
use wrote_jobs::jobs;
use wrote_jobs::jobs::{GroupReport, Permissions};
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::JobSpec;
use wrote_machine::held_memory::HeldMemory;
use wrote_result::Error;
use wrote_result::document::{Blocks, Scenario};

/// Measures the speed of the disk, and runs every row in turn, every second round backwards (M8).
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
    /// The runs of each row so far.
    rows: Vec<Repeated>,
    /// Files that every round writes over.
    settled: Vec<PathBuf>,
    /// Memory for cached runs.
    held: Option<HeldMemory>,
    written_bytes: u64,
}

impl<'a> Rounds<'a> {
    fn new(plan: &'a Plan, site: &'a Site<'a>) -> Rounds<'a> {
        // The sizes of a fast device, until the calibration gives better ones.
        let fast = f64::MAX;
        Rounds {
            plan,
            site,
            stream: plan.sizes(Workload::Stream, fast),
            small: plan.sizes(Workload::Small, fast),
            rows: plan.ways.iter().map(|_| Repeated::default()).collect(),
            settled: Vec::new(),
            held: None,
            written_bytes: 0,
        }
    }

    /// Chooses the sizes by the speed of the device.
    fn calibrate(&mut self) -> Result<(), Error> {
        if !self.plan.needs_calibration() {
            return Ok(());
        }
        let bytes_per_s = match self.site.speed.get() {
            Some(bytes_per_s) => *bytes_per_s,
            None => {
                let bytes_per_s = self.measure_speed()?;
                *self.site.speed.get_or_init(|| bytes_per_s)
            }
        };
        self.stream = self.plan.sizes(Workload::Stream, bytes_per_s);
        self.small = self.plan.sizes(Workload::Small, bytes_per_s);
        Ok(())
    }

    /// Returns the speed of a stream, in bytes per second. The flush at its end shows the device's
    /// speed where the file system refuses direct I/O.
    fn measure_speed(&mut self) -> Result<f64, Error> {
        let sizes = self.plan.calibration();
        let files = self.site.files("calibration", 1);
        let job = sizes.fill(sizes.bs_bytes, sizes.iodepth);
        let job = JobSpec { runtime: Some(CALIBRATION_TIME), ..job };
        let group = self.run_jobs(&job.on_each(&files, None), false)?;
        measured::clear(&files, self.site.scratch.path())?;
        Ok(group.written_bytes() as f64 / group.elapsed.as_secs_f64().max(1e-9))
    }

    /// Runs jobs at once.
    fn run_jobs(&mut self, jobs: &[JobSpec], overwrite: bool) -> Result<GroupReport, Error> {
        let permissions = Permissions { overwrite, ..Permissions::default() };
        let group = jobs::run(jobs, permissions, self.site.stop, &mut ())?.remove(0);
        self.written_bytes += group.written_bytes();
        Ok(group)
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

    /// Runs a row once.
    fn run(&mut self, index: usize, stays: bool) -> Result<(), Error> {
        let way = self.plan.ways[index];
        let sizes = *self.sizes(way);
        let in_place = way.blocks == Blocks::Written;
        let part = match (in_place, way.workload) {
            (true, Workload::Stream) => "stream_written",
            (true, Workload::Small) => "small_written",
            (false, _) => "new",
        };
        let files = self.site.files(part, sizes.numjobs);
        if in_place && !files[0].exists() {
            self.settled.extend(files.iter().cloned());
            // In large writes: small ones might take minutes.
            let job = sizes.fill(self.stream.bs_bytes, self.stream.iodepth);
            self.run_jobs(&job.on_each(&files, None), false)?;
        }
        self.give_memory(way)?;
        let job = way.job(&sizes, self.plan.time(way.workload));
        let group = self.run_jobs(&job.on_each(&files, sizes.rate), in_place)?;
        super::clear(&files, stays, self.site)?;
        self.hold_memory()?;
        let before = self.site.before(if in_place { &files } else { &[] }, &files);
        self.rows[index].add(&group, &before);
        Ok(())
    }

    /// Gives held memory back to the kernel before a cached run.
    fn give_memory(&mut self, way: &Way) -> Result<(), Error> {
        match &mut self.held {
            Some(held) if !way.direct => held.give_back(),
            _ => Ok(()),
        }
    }

    fn hold_memory(&mut self) -> Result<(), Error> {
        match &mut self.held {
            Some(held) => held.take(self.site.stop),
            None => Ok(()),
        }
    }

    /// Holds memory for the longest cached run.
    fn hold_first(&mut self) -> Result<(), Error> {
        let cached = self.plan.ways.iter().filter(|way| !way.direct);
        let longest = cached.map(|way| self.sizes(way).size_bytes).max().unwrap_or(0);
        let bytes = longest.min(self.plan.held_bytes());
        self.held = Some(HeldMemory::new(self.site.file("held", 0), bytes));
        self.hold_memory()
    }

    fn sizes(&self, way: &Way) -> &Sizes {
        match way.workload {
            Workload::Stream => &self.stream,
            Workload::Small => &self.small,
        }
    }

    /// Removes the files that stayed, and returns the rows.
    fn finish(mut self) -> Result<Measured, Error> {
        if let Some(held) = &mut self.held {
            held.give_back()?;
        }
        if !self.site.keep {
            measured::clear(&self.settled, self.site.scratch.path())?;
        }
        let rows = self.plan.ways.iter().zip(self.rows).map(|(way, runs)| way.row(runs)).collect();
        Ok(Measured {
            scenario: Scenario { name: NAME.into(), question: QUESTION.into(), rows, knee: None },
            written_bytes: self.written_bytes,
            left_out: Vec::new(),
        })
    }
}
