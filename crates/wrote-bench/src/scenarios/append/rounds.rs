//! One run of each method: appends messages, reads the file back, and checks every message.

use super::check::{Check, walk};
use super::log::Sent;
use super::message::Messages;
use super::plan::Amounts;
use super::{Promise, Way, log, usual};
use crate::arrivals::Arrivals;
use crate::plan::{OneRun, Turn, Work};
use crate::progress::Ticker;
use crate::scenarios::ways::Done;
use crate::site::{self, Site};
use crate::stream::Drain;
use std::fs::File;
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};
use wrote::{Log, LogReader};
use wrote_jobs::clock::clocked;
use wrote_jobs::jobs::Watcher as _;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::{self, Repeated};
use wrote_result::Error;
use wrote_result::document::{Row, Settings};

impl Work for Amounts {
    /// Appends the messages of a method, and reads them back. Keeps the file or the log.
    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let way = &self.ways[at.row];
        let count = self.messages_of(way);
        let messages = Messages::of_all(way.producers(), self.sizes, count);
        let check = Check::new(&messages);
        let bytes = messages.iter().map(|of| of.bytes_of(of.count())).sum();
        let asked = way.asked(self, count, bytes);
        let mut appended = match way.promise() {
            Some(promise) => append_to_log(self, (way, promise), messages, &asked, site)?,
            None => append_to_file(self, way, messages, &asked, site)?,
        };
        site.stop.check()?;
        let check = read_back(self, way, check, site)?;
        let (sent, OneRun { run, effective, .. }) = (appended.sent, &mut appended.run);
        run.bytes = appended.bytes;
        run.throughput_bytes_per_s = appended.bytes as f64 / run.elapsed_s;
        run.iops = sent as f64 / run.elapsed_s;
        run.records = Some(check.finish(sent));
        (effective.messages, effective.size_bytes) = (Some(sent), appended.bytes);
        let mut run = appended.run.row(row, asked);
        // A log pads its records, and writes zeros ahead of them.
        let on_device = way.promise().and(run.rows[0].runs[0].device_written_bytes);
        run.written_bytes = run.written_bytes.max(on_device.unwrap_or(0)) + appended.drained_bytes;
        Ok(run)
    }

    /// Removes the files of the last run, and waits until the file system has released their space.
    fn clear(&mut self, _: usize, site: &Site) -> Result<(), Error> {
        site.scratch.remove_log(&log_folder(site))?;
        site::clear(&[file(site)], site.scratch.path())
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&[Drain::file(site)])
    }
}

fn file(site: &Site) -> PathBuf {
    site.file("file", 0)
}

fn log_folder(site: &Site) -> PathBuf {
    site.file("log", 0)
}

/// The number and the bytes of the messages that a run sent, and its figures.
struct Appended {
    sent: u64,
    bytes: u64,
    run: OneRun,
    /// The number of bytes that were written to use up a burst.
    drained_bytes: u64,
}

fn append_to_file(
    amounts: &Amounts,
    way: &Way,
    mut messages: Vec<Messages>,
    asked: &Settings,
    site: &Site,
) -> Result<Appended, Error> {
    let path = file(site);
    let messages = messages.pop().expect("these ways have one producer");
    let (sent, bytes, runtime) = (messages.count(), asked.size_bytes, runtime()?);
    let task = usual::Task {
        file: File::create_new(&path).map_err(Error::at(&path, "create"))?,
        path: &path,
        messages,
        arrivals: Arrivals::new(amounts.rate, 0, 1),
        runtime: &runtime,
        stop: site.stop,
    };
    let append = || usual::append(way.strategy.kind, task);
    let (latencies, run) = clocked(&site.timer()?, Usage::now, append)?;
    let run = OneRun { latencies, run, effective: asked.clone(), fallbacks: Vec::new() };
    Ok(Appended { sent, bytes, run, drained_bytes: 0 })
}

fn append_to_log(
    amounts: &Amounts,
    (way, promise): (&Way, Promise),
    messages: Vec<Messages>,
    asked: &Settings,
    site: &Site,
) -> Result<Appended, Error> {
    let log = Log::options().sync(promise.sync).open(log_folder(site))?;
    let mut drain = Drain { site, sizes: amounts.drain(way), written_bytes: 0 };
    drain.ready()?;
    let (stop, slice) = (site.stop.clone(), amounts.slice());
    let task = log::Task { log: log.clone(), promise, stop, slice };
    let arrivals = |number| Arrivals::new(amounts.rate, number, way.producers());
    let producers = messages.into_iter().zip((0..).map(arrivals)).collect();
    let timed = log::append(&task, site.timer()?, producers);
    drop(task);
    let told = log.effective();
    // Even if a producer has failed, the log must be closed before its folder is read.
    let closed = log.close();
    let (Sent { latencies, messages: sent, bytes }, mut run) = timed?;
    closed?;
    run.iodepth_reached = told.iodepth_reached.max(1);
    let fallbacks = told.fallbacks.iter().map(report::fallback).collect();
    let direct = !told.fallbacks.iter().any(|fallback| fallback.wanted == "O_DIRECT");
    let mut effective = asked.clone();
    Done { effective: told, direct }.tell(&mut effective);
    let run = OneRun { latencies, run, effective, fallbacks };
    Ok(Appended { sent, bytes, run, drained_bytes: drain.written_bytes })
}

/// Reads back the messages that a run wrote, and checks them.
fn read_back(amounts: &Amounts, way: &Way, mut check: Check, site: &Site) -> Result<Check, Error> {
    if way.promise().is_none() {
        let path = file(site);
        let failed = Error::at(&path, "read");
        let mut file = File::open(&path).map_err(failed)?;
        let max_bytes = amounts.sizes.max_bytes as usize;
        walk(&mut file, max_bytes, &mut check, site.stop).map_err(failed)?;
        return Ok(check);
    }
    let mut reader = LogReader::open(log_folder(site), 0)?;
    while let Some(record) = reader.next_lent()? {
        site.stop.check()?;
        check.record(record.bytes);
    }
    Ok(check)
}

/// Returns tokio's default runtime, with one thread per processor.
fn runtime() -> Result<Runtime, Error> {
    let built = Builder::new_multi_thread().enable_time().build();
    built.map_err(|error| Error::Failed(format!("tokio's runtime can't be started: {error}")))
}
