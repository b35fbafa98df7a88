//! Reads the user's files or standard input whole, within a limit.

use crate::stdio::Input;
use rustix::fs::{Mode, OFlags, open};
use std::io::{self, Read};
use std::path::Path;
use wrote_result::{Error, Stop, units};

/// A kind of file: its name in errors, and its most bytes (W8).
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// `job file`, `result`.
    pub name: &'static str,
    /// A longer one is refused, because a device or log named by mistake may be endless.
    pub bytes_max: u64,
}

/// Whether the path means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads the file, or standard input for `-`, to its end; `shown` is its name in errors. Waits for
/// a pipe's writer until the user asks to stop.
///
/// # Errors
///
/// [`Error::Usage`] where there is no such file, or it can't be read or is too long;
/// [`Error::Interrupted`].
pub fn read(path: &Path, shown: &str, kind: Kind, stop: &Stop) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let end = kind.bytes_max + 1;
    let read = if is_stdin(path) {
        Input::new(stop).take(end).read_to_end(&mut bytes)
    } else {
        // The open of a pipe would wait for its writer, and for no signal.
        open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|file| Input::of(file, stop).take(end).read_to_end(&mut bytes))
    };
    stop.check()?;
    read.map_err(|error| Error::Usage(format!("{shown}: {error}")))?;
    if bytes.len() as u64 == end {
        let (most, name) = (units::bytes(kind.bytes_max), kind.name);
        return Err(Error::Usage(format!("{shown}: is longer than {most}, which no {name} is")));
    }
    Ok(bytes)
}
