//! A subject with several threads that append to a line file, and the check of the remaining file.

use crate::verbs::power_cut::content::{content, random};
use crate::verbs::power_cut::logs::{Place, faults, judge};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::{
    Reporter, Subject, make_folder, sync_folder, until_refused,
};
use rand::RngExt;
use std::convert::Infallible;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use wrote::{Error, Lines, SyncPolicy};

const PRODUCERS: u32 = 8;
/// The number of lines that a producer appends before it waits for all of them.
const WINDOW: RangeInclusive<u64> = 1..=8;
const LENGTHS: RangeInclusive<usize> = 1..=2000;
/// The buffer is small, so that batches are written before a producer waits for them.
const BUFFER_BYTES: usize = 64 << 10;
/// The number of lines appended after the check.
const MORE: u64 = 10;

/// A subject that writes a single line file.
#[derive(Debug)]
pub struct File {
    folder: PathBuf,
    /// The file, if it was opened before the clock started.
    opened: Option<Lines>,
}

impl File {
    /// Creates a subject whose file is put into a new folder.
    pub fn new(folder: &Path) -> File {
        File { folder: folder.to_owned(), opened: None }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("file.log")
    }

    fn open(&self, sync: SyncPolicy) -> Result<Lines, Error> {
        Lines::options().sync(sync).buffer_bytes(BUFFER_BYTES).open(self.path())
    }

    /// Compares the file with the promises, and appends to it.
    fn examine(&self, said: &Report) -> Result<(), String> {
        let words = |error: Error| error.to_string();
        let lines = self.open(SyncPolicy::Always).map_err(words)?;
        if let Some(torn) = lines.torn().filter(|torn| !torn.exists()) {
            return Err(format!("{} was to be kept aside, and is not there", torn.display()));
        }
        let mut places = self.found()?;
        judge(&places, said, false)?;
        for number in 0..MORE {
            lines.append(&line(PRODUCERS, number)).and_then(|it| it.wait()).map_err(words)?;
            let sequence = places.len() as u64;
            places.push(Place { sequence, producer: PRODUCERS, number });
        }
        lines.close().map_err(words)?;
        match self.found()? == places {
            true => Ok(()),
            false => Err("lines that were appended after the crash are not there".to_owned()),
        }
    }

    /// Returns the position of each line; an error message if a line is torn or altered.
    fn found(&self) -> Result<Vec<Place>, String> {
        let bytes = std::fs::read(self.path()).map_err(|error| error.to_string())?;
        let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
        if lines.pop().is_some_and(|rest| !rest.is_empty()) {
            return Err("the file does not end with a whole line".to_owned());
        }
        (0..).zip(lines).map(|(sequence, found)| Place::of(sequence, found, line)).collect()
    }
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

/// Returns a producer's line `number`: both numbers, followed by printable characters.
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
        let refused = until_refused(PRODUCERS, |producer| produce(lines, producer, seed, say));
        if lines.flush().is_ok() || lines.append(b"late").is_ok() {
            say(&Line::Unpoisoned)?;
        }
        Err(refused)
    }

    fn check(&self, said: &Report) -> io::Result<Vec<String>> {
        Ok(faults(said, self.examine(said)))
    }

    fn late_max(&self) -> usize {
        // All lines that are waited for at once may depend on the flushes in flight.
        PRODUCERS as usize * *WINDOW.end() as usize
    }

    fn reopen(&self, say: Reporter) -> Option<Result<(), Error>> {
        Some(self.open(SyncPolicy::Always).and_then(|lines| {
            let bytes = wrote::read(self.path())?;
            say(&Line::Reopened(bytes.iter().filter(|&&byte| byte == b'\n').count() as u64))?;
            lines.close()
        }))
    }
}
