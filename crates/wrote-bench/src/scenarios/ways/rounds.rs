//! The rounds of the scenario: the source made, every way in turn, and what they add up to.

use super::plan::{Plan, Sizes};
use super::write::{self, Task};
use super::{Kind, NAME, QUESTION, Way, dd, ours};
use crate::bench::Ticker;
use crate::measured;
use crate::measured::Measured as OneRun;
use crate::measured::{Named, RowSoFar};
use crate::scenario::{Measured, Planned, Site};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote_jobs::clock::clocked;
use wrote_jobs::jobs::lay_out;
use wrote_jobs::page_cache;
use wrote_jobs::worker::histogram;
use wrote_machine::peak_memory;
use wrote_machine::usage::Usage;
use wrote_result::document::{Fallback, Row, Run, Scenario, Settings};
use wrote_result::{Error, Stop};

/// The numbers of the source and of the file that is written: no other scenario's.
const INPUT: u32 = 4000;
const OUTPUT: u32 = 4001;

/// What all runs use.
struct Rounds<'a> {
    site: &'a Site<'a>,
    input: PathBuf,
    output: PathBuf,
    sizes: Sizes,
}

/// Makes the source, and runs every way in turn, every second round backwards (M8). `keep` leaves the
/// source and the last file where they are.
pub(super) fn measure(plan: &Plan, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
    let (scratch, keep) = (site.scratch, site.keep);
    let mut plan = plan.clone();
    let (input, output) = (scratch.job_file(INPUT), scratch.job_file(OUTPUT));
    let runs_planned = plan.runs_total();
    leave_out_dd(&mut plan, &output);
    ticker.leave_out(runs_planned - plan.runs_total());
    for (name, because) in &plan.left_out {
        ticker.note(&format!("{name} is left out: {because}"));
    }
    let sizes = make_source(&plan, &input, site.stop)?;
    let rounds = Rounds { site, input, output, sizes };
    let mut rows: Vec<RowSoFar> = plan.ways.iter().map(|_| RowSoFar::new()).collect();
    let mut written_bytes = sizes.file_bytes;
    let order = plan.order();
    let last = order.len().saturating_sub(1);
    for (number, index) in order.into_iter().enumerate() {
        let way = plan.ways[index];
        ticker.tick(way.name);
        rows[index].add(rounds.run(way)?);
        written_bytes += sizes.of(way);
        if !(keep && number == last) {
            rounds.clear()?;
        }
    }
    if !keep {
        measured::clear(std::slice::from_ref(&rounds.input), scratch.path())?;
    }
    let rows = plan.ways.iter().zip(rows).map(|(way, so_far)| rounds.row(way, so_far)).collect();
    let left_out = plan.left_out.into_iter().map(|(name, because)| (name.into(), because));
    Ok(Measured {
        scenario: Scenario { name: NAME.into(), question: QUESTION.into(), rows, knee: None },
        written_bytes,
        left_out: left_out.collect(),
    })
}

/// Takes out the ways that dd can't do here.
fn leave_out_dd(plan: &mut Plan, output: &Path) {
    plan.leave_out(|way| match way.kind {
        Kind::Dd { direct } => dd::why_not(output, direct),
        _ => None,
    });
}

/// Writes the source: random bytes that are on the device when this returns. How fast the first of
/// them went tells how many there are.
fn make_source(plan: &Plan, input: &Path, stop: &Stop) -> Result<Sizes, Error> {
    let made = |error| Error::Failed(format!("{}: create: {error}", input.display()));
    let file = File::options().read(true).write(true).create_new(true).open(input).map_err(made)?;
    let mut bytes_per_s = f64::MAX;
    if let Some(bytes) = plan.calibration_bytes() {
        let began = Instant::now();
        lay_out(input, &file, 0..bytes, stop)?;
        bytes_per_s = bytes as f64 / began.elapsed().as_secs_f64().max(1e-9);
    }
    let sizes = plan.sizes(bytes_per_s);
    lay_out(input, &file, 0..sizes.file_bytes, stop)?;
    let resized = |error| Error::Failed(format!("{}: truncate: {error}", input.display()));
    // On a slow disk the first bytes may have been more than are used.
    file.set_len(sizes.file_bytes).map_err(resized)?;
    file.sync_all().map_err(resized)?;
    Ok(sizes)
}

impl Rounds<'_> {
    /// Runs a way once; its file stays.
    fn run(&self, way: &Way) -> Result<OneRun, Error> {
        let size_bytes = self.sizes.of(way);
        let mut effective = way.asked(size_bytes);
        let mut fallbacks = Vec::new();
        if let Some(wanted) = way.kind.cache() {
            let (found, fallback) = page_cache::prepare(&self.input, wanted, self.site.stop)?;
            effective.source_cache = Some(found.as_str().into());
            fallbacks.extend(fallback);
        }
        let mut run = match way.kind {
            Kind::Dd { direct } => self.dd(direct, size_bytes)?,
            kind => self.ours_or_theirs(kind, size_bytes, &mut effective, &mut fallbacks)?,
        };
        self.site.stop.check()?;
        run.bytes = size_bytes;
        run.throughput_bytes_per_s = size_bytes as f64 / run.elapsed_s;
        run.iops = size_bytes.div_ceil(effective.bs_bytes.max(1)) as f64 / run.elapsed_s;
        Ok(OneRun { run, latencies: histogram(), effective, fallbacks })
    }

    fn dd(&self, direct: bool, size_bytes: u64) -> Result<Run, Error> {
        let task = self.task(&[], size_bytes);
        let (peak, run) = clocked(self.site.device(), Usage::of_children, || {
            let peak = dd::write(&self.output, size_bytes, direct, self.site.stop)?;
            // dd knows nothing of folders; whoever wants its file to last adds that.
            if !direct {
                task.sync_name()?;
            }
            Ok(peak)
        })?;
        Ok(Run { max_rss_bytes: peak, ..run })
    }

    /// A way within this process. The peak of its memory is that of the run, with what was read
    /// before the clock started: a program that writes so holds that too. Not of a `Writer`, which is
    /// for who has the file in pieces, one after the other.
    fn ours_or_theirs(
        &self,
        kind: Kind,
        size_bytes: u64,
        effective: &mut Settings,
        fallbacks: &mut Vec<Fallback>,
    ) -> Result<Run, Error> {
        let marked = peak_memory::reset();
        let bytes =
            if kind.holds_input() { read_whole(&self.input, size_bytes)? } else { Vec::new() };
        let task = self.task(&bytes, size_bytes);
        let (done, mut run) = clocked(self.site.device(), Usage::now, || match kind {
            Kind::Writer(bytes) => ours::writer(&task, bytes).map(Some),
            Kind::CopyFile(_) => ours::copy(&task).map(Some),
            kind => write::write(kind, &task).map(|()| None),
        })?;
        match marked {
            Ok(()) => {
                let given = if matches!(kind, Kind::Writer(_)) { bytes.len() as u64 } else { 0 };
                run.max_rss_bytes = peak_memory::bytes().map(|peak| peak.saturating_sub(given));
            }
            Err(error) => fallbacks.push(Fallback {
                wanted: "peak of memory".into(),
                got: "no figure".into(),
                because: format!("/proc/self/clear_refs: {error}"),
            }),
        }
        if let Some(done) = done {
            run.iodepth_reached = done.effective.iodepth_reached.max(1);
            fallbacks.extend(done.effective.fallbacks.iter().map(measured::fallback));
            done.tell(effective);
        }
        Ok(run)
    }

    fn task<'a>(&'a self, bytes: &'a [u8], size_bytes: u64) -> Task<'a> {
        Task { input: &self.input, bytes, size_bytes, output: &self.output, stop: self.site.stop }
    }

    /// Removes the file that was written.
    fn clear(&self) -> Result<(), Error> {
        measured::clear(std::slice::from_ref(&self.output), self.site.scratch.path())
    }

    fn row(&self, way: &Way, so_far: RowSoFar) -> Row {
        so_far.row(Named {
            name: way.name,
            workload: way.workload,
            words: way.words,
            survives: way.survives(self.site.target),
            asked: way.asked(self.sizes.of(way)),
        })
    }
}

/// The first `bytes` of a file, in memory.
fn read_whole(path: &Path, bytes: u64) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::Failed(format!("{}: read: {error}", path.display()));
    let mut whole = Vec::with_capacity(bytes as usize);
    let file = File::open(path).map_err(failed)?;
    file.take(bytes).read_to_end(&mut whole).map_err(failed)?;
    Ok(whole)
}
