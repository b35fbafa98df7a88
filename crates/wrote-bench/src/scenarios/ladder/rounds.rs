//! One run of a row, after a calibration that chooses sizes.

use super::plan::{BESIDE, LOG_PART, Plan, RUN_TIME, importance};
use super::{Blocks, NAME, Sizes, Way, Workload};
use crate::burst::{self, Drain};
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{self, Bounds as _, Limits as _, Site};
use crate::trial::Trial;
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::machine::held_memory::HeldMemory;
use wrote_jobs::rate;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::Row;

impl scenario::Rows for Plan {
    fn scope(&self) -> scenario::Scope {
        let question =
            "How fast does this disk take sequential writes, and what does each way survive?"
                .into();
        scenario::Scope { name: NAME, question, runs: self.runs }
    }

    fn rows(&self) -> Vec<String> {
        self.ways.iter().map(|way| way.name.into()).collect()
    }
}

impl scenario::Bounds for Plan {
    fn space_bytes_max(&self) -> u64 {
        self.files_bytes_max() + self.held_bytes_max()
    }

    fn written_bytes_max(&self) -> u64 {
        let of = |way: &&'static Way| self.run_bytes_max(way.workload) + self.drained_bytes(way);
        let runs: u64 = self.ways.iter().map(of).sum();
        let settled = self.settled_bytes_max();
        runs * u64::from(self.runs) + settled
    }

    fn wants_trial(&self) -> bool {
        self.needs_calibration()
    }

    fn learn(&mut self, trial: Trial) {
        self.flush = Some(trial.flush);
        self.leave_out(trial.burst);
        self.choose_sizes(trial.bytes_per_s);
    }

    fn written_bytes(&self) -> Option<u64> {
        let of = |way: &&'static Way| self.expected_bytes_of(way) + self.drained_bytes(way);
        let round: u64 = self.ways.iter().map(of).sum();
        Some((round as f64 * self.expected_rounds()) as u64 + self.settled_bytes())
    }

    fn estimate(&self) -> Duration {
        if self.is_foreseeable() {
            return self.settled_time() + self.round_time().mul_f64(self.expected_rounds());
        }
        let usual = if self.common.rate.is_some() { rate::RUN_TIME } else { RUN_TIME };
        let time =
            (self.common.time.unwrap_or(usual) + BESIDE) * self.runs * self.ways.len() as u32;
        self.within.map_or(time, |within| time.min(within - self.kept_time()))
    }

    fn limits(&mut self) -> Option<(Duration, &mut dyn scenario::Limits)> {
        self.within.map(|within| (within, self as _))
    }
}

impl scenario::Limits for Plan {
    fn kept_time(&self) -> Duration {
        let whole = self.within.filter(|_| self.is_default).unwrap_or_default();
        whole / LOG_PART
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
}

impl scenario::Plan for Plan {
    /// Chooses sizes by the disk's speed.
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<u64, Error> {
        let mut written_bytes = 0;
        if self.needs_calibration() && self.bytes_per_s.is_none() {
            let (trial, bytes) = Trial::of(site, &self.common)?;
            self.learn(trial);
            written_bytes = bytes;
        }
        self.hold_memory(site)?;
        Ok(written_bytes)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let way = self.ways[turn.row];
        let in_place = way.blocks == Blocks::Written;
        let filled_bytes = if in_place { self.fill(way.workload, site)? } else { 0 };
        let (sizes, files) = (*self.sizes_of(way.workload), self.files(way, site));
        if let Some(held) = self.held.as_mut().filter(|_| !way.direct) {
            held.give_back()?;
        }
        let job = way.job(&sizes, self.time_of(way));
        let jobs = job.on_each(&files, sizes.rate);
        let drained_bytes = self.drained_bytes(way);
        let group = match self.drain(way) {
            Some(sizes) => {
                let mut drain = Drain { site, file: site.file("burst", 0), sizes };
                site.run_jobs_watched(&jobs, permissions(in_place), &mut drain)?
            }
            None => site.run_jobs(&jobs, permissions(in_place))?,
        };
        if self.burst.is_none() && way.direct && way.workload == Workload::Stream {
            self.leave_out(burst::find(&group.jobs[0].trail));
        }
        let settled = if in_place { &files[..] } else { &[] };
        let mut run = Repeated::of(&group, &site.before(settled, &files), |row| Row {
            workload: way.workload.as_str().into(),
            way: way.words.into(),
            settings: way.stated(row.settings),
            ..row
        });
        run.written_bytes += filled_bytes + drained_bytes;
        Ok(run)
    }

    fn burst(&self) -> Option<Burst> {
        self.burst
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
        let written =
            written.flat_map(|of| site.job_files(written_part(of), self.sizes_of(of).numjobs));
        written.chain(self.burst.map(|_| site.file("burst", 0))).collect()
    }

    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        self.held.as_mut().map_or(Ok(()), HeldMemory::give_back)
    }
}

impl Plan {
    /// Writes and flushes the file that rows overwrite, before their first run. Returns the bytes
    /// written.
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

    /// Reserves memory for the longest cached run.
    fn hold_memory(&mut self, site: &Site) -> Result<(), Error> {
        let held = HeldMemory::new(site.file("held", 0), self.held_bytes());
        self.held.insert(held).take(site.stop)
    }

    pub(super) fn sizes_of(&self, workload: Workload) -> &Sizes {
        &self.sizes[workload as usize]
    }

    fn files(&self, way: &Way, site: &Site) -> Vec<PathBuf> {
        let in_place = way.blocks == Blocks::Written;
        let part = if in_place { written_part(way.workload) } else { "new" };
        site.job_files(part, self.sizes_of(way.workload).numjobs)
    }
}

/// Returns the part of file names for files that this workload's rows overwrite.
fn written_part(workload: Workload) -> &'static str {
    match workload {
        Workload::Stream => "stream_written",
        Workload::Small => "small_written",
    }
}

/// Returns the permissions of a run. The plan has reserved space for every coexisting file.
fn permissions(overwrite: bool) -> Permissions {
    Permissions { overwrite, fill: true, ..Permissions::default() }
}
