//! Parts that the bindings for all languages share: wake-ups of event loops, the tickets for which
//! they wait, a writer that collects small writes, options and their words, and the parts of an
//! error.

mod waits;

pub use waits::{Answer, EventFd, Signal, Waits, Wakeup};

use rustix::io::Errno;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wrote::{
    Error, LinesOptions, LogOptions, LogReader, SyncPolicy, Writer, WriterOptions, Written,
};

/// Returns the library's text without the parts that the errors of a language add themselves: path
/// and number.
pub fn text(error: &Error, options: [&str; 2]) -> String {
    let text = in_language(error.reason().to_string(), options);
    let number = format!(" (os error {})", error.errno());
    text.strip_suffix(&number).unwrap_or(&text).to_owned()
}

/// Names the options of a log and of lines as the language does, in place of Rust's names.
pub fn in_language(text: String, [log, lines]: [&str; 2]) -> String {
    text.replace("LogOptions::buffer_bytes", log).replace("LinesOptions::buffer_bytes", lines)
}

/// Returns a time in nanoseconds since 1970.
pub fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the byte of the file at which an operation failed, where the error has one.
pub fn offset(error: &Error) -> Option<u64> {
    match error {
        Error::File { offset, .. } | Error::NotYet { offset, .. } => *offset,
        Error::TooLong { offset, .. } => *offset,
        Error::Alignment { offset, .. } | Error::Damaged { offset, .. } => Some(*offset),
        _ => None,
    }
}

/// Returns the library's error inside an I/O error.
pub fn from_io(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| {
        let errno = Error::errno_in(&error).unwrap_or(Errno::INVAL.raw_os_error());
        Error::Engine { what: "the call's arguments", errno }
    })
}

/// Opens a log in a folder from record `from` on. A reader that follows waits for further records,
/// and for a log that is not there yet.
pub fn log_reader(folder: &Path, from: u64, follows: bool) -> Result<LogReader, Error> {
    match follows {
        true => LogReader::expect(folder, from)?.following(),
        false => LogReader::open(folder, from),
    }
}

/// Options of the library. A caller leaves some out.
pub trait Options: Sized {
    /// Sets an option by its method, where the caller gave it.
    fn set<T>(self, option: fn(Self, T) -> Self, given: Option<T>) -> Self {
        match given {
            Some(value) => option(self, value),
            None => self,
        }
    }
}

impl Options for LinesOptions {}
impl Options for LogOptions {}
impl Options for WriterOptions {}

/// Returns the policy of a word of Redis.
pub fn sync(word: &str) -> Result<SyncPolicy, String> {
    match word {
        "always" => Ok(SyncPolicy::Always),
        "everysec" => Ok(SyncPolicy::EverySec),
        "no" => Ok(SyncPolicy::No),
        other => Err(format!("sync={other:?}: use \"always\", \"everysec\", \"no\" or a number")),
    }
}

/// Returns the time of an option in seconds.
pub fn interval(name: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{name}={seconds}: not a time"))
}

/// Bytes that are collected before the writer gets them. Only that may wait for the disk, so only
/// then does the language's own thread have to be let go.
const PENDING_BYTES: usize = 64 << 10;

/// The library's writer, and bytes that it has not got yet.
pub struct Collected {
    /// `None` after its end.
    writer: Option<Writer>,
    pending: Vec<u8>,
    /// Whether bytes may wait in `pending`: no write syncs by itself.
    collects: bool,
}

impl Collected {
    /// Wraps a writer that was opened with this policy.
    pub fn new(writer: Writer, sync: SyncPolicy) -> Collected {
        let collects = sync == SyncPolicy::No;
        Collected { writer: Some(writer), pending: Vec::new(), collects }
    }

    /// Returns whether the file has not ended.
    pub fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// Takes the bytes without waiting, if there is room for them.
    pub fn collect(&mut self, bytes: &[u8]) -> bool {
        let fits = self.collects && bytes.len() <= PENDING_BYTES - self.pending.len();
        if fits {
            self.pending.extend_from_slice(bytes);
        }
        fits
    }

    /// Writes bytes, and the collected ones before them.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.push()?;
        if self.collects && bytes.len() < PENDING_BYTES {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write_all(bytes)).map_err(from_io)
    }

    /// Gives the writer what was collected.
    fn push(&mut self) -> Result<(), Error> {
        if let (Some(writer), false) = (&mut self.writer, self.pending.is_empty()) {
            writer.write_all(&self.pending).map_err(from_io)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Calls `act` with the writer, which has all bytes. Returns `None` after the end.
    pub fn on_writer<T>(
        &mut self,
        act: impl FnOnce(&mut Writer) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.push()?;
        self.writer.as_mut().map(act).transpose()
    }

    /// Returns the place of the next byte.
    pub fn position(&mut self) -> Result<u64, Error> {
        use std::io::Seek;
        let position = self.writer.as_mut().map_or(Ok(0), Writer::stream_position);
        position.map(|position| position + self.pending.len() as u64).map_err(from_io)
    }

    /// Ends the file, unless it has ended. After an error the old one is unchanged.
    pub fn finish(&mut self, durable: bool) -> Result<Option<Written>, Error> {
        let pushed = self.push();
        self.pending = Vec::new();
        let Some(writer) = self.writer.take() else { return Ok(None) };
        // Else the writer is dropped, and abandons.
        pushed?;
        if durable { writer.finish() } else { writer.close() }.map(Some)
    }

    /// Ends without writing the rest.
    pub fn abandon(&mut self) {
        self.pending = Vec::new();
        drop(self.writer.take());
    }
}
