//! Standard input and output that stop waiting when the user asks to stop; files that the user
//! names, read up to a limit; and paths that lead to files which this process has open.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, read, write};
use std::io::{self, IoSlice, Read, Stdin, Stdout, Write};
use std::os::fd::AsFd;
use std::path::Path;
use wrote::error::Action;
use wrote_result::{Error, Stop, units};

/// The maximum wait before a check for a request to stop.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The maximum number of bytes in a write if the kernel cannot write without waiting. A pipe that
/// is ready has at least this much room (`PIPE_BUF`, `pipe(7)`).
const WAITING_WRITE_BYTES_MAX: usize = 4096;

/// The offset that means the current position (`pwritev2(2)`).
const WHERE_IT_STANDS: u64 = u64::MAX;

/// The reason why output failed, or why input ended.
#[derive(Debug)]
pub enum End {
    /// The reader of standard output has gone (`wrote log cat .. | head`).
    NoReader,
    /// An error, or the user's request to stop.
    Because(Error),
}

impl End {
    /// Converts a failed write to standard output into an [`End`].
    pub fn of_output(error: &io::Error) -> End {
        match error.kind() {
            io::ErrorKind::BrokenPipe => End::NoReader,
            _ => End::of("standard output", error),
        }
    }

    /// Converts a failed read of standard input into an [`End`].
    pub fn of_input(error: &io::Error) -> End {
        End::of("standard input", error)
    }

    fn of(name: &str, error: &io::Error) -> End {
        let stopped = error.raw_os_error() == Some(Errno::CANCELED.raw_os_error());
        let failed = Error::Failed(format!("{name}: {error}"));
        End::Because(if stopped { Error::Interrupted } else { failed })
    }

    /// Converts the result of a command. It is not an error if the reader has gone.
    ///
    /// # Errors
    ///
    /// Any other reason why the command ended.
    pub fn outcome(result: Result<(), End>) -> Result<(), Error> {
        match result {
            Ok(()) | Err(End::NoReader) => Ok(()),
            Err(End::Because(error)) => Err(error),
        }
    }
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Because(error)
    }
}

impl From<wrote::Error> for End {
    fn from(error: wrote::Error) -> End {
        End::Because(of_library(&error))
    }
}

/// Converts an error of the library into one with the right exit code.
pub(crate) fn of_library(error: &wrote::Error) -> Error {
    match error {
        wrote::Error::Interrupted => Error::Interrupted,
        wrote::Error::Refused { .. } => Error::Usage(error.to_string()),
        wrote::Error::File {
            path,
            action:
                action @ (Action::Examine | Action::Open | Action::MakeFile | Action::MakeFolder),
            errno,
            ..
        } if *errno == Errno::NOENT.raw_os_error() => Error::Usage(not_there(path, *action)),
        _ => Error::Failed(error.to_string()),
    }
}

/// Returns a message that says which part of a path named by the user does not exist.
fn not_there(path: &Path, action: Action) -> String {
    let shown = path.display();
    let is_missing = |folder: &&Path| *folder != Path::new("") && !folder.exists();
    let Some(folder) = path.parent().filter(is_missing) else {
        return format!("{shown}: does not exist");
    };
    let folder = folder.display();
    let make = match action {
        Action::MakeFile | Action::MakeFolder => format!("; 'mkdir -p {folder}' creates it"),
        _ => String::new(),
    };
    format!("{shown}: there is no folder {folder}{make}")
}

/// Standard output. Once the user asks to stop, a write that waits for its reader fails with
/// `ECANCELED`.
#[derive(Debug)]
pub struct Output<'a> {
    stdout: Stdout,
    stop: &'a Stop,
    /// Whether this is a regular file, which is always ready.
    is_ordinary: bool,
    /// Whether a write can report that it would have to wait (`RWF_NOWAIT`). Terminals do not
    /// support this; pipes do since Linux 6.4.
    nowait: bool,
}

impl<'a> Output<'a> {
    /// Returns standard output, whose writes stop waiting once `stop` is raised.
    pub fn new(stop: &'a Stop) -> Output<'a> {
        let stdout = io::stdout();
        let is_ordinary = fstat(&stdout)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Output { stdout, stop, is_ordinary, nowait: !is_ordinary }
    }

    /// Returns whether there is still a reader.
    pub fn has_reader(&self) -> bool {
        let mut files = [PollFd::new(&self.stdout, PollFlags::empty())];
        poll(&mut files, Some(&AT_ONCE)).is_err()
            || !files[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    fn try_write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.nowait {
            let all = [IoSlice::new(bytes)];
            return pwritev2(&self.stdout, &all, WHERE_IT_STANDS, ReadWriteFlags::NOWAIT);
        }
        let most = if self.is_ordinary { bytes.len() } else { WAITING_WRITE_BYTES_MAX };
        write(&self.stdout, &bytes[..bytes.len().min(most)])
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            wait(&self.stdout, PollFlags::OUT, self.stop)?;
            match self.try_write(bytes) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.nowait => self.nowait = false,
                other => return Ok(other?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard input, or an open file. Once the user asks to stop, a read that waits fails with
/// `ECANCELED`.
#[derive(Debug)]
pub struct Input<'a, F = Stdin> {
    file: F,
    stop: &'a Stop,
}

impl<'a> Input<'a> {
    /// Returns standard input, whose reads stop waiting once `stop` is raised.
    pub fn new(stop: &'a Stop) -> Input<'a> {
        Input::of(io::stdin(), stop)
    }
}

impl<'a, F: AsFd> Input<'a, F> {
    /// Returns the open file, whose reads stop waiting once `stop` is raised.
    pub fn of(file: F, stop: &'a Stop) -> Input<'a, F> {
        Input { file, stop }
    }
}

impl<F: AsFd> Read for Input<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            wait(&self.file, PollFlags::IN, self.stop)?;
            match read(&self.file, &mut *buffer) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

/// Waits until there is something to read, room to write, or an error. Once the user has asked to
/// stop, does not wait at all. Regular files are always ready (`poll(2)`).
fn wait(file: impl AsFd, wanted: PollFlags, stop: &Stop) -> io::Result<()> {
    loop {
        let stopped = stop.is_requested();
        let patience = if stopped { AT_ONCE } else { PATIENCE };
        match poll(&mut [PollFd::new(&file, wanted)], Some(&patience)) {
            Ok(1..) => return Ok(()),
            Ok(0) | Err(Errno::INTR | Errno::AGAIN) if stopped => {
                return Err(Errno::CANCELED.into());
            }
            Ok(0) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A kind of file: its name in errors, and its maximum length (W8).
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name in errors: `job file`, `result`.
    pub name: &'static str,
    /// The maximum length in bytes. A longer file is refused, because a device or log that was
    /// named by mistake may be endless.
    pub bytes_max: u64,
}

/// Returns whether the path is `-`, which means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads the file, or standard input for `-`, to its end. Errors refer to the file as `shown`. If
/// the file is a pipe, waits for its writer until the user asks to stop.
///
/// # Errors
///
/// [`Error::Usage`] if the file does not exist, cannot be read, or is too long;
/// [`Error::Interrupted`].
pub fn read_file(path: &Path, shown: &str, kind: Kind, stop: &Stop) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let end = kind.bytes_max + 1;
    let read = if is_stdin(path) {
        Input::new(stop).take(end).read_to_end(&mut bytes)
    } else {
        // Opening a pipe would otherwise wait for its writer, and signals would not interrupt the
        // wait.
        open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|file| Input::of(file, stop).take(end).read_to_end(&mut bytes))
    };
    stop.check()?;
    read.map_err(|error| Error::Usage(format!("{shown}: {error}")))?;
    if bytes.len() as u64 == end {
        let (most, name) = (units::bytes(kind.bytes_max), kind.name);
        return Err(Error::Usage(format!("{shown}: is longer than {most}, the limit of a {name}")));
    }
    Ok(bytes)
}

/// The descriptor of standard input.
pub const STDIN: u32 = 0;
/// The descriptor of standard output.
pub const STDOUT: u32 = 1;

/// Returns the descriptor that the path leads to; `None` if it leads to none. `-` does not lead to
/// a descriptor.
pub fn descriptor(path: &Path) -> Option<u32> {
    let path = path.to_str()?;
    match path {
        "/dev/stdin" => return Some(STDIN),
        "/dev/stdout" => return Some(STDOUT),
        "/dev/stderr" => return Some(2),
        _ => {}
    }
    let own = format!("/proc/{}/fd/", std::process::id());
    ["/dev/fd/", "/proc/self/fd/", &own]
        .iter()
        .find_map(|folder| path.strip_prefix(folder)?.parse().ok())
}

#[cfg(test)]
mod stdio_tests {
    use super::*;

    #[test]
    fn a_stopped_input_waits_for_nobody_and_takes_the_bytes_that_are_there() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let stop = Stop::new();
        stop.request();
        let error = wait(&reader, PollFlags::IN, &stop).unwrap_err();
        assert!(matches!(End::of_input(&error), End::Because(Error::Interrupted)));
        writer.write_all(b"x").expect("room in the pipe");
        assert!(wait(&reader, PollFlags::IN, &stop).is_ok());
    }

    #[test]
    fn a_reader_that_is_gone_is_no_error_and_a_full_disk_is() {
        let gone = End::of_output(&Errno::PIPE.into());
        assert!(End::outcome(Err(gone)).is_ok());
        let full = End::outcome(Err(End::of_output(&Errno::NOSPC.into()))).unwrap_err();
        assert_eq!(full.to_string(), "standard output: No space left on device (os error 28)");
    }
}

#[cfg(test)]
mod open_files_tests {
    use super::*;

    #[test]
    fn only_names_of_open_files_have_a_descriptor() {
        let own = format!("/proc/{}/fd/7", std::process::id());
        for (path, wanted) in [
            ("/dev/stdin", Some(STDIN)),
            ("/dev/stdout", Some(STDOUT)),
            ("/dev/stderr", Some(2)),
            ("/dev/fd/63", Some(63)),
            ("/proc/self/fd/1", Some(STDOUT)),
            (own.as_str(), Some(7)),
            ("/dev/fd/x", None),
            ("/dev/fd", None),
            ("/dev/null", None),
            ("-", None),
            ("1", None),
        ] {
            assert_eq!(descriptor(Path::new(path)), wanted, "{path}");
        }
    }
}
