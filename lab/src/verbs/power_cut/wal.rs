//! A subject that uses a log as a write-ahead log: it appends groups, trims and cuts.

use crate::verbs::power_cut::content::{CheckResult, describe};
use crate::verbs::power_cut::content::{content, length};
use crate::verbs::power_cut::log_checks;
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, sync_folder};
use judge::judge;
use rand::RngExt;
use std::convert::Infallible;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use wrote::{Error, Log, LogOptions, SyncPolicy};

mod judge;

/// The number of groups appended before the first is waited for.
const WINDOW: RangeInclusive<u64> = 1..=8;
/// The share of windows followed by a cut.
const CUT: f64 = 0.15;
/// The share of cuts made while the groups are still in flight.
const CUT_IN_FLIGHT: f64 = 0.5;
/// The most records that a cut removes.
const CUT_MAX: u64 = 100;
/// The share of windows followed by a trim.
const TRIMMED: f64 = 0.1;
/// A small segment, so that trims find some to remove.
const SEGMENT_BYTES: u64 = 256 << 10;
/// A buffer that holds the longest group.
const BUFFER_BYTES: usize = 128 << 10;
/// The number of groups appended after the check.
const MORE: u64 = 4;

/// One log.
#[derive(Debug)]
pub struct Wal {
    folder: PathBuf,
    /// The log opened before the clock started.
    opened: Option<Log>,
}

/// The log, written by a single thread.
struct Writing<'a> {
    log: &'a Log,
    say: Reporter<'a>,
    /// The number of the next group.
    group: u64,
    /// The sequence of the first record, as the last trim returned it.
    first: u64,
    /// The sequence of the next record.
    next: u64,
    /// The first error of a trim; the log continues after it.
    untrimmed: Option<Error>,
}

impl Writing<'_> {
    fn say(&self, line: &Line) -> Result<(), Error> {
        (self.say)(line)
    }

    fn write(&mut self, seed: u64) -> Result<Infallible, Error> {
        let mut random = crate::verbs::power_cut::content::random(seed);
        loop {
            let groups = self.group..self.group + random.random_range(WINDOW);
            self.group = groups.end;
            self.say(&Line::Grouping(groups.end))?;
            let mut tickets = Vec::new();
            for number in groups {
                let (sequences, ticket) = self.log.append_all(&group(number))?;
                self.next = sequences.end;
                tickets.push((number, sequences.start, ticket));
            }
            let from = self.next.saturating_sub(CUT_MAX).max(self.first + 1);
            let is_cut = from <= self.next && random.random_bool(CUT);
            if !is_cut || !random.random_bool(CUT_IN_FLIGHT) {
                for (group, sequence, ticket) in tickets {
                    ticket.wait()?;
                    self.say(&Line::Grouped { group, sequence })?;
                }
            }
            if is_cut {
                self.cut(random.random_range(from..=self.next))?;
            }
            if random.random_bool(TRIMMED) {
                self.trim(random.random_range(self.first..=self.next))?;
            }
        }
    }

    fn cut(&mut self, at: u64) -> Result<(), Error> {
        self.say(&Line::Cutting(at))?;
        self.log.truncate_from(at)?;
        self.next = at;
        self.say(&Line::Cut(at))
    }

    fn trim(&mut self, before: u64) -> Result<(), Error> {
        self.say(&Line::Trimming(before))?;
        match self.log.trim_before(before) {
            Ok(first) => {
                self.first = first;
                self.say(&Line::Trimmed { before, first })
            }
            Err(error) => {
                self.untrimmed.get_or_insert(error);
                Ok(())
            }
        }
    }
}

impl Wal {
    /// Puts the log into a new folder.
    pub fn new(folder: &Path) -> Wal {
        Wal { folder: folder.to_owned(), opened: None }
    }

    /// Returns the log's folder, which the log creates itself.
    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn options() -> LogOptions {
        let options = Log::options().segment_bytes(SEGMENT_BYTES).buffer_bytes(BUFFER_BYTES);
        options.sync(SyncPolicy::Always)
    }

    /// Opens the log for a check, without measuring the fastest way.
    fn open(&self) -> Result<Log, Error> {
        Wal::options().dsync(true).open(self.log())
    }

    /// Opens the log for writing, in each way in turn.
    fn open_for(&self, seed: u64) -> Result<Log, Error> {
        let options = match seed % 3 {
            0 => Wal::options(),
            1 => Wal::options().dsync(true),
            _ => Wal::options().dsync(false),
        };
        options.open(self.log())
    }

    /// Reads all records of the log; an error in words for a record of no group.
    fn read(log: &Log) -> Result<Vec<(u64, Place)>, String> {
        log_checks::places(log, |sequence, bytes| Ok((sequence, of_group(bytes)?)))
    }

    /// Returns the state of the records without a promise; an error in words for a broken promise.
    fn examine(&self, said: &Report) -> Result<&'static str, String> {
        let log = self.open().map_err(|error| format!("opening: {error}"))?;
        let recovered = log_checks::recovered(&log)?;
        let places = Wal::read(&log)?;
        let next = log.stats().next_sequence;
        let state = judge(&places, next, said)?;
        self.go_on(log, places, next)?;
        Ok(if recovered.torn_bytes > 0 { "torn" } else { state })
    }

    /// Appends more groups, cuts the last one, and checks the records after reopening.
    fn go_on(&self, log: Log, mut places: Vec<(u64, Place)>, next: u64) -> Result<(), String> {
        let words = |error: Error| format!("going on: {error}");
        let mut end = next;
        for number in 0..MORE {
            let (sequences, ticket) = log.append_all(&group(number)).map_err(words)?;
            if sequences.start != end {
                return Err(format!("a group was given sequence {}, not {end}", sequences.start));
            }
            ticket.wait().map_err(words)?;
            let place = |index| Place { group: number, index };
            places.extend((end..).zip((0..size(number)).map(place)));
            end = sequences.end;
        }
        let at = end - size(MORE - 1);
        log.truncate_from(at).map_err(words)?;
        places.retain(|(sequence, _)| *sequence < at);
        let log = log_checks::opened_after_close(log, &self.log(), || self.open())?;
        log_checks::all_found(&Wal::read(&log)?, &places)?;
        log.close().map_err(words)
    }
}

impl Subject for Wal {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        sync_folder(&self.folder)
    }

    fn get_ready(&mut self, seed: u64) -> Result<(), Error> {
        // Now and then the cut hits the opening.
        if !seed.is_multiple_of(4) {
            self.opened = Some(self.open_for(seed)?);
        }
        Ok(())
    }

    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let log = match self.opened.take() {
            Some(log) => log,
            None => self.open_for(seed)?,
        };
        let mut writing = Writing { log: &log, say, group: 0, first: 0, next: 0, untrimmed: None };
        let Err(refused) = writing.write(seed);
        let first = writing.untrimmed.take().unwrap_or(refused);
        // A cut that could not begin changes nothing, and the log may continue. But the power is
        // off, so no record becomes durable any more.
        if log.append(b"late").and_then(|late| late.wait()).is_ok() {
            say(&Line::Unpoisoned)?;
        }
        Err(first)
    }

    fn check(&self, said: &Report) -> io::Result<CheckResult> {
        log_checks::check(&self.log(), said, || self.examine(said))
    }

    fn late_max(&self) -> usize {
        // All groups of a window may rest on the flushes in flight.
        *WINDOW.end() as usize
    }

    fn reopen(&self, say: Reporter) -> Option<Error> {
        Some(log_checks::reopen(|| self.open(), say))
    }
}

const SIZES: RangeInclusive<usize> = 1..=12;
/// The records of an occasional long group, which nearly fills a buffer.
const LONG: u64 = 40;
const LONG_EVERY: u64 = 29;
const LENGTHS: RangeInclusive<usize> = 1..=2500;

/// A record's place: its group, and its place in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub group: u64,
    pub index: u64,
}

/// Returns the number of records of a group.
pub fn size(group: u64) -> u64 {
    if group % LONG_EVERY == LONG_EVERY / 2 { LONG } else { length(group, SIZES) as u64 }
}

/// Returns the records of a group.
pub fn group(group: u64) -> Vec<Vec<u8>> {
    (0..size(group)).map(|index| record(Place { group, index })).collect()
}

/// Returns one record: the group, its index and the group's size, and then bytes.
fn record(Place { group, index }: Place) -> Vec<u8> {
    let mut bytes = format!("{group} {index} {} ", size(group)).into_bytes();
    bytes.extend(content(group << 8 | index, LENGTHS));
    bytes
}

/// Reads the place of a record; the error explains why no group has it.
pub fn of_group(bytes: &[u8]) -> Result<Place, String> {
    let unknown = || format!("{} bytes that are of no group", bytes.len());
    let mut words = bytes.splitn(4, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
    let (group, index) = (word().ok_or_else(unknown)?, word().ok_or_else(unknown)?);
    let place = Place { group, index };
    if index >= size(group) {
        return Err(format!("{place:?}, where the group has {} records", size(group)));
    }
    let expected = record(place);
    if bytes == expected {
        Ok(place)
    } else {
        Err(format!("{place:?}: {}", describe(bytes, &expected)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::power_cut::said::parse;
    use crate::verbs::power_cut::subject::unsaid;
    use std::cell::RefCell;
    use std::sync::Mutex;

    /// Lets the subject write until it has printed `count` lines, and returns them.
    fn written(seed: u64, count: usize) -> (tempfile::TempDir, Wal, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut wal = Wal::new(&folder.path().join("wal"));
        wal.prepare().expect("prepared");
        let lines = Mutex::new(Vec::new());
        let say = |line: &Line| {
            let mut lines = lines.lock().expect("a lock");
            if lines.len() == count {
                return Err(unsaid(&"enough"));
            }
            lines.push(line.to_string());
            Ok(())
        };
        let log = wal.open().expect("opened");
        let mut writing =
            Writing { log: &log, say: &say, group: 0, first: 0, next: 0, untrimmed: None };
        let Err(_) = writing.write(seed);
        drop(log);
        wal.opened = None;
        (folder, wal, lines.into_inner().expect("a lock"))
    }

    fn faults(wal: &Wal, lines: &[String]) -> Vec<String> {
        wal.check(&parse(&lines.join("\n")).expect("lines")).expect("checked").faults
    }

    #[test]
    fn a_log_that_keeps_its_promises_has_no_faults_and_goes_on() {
        let said = RefCell::new(Vec::new());
        for seed in 0..6 {
            let (_folder, wal, lines) = written(seed, 150);
            assert_eq!(faults(&wal, &lines), Vec::<String>::new(), "seed {seed}");
            said.borrow_mut().extend(lines);
        }
        for word in ["grouped", "cut", "trimmed"] {
            let is_said = |line: &String| line.split(' ').next() == Some(word);
            assert!(said.borrow().iter().any(is_said), "{word}");
        }
    }

    #[test]
    fn records_that_were_cut_and_are_there_are_a_fault() {
        let (_folder, wal, mut lines) = written(1, 40);
        let log = wal.open().expect("opened");
        let next = log.stats().next_sequence;
        drop(log);
        lines.push(format!("cutting {}", next - 1));
        lines.push(format!("cut {}", next - 1));
        let faults = faults(&wal, &lines);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("the log ends before"), "{faults:?}");
    }

    #[test]
    fn a_log_that_is_not_there_breaks_a_promise_only_where_there_was_one() {
        let (_folder, wal, lines) = written(2, 40);
        std::fs::remove_dir_all(wal.log()).expect("removed");
        assert_eq!(faults(&wal, &lines).len(), 1);
        std::fs::remove_dir_all(wal.log()).expect("removed");
        assert_eq!(faults(&wal, &[]), Vec::<String>::new());
    }

    #[test]
    fn a_record_tells_its_place_and_one_with_a_wrong_byte_has_none() {
        for number in [0, 7, LONG_EVERY / 2, 1_000_000] {
            for (index, mut bytes) in (0..).zip(group(number)) {
                assert_eq!(of_group(&bytes), Ok(Place { group: number, index }));
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                assert!(of_group(&bytes).is_err());
            }
        }
        assert_eq!(of_group(&[0; 7]), Err("7 bytes that are of no group".into()));
    }

    #[test]
    fn every_group_fits_into_a_buffer() {
        for number in 0..200 {
            let bytes: usize = group(number).iter().map(|record| record.len() + 8).sum();
            assert!(bytes < super::BUFFER_BYTES - 4096, "{number}: {bytes} bytes");
        }
    }
}
