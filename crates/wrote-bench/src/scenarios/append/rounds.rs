//! One run of each way: appends messages, reads the file back, and checks every message.

use super::check::Check;
use super::check::walk;
use super::message::Messages;
use super::plan::Plan;
use super::{Kind, NAME, Promise, Way, log, usual};
use crate::arrivals::Arrivals;
use crate::burst::Drain;
use crate::calibration::Calibration;
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::OneRun;
use crate::scenario::{self, Site};
use crate::scenarios::ladder;
use crate::scenarios::ways::Done;
use std::fs::File;
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};
use wrote::{Format, LogReader};
use wrote_jobs::clock::clocked;
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::Watcher as _;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::{self, Repeated};
use wrote_result::Error;
use wrote_result::document::{Records, Row, Run, Settings, View};

impl scenario::Plan for Plan {
    fn scope(&self) -> scenario::Scope {
        let question = "How fast does one file take short messages from many producers, and does \
            it get them all?";
        scenario::Scope {
            name: NAME,
            question: question.into(),
            runs: self.runs,
            slice: self.slice(),
            within: self.within,
        }
    }

    fn rows(&self) -> Vec<String> {
        self.ways.iter().map(Way::name).collect()
    }

    fn left_out(&self) -> Vec<(String, String)> {
        self.left_out.clone()
    }

    fn space_bytes_max(&self) -> u64 {
        let of = |way: &Way| self.file_bytes(way, self.messages_at_most(way));
        let drained = self.ways.iter().map(|way| self.drained_bytes(way)).max().unwrap_or(0);
        self.ways.iter().map(of).max().unwrap_or(0) + drained
    }

    fn written_bytes_max(&self) -> u64 {
        self.written_bytes_most()
    }

    fn wants_calibration(&self) -> bool {
        self.needs_trial()
    }

    fn calibrated(&mut self, speed: &Calibration) {
        self.leave_out(speed.burst);
    }

    fn burst(&self) -> Option<Burst> {
        self.burst
    }

    fn shared_files(&self, site: &Site) -> Vec<PathBuf> {
        self.burst.map(|_| site.file("burst", 0)).into_iter().collect()
    }

    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<u64, Error> {
        self.counts.clear();
        let mut written_bytes = 0;
        for way in self.ways.clone() {
            let first = Files::new(self, site).first_look(&way)?;
            let messages_per_s = first.as_ref().map_or(f64::MAX, |(run, _)| run.iops);
            let messages_per_s = site.least(messages_per_s)?;
            self.count(messages_per_s);
            written_bytes += first.map_or(0, |(_, bytes)| bytes);
        }
        Ok(written_bytes)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (way, count) = (&self.ways[turn.row], self.counts[turn.row]);
        let run = Files { drain: self.drain(way), ..Files::new(self, site) }.run(way, count)?;
        let asked = way.asked(self, count, run.run.bytes);
        let row = Row {
            name: way.name(),
            workload: NAME.into(),
            way: way.words(),
            view: Some(View::Messages),
            survives: Some(site.target.survives(way.strategy.acknowledged())),
            ..Row::default()
        };
        let mut run = run.row(row, asked);
        run.written_bytes += self.drained_bytes(way);
        Ok(run)
    }

    fn makes_files(&self, _: usize) -> bool {
        true
    }

    fn clear(&mut self, _: usize, site: &Site) -> Result<(), Error> {
        Files::new(self, site).clear()
    }
}

struct Files<'a> {
    plan: &'a Plan,
    site: &'a Site<'a>,
    file: PathBuf,
    log: PathBuf,
    /// The stream that uses up a burst before a log's clock starts.
    drain: Option<ladder::Sizes>,
}

impl<'a> Files<'a> {
    fn new(plan: &'a Plan, site: &'a Site<'a>) -> Files<'a> {
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
        let direct = promise.format == Format::Framed && !fell_back;
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
        scenario::clear(std::slice::from_ref(&self.file), self.site.scratch.path())
    }
}

/// Returns tokio's default runtime, with a thread per processor.
fn runtime() -> Result<Runtime, Error> {
    let built = Builder::new_multi_thread().enable_time().build();
    built.map_err(|error| Error::Failed(format!("tokio's runtime can't be started: {error}")))
}
