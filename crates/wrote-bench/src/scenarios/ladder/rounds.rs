//! One run of a row, after a calibration that chooses sizes.

use super::plan::{BESIDE, CALIBRATION_TIME, Plan, RUN_TIME, importance};
use super::{Blocks, NAME, Sizes, Way, Workload};
use crate::measured;
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{self, Site};
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::rate;
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::JobSpec;
use wrote_machine::held_memory::HeldMemory;
use wrote_result::Error;

impl scenario::Plan for Plan {
    fn scope(&self) -> scenario::Scope {
        let question =
            "How fast does this disk take sequential writes, and what does each way survive?"
                .into();
        scenario::Scope { name: NAME, question, runs: self.runs }
    }

    fn rows(&self) -> Vec<String> {
        self.ways.iter().map(|way| way.name.into()).collect()
    }

    fn space_bytes_max(&self) -> u64 {
        self.files_bytes_max() + self.held_bytes()
    }

    fn written_bytes_max(&self) -> u64 {
        let runs: u64 = self.ways.iter().map(|way| self.run_bytes_max(way.workload)).sum();
        let settled = self.settled_bytes_max();
        let calibration = if self.needs_calibration() { self.calibration().size_bytes } else { 0 };
        runs * u64::from(self.runs) + settled + calibration
    }

    fn estimate(&self) -> Duration {
        let usual = if self.common.rate.is_some() { rate::RUN_TIME } else { RUN_TIME };
        let time =
            (self.common.time.unwrap_or(usual) + BESIDE) * self.runs * self.ways.len() as u32;
        self.within.map_or(time, |within| time.min(within))
    }

    /// Chooses sizes by the speed of the disk.
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<u64, Error> {
        let written_bytes = self.calibrate(site)?;
        self.hold_memory(site)?;
        Ok(written_bytes)
    }

    fn within(&self) -> Option<Duration> {
        self.within
    }

    fn foreseen(&self, row: usize) -> Duration {
        self.foreseen_of(self.ways[row])
    }

    fn rank(&self, row: usize) -> usize {
        importance(self.ways[row])
    }

    fn shrink(&mut self, factor: f64) -> bool {
        self.shrink_by(factor)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let way = self.ways[turn.row];
        let in_place = way.blocks == Blocks::Written;
        let filled_bytes = if in_place { self.fill(way.workload, site)? } else { 0 };
        let (sizes, files) = (*self.sizes_of(way.workload), self.files(way, site));
        if let Some(held) = self.held.as_mut().filter(|_| !way.direct) {
            held.give_back()?;
        }
        let job = way.job(&sizes, self.time(way.workload));
        let group = site.run_jobs(&job.on_each(&files, sizes.rate), permissions(in_place))?;
        let settled = if in_place { &files[..] } else { &[] };
        let mut run = Repeated::of(&group, &site.before(settled, &files));
        way.label(&mut run.rows[0]);
        run.written_bytes += filled_bytes;
        Ok(run)
    }

    fn shares_files(&self) -> bool {
        true
    }

    fn makes_files(&self, row: usize) -> bool {
        self.ways[row].blocks != Blocks::Written
    }

    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        let way = self.ways[row];
        super::clear(&self.files(way, site), way.blocks == Blocks::Written, site)?;
        self.held.as_mut().map_or(Ok(()), |held| held.take(site.stop))
    }

    fn shared_files(&self, site: &Site) -> Vec<PathBuf> {
        let written = Workload::ALL.into_iter().filter(|workload| self.overwrites(*workload));
        written.flat_map(|of| site.job_files(written_part(of), self.sizes_of(of).numjobs)).collect()
    }

    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        self.held.as_mut().map_or(Ok(()), HeldMemory::give_back)
    }
}

impl Plan {
    /// Chooses the sizes by the disk's speed, measured once. Returns the bytes written.
    fn calibrate(&mut self, site: &Site) -> Result<u64, Error> {
        if !self.needs_calibration() {
            return Ok(0);
        }
        let (bytes_per_s, written_bytes) = match site.speed.get() {
            Some(bytes_per_s) => (*bytes_per_s, 0),
            None => {
                let (measured, written_bytes) = self.measure_speed(site)?;
                let measured = site.least(measured)?;
                (*site.speed.get_or_init(|| measured), written_bytes)
            }
        };
        self.choose_sizes(bytes_per_s);
        Ok(written_bytes)
    }

    /// Writes and flushes the file that rows write over, before the first of their runs. Returns
    /// the bytes written.
    fn fill(&mut self, workload: Workload, site: &Site) -> Result<u64, Error> {
        if std::mem::replace(&mut self.filled[workload as usize], true) {
            return Ok(0);
        }
        let files = site.job_files(written_part(workload), self.sizes_of(workload).numjobs);
        // In large writes: small ones might take minutes.
        let stream = self.sizes_of(Workload::Stream);
        let job = self.sizes_of(workload).fill(stream.bs_bytes, stream.iodepth);
        let site = site.apart();
        Ok(site.run_jobs(&job.on_each(&files, None), permissions(false))?.written_bytes())
    }

    /// Returns the speed of a stream in bytes per second, and the bytes written. The flush at its
    /// end shows the device's speed where the file system refuses direct I/O.
    ///
    /// On a disk whose first write takes as long as a calibration, that write is the calibration: a
    /// whole queue might take a minute.
    fn measure_speed(&self, site: &Site) -> Result<(f64, u64), Error> {
        let sizes = self.calibration();
        let first = Sizes { size_bytes: sizes.bs_bytes, iodepth: 1, ..sizes };
        let (first_bytes, elapsed) = self.write_once(&first, site)?;
        if elapsed >= CALIBRATION_TIME {
            return Ok((first_bytes as f64 / elapsed.as_secs_f64(), first_bytes));
        }
        let (bytes, elapsed) = self.write_once(&sizes, site)?;
        Ok((bytes as f64 / elapsed.as_secs_f64().max(1e-9), first_bytes + bytes))
    }

    /// Writes a file of `sizes` for the time of a calibration. Returns its bytes and the time.
    fn write_once(&self, sizes: &Sizes, site: &Site) -> Result<(u64, Duration), Error> {
        let files = site.files("calibration", 1);
        let job = sizes.fill(sizes.bs_bytes, sizes.iodepth);
        let job = JobSpec { runtime: Some(CALIBRATION_TIME), ..job };
        let group = site.run_jobs(&job.on_each(&files, None), permissions(false))?;
        measured::clear(&files, site.scratch.path())?;
        Ok((group.written_bytes(), group.elapsed))
    }

    /// Holds memory for the longest cached run.
    fn hold_memory(&mut self, site: &Site) -> Result<(), Error> {
        let cached = self.ways.iter().filter(|way| !way.direct);
        let longest = cached.map(|way| self.sizes_of(way.workload).size_bytes).max().unwrap_or(0);
        let bytes = longest.min(self.held_bytes());
        self.held.insert(HeldMemory::new(site.file("held", 0), bytes)).take(site.stop)
    }

    fn sizes_of(&self, workload: Workload) -> &Sizes {
        &self.sizes[workload as usize]
    }

    fn files(&self, way: &Way, site: &Site) -> Vec<PathBuf> {
        let in_place = way.blocks == Blocks::Written;
        let part = if in_place { written_part(way.workload) } else { "new" };
        site.job_files(part, self.sizes_of(way.workload).numjobs)
    }
}

/// The part of the names of files that rows of this workload write over.
fn written_part(workload: Workload) -> &'static str {
    match workload {
        Workload::Stream => "stream_written",
        Workload::Small => "small_written",
    }
}

/// The permissions of a run. The plan has left room for every file that exists at once.
fn permissions(overwrite: bool) -> Permissions {
    Permissions { overwrite, fill: true, ..Permissions::default() }
}
