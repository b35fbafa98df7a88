//! Parts that the bindings for all languages share: wake-ups of event loops, the tickets for which
//! they wait, a writer that collects small writes, words of options, and the parts of an error.

mod collected;
mod options;
mod waits;
mod wakeup;

pub use collected::Collected;
pub use options::{format, interval, sync};
pub use waits::{Answer, Waits};
pub use wakeup::{EventFd, Signal, Wakeup};

use rustix::io::Errno;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use wrote::Error;

/// Returns the library's text without the parts that the errors of a language add themselves: path
/// and number.
pub fn text(error: &Error) -> String {
    let whole = error.to_string();
    let path = error.path().map(|path| format!("{}: ", path.display())).unwrap_or_default();
    let text = whole.strip_prefix(&path).unwrap_or(&whole);
    let number = format!(" (os error {})", error.errno());
    text.strip_suffix(&number).unwrap_or(text).to_owned()
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
        Error::Alignment { offset, .. }
        | Error::TooLong { offset, .. }
        | Error::Damaged { offset, .. } => Some(*offset),
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
