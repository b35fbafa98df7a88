//! The runs of the rows, and the files and the memory that they share.

use super::plan::{Amounts, Runs};
use super::{Blocks, Way, Workload, clear};
use crate::plan::{Prepared, Turn, Work};
use crate::progress::Ticker;
use crate::site::Site;
use crate::stream::{self, Drain, Past};
use std::path::PathBuf;
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::machine::held_memory::HeldMemory;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Flush, Row, Run};

impl Work for Runs {
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        let held = HeldMemory::new(site.file("held", 0), self.amounts.held_bytes);
        self.held.insert(held).take(site.stop)?;
        Ok(Prepared::default())
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let way = self.amounts.ways[at.row];
        let in_place = way.blocks == Blocks::Written;
        let filled_bytes = if in_place { fill(self, way.workload, site)? } else { 0 };
        let (sizes, files) =
            (*self.amounts.sizes_of(way.workload), files(&self.amounts, way, site));
        if let Some(held) = self.held.as_mut().filter(|_| !way.direct) {
            held.give_back()?;
        }
        let job = way.job(&sizes, self.amounts.time(way.workload));
        let jobs = job.on_each(&files, sizes.rate);
        let mut drain = Drain { site, sizes: self.amounts.drain(way), written_bytes: 0 };
        let group = site.run_jobs(&jobs, permissions(in_place), &mut drain)?;
        let before = site.before(if in_place { &files } else { &[] }, &files);
        let mut run = Repeated::of(&group, &before, |_, settings| Row {
            settings: way.stated(settings),
            ..row.clone()
        });
        let beside_bytes = filled_bytes + drain.written_bytes;
        run.written_bytes += beside_bytes;
        self.disk_bytes += beside_bytes;
        if way.direct || way.flush != Flush::None {
            let Run { bytes, device_written_bytes, .. } = run.rows[0].runs[0];
            let bytes_per_s = run.rows[0].throughput();
            // Flushing each write takes longer than writing its bytes.
            if way.workload == Workload::Stream && !way.flush.is_each() {
                self.past.push(Past { row: at.row, before_bytes: self.disk_bytes, bytes_per_s });
            }
            self.disk_bytes += device_written_bytes.unwrap_or(bytes);
        }
        Ok(run)
    }

    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        let way = self.amounts.ways[row];
        clear(&files(&self.amounts, way, site), way.blocks == Blocks::Written, site)?;
        self.held.as_mut().map_or(Ok(()), |held| held.take(site.stop))
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        let written =
            self.amounts.overwritten().flat_map(|of| written_files(&self.amounts, of, site));
        let files: Vec<PathBuf> = written.chain([Drain::file(site)]).collect();
        site.clear_shared(&files)?;
        self.held.as_mut().map_or(Ok(()), HeldMemory::give_back)
    }

    fn burst(&self) -> Option<Burst> {
        let known = || {
            let bytes_per_s = stream::lasting(&self.past)?;
            Some(Burst { bytes_per_s, ..self.amounts.burst? })
        };
        stream::dropped(&self.past).or_else(known)
    }
}

/// Writes and flushes the file that rows overwrite, unless this has already been done. Returns the
/// number of bytes written.
fn fill(runs: &mut Runs, workload: Workload, site: &Site) -> Result<u64, Error> {
    if std::mem::replace(&mut runs.filled[workload as usize], true) {
        return Ok(0);
    }
    let files = written_files(&runs.amounts, workload, site);
    // The writes are large, because small ones might take minutes.
    let stream = runs.amounts.sizes_of(Workload::Stream);
    let job = runs.amounts.sizes_of(workload).fill(stream.bs_bytes, stream.iodepth);
    let site = site.apart();
    Ok(site.run_jobs(&job.on_each(&files, None), permissions(false), &mut ())?.written_bytes())
}

fn files(amounts: &Amounts, way: &Way, site: &Site) -> Vec<PathBuf> {
    match way.blocks {
        Blocks::Written => written_files(amounts, way.workload, site),
        _ => site.job_files("new", amounts.sizes_of(way.workload).numjobs),
    }
}

/// Returns the files that the rows of this workload overwrite.
fn written_files(amounts: &Amounts, workload: Workload, site: &Site) -> Vec<PathBuf> {
    let part = match workload {
        Workload::Stream => "stream_written",
        Workload::Small => "small_written",
    };
    site.job_files(part, amounts.sizes_of(workload).numjobs)
}

/// Returns the permissions of a run. The plan has reserved space for all files that exist at the
/// same time.
fn permissions(overwrite: bool) -> Permissions {
    Permissions { overwrite, fill: true, ..Permissions::default() }
}
