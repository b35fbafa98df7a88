//! The sources from which records are read: a folder, in its current state or as it grows, or a
//! store.

use crate::stdio::End;
use crate::terminal::say;
use rustix::io::Errno;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use wrote::LogReader;
use wrote::log::summary;

/// A source that contains a log.
pub(super) trait Source {
    /// Returns a reader of the records from `from` up to the current end.
    fn open(&self, from: u64) -> Result<Box<dyn Records>, End>;

    /// Fails if the log does not record times.
    fn check_times(&self) -> Result<(), End>;

    /// Returns the sequences of the first record and of the next one to be appended.
    fn ends(&self) -> Result<Ends, End>;
}

/// The first sequence of a log, and the sequence after its last record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub first: u64,
    pub next: u64,
}

/// A record without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub sequence: u64,
    /// When the log submitted the record to the disk, if known.
    pub written_at: Option<SystemTime>,
}

/// The records of a log, in order.
pub(super) trait Records {
    /// Appends the next record to `bytes`, and returns its head; `None` at the end.
    fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End>;

    /// Continues with the first record written at `time` or later.
    fn seek_time(&mut self, time: SystemTime) -> Result<(), End>;

    /// Returns the ranges of records whose times overlap because the clock stepped back, as far as
    /// they are known. Stores do not list these ranges.
    fn clock_steps(&mut self) -> Result<Vec<Range<u64>>, End> {
        Ok(Vec::new())
    }
}

/// The records of a log that is growing.
pub(super) trait Follow: Records {
    /// Appends the next record to `bytes`, and returns its head; `None` if there is none within
    /// `timeout`.
    fn next_within(&mut self, timeout: Duration, bytes: &mut Vec<u8>) -> Result<Option<Head>, End>;
}

/// Returns the URL if the user named a store; `None` if they named a folder.
pub(super) fn in_store(named: &Path) -> Option<&str> {
    let (text, is_scheme) =
        (named.to_str()?, |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let (scheme, _) = text.split_once("://")?;
    (!scheme.is_empty() && scheme.chars().all(is_scheme)).then_some(text)
}

/// A folder on this machine.
pub(super) struct Folder(pub PathBuf);

impl Source for Folder {
    fn open(&self, from: u64) -> Result<Box<dyn Records>, End> {
        Ok(Box::new(LogReader::open(&self.0, from)?))
    }

    fn check_times(&self) -> Result<(), End> {
        Ok(LogReader::open(&self.0, 0)?.seek_time(SystemTime::UNIX_EPOCH)?)
    }

    fn ends(&self) -> Result<Ends, End> {
        let summary = summary(&self.0)?;
        Ok(Ends { first: summary.first_sequence, next: summary.next_sequence })
    }
}

/// Returns whether the folder contains a log.
pub(super) fn is_there(folder: &Path) -> Result<bool, End> {
    match LogReader::open(folder, 0) {
        Ok(_) => Ok(true),
        Err(wrote::Error::Refused { .. }) => Ok(false),
        Err(error) if error.errno() == Errno::NOENT.raw_os_error() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The interval between checks for a log.
const SOON: Duration = Duration::from_millis(10);

/// The maximum time that the removal of a folder may take, after an error in it.
const REMOVAL: Duration = Duration::from_secs(1);

/// A log that is growing. With `awaits`, the log need not exist yet, and if its folder is removed
/// or renamed, the next log at the path is read.
pub(super) struct Following {
    folder: PathBuf,
    reader: LogReader,
    awaits: bool,
}

impl Following {
    /// Opens a log that is growing, for reading from record `from`.
    pub(super) fn open(folder: &Path, from: u64, awaits: bool) -> Result<Following, End> {
        let open = if awaits { LogReader::expect } else { LogReader::open };
        let reader = open(folder, from)?.following()?;
        Ok(Following { folder: folder.to_owned(), reader, awaits })
    }
}

impl Records for Following {
    fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        self.next_within(Duration::ZERO, bytes)
    }

    fn seek_time(&mut self, time: SystemTime) -> Result<(), End> {
        Ok(self.reader.seek_time(time)?)
    }

    fn clock_steps(&mut self) -> Result<Vec<Range<u64>>, End> {
        Ok(self.reader.clock_steps()?)
    }
}

impl Follow for Following {
    fn next_within(&mut self, timeout: Duration, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        let found = self.reader.next_within(timeout).map(|found| {
            found.map(|record| {
                bytes.extend_from_slice(&record.bytes);
                Head { sequence: record.sequence, written_at: record.written_at }
            })
        });
        if !self.awaits || matches!(found, Ok(Some(_))) {
            return Ok(found?);
        }
        let failed_at = Instant::now();
        while self.reader.is_at_its_path()? {
            match &found {
                Err(_) if failed_at.elapsed() < REMOVAL => thread::sleep(SOON),
                _ => return Ok(found?),
            }
        }
        let folder = self.folder.display();
        say(&format!("wrote: note: {folder}: removed or renamed; waiting for a log there"));
        self.reader = LogReader::expect(&self.folder, 0)?.following()?;
        Ok(None)
    }
}

impl Records for LogReader {
    fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        Ok(self.next_lent()?.map(|record| {
            bytes.extend_from_slice(record.bytes);
            Head { sequence: record.sequence, written_at: record.written_at }
        }))
    }

    fn seek_time(&mut self, time: SystemTime) -> Result<(), End> {
        Ok(LogReader::seek_time(self, time)?)
    }

    fn clock_steps(&mut self) -> Result<Vec<Range<u64>>, End> {
        Ok(LogReader::clock_steps(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_no_url() {
        for named in ["s3://bucket/x", "file:///x", "gs://x"] {
            assert_eq!(in_store(Path::new(named)), Some(named));
        }
        for named in ["events", "/a/b", "./a:b//c", "://x", "a/b://c"] {
            assert_eq!(in_store(Path::new(named)), None, "{named}");
        }
    }
}
