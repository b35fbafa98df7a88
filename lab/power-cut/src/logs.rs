//! A log that several threads append to, and what must be left of it.

mod judge;
mod records;

use crate::found::{Found, names};
use crate::said::{Line, Said};
use crate::subject::{Say, Subject, make_folder, sync_folder, unsaid};
use judge::{Place, judge};
use rand::RngExt;
use records::{of_producer, record};
use std::convert::Infallible;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use wrote::log::Prepare;
use wrote::{Durable, Error, Format, Log, LogOptions, Sync};

const PRODUCERS: u32 = 4;
/// So many records a producer appends before it waits for them.
const WINDOW: RangeInclusive<u64> = 1..=8;
/// A log that is seldom synced is now and then given so many at once: several buffers are on their way.
const BURST: u64 = 100;
const BURSTS: f64 = 0.02;
/// Small, so that many segments are begun before the cut.
const SEGMENT_BYTES: u64 = 256 << 10;
/// The longest records just fit.
const BUFFER_BYTES: usize = 128 << 10;
/// A log that is seldom synced would fill the disk.
const RETAIN_BYTES: u64 = 8 << 20;
/// After a window whose records are not waited for: else the processors would be there for these alone.
const PAUSE: Duration = Duration::from_millis(1);
/// Between two syncs.
const SYNCED: RangeInclusive<u64> = 0..=4;
/// So many records are appended when all that is left was looked at.
const MORE: u64 = 10;

/// How a record gets safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safe {
    /// Each by itself, framed.
    Record,
    /// By a sync of the log, framed; the oldest segments are removed.
    Sync,
    /// Each by itself, as a line.
    Line,
}

/// One log.
#[derive(Debug)]
pub struct Logs {
    folder: PathBuf,
    safe: Safe,
    /// Opened before the clock started.
    opened: Option<Log>,
}

impl Logs {
    /// In a folder of its own.
    pub fn new(folder: &Path, safe: Safe) -> Logs {
        Logs { folder: folder.to_owned(), safe, opened: None }
    }

    /// The log's folder, which the log makes itself.
    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn is_text(&self) -> bool {
        self.safe == Safe::Line
    }

    fn options(&self) -> LogOptions {
        let options = Log::options().segment_bytes(SEGMENT_BYTES).buffer_bytes(BUFFER_BYTES);
        match self.safe {
            Safe::Record => options.sync(Sync::Always),
            Safe::Sync => {
                options.sync(Sync::No).segment_bytes(4 * SEGMENT_BYTES).retain_bytes(RETAIN_BYTES)
            }
            Safe::Line => options.sync(Sync::Always).format(Format::Lines),
        }
    }

    /// Opens the log to look at it, not to write as fast as may be: no way is measured.
    fn open(&self) -> Result<Log, Error> {
        self.options().durable(Durable::default()).open(self.log())
    }

    /// Opens the log to write to it, in each way in turn.
    fn open_for(&self, seed: u64) -> Result<Log, Error> {
        let options = match seed % 3 {
            0 => self.options(),
            1 => self.options().durable(Durable::Dsync),
            _ => self.options().durable(Durable::Fdatasync),
        };
        let options = match seed % 5 {
            0 => options.prepare(Prepare::Allocate),
            _ => options,
        };
        options.open(self.log())
    }

    /// Appends the records of one producer. `end` is behind the last record that anyone has appended.
    fn produce(
        &self,
        log: &Log,
        producer: u32,
        seed: u64,
        end: &AtomicU64,
        say: Say,
    ) -> Result<Infallible, Error> {
        let say = |line| say(&line).map_err(|trouble| unsaid(&trouble));
        let mut random = crate::content::random(seed ^ u64::from(producer));
        let mut begin = 0;
        loop {
            let is_burst = self.safe == Safe::Sync && random.random_bool(BURSTS);
            let count = if is_burst { BURST } else { random.random_range(WINDOW) };
            let numbers = begin..begin + count;
            begin = numbers.end;
            say(Line::Sending { producer, end: begin })?;
            let append = |number| log.append(&record(self.is_text(), producer, number));
            let tickets = numbers.clone().map(append).collect::<Result<Vec<_>, _>>()?;
            if self.safe == Safe::Sync {
                let last = tickets.last().map_or(0, |ticket| ticket.sequence() + 1);
                end.fetch_max(last, Ordering::AcqRel);
                thread::sleep(PAUSE);
                continue;
            }
            for (number, ticket) in numbers.zip(tickets) {
                let sequence = ticket.sequence();
                ticket.wait()?;
                say(Line::Appended { sequence, producer, number })?;
            }
        }
    }

    /// Syncs the log now and then, where something was appended.
    fn sync(&self, log: &Log, seed: u64, end: &AtomicU64, say: Say) -> Result<Infallible, Error> {
        let mut random = crate::content::random(!seed);
        let mut synced = 0;
        loop {
            thread::sleep(Duration::from_millis(random.random_range(SYNCED)));
            let appended = end.load(Ordering::Acquire);
            // What is synced already is safe without asking the kernel: a second promise would say
            // nothing.
            if appended > synced {
                log.sync()?;
                synced = appended;
                say(&Line::Flushed(synced)).map_err(|trouble| unsaid(&trouble))?;
            }
        }
    }

    /// All that the log holds; an error in words where a record is none that was ever sent.
    fn read(&self, log: &Log) -> Result<Vec<Place>, String> {
        let reader = log.reader(0).map_err(|error| format!("reading: {error}"))?;
        let place = |record: Result<wrote::Record, Error>| {
            let wrote::Record { sequence, bytes } =
                record.map_err(|error| format!("reading: {error}"))?;
            let (producer, number) = of_producer(self.is_text(), &bytes)
                .map_err(|because| format!("record {sequence}: {because}"))?;
            Ok(Place { sequence, producer, number })
        };
        reader.map(place).collect()
    }

    /// What became of that which was promised nothing; an error in words where a promise was broken.
    fn examine(&self, said: &Said) -> Result<&'static str, String> {
        let log = self.open().map_err(|error| format!("opening: {error}"))?;
        let recovered = log.recovered().clone();
        if let Some(lost) = recovered.kept_aside.iter().find(|path| !path.exists()) {
            return Err(format!("{} was to be kept aside, and is not there", lost.display()));
        }
        let places = self.read(&log)?;
        let promised = judge(&places, said, self.safe == Safe::Sync)?;
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

    /// Appends some more, as another producer, and finds all of it when the log is opened again.
    fn go_on(&self, log: Log, mut places: Vec<Place>, next: u64) -> Result<(), String> {
        let words = |error: Error| format!("going on: {error}");
        for number in 0..MORE {
            let place = Place { sequence: next + number, producer: PRODUCERS, number };
            let ticket = log.append(&record(self.is_text(), PRODUCERS, number)).map_err(words)?;
            if ticket.sequence() != place.sequence {
                return Err(format!("{place:?} was given sequence {}", ticket.sequence()));
            }
            ticket.wait().map_err(words)?;
            places.push(place);
        }
        log.close().map_err(words)?;
        drop(log);
        let verified = wrote::log::verify(self.log(), |_, _| true).map_err(words)?;
        if let Some(damage) = verified.damage.first() {
            return Err(format!("going on: {damage:?}"));
        }
        let log = self.open().map_err(words)?;
        let recovered = log.recovered();
        // Lines have no mark of their end.
        if recovered.torn_bytes > 0 || recovered.closed == self.is_text() {
            return Err(format!("after it was closed: {recovered:?}"));
        }
        let found = self.read(&log)?;
        // The last that was appended may have made the oldest too many.
        let removed = found.first().map_or(0, |first| first.sequence);
        places.retain(|place| place.sequence >= removed);
        if found != places {
            let (found, expected) = (found.len(), places.len());
            return Err(format!("after it was closed: {found} records, where {expected} belong"));
        }
        log.close().map_err(words)
    }
}

impl Subject for Logs {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        sync_folder(&self.folder)
    }

    fn get_ready(&mut self, seed: u64) -> Result<(), Error> {
        // Now and then it is the opening that is hit.
        if !seed.is_multiple_of(4) {
            self.opened = Some(self.open_for(seed)?);
        }
        Ok(())
    }

    fn write(&mut self, seed: u64, say: Say) -> Result<Infallible, Error> {
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
            if this.safe == Safe::Sync {
                threads.push(scope.spawn(move || this.sync(log, seed, end, say)));
            }
            let ended = threads.into_iter().map(|thread| match thread.join() {
                Ok(Err(error)) => error,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // Every one of them has to notice; what the first says is enough.
            ended.collect::<Vec<_>>().swap_remove(0)
        });
        if log.sync().is_ok() || log.append(b"late").is_ok() {
            say(&Line::Unpoisoned).map_err(|trouble| unsaid(&trouble))?;
        }
        Err(refused)
    }

    fn check(&self, said: &Said) -> io::Result<Found> {
        let temporary_files = if self.log().exists() { names(&self.log())?.1 } else { 0 };
        let mut found = Found { temporary_files, ..Found::default() };
        match self.examine(said) {
            Ok(in_flight) => found.in_flight = in_flight,
            Err(fault) => found.faults.push(fault),
        }
        if said.all().contains(&Line::Unpoisoned) {
            found.faults.push("after the first error the log took more".to_owned());
        }
        Ok(found)
    }

    fn late_max(&self) -> usize {
        match self.safe {
            // All that are waited for at once may rest on the flushes that are under way.
            Safe::Record | Safe::Line => PRODUCERS as usize * *WINDOW.end() as usize,
            Safe::Sync => 1,
        }
    }

    fn reopen(&self, say: Say) -> Option<Error> {
        loop {
            let opened = self.open().and_then(|log| {
                let line = Line::Reopened(log.stats().next_sequence);
                say(&line).map_err(|trouble| unsaid(&trouble))?;
                log.close()
            });
            if let Err(error) = opened {
                return Some(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::parse;
    use std::fs;

    const ALL: [Safe; 3] = [Safe::Record, Safe::Sync, Safe::Line];

    /// A log in which producer 0 has appended records 0 to 4, and what it said of that.
    fn written(safe: Safe) -> (tempfile::TempDir, Logs, Said) {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = Logs::new(&folder.path().join("log"), safe);
        logs.prepare().expect("prepared");
        let log = logs.open().expect("opened");
        let mut said = "sending 0 5\n".to_owned();
        for number in 0..5 {
            let ticket = log.append(&record(logs.is_text(), 0, number)).expect("appended");
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
            let faults = logs.check(&Said::default()).expect("checked").faults;
            assert_eq!(faults, Vec::<String>::new(), "{safe:?}");
        }
    }

    #[test]
    fn a_promised_line_that_was_cut_off_is_a_fault() {
        let (_folder, logs, said) = written(Safe::Line);
        let mut names = fs::read_dir(logs.log()).expect("a folder").flatten();
        let segment = names.find(|entry| entry.path().extension().is_some_and(|e| e == "log"));
        let segment = segment.expect("a segment").path();
        let length = fs::metadata(&segment).expect("there").len();
        let file = fs::OpenOptions::new().write(true).open(&segment).expect("opened");
        file.set_len(length - 1).expect("cut");
        let faults = logs.check(&said).expect("checked").faults;
        assert_eq!(faults, ["record 4 was promised, and the log ends before 4"]);
    }

    #[test]
    fn a_log_that_takes_more_after_an_error_is_a_fault() {
        // W2
        let (_folder, logs, _) = written(Safe::Record);
        let said = parse("sending 0 5\npower-going\npower-gone\nunpoisoned\n").expect("lines");
        let faults = logs.check(&said).expect("checked").faults;
        assert_eq!(faults, ["after the first error the log took more"]);
    }
}
