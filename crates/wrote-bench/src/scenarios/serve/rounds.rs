//! One run of each row: a server, its load, and a check of every message in its log.

use super::drive::{Driven, Load, Supply};
use super::message::{Check, Messages};
use super::plan::{LOOK, Plan};
use super::server::{self, Server};
use super::{NAME, Way};
use crate::arrivals::Arrivals;
use crate::measured::{self, OneRun};
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{self, Site};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wrote::{LogReader, Survives};
use wrote_jobs::clock::clocked;
use wrote_jobs::machine::open_files;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Blocks, Flush, Ioengine, Records, Row, Settings, View};

/// The time of a run outside its clock: starting and stopping the server, reading back, removal.
const BESIDE: Duration = Duration::from_millis(1000);
/// Timeout for acknowledged messages to appear in an external server's log.
const FOREIGN_LOG: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl scenario::Rows for Plan {
    fn scope(&self) -> scenario::Scope {
        let question = "How many messages does a server take from many connections, how soon does \
                        it acknowledge them, and does its log have them all?";
        scenario::Scope { name: NAME, question: question.into(), runs: self.runs }
    }

    fn rows(&self) -> Vec<String> {
        self.ways.iter().map(Way::name).collect()
    }

    fn left_out(&self) -> Vec<(String, String)> {
        self.left_out.clone()
    }
}

impl scenario::Bounds for Plan {
    fn space_bytes_max(&self) -> u64 {
        self.ways.iter().map(|way| self.log_bytes_max(way)).max().unwrap_or(0)
    }

    fn written_bytes_max(&self) -> u64 {
        // A trial is shorter than a run.
        let runs = u64::from(self.runs) + u64::from(self.rate.is_none());
        let of = |way| self.log_bytes_max(way).saturating_mul(runs);
        self.ways.iter().map(of).fold(0, u64::saturating_add)
    }

    fn written_bytes(&self) -> Option<u64> {
        None
    }

    fn estimate(&self) -> Duration {
        let ways = self.ways.len() as u32;
        (self.time + BESIDE) * self.runs * ways + (LOOK + BESIDE) * ways
    }
}

impl scenario::Plan for Plan {
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<u64, Error> {
        // If this fails, a connection without a descriptor reports it.
        let _ = open_files::raise_limit();
        let mut written_bytes = 0;
        for way in self.ways.clone() {
            let messages_per_s = match self.rate {
                Some(_) => 0.0,
                None => {
                    let files = Files::new(self, site);
                    let look = files.run(&way, self.messages_max(&way), Some(LOOK))?.run;
                    files.clear()?;
                    written_bytes += look.bytes;
                    site.least(look.iops)?
                }
            };
            self.counts.push(self.messages(&way, messages_per_s));
        }
        Ok(written_bytes)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (way, count) = (&self.ways[turn.row], self.counts[turn.row]);
        let failed = |error| match error {
            Error::Failed(text) => Error::Failed(format!("{}: {text}", way.name())),
            other => other,
        };
        let run = Files::new(self, site).run(way, count, None).map_err(failed)?;
        let survives = match self.urls.is_empty() {
            true => site.target.survives(way.door.acknowledged()),
            // An external server's guarantees are unknown.
            false => Survives::Nothing,
        };
        let row = Row {
            name: way.name(),
            workload: NAME.into(),
            way: way.words(),
            view: Some(View::Messages),
            survives: Some(survives),
            ..Row::default()
        };
        Ok(run.row(row, asked(self, way, count)))
    }

    fn makes_files(&self, _: usize) -> bool {
        self.urls.is_empty()
    }

    fn clear(&mut self, _: usize, site: &Site) -> Result<(), Error> {
        Files::new(self, site).clear()
    }
}

/// Returns the settings of a run of `count` messages.
fn asked(plan: &Plan, way: &Way, count: u64) -> Settings {
    let message_bytes = u64::from(plan.message_bytes);
    let is_ours = plan.urls.is_empty();
    let sync = match way.door.protocol.answers() {
        true if is_ours => Flush::Always,
        false if is_ours => Flush::Everysec,
        _ => Flush::None,
    };
    Settings {
        rw: "write".into(),
        ioengine: if is_ours { Ioengine::IoUring } else { Ioengine::Psync },
        bs_bytes: message_bytes,
        size_bytes: count * message_bytes,
        iodepth: way.window.unwrap_or(1),
        numjobs: 1,
        direct: is_ours,
        sync,
        blocks: if is_ours { Blocks::Allocated } else { Blocks::New },
        message_bytes_min: Some(message_bytes),
        messages: Some(count),
        producers: Some(way.connections),
        producers_are: Some("connections".into()),
        rate_bytes_per_s: plan.rate.and_then(|rate| rate.bytes_per_s_of(1)),
        rate_iops: plan.rate.and_then(|rate| rate.iops_of(1)),
        rate_process: plan.rate.map(|rate| rate.process),
        ..Settings::default()
    }
}

struct Files<'a> {
    plan: &'a Plan,
    site: &'a Site<'a>,
    log: PathBuf,
}

impl<'a> Files<'a> {
    fn new(plan: &'a Plan, site: &'a Site<'a>) -> Files<'a> {
        Files { plan, site, log: site.file("log", 0) }
    }

    /// Sends at most `count` messages for at most `time`, and reads back the log.
    fn run(&self, way: &Way, count: u64, time: Option<Duration>) -> Result<OneRun, Error> {
        let messages = Messages::new(self.plan.message_bytes as usize);
        let protocol = way.door.protocol;
        let url = self.plan.urls.iter().find(|url| url.protocol == protocol);
        let (mut run, records) = match url {
            Some(url) => {
                let (run, driven) = self.drive(
                    way,
                    (server::resolve(&url.host)?, self.plan.foreign_pid),
                    (&messages, count, time),
                )?;
                let found = |log: &PathBuf| self.check(log, &messages, &driven, FOREIGN_LOG);
                (run, self.plan.foreign_log.as_ref().map(found).transpose()?)
            }
            None => {
                let this =
                    || std::env::current_exe().map_err(|error| Error::Failed(error.to_string()));
                let program = self.plan.program.clone().map_or_else(this, Ok)?;
                let server = Server::start(&program, &self.log, way.door.listen)?;
                let at = (server.address(), Some(server.pid()));
                let (run, driven) = self.drive(way, at, (&messages, count, time))?;
                server.stop()?;
                let records = self.check(&self.log, &messages, &driven, Duration::ZERO)?;
                (run, Some(records))
            }
        };
        run.run.records = records;
        run.effective =
            Settings { iodepth: run.run.iodepth_reached, ..asked(self.plan, way, count) };
        Ok(run)
    }

    fn drive(
        &self,
        way: &Way,
        (address, pid): (SocketAddr, Option<u32>),
        (messages, count, time): (&Messages, u64, Option<Duration>),
    ) -> Result<(OneRun, Driven), Error> {
        let Way { door, connections, window } = *way;
        let stop = self.site.stop;
        let load = Load::connect(address, door.protocol, connections, window, messages, stop)?;
        let of_server = || pid.and_then(Usage::of_process).unwrap_or_default();
        let before = Usage::of_thread();
        let ((mut driven, client), mut run) = clocked(&self.site.timer(), of_server, || {
            let arrivals = self.plan.rate.map(|rate| Arrivals::new(Some(rate), 0, 1));
            let supply = Supply::new(count, time, arrivals, messages.message_bytes());
            let driven = load.run(supply)?;
            Ok((driven, Usage::of_thread().since(&before)))
        })?;
        let sent: u64 = driven.sent.iter().sum();
        run.bytes = sent * u64::from(self.plan.message_bytes);
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = sent as f64 / run.elapsed_s;
        run.iodepth_reached = driven.window_reached.max(1);
        run.client_cpu_s = Some(client.cpu_user_s + client.cpu_system_s);
        run.max_rss_bytes = pid.and_then(Usage::of_process).map(|used| used.max_rss_bytes);
        let latencies = std::mem::replace(&mut driven.latencies, wrote_jobs::histogram());
        let effective = Settings::default();
        Ok((OneRun { run, latencies, effective, fallbacks: Vec::new() }, driven))
    }

    /// Reads a log to its end, waiting up to `time` for missing acknowledged messages.
    fn check(
        &self,
        log: &Path,
        messages: &Messages,
        driven: &Driven,
        time: Duration,
    ) -> Result<Records, Error> {
        let wrong = |what| Error::Failed(format!("{}: {what}", log.display()));
        let mut check = Check::new(messages, &driven.sent);
        let mut reader = LogReader::open(log, 0)?;
        let mut record = Vec::new();
        let began = Instant::now();
        loop {
            while reader.read_into(&mut record)?.is_some() {
                self.site.stop.check()?;
                check.record(&record).map_err(wrong)?;
                record.clear();
            }
            if self.plan.urls.is_empty() && check.strangers > 0 {
                let count = check.strangers;
                return Err(wrong(format!("{count} records that were not sent")));
            }
            if check.has(&driven.acknowledged) || began.elapsed() >= time {
                return check.finish(&driven.acknowledged).map_err(wrong);
            }
            self.site.stop.check()?;
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Removes the last run's log.
    fn clear(&self) -> Result<(), Error> {
        self.site.scratch.remove_log(&self.log)?;
        measured::clear(&[], self.site.scratch.path())
    }
}
