//! One run of each way: appends messages, reads the file back, and checks every message.

use super::check::Check;
use super::check::walk;
use super::message::Messages;
use super::plan::Amounts;
use super::{Kind, Promise, Way, log, usual};
use crate::arrivals::Arrivals;
use crate::plan::{OneRun, Turn, Work};
use crate::progress::Ticker;
use crate::scenarios::ways::Done;
use crate::site::{self, Site};
use crate::stream::Drain;
use std::cell::Cell;
use std::fs::File;
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};
use wrote::LogReader;
use wrote_jobs::clock::clocked;
use wrote_jobs::jobs::Watcher as _;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::{self, Repeated};
use wrote_result::Error;
use wrote_result::document::{Row, Settings};

impl Work for Amounts {
    fn run(
        &mut self,
        row: &Row,
        turn: Turn,
        site: &Site,
        _: &mut Ticker,
    ) -> Result<Repeated, Error> {
        let way = &self.ways[turn.row];
        let count = self.messages_of(way);
        let files = Files::new(self, site);
        let (asked, run) = files.run(way, count)?;
        let mut run = run.row(row, asked);
        run.written_bytes += files.drained_bytes.get();
        Ok(run)
    }

    fn clear(&mut self, _: usize, site: &Site) -> Result<(), Error> {
        Files::new(self, site).clear()
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&[site.file("burst", 0)])
    }
}

struct Files<'a> {
    plan: &'a Amounts,
    site: &'a Site<'a>,
    file: PathBuf,
    log: PathBuf,
    /// The bytes written to use up a burst.
    drained_bytes: Cell<u64>,
}

impl<'a> Files<'a> {
    fn new(plan: &'a Amounts, site: &'a Site<'a>) -> Files<'a> {
        let (file, log) = (site.file("file", 0), site.file("log", 0));
        Files { plan, site, file, log, drained_bytes: Cell::new(0) }
    }

    /// Runs a way once and reads back what it wrote, keeping its file or log. Returns the requested
    /// settings too.
    fn run(&self, way: &Way, count: u64) -> Result<(Settings, OneRun), Error> {
        let messages = Messages::of_all(way.producers(), self.plan.sizes, count);
        let check = Check::new(&messages);
        let bytes = messages.iter().map(|of| of.bytes_of(of.count())).sum();
        let asked = way.asked(self.plan, count, bytes);
        let (sent, sent_bytes, mut appended) = match way.strategy.kind {
            Kind::Log(promise) => self.append_to_log(way, promise, messages, asked.clone())?,
            kind => (count, bytes, self.append_to_file(kind, messages, asked.clone())?),
        };
        self.site.stop.check()?;
        let check = match way.strategy.kind {
            Kind::Log(_) => self.check_log(check)?,
            _ => self.check_file(check)?,
        };
        let (run, effective) = (&mut appended.run, &mut appended.effective);
        run.bytes = sent_bytes;
        run.throughput_bytes_per_s = sent_bytes as f64 / run.elapsed_s;
        run.iops = sent as f64 / run.elapsed_s;
        run.records = Some(check.finish(sent));
        (effective.messages, effective.size_bytes) = (Some(sent), sent_bytes);
        Ok((asked, appended))
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
        way: &Way,
        promise: Promise,
        messages: Vec<Messages>,
        mut effective: Settings,
    ) -> Result<(u64, u64, OneRun), Error> {
        let log = log::open(&self.log, promise)?;
        if let Some(sizes) = self.plan.drain(way) {
            let file = self.site.file("burst", 0);
            let mut drain = Drain { site: self.site, file, sizes, written_bytes: 0 };
            drain.ready()?;
            self.drained_bytes.set(drain.written_bytes);
        }
        let (append_as, runtime) = (self.plan.append_as, runtime()?);
        let task = log::Task {
            log: log.clone(),
            promise,
            append_as,
            rate: self.plan.rate,
            runtime: &runtime,
            stop: self.site.stop,
            slice: self.plan.slice(),
        };
        let timed = log::append(&task, self.site.timer(), messages);
        drop(task);
        let told = log.effective();
        // Even if a producer failed, the log must be closed before its folder is read.
        let closed = log.close();
        let (sent, mut run) = timed?;
        closed?;
        run.iodepth_reached = told.iodepth_reached.max(1);
        let fallbacks = told.fallbacks.iter().map(report::fallback).collect();
        let fell_back = told.fallbacks.iter().any(|fallback| fallback.wanted == "O_DIRECT");
        let direct = !fell_back;
        Done { effective: told, direct }.tell(&mut effective);
        let latencies = sent.latencies;
        Ok((sent.messages, sent.bytes, OneRun { latencies, run, effective, fallbacks }))
    }

    fn check_file(&self, mut check: Check) -> Result<Check, Error> {
        let failed = Error::at(&self.file, "read");
        let mut file = File::open(&self.file).map_err(failed)?;
        let max_bytes = self.plan.sizes.max_bytes as usize;
        walk(&mut file, max_bytes, &mut check, self.site.stop).map_err(failed)?;
        Ok(check)
    }

    fn check_log(&self, mut check: Check) -> Result<Check, Error> {
        let mut reader = LogReader::open(&self.log, 0)?;
        while let Some(record) = reader.next_lent()? {
            self.site.stop.check()?;
            check.record(record.bytes);
        }
        Ok(check)
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
