//! A subject with several threads that append to a log, and the check of the remaining log.

use crate::verbs::power_cut::content::{content, random};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, until_refused};
use rand::RngExt;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{io, thread};
use wrote::{Error, Log, LogOptions, Record, SyncPolicy};

pub use judge::{Place, judge};

mod judge;
mod served;

const PRODUCERS: u32 = 4;
/// The number of records that a producer appends before it waits for all of them.
const WINDOW: RangeInclusive<u64> = 1..=8;
/// The number of records in an occasional burst into a log with rare syncs. A burst puts several
/// buffers in flight.
const BURST: u64 = 100;
const BURSTS: f64 = 0.02;
/// Segments are small, so that there are many before the power loss.
const SEGMENT_BYTES: u64 = 256 << 10;
/// Buffers are just large enough for the longest records.
const BUFFER_BYTES: usize = 128 << 10;
/// The size limit of the log, because a log with rare syncs would otherwise fill the disk.
const RETAIN_BYTES: u64 = 8 << 20;
/// The pause after a window without waits, which leaves the processors to other subjects.
const PAUSE: Duration = Duration::from_millis(1);
/// The time between two syncs, in milliseconds.
const SYNCED: RangeInclusive<u64> = 0..=4;
/// The number of records appended after the check.
const MORE: u64 = 10;

/// How a record becomes safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Each record is made durable individually.
    Record,
    /// Records are synced together with the whole log, and the oldest segments are removed.
    Sync,
    /// Each record is sent to a server over loopback, and made durable individually.
    Served,
}

/// A log, and the address of its server if it has one.
type Opened = (Log, Option<String>);

/// A subject that writes a single log.
#[derive(Debug)]
pub struct Logs {
    folder: PathBuf,
    safe: Safety,
    /// The log, if it was opened before the clock started.
    opened: Option<Opened>,
}

impl Logs {
    /// Creates a subject whose log is put into a new folder.
    pub fn new(folder: &Path, safe: Safety) -> Logs {
        Logs { folder: folder.to_owned(), safe, opened: None }
    }

    /// Returns the log's folder, which the log creates itself.
    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn options(&self) -> LogOptions {
        let options = Log::options().segment_bytes(SEGMENT_BYTES).buffer_bytes(BUFFER_BYTES);
        match self.safe {
            Safety::Record | Safety::Served => options.sync(SyncPolicy::Always),
            Safety::Sync => options
                .sync(SyncPolicy::No)
                .segment_bytes(4 * SEGMENT_BYTES)
                .retain_bytes(RETAIN_BYTES),
        }
    }

    /// Opens the log for a check, without measuring which method is the fastest.
    fn open(&self) -> Result<Log, Error> {
        self.options().dsync(true).open(self.log())
    }

    /// Opens the log for writing, with varying methods.
    fn open_for(&self, seed: u64) -> Result<Opened, Error> {
        let options = match seed % 3 {
            0 => self.options(),
            1 => self.options().dsync(true),
            _ => self.options().dsync(false),
        };
        let options = match seed % 5 {
            0 => options.zeros(false),
            // The log recycles segment files.
            1 => options.zeros(true),
            2 => options.zeros(true).prepared_bytes(1 << 20),
            _ => options,
        };
        match self.safe {
            Safety::Served => served::start(&self.log(), options),
            Safety::Record | Safety::Sync => Ok((options.open(self.log())?, None)),
        }
    }

    /// Appends the records of one producer. `end` is set to the sequence after the last appended
    /// record.
    fn produce(
        &self,
        log: &Log,
        producer: u32,
        seed: u64,
        end: &AtomicU64,
        say: Reporter,
    ) -> Result<Infallible, Error> {
        let mut random = random(seed ^ u64::from(producer));
        let mut begin = 0;
        loop {
            let is_burst = self.safe == Safety::Sync && random.random_bool(BURSTS);
            let count = if is_burst { BURST } else { random.random_range(WINDOW) };
            let numbers = begin..begin + count;
            begin = numbers.end;
            say(&Line::Sending { producer, end: begin })?;
            let append = |number| log.append(&record(producer, number));
            let tickets = numbers.clone().map(append).collect::<Result<Vec<_>, _>>()?;
            if self.safe == Safety::Sync {
                let last = tickets.last().map_or(0, |ticket| ticket.sequence() + 1);
                end.fetch_max(last, Ordering::AcqRel);
                thread::sleep(PAUSE);
                continue;
            }
            for (number, ticket) in numbers.zip(tickets) {
                let sequence = ticket.sequence();
                ticket.wait()?;
                say(&Line::Appended { sequence, producer, number })?;
            }
        }
    }

    /// Syncs the log at random intervals.
    fn sync(log: &Log, seed: u64, end: &AtomicU64, say: Reporter) -> Result<Infallible, Error> {
        let mut random = random(!seed);
        let mut synced = 0;
        loop {
            thread::sleep(Duration::from_millis(random.random_range(SYNCED)));
            let appended = end.load(Ordering::Acquire);
            if appended > synced {
                log.sync()?;
                synced = appended;
                say(&Line::Flushed(synced))?;
            }
        }
    }

    /// Compares the log with the promises, and appends to it.
    fn examine(&self, said: &Report) -> Result<(), String> {
        let log = self.open().map_err(|error| format!("opening: {error}"))?;
        let recovered = log.stats();
        if let Some(lost) = recovered.kept_aside.iter().find(|path| !path.exists()) {
            return Err(format!("{} was to be kept aside, and is not there", lost.display()));
        }
        let places = read(&log)?;
        judge(&places, said, self.safe == Safety::Sync)?;
        let next = recovered.next_sequence;
        if places.last().is_some_and(|place| place.sequence + 1 != next) {
            return Err(format!("the log goes on at {next}, behind {:?}", places.last()));
        }
        self.go_on(log, places, next)
    }

    /// Appends to the log, closes it, checks all of its bytes and opens it again. There must be an
    /// end mark, exactly the expected records, and no torn end.
    fn go_on(&self, log: Log, mut places: Vec<Place>, next: u64) -> Result<(), String> {
        let words = |error: Error| format!("going on: {error}");
        for number in 0..MORE {
            let place = Place { sequence: next + number, producer: PRODUCERS, number };
            let ticket = log.append(&record(PRODUCERS, number)).map_err(words)?;
            if ticket.sequence() != place.sequence {
                return Err(format!("{place:?} was given sequence {}", ticket.sequence()));
            }
            ticket.wait().map_err(words)?;
            places.push(place);
        }
        log.close().map_err(words)?;
        drop(log);
        let verified = wrote::log::verify(self.log(), None).map_err(words)?;
        if let Some(damage) = verified.damage.first() {
            return Err(format!("going on: {damage:?}"));
        }
        let log = self.open().map_err(words)?;
        let (recovered, found) = (log.stats(), read(&log)?);
        // The appends may have removed the oldest records.
        let removed = found.first().map_or(0, |first| first.sequence);
        places.retain(|place| place.sequence >= removed);
        if recovered.torn_bytes > 0 || !recovered.found_closed || found != places {
            let (found, expected) = (found.len(), places.len());
            return Err(format!(
                "after it was closed: {found} records, where {expected} belong: {recovered:?}"
            ));
        }
        log.close().map_err(words)
    }
}

/// Reads all records of the log.
fn read(log: &Log) -> Result<Vec<Place>, String> {
    let failed = |error: Error| format!("reading: {error}");
    let place = |found: Result<Record, Error>| {
        let Record { sequence, bytes, .. } = found.map_err(failed)?;
        Place::of(sequence, &bytes, record)
    };
    log.reader(0).map_err(failed)?.map(place).collect()
}

/// Returns the broken promises: the one found when the files were `examined`, and a success after
/// the first error.
pub fn faults(said: &Report, examined: Result<(), String>) -> Vec<String> {
    let is_unpoisoned = said.all().contains(&Line::Unpoisoned);
    let unpoisoned = is_unpoisoned.then(|| "after the first error the log took more".to_owned());
    examined.err().into_iter().chain(unpoisoned).collect()
}

impl Subject for Logs {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)
    }

    fn get_ready(&mut self, seed: u64) -> Result<(), Error> {
        // Every fourth log is opened only after the clock has started.
        if !seed.is_multiple_of(4) {
            self.opened = Some(self.open_for(seed)?);
        }
        Ok(())
    }

    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let (log, server) = match self.opened.take() {
            Some(opened) => opened,
            None => self.open_for(seed)?,
        };
        let (this, end) = (&*self, AtomicU64::new(0));
        let folder = this.log();
        let syncs = u32::from(this.safe == Safety::Sync);
        let refused = until_refused(PRODUCERS + syncs, |thread| match &server {
            Some(address) => served::produce(&folder, &log, address, (thread, seed), say),
            None if thread == PRODUCERS => Logs::sync(&log, seed, &end, say),
            None => this.produce(&log, thread, seed, &end, say),
        });
        if server.is_none() && (log.sync().is_ok() || log.append(b"late").is_ok()) {
            say(&Line::Unpoisoned)?;
        }
        Err(refused)
    }

    fn check(&self, said: &Report) -> io::Result<Vec<String>> {
        Ok(faults(said, self.examine(said)))
    }

    fn late_max(&self) -> usize {
        match self.safe {
            Safety::Record | Safety::Served => PRODUCERS as usize * *WINDOW.end() as usize,
            Safety::Sync => 1,
        }
    }

    fn reopen(&self, say: Reporter) -> Option<Result<(), Error>> {
        Some(self.open().and_then(|log| {
            say(&Line::Reopened(log.stats().next_sequence))?;
            log.close()
        }))
    }
}

const LENGTHS: RangeInclusive<usize> = 1..=4000;
/// The length of an occasional long record.
const LONG: usize = 100_000;
const LONG_EVERY: u64 = 97;

/// Returns a producer's record `number`: both numbers, followed by bytes.
pub fn record(producer: u32, number: u64) -> Vec<u8> {
    let seed = u64::from(producer) << 40 | number;
    let is_long = number % LONG_EVERY == LONG_EVERY / 2;
    let body = content(seed, if is_long { LONG..=LONG } else { LENGTHS });
    let mut bytes = format!("{producer} {number} ").into_bytes();
    bytes.extend(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ALL: [Safety; 2] = [Safety::Record, Safety::Sync];

    /// Creates a log with records 0 to 4 of producer 0, and returns it with its report.
    fn written(safe: Safety) -> (tempfile::TempDir, Logs, Report) {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = Logs::new(&folder.path().join("log"), safe);
        logs.prepare().expect("prepared");
        let log = logs.open().expect("opened");
        let mut said = vec![Line::Sending { producer: 0, end: 5 }];
        for number in 0..5 {
            let ticket = log.append(&record(0, number)).expect("appended");
            let sequence = ticket.sequence();
            ticket.wait().expect("safe");
            said.push(Line::Appended { sequence, producer: 0, number });
        }
        log.sync().expect("synced");
        drop(log);
        (folder, logs, Report::of(&said, &[]))
    }

    #[test]
    fn a_log_that_keeps_its_promises_has_no_faults_and_goes_on() {
        for safe in ALL {
            let (_folder, logs, said) = written(safe);
            let faults = logs.check(&said).expect("checked");
            assert_eq!(faults, Vec::<String>::new(), "{safe:?}");
        }
    }

    #[test]
    fn a_log_that_is_not_there_breaks_a_promise_only_where_there_was_one() {
        for safe in ALL {
            let (_folder, logs, said) = written(safe);
            fs::remove_dir_all(logs.log()).expect("removed");
            let faults = logs.check(&said).expect("checked");
            assert_eq!(faults, ["record 0 was promised, and the log ends before 0"], "{safe:?}");
            fs::remove_dir_all(logs.log()).expect("removed");
            let faults = logs.check(&Report::default()).expect("checked");
            assert_eq!(faults, Vec::<String>::new(), "{safe:?}");
        }
    }

    #[test]
    fn a_log_that_takes_more_after_an_error_is_a_fault() {
        // W2
        let (_folder, logs, _) = written(Safety::Record);
        let sending = Line::Sending { producer: 0, end: 5 };
        let said = Report::of(&[sending], &[Line::Unpoisoned]);
        let faults = logs.check(&said).expect("checked");
        assert_eq!(faults, ["after the first error the log took more"]);
    }

    #[test]
    fn a_record_tells_whose_it_is_and_one_with_a_wrong_byte_is_nobodys() {
        for (producer, number) in [(0, 0), (3, LONG_EVERY / 2), (4, 1_000_000)] {
            let mut bytes = record(producer, number);
            let place = |bytes: &[u8]| Place::of(7, bytes, record);
            assert_eq!(place(&bytes), Ok(Place { sequence: 7, producer, number }));
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            assert!(place(&bytes).is_err());
            bytes.pop();
            assert!(place(&bytes).is_err());
        }
        let nobodys = Err("record 7: 7 bytes that no producer sent".to_owned());
        assert_eq!(Place::of(7, &[0; 7], record), nobodys);
    }
}
