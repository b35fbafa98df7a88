//! One run of a row.

use super::plan::{Plan, importance};
use super::{Blocks, NAME, Sizes, Way, Workload};
use crate::burst::{self, Drain};
use crate::calibration::Calibration;
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{self, Site};
use std::path::PathBuf;
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::machine::held_memory::HeldMemory;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::Row;

impl scenario::Plan for Plan {
    fn scope(&self) -> scenario::Scope {
        let question =
            "How fast does this disk take sequential writes, and what does each way survive?";
        scenario::Scope {
            name: NAME,
            question: question.into(),
            runs: self.runs,
            slice: self.usual_slice(),
            within: self.limit(),
        }
    }

    fn rows(&self) -> Vec<String> {
        self.ways.iter().map(|way| way.name.into()).collect()
    }

    fn importance(&self, row: usize) -> usize {
        importance(self.ways[row])
    }

    fn space_bytes_max(&self) -> u64 {
        self.files_bytes_max() + self.held_bytes_max()
    }

    fn written_bytes_max(&self) -> u64 {
        self.all_bytes()
    }

    fn wants_calibration(&self) -> bool {
        self.needs_calibration()
    }

    fn calibrated(&mut self, speed: &Calibration) {
        self.leave_out(speed.burst);
        self.choose_sizes(speed.bytes_per_s);
    }

    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<u64, Error> {
        self.hold_memory(site)?;
        Ok(0)
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
            let seen = burst::find(&group.jobs[0].trail);
            // To use it up before the other runs would write more than was announced.
            self.seen = seen.map(|burst| Burst { is_left_out: false, ..burst }).or(self.seen);
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
        self.burst.or(self.seen)
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
