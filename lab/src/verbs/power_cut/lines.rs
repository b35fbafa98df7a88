//! A subject with several threads that append to a plain file of lines, and the check of the
//! remaining file.

use crate::verbs::power_cut::content::{CheckResult, content, random};
use crate::verbs::power_cut::log_checks;
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{Reporter, Subject, make_folder, sync_folder};
use rand::RngExt;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::{io, thread};
use wrote::{Error, Lines, SyncPolicy};

const PRODUCERS: u32 = 8;
/// The number of lines that a producer appends before it waits for them.
const WINDOW: RangeInclusive<u64> = 1..=8;
const LENGTHS: RangeInclusive<usize> = 1..=2000;
/// A small buffer, so that batches are written before a producer waits for them.
const BUFFER_BYTES: usize = 64 << 10;
/// The lines appended after the check.
const MORE: u64 = 10;

/// One file.
#[derive(Debug)]
pub struct File {
    folder: PathBuf,
    /// The file opened before the clock started.
    opened: Option<Lines>,
}

impl File {
    /// Puts the file into a new folder.
    pub fn new(folder: &Path) -> File {
        File { folder: folder.to_owned(), opened: None }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("file.log")
    }

    fn open(&self, sync: SyncPolicy) -> Result<Lines, Error> {
        Lines::options().sync(sync).buffer_bytes(BUFFER_BYTES).open(self.path())
    }

    /// Returns the state of the lines without a promise; an error in words for a broken promise.
    fn examine(&self, said: &Report) -> Result<&'static str, String> {
        let words = |error: Error| error.to_string();
        let lines = self.open(SyncPolicy::Always).map_err(words)?;
        if let Some(torn) = lines.torn().filter(|torn| !torn.exists()) {
            return Err(format!("{} was to be kept aside, and is not there", torn.display()));
        }
        let before = self.found()?;
        judge(&before, said)?;
        let producer = PRODUCERS;
        let numbers = before.get(&producer).copied().unwrap_or(0);
        for number in numbers..numbers + MORE {
            lines.append(&line(producer, number)).and_then(|it| it.wait()).map_err(words)?;
        }
        lines.close().map_err(words)?;
        let mut after = self.found()?;
        if after.remove(&producer) != Some(numbers + MORE) {
            return Err("lines that were appended after the crash are not there".to_owned());
        }
        Ok("promised")
    }

    /// Returns the number of lines of each producer; an error in words for a line that is torn,
    /// doubled or not in its place.
    fn found(&self) -> Result<BTreeMap<u32, u64>, String> {
        let bytes = std::fs::read(self.path()).map_err(|error| error.to_string())?;
        if !bytes.is_empty() && bytes.last() != Some(&b'\n') {
            return Err("the file does not end with a whole line".to_owned());
        }
        let mut next = BTreeMap::new();
        for (place, found) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if found.is_empty() && place == bytes.iter().filter(|&&byte| byte == b'\n').count() {
                break;
            }
            let mut words = found.split(|&byte| byte == b' ');
            let mut word = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
            let (producer, number): (Option<u64>, Option<u64>) = (word(), word());
            let (Some(producer), Some(number)) = (producer, number) else {
                let nuls = found.iter().filter(|&&byte| byte == 0).count();
                return Err(format!("line {place}: {} bytes, {nuls} of them NUL", found.len()));
            };
            let producer = producer as u32;
            let next: &mut u64 = next.entry(producer).or_default();
            if number != *next || found != line(producer, number) {
                return Err(format!(
                    "line {place}: number {number} of producer {producer}, {next} belongs there"
                ));
            }
            *next += 1;
        }
        Ok(next)
    }
}

/// Compares the lines that were found with the promises.
fn judge(found: &BTreeMap<u32, u64>, said: &Report) -> Result<(), String> {
    let of = |producer: &u32| found.get(producer).copied().unwrap_or(0);
    for line in said.sure() {
        match line {
            Line::Appended { producer, number, .. } if of(producer) <= *number => {
                let there = of(producer);
                return Err(format!(
                    "number {number} of producer {producer} was promised, and {there} are there"
                ));
            }
            Line::Reopened(lines) if found.values().sum::<u64>() < *lines => {
                return Err(format!("{lines} lines were found at an opening, and fewer are there"));
            }
            _ => {}
        }
    }
    for (producer, there) in found.iter().filter(|(producer, _)| **producer < PRODUCERS) {
        let sent = said.all().iter().filter_map(|line| match line {
            Line::Sending { producer: other, end } if other == producer => Some(*end),
            _ => None,
        });
        if sent.max().unwrap_or(0) < *there {
            return Err(format!("producer {producer} did not send its line {there}"));
        }
    }
    Ok(())
}

/// Appends the lines of one producer.
fn produce(lines: &Lines, producer: u32, seed: u64, say: Reporter) -> Result<Infallible, Error> {
    let mut random = random(seed ^ u64::from(producer));
    let mut begin = 0;
    loop {
        let numbers = begin..begin + random.random_range(WINDOW);
        begin = numbers.end;
        say(&Line::Sending { producer, end: begin })?;
        let append = |number| lines.append(&line(producer, number));
        let tickets = numbers.clone().map(append).collect::<Result<Vec<_>, _>>()?;
        for (number, ticket) in numbers.zip(tickets) {
            let sequence = ticket.sequence();
            ticket.until_durable().wait()?;
            say(&Line::Appended { sequence, producer, number })?;
        }
    }
}

/// Returns a producer's line of this number: the producer and the number, and then letters.
fn line(producer: u32, number: u64) -> Vec<u8> {
    let body = content(u64::from(producer) << 40 | number, LENGTHS);
    let mut bytes = format!("{producer} {number} ").into_bytes();
    bytes.extend(body.iter().map(|byte| b'!' + byte % 90));
    bytes
}

impl Subject for File {
    fn prepare(&self) -> io::Result<()> {
        make_folder(&self.folder)
    }

    fn get_ready(&mut self, seed: u64) -> Result<(), Error> {
        let sync = match seed % 3 {
            0 => SyncPolicy::Always,
            1 => SyncPolicy::EverySec,
            _ => SyncPolicy::No,
        };
        self.opened = Some(self.open(sync)?);
        sync_folder(&self.folder)
            .map_err(|error| Error::file(&self.folder, wrote::Action::SyncFolder, None, &error))
    }

    fn write(&mut self, seed: u64, say: Reporter) -> Result<Infallible, Error> {
        let lines = self.opened.as_ref().expect("it was opened before");
        let refused = thread::scope(|scope| {
            let threads: Vec<_> = (0..PRODUCERS)
                .map(|producer| scope.spawn(move || produce(lines, producer, seed, say)))
                .collect();
            let ended = threads.into_iter().map(|thread| match thread.join() {
                Ok(Err(error)) => error,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // Every producer must notice the cut; the report of the first suffices.
            ended.collect::<Vec<_>>().swap_remove(0)
        });
        if lines.flush().is_ok() || lines.append(b"late").is_ok() {
            say(&Line::Unpoisoned)?;
        }
        Err(refused)
    }

    fn check(&self, said: &Report) -> io::Result<CheckResult> {
        log_checks::check(&self.folder, said, || self.examine(said))
    }

    fn late_max(&self) -> usize {
        // All lines waited for at once may rest on the flushes in flight.
        PRODUCERS as usize * *WINDOW.end() as usize
    }

    fn reopen(&self, say: Reporter) -> Option<Error> {
        loop {
            let opened = self.open(SyncPolicy::Always).and_then(|lines| {
                let bytes = wrote::read(self.path())?;
                say(&Line::Reopened(bytes.iter().filter(|&&byte| byte == b'\n').count() as u64))?;
                lines.close()
            });
            if let Err(error) = opened {
                return Some(error);
            }
        }
    }
}
