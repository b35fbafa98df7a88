//! Reading a log by sequence, while it is written or not.

mod framed;
mod lines;

#[cfg(test)]
mod tests;

use super::{Format, names};
use crate::engine::Callers;
use crate::{Engine, Error, Ioengine, Options, Sim};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of one read, when a reader goes from front to back; [`READS`] of them are under way.
const BUFFER_BYTES: usize = 512 << 10;
const READS: u32 = 4;

/// How long a reader that follows sleeps before it looks again: twice as long each time.
const SLEEP_MIN: Duration = Duration::from_millis(1);
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// After how long without a record a reader that follows makes sure that what it waits for was not lost;
/// then after twice as long each time.
const CHECK_AFTER: Duration = Duration::from_millis(200);

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place in the log: the first record ever has 0, and each the one after its predecessor's.
    pub sequence: u64,
    /// What was appended.
    pub bytes: Vec<u8>,
}

/// The records of a log in order.
///
/// A reader sees what was handed to the kernel, by this process or another: what it reads may not be
/// durable yet, and may be lost with the kernel. It takes no lock. A framed log is read past the page cache
/// where the file system can, with reads under way ahead; lines are read through it.
///
/// A reader that follows looks for more every 1 to 20 ms, the longer it has waited the rarer. Other than
/// messages from the writer that works across processes and file systems.
///
/// Where retention removes segments before they are read, it goes on with the first that is there:
/// [`Record::sequence`] tells how many records were passed over.
pub struct LogReader {
    engine: Engine,
    folder: PathBuf,
    /// The sequence of the next record that is wanted.
    from: u64,
    follows: bool,
    cursor: Option<Cursor>,
    failed: Option<Error>,
    /// Whether the iterator has told of the error.
    told: bool,
}

// SAFETY: what is not `Send` in here is the counted references between the engine, its pool and the
// buffers that the cursor's input has leased: all of them are inside, none is handed out, so they move
// together. The engine is made for callers of any thread.
unsafe impl Send for LogReader {}

/// Where a reader is.
enum Cursor {
    Framed(framed::Cursor),
    Lines(lines::Cursor),
}

impl LogReader {
    /// Reads the log in `folder` from the record `from` on, up to what is there; no lock is taken, and
    /// the log may be open for writing here or in another process. Where retention has removed the
    /// record, it begins with the first that is there.
    ///
    /// # Errors
    ///
    /// When there is no log in the folder, or it can't be read.
    pub fn open(folder: impl AsRef<Path>, from: u64) -> Result<LogReader, Error> {
        LogReader::of_disk(folder.as_ref(), from, false)
    }

    /// The same, but where [`LogReader::open`] ends it waits for what is appended next.
    ///
    /// # Errors
    ///
    /// As [`LogReader::open`].
    pub fn follow(folder: impl AsRef<Path>, from: u64) -> Result<LogReader, Error> {
        LogReader::of_disk(folder.as_ref(), from, true)
    }

    /// As [`LogReader::open`], on a simulated disk.
    ///
    /// # Errors
    ///
    /// As [`LogReader::open`]; a folder in which there is nothing is an empty log.
    pub fn open_simulated(
        sim: &Sim,
        folder: impl AsRef<Path>,
        from: u64,
    ) -> Result<LogReader, Error> {
        LogReader::simulated(sim, folder.as_ref(), from, false)
    }

    pub(super) fn simulated(
        sim: &Sim,
        folder: &Path,
        from: u64,
        follows: bool,
    ) -> Result<LogReader, Error> {
        let engine = Engine::simulated(sim, &options())?;
        LogReader::new(engine, folder, from, follows)
    }

    fn of_disk(folder: &Path, from: u64, follows: bool) -> Result<LogReader, Error> {
        let engine = Engine::open_for(&options(), Callers::Any)?;
        let mut reader = LogReader::new(engine, folder, from, follows)?;
        // A log in which nothing was written yet has no segment, but a lock.
        if reader.cursor.is_none() && names::is_empty(&mut reader.engine, folder)? {
            let because = "there is no log here".to_owned();
            return Err(Error::Refused { path: folder.to_owned(), because });
        }
        Ok(reader)
    }

    fn new(engine: Engine, folder: &Path, from: u64, follows: bool) -> Result<LogReader, Error> {
        let folder = folder.to_owned();
        let (cursor, failed, told) = (None, None, false);
        let mut reader = LogReader { engine, folder, from, follows, cursor, failed, told };
        reader.find()?;
        Ok(reader)
    }

    /// The next record, or `None` where there is none within `timeout`. A reader that does not follow
    /// does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] where the log is damaged; else with the kernel's words. After an error always
    /// that one.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Record>, Error> {
        let mut bytes = Vec::new();
        let sequence = self.read_within(&mut bytes, Some(timeout))?;
        Ok(sequence.map(|sequence| Record { sequence, bytes }))
    }

    /// The next record's bytes, appended to `bytes`, and its sequence: spares an allocation a record. A
    /// reader that follows waits for it, else `None` is the end.
    ///
    /// # Errors
    ///
    /// As [`LogReader::next_within`].
    pub fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        self.read_within(bytes, None)
    }

    fn read_within(
        &mut self,
        bytes: &mut Vec<u8>,
        timeout: Option<Duration>,
    ) -> Result<Option<u64>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let kept = bytes.len();
        let result = if self.follows { self.wait(bytes, timeout) } else { self.read_to_end(bytes) };
        result.inspect_err(|error| {
            bytes.truncate(kept);
            self.failed = Some(error.clone());
        })
    }

    /// The next record of those that are there.
    fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        if let Some(sequence) = self.advance(bytes)? {
            return Ok(Some(sequence));
        }
        self.check(bytes)
    }

    /// The next record, when it comes.
    fn wait(
        &mut self,
        bytes: &mut Vec<u8>,
        timeout: Option<Duration>,
    ) -> Result<Option<u64>, Error> {
        // Who does not wait wants to know of what came since all the same.
        let mut found = match self.advance(bytes)? {
            None => self.look_again(bytes)?,
            found => found,
        };
        let began = Instant::now();
        let (mut sleep, mut check_after) = (SLEEP_MIN, CHECK_AFTER);
        while found.is_none() {
            let waited = began.elapsed();
            let left = timeout.map_or(SLEEP_MAX, |timeout| timeout.saturating_sub(waited));
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(sleep.min(left));
            sleep = (sleep * 2).min(SLEEP_MAX);
            found = if waited >= check_after {
                check_after *= 2;
                self.check(bytes)?
            } else {
                self.look_again(bytes)?
            };
        }
        Ok(found)
    }

    /// The next record of those that were there when they were read.
    fn advance(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        loop {
            if self.cursor.is_none() && !self.find()? {
                return Ok(None);
            }
            let LogReader { engine, folder, from, cursor, .. } = self;
            let (sequence, goes_on) = match cursor {
                None => (None, false),
                Some(Cursor::Framed(cursor)) => match cursor.next(engine, *from, bytes)? {
                    None => (None, cursor.turn(engine, folder)?),
                    found => (found, true),
                },
                Some(Cursor::Lines(cursor)) => match cursor.next(engine, *from, bytes)? {
                    None => (None, cursor.turn(engine, folder)?),
                    found => (found, true),
                },
            };
            if let Some(sequence) = sequence {
                self.from = sequence + 1;
                return Ok(Some(sequence));
            }
            if !goes_on {
                return Ok(None);
            }
        }
    }

    /// The next record, if it came since it was looked for.
    fn look_again(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        match &mut self.cursor {
            Some(Cursor::Framed(cursor)) => cursor.look_again(&mut self.engine)?,
            Some(Cursor::Lines(cursor)) => cursor.look_again(&mut self.engine)?,
            None => {}
        }
        self.advance(bytes)
    }

    /// The next record, if it came since it was looked for; an error where it was durable and is lost.
    fn check(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        if let Some(sequence) = self.look_again(bytes)? {
            return Ok(Some(sequence));
        }
        let LogReader { engine, folder, .. } = self;
        let lost = match &mut self.cursor {
            Some(Cursor::Framed(cursor)) => cursor.lost(engine, folder)?,
            Some(Cursor::Lines(cursor)) => cursor.lost(engine, folder)?,
            None => None,
        };
        // What proves that it was durable was read after it was looked for: it may have come between.
        match (lost, self.look_again(bytes)?) {
            (Some(lost), None) => Err(lost),
            (_, found) => Ok(found),
        }
    }

    /// Finds where to begin, if there is a segment.
    fn find(&mut self) -> Result<bool, Error> {
        let LogReader { engine, folder, from, .. } = self;
        self.cursor = names::unless_removed(|| {
            let cursor = match names::format(engine, folder)? {
                None => None,
                Some(Format::Framed) => {
                    framed::Cursor::find(engine, folder, *from)?.map(Cursor::Framed)
                }
                Some(Format::Lines) => {
                    lines::Cursor::find(engine, folder, *from)?.map(Cursor::Lines)
                }
            };
            Ok(Some(cursor))
        })?;
        Ok(self.cursor.is_some())
    }
}

fn options() -> Options {
    Options {
        // One beside those that are under way.
        buffers: READS + 1,
        registered_buffers: false,
        ..Options::new(Ioengine::IoUring, READS, BUFFER_BYTES)
    }
}

impl Iterator for LogReader {
    type Item = Result<Record, Error>;

    /// The next record. A reader that follows waits for it, without end. After an error there is nothing.
    fn next(&mut self) -> Option<Self::Item> {
        if self.told {
            return None;
        }
        let mut bytes = Vec::new();
        let result = self.read_within(&mut bytes, None);
        self.told = result.is_err();
        result.map(|sequence| sequence.map(|sequence| Record { sequence, bytes })).transpose()
    }
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("folder", &self.folder)
            .field("from", &self.from)
            .field("follows", &self.follows)
            .finish_non_exhaustive()
    }
}
