//! The code that several languages' bindings share: a wake-up for event loops, the tickets for
//! which they wait, a writer that collects small writes, the options and their names, and the parts
//! of an error.

mod waits;

pub use waits::{Answer, EventFd, Signal, Waits, Wakeup};

use rustix::io::Errno;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wrote::{
    Error, LinesOptions, LogOptions, LogReader, SyncPolicy, Writer, WriterOptions, Written,
};

/// Returns the text of an error without the path and the number, which each language adds to its
/// errors itself.
pub fn text(error: &Error, options: [&str; 2]) -> String {
    let text = in_language(error.reason().to_string(), options);
    let number = format!(" (os error {})", error.errno());
    text.strip_suffix(&number).unwrap_or(&text).to_owned()
}

/// Replaces Rust's names of the buffer options of logs and line files with the language's names.
pub fn in_language(text: String, [log, lines]: [&str; 2]) -> String {
    text.replace("LogOptions::buffer_bytes", log).replace("LinesOptions::buffer_bytes", lines)
}

/// Converts a time into nanoseconds since 1970.
pub fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the file offset at which an operation failed, if the error has one.
pub fn offset(error: &Error) -> Option<u64> {
    match error {
        Error::File { offset, .. } | Error::NotYet { offset, .. } => *offset,
        Error::TooLong { offset, .. } => *offset,
        Error::Alignment { offset, .. } | Error::Damaged { offset, .. } => Some(*offset),
        _ => None,
    }
}

/// Returns the library's error that an I/O error contains or, if there is none, an error for the
/// I/O error itself.
pub fn from_io(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| {
        let errno = Error::errno_in(&error).unwrap_or(Errno::INVAL.raw_os_error());
        Error::Engine { what: "the call's arguments", errno }
    })
}

/// Opens the log in a folder for reading, from record `from` on. A reader that follows waits for
/// further records, and for the log to be created if it does not exist yet.
pub fn log_reader(folder: &Path, from: u64, follows: bool) -> Result<LogReader, Error> {
    match follows {
        true => LogReader::expect(folder, from)?.following(),
        false => LogReader::open(folder, from),
    }
}

/// Options of the library. A caller may omit some of them.
pub trait Options: Sized {
    /// Sets an option by its method, if the caller gave it.
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

/// Returns the policy with this name, which is one of Redis's.
pub fn sync(word: &str) -> Result<SyncPolicy, String> {
    match word {
        "always" => Ok(SyncPolicy::Always),
        "everysec" => Ok(SyncPolicy::EverySec),
        "no" => Ok(SyncPolicy::No),
        other => Err(format!("sync={other:?}: use \"always\", \"everysec\", \"no\" or a number")),
    }
}

/// Returns the time that an option gives in seconds.
pub fn interval(name: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{name}={seconds}: not a time"))
}

/// The number of bytes collected before they are passed to the writer. Only passing them on may
/// wait for the disk, so only then must the language's lock be released.
const PENDING_BYTES: usize = 64 << 10;

/// The library's writer, and the bytes that have not been passed to it yet.
pub struct Collected {
    /// The writer; `None` once the file has been finished or abandoned.
    writer: Option<Writer>,
    pending: Vec<u8>,
    /// Whether bytes may be collected in `pending`. They may not if writes sync automatically.
    collects: bool,
}

impl Collected {
    /// Wraps a writer that was opened with this policy.
    pub fn new(writer: Writer, sync: SyncPolicy) -> Collected {
        let collects = sync == SyncPolicy::No;
        Collected { writer: Some(writer), pending: Vec::new(), collects }
    }

    /// Returns whether the file has been neither finished nor abandoned yet.
    pub fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// Copies the bytes without waiting, if there is room for them, and returns whether there was.
    pub fn collect(&mut self, bytes: &[u8]) -> bool {
        let fits = self.collects && bytes.len() <= PENDING_BYTES - self.pending.len();
        if fits {
            self.pending.extend_from_slice(bytes);
        }
        fits
    }

    /// Writes the collected bytes, followed by `bytes`.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.push()?;
        if self.collects && bytes.len() < PENDING_BYTES {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write_all(bytes)).map_err(from_io)
    }

    /// Passes the collected bytes to the writer.
    fn push(&mut self) -> Result<(), Error> {
        if let (Some(writer), false) = (&mut self.writer, self.pending.is_empty()) {
            writer.write_all(&self.pending).map_err(from_io)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Calls `act` with the writer, after all collected bytes have been passed to it. Returns
    /// `None` once the file has been finished or abandoned.
    pub fn on_writer<T>(
        &mut self,
        act: impl FnOnce(&mut Writer) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.push()?;
        self.writer.as_mut().map(act).transpose()
    }

    /// Returns the offset of the next byte.
    pub fn position(&mut self) -> Result<u64, Error> {
        use std::io::Seek;
        let position = self.writer.as_mut().map_or(Ok(0), Writer::stream_position);
        position.map(|position| position + self.pending.len() as u64).map_err(from_io)
    }

    /// Finishes the file; returns `None` if it has already been finished or abandoned. After an
    /// error, a file that was to be replaced is unchanged.
    pub fn finish(&mut self, durable: bool) -> Result<Option<Written>, Error> {
        let pushed = self.push();
        self.pending = Vec::new();
        let Some(writer) = self.writer.take() else { return Ok(None) };
        // After an error, the writer is dropped, which abandons the file.
        pushed?;
        if durable { writer.finish() } else { writer.close() }.map(Some)
    }

    /// Abandons the file, without writing the rest.
    pub fn abandon(&mut self) {
        self.pending = Vec::new();
        drop(self.writer.take());
    }
}
