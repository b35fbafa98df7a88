//! A subject with several threads that append to a log, and the check of the remaining log.

use crate::verbs::power_cut::content::content;
use crate::verbs::power_cut::content::{CheckResult, describe};
use crate::verbs::power_cut::log_checks;
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Language, Program};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, sync_folder};
use judge::{Place, judge};
use rand::RngExt;
use served::Served;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{io, thread};
use wrote::{Action, Error, Log, LogOptions, SyncPolicy};

mod judge;
mod served;

const PRODUCERS: u32 = 4;
/// The number of records that a producer appends before it waits for them.
const WINDOW: RangeInclusive<u64> = 1..=8;
/// The size of occasional bursts into a log with rare syncs, so that several buffers are in flight.
const BURST: u64 = 100;
const BURSTS: f64 = 0.02;
/// A small segment, so that there are many before the cut.
const SEGMENT_BYTES: u64 = 256 << 10;
/// A buffer that just holds the longest records.
const BUFFER_BYTES: usize = 128 << 10;
/// The retained bytes, because a log with rare syncs would fill the disk.
const RETAIN_BYTES: u64 = 8 << 20;
/// A pause after a window without waits, so that other subjects get the processors.
const PAUSE: Duration = Duration::from_millis(1);
/// Milliseconds between two syncs.
const SYNCED: RangeInclusive<u64> = 0..=4;
/// The records appended after the check.
const MORE: u64 = 10;

/// How a record becomes safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Each record by itself, framed.
    Record,
    /// Records are synced with the whole log, framed; the oldest segments are removed.
    Sync,
    /// Each record by itself, framed, sent to a server over loopback.
    Served,
    /// Each record by itself, framed, by the package for a language.
    Foreign(Language),
}

/// One log.
#[derive(Debug)]
pub struct Logs {
    folder: PathBuf,
    safe: Safety,
    /// The log opened before the clock started.
    opened: Option<Log>,
    /// The server started before the clock was.
    served: Option<Served>,
    /// The program of another language, once it is ready.
    program: Option<Program>,
}

impl Logs {
    /// Puts the log into a new folder.
    pub fn new(folder: &Path, safe: Safety) -> Logs {
        Logs { folder: folder.to_owned(), safe, opened: None, served: None, program: None }
    }

    /// Returns the log's folder, which the log creates itself.
    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn options(&self) -> LogOptions {
        let options = Log::options().segment_bytes(SEGMENT_BYTES).buffer_bytes(BUFFER_BYTES);
        match self.safe {
            Safety::Record | Safety::Served | Safety::Foreign(_) => {
                options.sync(SyncPolicy::Always)
            }
            Safety::Sync => options
                .sync(SyncPolicy::No)
                .segment_bytes(4 * SEGMENT_BYTES)
                .retain_bytes(RETAIN_BYTES),
        }
    }

    /// Opens the log for a check, without measuring the fastest way.
    fn open(&self) -> Result<Log, Error> {
        self.options().dsync(true).open(self.log())
    }

    /// Opens the log for writing, in each way in turn.
    fn open_for(&self, seed: u64) -> Result<Log, Error> {
        self.options_for(seed).open(self.log())
    }

    fn options_for(&self, seed: u64) -> LogOptions {
        let options = match seed % 3 {
            0 => self.options(),
            1 => self.options().dsync(true),
            _ => self.options().dsync(false),
        };
        match seed % 5 {
            0 => options.zeros(false),
            // Recycled segment files.
            1 => options.zeros(true),
            2 => options.zeros(true).prepared_bytes(1 << 20),
            _ => options,
        }
    }

    /// Appends the records of one producer. `end` is the sequence after the last appended record.
    fn produce(
        &self,
        log: &Log,
        producer: u32,
        seed: u64,
        end: &AtomicU64,
        say: Reporter,
    ) -> Result<Infallible, Error> {
        let mut random = crate::verbs::power_cut::content::random(seed ^ u64::from(producer));
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

    /// Appends the records of all producers by a program, as many at once as threads would.
    fn append_by(
        &self,
        program: &mut Program,
        seed: u64,
        say: Reporter,
    ) -> Result<Infallible, Error> {
        let mut random = crate::verbs::power_cut::content::random(seed);
        let mut ends = [0; PRODUCERS as usize];
        loop {
            let mut sent = Vec::new();
            for (producer, end) in (0..).zip(&mut ends) {
                let numbers = *end..*end + random.random_range(WINDOW);
                *end = numbers.end;
                say(&Line::Sending { producer, end: *end })?;
                for number in numbers {
                    let record = record(producer, number);
                    program.request(&record).map_err(|error| self.elsewhere(&error))?;
                    sent.push((producer, number));
                }
            }
            for (producer, number) in sent {
                let sequence = program.answer().map_err(|error| self.elsewhere(&error))?;
                say(&Line::Appended { sequence, producer, number })?;
            }
        }
    }

    /// Returns the error of a program that appends to the log.
    fn elsewhere(&self, error: &io::Error) -> Error {
        Error::file(self.log(), Action::Write, None, error)
    }

    /// Syncs the log now and then, if something was appended.
    fn sync(
        &self,
        log: &Log,
        seed: u64,
        end: &AtomicU64,
        say: Reporter,
    ) -> Result<Infallible, Error> {
        let mut random = crate::verbs::power_cut::content::random(!seed);
        let mut synced = 0;
        loop {
            thread::sleep(Duration::from_millis(random.random_range(SYNCED)));
            let appended = end.load(Ordering::Acquire);
            // Synced records are safe without a system call, so a second promise would prove
            // nothing.
            if appended > synced {
                log.sync()?;
                synced = appended;
                say(&Line::Flushed(synced))?;
            }
        }
    }

    /// Reads all records of the log; an error in words for a record that no producer sent.
    fn read(&self, log: &Log) -> Result<Vec<Place>, String> {
        log_checks::places(log, |sequence, bytes| {
            let (producer, number) = of_producer(bytes)?;
            Ok(Place { sequence, producer, number })
        })
    }

    /// Returns the state of the records without a promise; an error in words for a broken promise.
    fn examine(&self, said: &Report) -> Result<&'static str, String> {
        let log = self.open().map_err(|error| format!("opening: {error}"))?;
        let recovered = log_checks::recovered(&log)?;
        let places = self.read(&log)?;
        let promised = judge(&places, said, self.safe == Safety::Sync)?;
        let next = log.stats().next_sequence;
        if places.last().is_some_and(|place| place.sequence + 1 != next) {
            return Err(format!("the log goes on at {next}, behind {:?}", places.last()));
        }
        self.go_on(log, places, next)?;
        Ok(match recovered.torn_bytes {
            0 if next <= promised => "promised",
            0 => "more",
            _ => "torn",
        })
    }

    /// Appends more records as another producer, and finds all after reopening the log.
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
        let log = log_checks::opened_after_close(log, &self.log(), || self.open())?;
        let found = self.read(&log)?;
        // The last append may have removed the oldest segment.
        let removed = found.first().map_or(0, |first| first.sequence);
        places.retain(|place| place.sequence >= removed);
        log_checks::all_found(&found, &places)?;
        log.close().map_err(words)
    }
}

impl Subject for Logs {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        sync_folder(&self.folder)
    }

    fn get_ready(&mut self, seed: u64) -> Result<(), Error> {
        if let Safety::Foreign(language) = self.safe {
            let started = Program::start(language, "log", &self.log());
            self.program = Some(started.map_err(|error| self.elsewhere(&error))?);
            return Ok(());
        }
        // Now and then the cut hits the opening.
        if seed.is_multiple_of(4) {
            return Ok(());
        }
        if self.safe == Safety::Served {
            self.served = Some(Served::start(self, self.options_for(seed))?);
        } else {
            self.opened = Some(self.open_for(seed)?);
        }
        Ok(())
    }

    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error> {
        if let Some(mut program) = self.program.take() {
            return self.append_by(&mut program, seed, say);
        }
        if self.safe == Safety::Served {
            let served = match self.served.take() {
                Some(served) => served,
                None => Served::start(self, self.options_for(seed))?,
            };
            return Err(served.write(self, seed, say));
        }
        let log = match self.opened.take() {
            Some(log) => log,
            None => self.open_for(seed)?,
        };
        let this = &*self;
        let end = AtomicU64::new(0);
        let (log, end) = (&log, &end);
        let refused = thread::scope(|scope| {
            let produce =
                |producer| scope.spawn(move || this.produce(log, producer, seed, end, say));
            let mut threads: Vec<_> = (0..PRODUCERS).map(produce).collect();
            if this.safe == Safety::Sync {
                threads.push(scope.spawn(move || this.sync(log, seed, end, say)));
            }
            let ended = threads.into_iter().map(|thread| match thread.join() {
                Ok(Err(error)) => error,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // Every producer must notice the cut; the report of the first suffices.
            ended.collect::<Vec<_>>().swap_remove(0)
        });
        if log.sync().is_ok() || log.append(b"late").is_ok() {
            say(&Line::Unpoisoned)?;
        }
        Err(refused)
    }

    fn check(&self, said: &Report) -> io::Result<CheckResult> {
        log_checks::check(&self.log(), said, || self.examine(said))
    }

    fn late_max(&self) -> usize {
        match self.safe {
            // All records waited for at once may rest on the flushes in flight.
            Safety::Record | Safety::Served | Safety::Foreign(_) => {
                PRODUCERS as usize * *WINDOW.end() as usize
            }
            Safety::Sync => 1,
        }
    }

    fn reopen(&self, say: Reporter) -> Option<Error> {
        Some(log_checks::reopen(|| self.open(), say))
    }
}

const LENGTHS: RangeInclusive<usize> = 1..=4000;
/// The length of an occasional long record.
const LONG: usize = 100_000;
const LONG_EVERY: u64 = 97;

/// Returns a producer's record of this number: the producer and the number, and then bytes.
pub fn record(producer: u32, number: u64) -> Vec<u8> {
    let seed = u64::from(producer) << 40 | number;
    let is_long = number % LONG_EVERY == LONG_EVERY / 2;
    let body = content(seed, if is_long { LONG..=LONG } else { LENGTHS });
    let mut bytes = format!("{producer} {number} ").into_bytes();
    bytes.extend(body);
    bytes
}

/// Reads the producer and the number of a record; an error in words if no producer sent it.
pub fn of_producer(bytes: &[u8]) -> Result<(u32, u64), String> {
    let unknown = || format!("{} bytes that no producer sent", bytes.len());
    let mut words = bytes.splitn(3, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let producer = word().and_then(|word| word.parse().ok()).ok_or_else(unknown)?;
    let number = word().and_then(|word| word.parse().ok()).ok_or_else(unknown)?;
    let expected = record(producer, number);
    if bytes == expected {
        Ok((producer, number))
    } else {
        Err(format!("number {number} of producer {producer}: {}", describe(bytes, &expected)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::power_cut::said::parse;
    use std::fs;

    const ALL: [Safety; 2] = [Safety::Record, Safety::Sync];

    /// Makes a log with records 0 to 4 of producer 0, and its report.
    fn written(safe: Safety) -> (tempfile::TempDir, Logs, Report) {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = Logs::new(&folder.path().join("log"), safe);
        logs.prepare().expect("prepared");
        let log = logs.open().expect("opened");
        let mut said = "sending 0 5\n".to_owned();
        for number in 0..5 {
            let ticket = log.append(&record(0, number)).expect("appended");
            let sequence = ticket.sequence();
            ticket.wait().expect("safe");
            said += &format!("appended {sequence} 0 {number}\n");
        }
        log.sync().expect("synced");
        drop(log);
        (folder, logs, parse(&said).expect("lines"))
    }

    #[test]
    fn a_log_that_keeps_its_promises_has_no_faults_and_goes_on() {
        for safe in ALL {
            let (_folder, logs, said) = written(safe);
            let found = logs.check(&said).expect("checked");
            assert_eq!((found.faults, found.in_flight), (vec![], "promised"), "{safe:?}");
        }
    }

    #[test]
    fn a_log_that_is_not_there_breaks_a_promise_only_where_there_was_one() {
        for safe in ALL {
            let (_folder, logs, said) = written(safe);
            fs::remove_dir_all(logs.log()).expect("removed");
            let faults = logs.check(&said).expect("checked").faults;
            assert_eq!(faults, ["record 0 was promised, and the log ends before 0"], "{safe:?}");
            fs::remove_dir_all(logs.log()).expect("removed");
            let faults = logs.check(&Report::default()).expect("checked").faults;
            assert_eq!(faults, Vec::<String>::new(), "{safe:?}");
        }
    }

    #[test]
    fn a_log_that_takes_more_after_an_error_is_a_fault() {
        // W2
        let (_folder, logs, _) = written(Safety::Record);
        let said = parse("sending 0 5\npower-going\npower-gone\nunpoisoned\n").expect("lines");
        let faults = logs.check(&said).expect("checked").faults;
        assert_eq!(faults, ["after the first error the log took more"]);
    }

    #[test]
    fn a_record_tells_whose_it_is_and_one_with_a_wrong_byte_is_nobodys() {
        for (producer, number) in [(0, 0), (3, LONG_EVERY / 2), (4, 1_000_000)] {
            let mut bytes = record(producer, number);
            assert_eq!(of_producer(&bytes), Ok((producer, number)));
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            assert!(of_producer(&bytes).is_err());
            bytes.pop();
            assert!(of_producer(&bytes).is_err());
        }
        assert_eq!(of_producer(&[0; 7]), Err("7 bytes that no producer sent".into()));
    }
}
