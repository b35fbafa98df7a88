//! The rounds of the scenario: every way in turn, each file read back, and what they add up to.

use super::arrivals::Arrivals;
use super::check::Check;
use super::message::Messages;
use super::plan::Plan;
use super::walk::walk;
use super::{Kind, NAME, Promise, QUESTION, Way, ours, theirs};
use crate::bench::Ticker;
use crate::measured;
use crate::measured::Measured as OneRun;
use crate::measured::{Named, RowSoFar};
use crate::scenario::{Measured, Site};
use crate::scenarios::ways::Done;
use hdrhistogram::Histogram;
use std::fs::File;
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};
use wrote::{Format, LogReader};
use wrote_jobs::clock::clocked;
use wrote_machine::usage::Usage;
use wrote_result::Error;
use wrote_result::document::{Fallback, Records, Row, Run, Scenario, Settings};

/// The numbers of the file and of the log's folder: no other scenario's.
const FILE: u32 = 5000;
const LOG: u32 = 5001;

/// What all runs use.
struct Rounds<'a> {
    plan: &'a Plan,
    site: &'a Site<'a>,
    file: PathBuf,
    log: PathBuf,
}

/// Looks first at how fast each way is, and runs every way in turn, every second round backwards (M8).
/// `keep` leaves the last run's file or log where it is.
pub(super) fn measure(plan: &Plan, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
    let (scratch, keep) = (site.scratch, site.keep);
    for (name, because) in &plan.left_out {
        ticker.note(&format!("{name} is left out: {because}"));
    }
    let (file, log) = (scratch.job_file(FILE), scratch.log_folder(LOG));
    let rounds = Rounds { plan, site, file, log };
    let mut written_bytes = 0;
    let mut messages = Vec::with_capacity(plan.ways.len());
    for way in &plan.ways {
        let first = rounds.first_look(way)?;
        messages.push(plan.messages(way, first.as_ref().map_or(f64::MAX, |(run, _)| run.iops)));
        written_bytes += first.map_or(0, |(_, bytes)| bytes);
    }
    let mut rows: Vec<RowSoFar> = plan.ways.iter().map(|_| RowSoFar::new()).collect();
    let order = plan.order();
    let last = order.len().saturating_sub(1);
    for (number, index) in order.into_iter().enumerate() {
        let way = &plan.ways[index];
        ticker.tick(&way.name());
        let measured = rounds.run(way, messages[index])?;
        written_bytes += measured.run.bytes;
        rows[index].add(measured);
        if !(keep && number == last) {
            rounds.clear()?;
        }
    }
    let rows = plan.ways.iter().zip(&messages).zip(rows);
    let rows = rows.map(|((way, messages), so_far)| rounds.row(way, *messages, so_far)).collect();
    Ok(Measured {
        scenario: Scenario { name: NAME.into(), question: QUESTION.into(), rows, knee: None },
        written_bytes,
        left_out: plan.left_out.clone(),
    })
}

/// What a run gave before its file was read back.
struct Written {
    latencies: Histogram<u64>,
    run: Run,
    effective: Settings,
    fallbacks: Vec<Fallback>,
}

impl Rounds<'_> {
    /// Short runs that tell how fast a way is, each longer than the one before until one is long enough
    /// to tell, with what they wrote; none where it need not be known.
    fn first_look(&self, way: &Way) -> Result<Option<(Run, u64)>, Error> {
        let mut written_bytes = 0;
        let mut next = self.plan.first_messages(way);
        while let Some(messages) = next {
            let run = self.run(way, messages)?.run;
            self.clear()?;
            written_bytes += run.bytes;
            next = self.plan.longer_look(way, messages, run.elapsed_s);
            if next.is_none() {
                return Ok(Some((run, written_bytes)));
            }
        }
        Ok(None)
    }

    /// Runs a way once and reads back what it wrote; its file or log stays.
    fn run(&self, way: &Way, count: u64) -> Result<OneRun, Error> {
        self.site.stop.check()?;
        let messages = Messages::of_all(way.producers(), self.plan.sizes, count);
        let check = Check::new(&messages);
        let bytes = messages.iter().map(Messages::total_bytes).sum();
        let asked = way.asked(self.plan, count, bytes);
        let Written { latencies, mut run, effective, fallbacks } = match way.strategy.kind {
            Kind::Log(promise) => self.ours(promise, messages, asked)?,
            kind => self.theirs(kind, messages, asked)?,
        };
        self.site.stop.check()?;
        let records = match way.strategy.kind {
            Kind::Log(_) => self.check_log(check)?,
            _ => self.check_file(check)?,
        };
        self.site.stop.check()?;
        run.bytes = bytes;
        run.throughput_bytes_per_s = bytes as f64 / run.elapsed_s;
        run.iops = count as f64 / run.elapsed_s;
        run.records = Some(records);
        Ok(OneRun { run, latencies, effective, fallbacks })
    }

    fn theirs(
        &self,
        kind: Kind,
        mut messages: Vec<Messages>,
        effective: Settings,
    ) -> Result<Written, Error> {
        let failed = |error| Error::Failed(format!("{}: create: {error}", self.file.display()));
        let file = File::create_new(&self.file).map_err(failed)?;
        let messages = messages.pop().expect("these ways have one producer");
        let runtime = runtime()?;
        let task = theirs::Task {
            path: &self.file,
            file,
            messages,
            arrivals: Arrivals::new(self.plan.rate, 0, 1),
            runtime: &runtime,
            stop: self.site.stop,
        };
        let (latencies, run) =
            clocked(self.site.device(), Usage::now, || theirs::append(kind, task))?;
        Ok(Written { latencies, run, effective, fallbacks: Vec::new() })
    }

    fn ours(
        &self,
        promise: Promise,
        messages: Vec<Messages>,
        mut effective: Settings,
    ) -> Result<Written, Error> {
        let log = ours::open(&self.log, promise)?;
        let (append_as, runtime) = (self.plan.append_as, runtime()?);
        let task = ours::Task {
            log: log.clone(),
            promise,
            append_as,
            rate: self.plan.rate,
            runtime: &runtime,
            stop: self.site.stop,
        };
        let timed =
            ours::append(&task, messages, |work| clocked(self.site.device(), Usage::now, work));
        drop(task);
        let told = log.effective();
        // Also where a producer failed: the log is at rest before its folder is looked at.
        let closed = log.close();
        let (latencies, mut run) = timed?;
        closed?;
        run.iodepth_reached = told.iodepth_reached.max(1);
        let fallbacks = told.fallbacks.iter().map(measured::fallback).collect();
        let fell_back = told.fallbacks.iter().any(|fallback| fallback.wanted == "O_DIRECT");
        let direct = promise.format == Format::Framed && !fell_back;
        Done { effective: told, direct }.tell(&mut effective);
        Ok(Written { latencies, run, effective, fallbacks })
    }

    /// Looks for every message in the file.
    fn check_file(&self, mut check: Check) -> Result<Records, Error> {
        let failed = |error| Error::Failed(format!("{}: read: {error}", self.file.display()));
        let mut file = File::open(&self.file).map_err(failed)?;
        let max_bytes = self.plan.sizes.max_bytes as usize;
        walk(&mut file, max_bytes, &mut check, self.site.stop).map_err(failed)?;
        Ok(check.finish())
    }

    /// Looks for every message in the log, as its readers do.
    fn check_log(&self, mut check: Check) -> Result<Records, Error> {
        let mut reader = LogReader::open(&self.log, 0)?;
        let mut record = Vec::new();
        while reader.read_into(&mut record)?.is_some() {
            self.site.stop.check()?;
            check.record(&record);
            record.clear();
        }
        Ok(check.finish())
    }

    /// Removes what the last run wrote, and waits until the file system has let go of it.
    fn clear(&self) -> Result<(), Error> {
        self.site.scratch.remove_log(&self.log)?;
        measured::clear(std::slice::from_ref(&self.file), self.site.scratch.path())
    }

    fn row(&self, way: &Way, messages: u64, so_far: RowSoFar) -> Row {
        let size_bytes = so_far.effective().size_bytes;
        so_far.row(Named {
            name: &way.name(),
            workload: NAME,
            words: &way.words(),
            survives: way.survives(self.site.target),
            asked: way.asked(self.plan, messages, size_bytes),
        })
    }
}

/// tokio's usual runtime: a thread for each processor.
fn runtime() -> Result<Runtime, Error> {
    let built = Builder::new_multi_thread().enable_time().build();
    built.map_err(|error| Error::Failed(format!("tokio's runtime can't be started: {error}")))
}
