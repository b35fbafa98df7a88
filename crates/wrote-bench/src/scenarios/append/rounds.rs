//! One run of each way: appends messages, reads the file back, and checks every message.

use super::check::Check;
use super::check::walk;
use super::message::Messages;
use super::plan::Amounts;
use super::{Kind, Promise, Way, log, usual};
use crate::arrivals::Arrivals;
use crate::plan::{OneRun, Prepared, Turn, Work};
use crate::progress::Ticker;
use crate::scenarios::ways::Done;
use crate::site::{self, Site};
use crate::stream::{Drain, Sizes};
use std::fs::File;
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};
use wrote::LogReader;
use wrote_jobs::clock::clocked;
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::Watcher as _;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::{self, Repeated};
use wrote_result::Error;
use wrote_result::document::{Records, Row, Run, Settings};

impl Work for Amounts {
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        let mut written_bytes = 0;
        for way in self.ways.clone() {
            let first = Files::new(self, site).first_look(&way)?;
            let messages_per_s = first.as_ref().map_or(f64::MAX, |(run, _)| run.iops);
            let messages_per_s = site.least(messages_per_s)?;
            self.count(messages_per_s);
            written_bytes += first.map_or(0, |(_, bytes)| bytes);
        }
        Ok(Prepared { written_bytes, ..Prepared::default() })
    }

    fn run(
        &mut self,
        row: &Row,
        turn: Turn,
        site: &Site,
        _: &mut Ticker,
    ) -> Result<Repeated, Error> {
        let (way, count) = (&self.ways[turn.row], self.counts[turn.row]);
        let run = Files { drain: self.drain(way), ..Files::new(self, site) }.run(way, count)?;
        let asked = way.asked(self, count, run.run.bytes);
        let mut run = run.row(row, asked);
        run.written_bytes += self.drained_bytes(way);
        Ok(run)
    }

    fn clear(&mut self, _: usize, site: &Site) -> Result<(), Error> {
        Files::new(self, site).clear()
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&[site.file("burst", 0)])
    }

    fn burst(&self) -> Option<Burst> {
        self.burst
    }
}

struct Files<'a> {
    plan: &'a Amounts,
    site: &'a Site<'a>,
    file: PathBuf,
    log: PathBuf,
    /// The stream that uses up a burst before a log's clock starts.
    drain: Option<Sizes>,
}

impl<'a> Files<'a> {
    fn new(plan: &'a Amounts, site: &'a Site<'a>) -> Files<'a> {
        Files { plan, site, file: site.file("file", 0), log: site.file("log", 0), drain: None }
    }

    /// Makes trial runs of increasing length until one is long enough to determine the speed.
    /// Returns it with the bytes written; `None` if the speed is not needed.
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

    /// Runs a way once and reads back what it wrote, keeping its file or log.
    fn run(&self, way: &Way, count: u64) -> Result<OneRun, Error> {
        let messages = Messages::of_all(way.producers(), self.plan.sizes, count);
        let check = Check::new(&messages);
        let bytes = messages.iter().map(Messages::total_bytes).sum();
        let asked = way.asked(self.plan, count, bytes);
        let mut appended = match way.strategy.kind {
            Kind::Log(promise) => self.append_to_log(promise, messages, asked)?,
            kind => self.append_to_file(kind, messages, asked)?,
        };
        self.site.stop.check()?;
        let records = match way.strategy.kind {
            Kind::Log(_) => self.check_log(check)?,
            _ => self.check_file(check)?,
        };
        let run = &mut appended.run;
        run.bytes = bytes;
        run.throughput_bytes_per_s = bytes as f64 / run.elapsed_s;
        run.iops = count as f64 / run.elapsed_s;
        run.records = Some(records);
        Ok(appended)
    }

    fn append_to_file(
        &self,
        kind: Kind,
        mut messages: Vec<Messages>,
        effective: Settings,
    ) -> Result<OneRun, Error> {
        let failed = Error::at(&self.file, "create");
        let file = File::create_new(&self.file).map_err(failed)?;
        let messages = messages.pop().expect("these ways have one producer");
        let runtime = runtime()?;
        let task = usual::Task {
            path: &self.file,
            file,
            messages,
            arrivals: Arrivals::new(self.plan.rate, 0, 1),
            runtime: &runtime,
            stop: self.site.stop,
        };
        let (latencies, run) =
            clocked(&self.site.timer(), Usage::now, || usual::append(kind, task))?;
        Ok(OneRun { latencies, run, effective, fallbacks: Vec::new() })
    }

    fn append_to_log(
        &self,
        promise: Promise,
        messages: Vec<Messages>,
        mut effective: Settings,
    ) -> Result<OneRun, Error> {
        let log = log::open(&self.log, promise)?;
        if let Some(sizes) = self.drain {
            Drain { site: self.site, file: self.site.file("burst", 0), sizes }.ready()?;
        }
        let (append_as, runtime) = (self.plan.append_as, runtime()?);
        let task = log::Task {
            log: log.clone(),
            promise,
            append_as,
            rate: self.plan.rate,
            runtime: &runtime,
            stop: self.site.stop,
        };
        let timed = log::append(&task, self.site.timer(), messages);
        drop(task);
        let told = log.effective();
        // Even if a producer failed, the log must be closed before its folder is read.
        let closed = log.close();
        let (latencies, mut run) = timed?;
        closed?;
        run.iodepth_reached = told.iodepth_reached.max(1);
        let fallbacks = told.fallbacks.iter().map(report::fallback).collect();
        let fell_back = told.fallbacks.iter().any(|fallback| fallback.wanted == "O_DIRECT");
        let direct = !fell_back;
        Done { effective: told, direct }.tell(&mut effective);
        Ok(OneRun { latencies, run, effective, fallbacks })
    }

    fn check_file(&self, mut check: Check) -> Result<Records, Error> {
        let failed = Error::at(&self.file, "read");
        let mut file = File::open(&self.file).map_err(failed)?;
        let max_bytes = self.plan.sizes.max_bytes as usize;
        walk(&mut file, max_bytes, &mut check, self.site.stop).map_err(failed)?;
        Ok(check.finish())
    }

    fn check_log(&self, mut check: Check) -> Result<Records, Error> {
        let mut reader = LogReader::open(&self.log, 0)?;
        while let Some(record) = reader.next_lent()? {
            self.site.stop.check()?;
            check.record(record.bytes);
        }
        Ok(check.finish())
    }

    /// Removes what the last run wrote, and waits until the file system has released it.
    fn clear(&self) -> Result<(), Error> {
        self.site.scratch.remove_log(&self.log)?;
        site::clear(std::slice::from_ref(&self.file), self.site.scratch.path())
    }
}

/// Returns tokio's default runtime, with a thread per processor.
fn runtime() -> Result<Runtime, Error> {
    let built = Builder::new_multi_thread().enable_time().build();
    built.map_err(|error| Error::Failed(format!("tokio's runtime can't be started: {error}")))
}
