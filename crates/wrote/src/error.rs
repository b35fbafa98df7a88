//! The error type of all operations on a disk, with the action, the path, and the kernel's message.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The action that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// `open(2)`.
    Open,
    /// A read.
    Read,
    /// A write, flushed or not.
    Write,
    /// `fdatasync(2)`.
    Fdatasync,
    /// `fsync(2)`.
    Fsync,
    /// `fallocate(2)`.
    Fallocate,
    /// `ftruncate(2)`.
    Truncate,
    /// `unlink(2)`.
    Remove,
    /// Changing a file's name: `renameat2(2)`.
    Rename,
    /// `open(2)` with `O_CREAT`. The error's path is the folder, because it is the folder that does
    /// not accept a new name.
    MakeFile,
    /// `mkdir(2)`.
    MakeFolder,
    /// `fsync(2)` of a folder, which makes its names durable.
    SyncFolder,
    /// Changing a file's permissions, owner, times or attributes.
    SetMetadata,
    /// Examining the path: `statx(2)`, `statfs(2)`, `/proc`, `/sys`.
    Examine,
    /// Appending to a [`Log`](crate::Log) or to [`Lines`](crate::Lines).
    Append,
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Action::Open => "open",
            Action::Read => "read",
            Action::Write => "write",
            Action::Fdatasync => "fdatasync",
            Action::Fsync => "fsync",
            Action::Fallocate => "fallocate",
            Action::Truncate => "truncate",
            Action::Remove => "remove",
            Action::Rename => "rename",
            Action::MakeFile => "make a file in it",
            Action::MakeFolder => "make the folder",
            Action::SyncFolder => "sync the folder",
            Action::SetMetadata => "set metadata",
            Action::Examine => "examine",
            Action::Append => "append",
        }
    }
}

/// A failed operation on a file, or a failed engine.
///
/// A function that returns an `Error` may fail with [`Error::File`], which contains the kernel's
/// error, or with [`Error::Engine`]. Its documentation lists its other errors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The kernel (or the simulated disk) refused an operation on a file.
    File {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        action: Action,
        /// The byte offset in the file, if the action has one.
        offset: Option<u64>,
        /// The kernel's error number.
        errno: i32,
    },
    /// A log has no room for a record yet: the disk is full, or there is no descriptor or memory
    /// for the next segment. The log keeps the record in memory, in its order, and retries. The
    /// record may still be written, so appending it again may duplicate it. Instead, wait again for
    /// the same record ([`Log::ticket`](crate::Log::ticket)). If a wait fails with any other error,
    /// the record is not safe and never will be.
    NotYet {
        /// The segment.
        path: PathBuf,
        /// The action that failed.
        action: Action,
        /// The byte offset in the file, if the action has one.
        offset: Option<u64>,
        /// The kernel's error number.
        errno: i32,
    },
    /// An earlier flush of this file failed. Writes since the previous flush are in doubt, and no
    /// later flush can be trusted (W2).
    Poisoned {
        /// The file.
        path: PathBuf,
        /// The kernel's error number of the failed flush.
        errno: i32,
    },
    /// The file does not support a direct operation at this offset or of this length.
    Alignment {
        /// The file.
        path: PathBuf,
        /// The refused action.
        action: Action,
        /// The offset.
        offset: u64,
        /// The alignment, in bytes: offset and length must be multiples of it.
        align_bytes: u32,
    },
    /// The request requires more buffers than the engine has, or the record or line does not fit
    /// into one buffer. Nothing was changed.
    TooLong {
        /// The file or the log.
        path: PathBuf,
        /// The refused action.
        action: Action,
        /// The byte offset in the file, if the action has one.
        offset: Option<u64>,
        /// The length, in bytes.
        len: usize,
        /// The maximum length, in bytes. For an operation at an offset, alignment is already
        /// deducted.
        len_max: u64,
        /// The option that sets the maximum.
        limit: &'static str,
    },
    /// The request is invalid for this path. Nothing was changed.
    Refused {
        /// The path.
        path: PathBuf,
        /// The reason, and a valid alternative.
        because: String,
        /// The nearest error number of the kernel: `EBUSY` if another writer has the file or log
        /// open, `EISDIR` for a folder instead of a file, `EOPNOTSUPP` if atomic writes are not
        /// supported, otherwise `EINVAL`.
        errno: i32,
    },
    /// Another program changed the length of a file to which this program appends. Neither
    /// program's bytes were overwritten.
    Interfered {
        /// The file.
        path: PathBuf,
        /// Its current length, in bytes.
        len: u64,
        /// The minimum and maximum length that this program's writes can account for, in bytes.
        len_known: (u64, u64),
    },
    /// The log was truncated before a record that this reader has already read. The reader can
    /// continue after a seek to `sequence` or to an earlier record.
    Truncated {
        /// The log's folder.
        path: PathBuf,
        /// The record at which the log was truncated. Its sequence will be used again.
        sequence: u64,
    },
    /// A copy differs from its source.
    Differs {
        /// The file with unexpected content.
        path: PathBuf,
        /// The difference.
        because: String,
    },
    /// Written bytes can no longer be read: the disk lost them, or another program overwrote them.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset of the first wrong byte.
        offset: u64,
        /// A description of the damage, and the command to run.
        because: String,
    },
    /// The folder of a log contains a segment of another log, or one from another position. A crash
    /// does not cause that: a file was copied or renamed. Nothing was changed.
    Foreign {
        /// The segment.
        path: PathBuf,
        /// The two logs or positions, and the file that the segment was compared with.
        because: String,
    },
    /// The caller requested a stop. The unfinished work was undone.
    Interrupted,
    /// The handle was opened by the parent process before a `fork(2)`. Only the parent can use it;
    /// nothing was done.
    Forked,
    /// The engine itself could not be created or run.
    Engine {
        /// The step that failed.
        what: &'static str,
        /// The kernel's error number.
        errno: i32,
    },
}

/// Formats the file, the action, the offset, and the kernel's message.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{}: ", path.display())?;
        }
        self.reason().fmt(f)
    }
}

/// An error that is formatted without its path.
struct Reason<'a>(&'a Error);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::File { action, offset, errno, .. } => {
                write!(f, "{}{}: {}", action.as_str(), place(*offset), words(*errno))
            }
            Error::NotYet { action, offset, errno, .. } => {
                let (action, place) = (action.as_str(), place(*offset));
                let more = "the log keeps the record and tries again";
                write!(f, "{action}{place}: {}; {more}", words(*errno))
            }
            Error::Poisoned { errno, .. } => {
                write!(f, "writing stopped after a failed flush: {}", words(*errno))
            }
            Error::Alignment { action, offset, align_bytes, .. } => {
                let (action, place) = (action.as_str(), place(Some(*offset)));
                write!(
                    f,
                    "{action}{place}: offset and length must be multiples of {align_bytes} bytes"
                )
            }
            Error::TooLong { action, offset, len, len_max, limit, .. } => {
                let (action, place) = (action.as_str(), place(*offset));
                write!(f, "{action}{place}: {len} bytes do not fit; at most {len_max} do ({limit})")
            }
            Error::Refused { because, .. }
            | Error::Differs { because, .. }
            | Error::Foreign { because, .. } => f.write_str(because),
            Error::Interfered { len, len_known, .. } => {
                let known = known(*len_known);
                let changed = "file changed by another process";
                write!(f, "{changed}: length {len}, expected {known}; writing stopped")
            }
            Error::Damaged { offset, because, .. } => {
                write!(f, "damaged at byte {offset}: {because}")
            }
            Error::Truncated { sequence, .. } => {
                write!(f, "the log was cut at record {sequence}, before records that were read")
            }
            Error::Interrupted => f.write_str("interrupted"),
            Error::Forked => f.write_str(
                "opened before fork(2), so only the parent process can use it; open it again here",
            ),
            Error::Engine { what, errno } => write!(f, "{what}: {}", words(*errno)),
        }
    }
}

/// [`std::error::Error::source`] returns `None`, because the text already includes the kernel's
/// message. Programs use [`Error::kind`], [`Error::path`] and [`Error::raw_os_error`].
impl std::error::Error for Error {}

/// Evaluates to the path of an error, with the kind of borrow that the error has; `None` if the
/// error does not concern a path.
macro_rules! path_of {
    ($error:expr) => {
        match $error {
            Error::File { path, .. }
            | Error::NotYet { path, .. }
            | Error::Poisoned { path, .. }
            | Error::Alignment { path, .. }
            | Error::TooLong { path, .. }
            | Error::Refused { path, .. }
            | Error::Damaged { path, .. }
            | Error::Truncated { path, .. }
            | Error::Interfered { path, .. }
            | Error::Foreign { path, .. }
            | Error::Differs { path, .. } => Some(path),
            Error::Engine { .. } | Error::Interrupted | Error::Forked => None,
        }
    };
}

impl Error {
    /// Converts the kernel's error into one about `path`.
    pub fn file(
        path: impl AsRef<Path>,
        action: Action,
        offset: Option<u64>,
        error: &io::Error,
    ) -> Error {
        Error::File { path: path.as_ref().to_owned(), action, offset, errno: errno_of(error) }
    }

    /// Returns the kind of the error, in the terms of the standard library, such as
    /// [`io::ErrorKind::NotFound`] or [`io::ErrorKind::StorageFull`].
    pub fn kind(&self) -> io::ErrorKind {
        words(self.errno()).kind()
    }

    /// Returns the file or folder that the error concerns, if any.
    pub fn path(&self) -> Option<&Path> {
        path_of!(self)
    }

    /// Returns the text of the error without its path.
    pub fn reason(&self) -> impl fmt::Display + '_ {
        Reason(self)
    }

    /// Returns the kernel's error number; `None` if the library itself refused the request.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Error::File { errno, .. }
            | Error::NotYet { errno, .. }
            | Error::Poisoned { errno, .. }
            | Error::Engine { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Returns the kernel's error number in an [`io::Error`]: its own, or the number of the
    /// [`Error`] inside it. [`io::Error::raw_os_error`] only returns the former.
    pub fn errno_in(error: &io::Error) -> Option<i32> {
        let inner = || error.get_ref()?.downcast_ref::<Error>().map(Error::errno);
        error.raw_os_error().or_else(inner)
    }

    pub(crate) fn refused(path: &Path, because: impl Into<String>) -> Error {
        Error::refused_as(libc::EINVAL, path, because)
    }

    /// Creates a refusal with an error number that programs handle.
    pub(crate) fn refused_as(errno: i32, path: &Path, because: impl Into<String>) -> Error {
        Error::Refused { path: path.to_owned(), because: because.into(), errno }
    }

    /// Creates the error for a folder where a file is expected.
    pub(crate) fn is_a_folder(path: &Path) -> Error {
        Error::refused_as(libc::EISDIR, path, "is a folder: name a file in it")
    }

    /// Marks a kernel's refusal as temporary.
    pub(crate) fn not_yet(self) -> Error {
        match self {
            Error::File { path, action, offset, errno } => {
                Error::NotYet { path, action, offset, errno }
            }
            other => other,
        }
    }

    /// Marks a temporary refusal as final.
    pub(crate) fn given_up(self) -> Error {
        match self {
            Error::NotYet { path, action, offset, errno } => {
                Error::File { path, action, offset, errno }
            }
            other => other,
        }
    }

    /// Replaces the path with the name that the user gave.
    pub(crate) fn about(mut self, named: &Path) -> Error {
        if let Some(path) = self.path_mut() {
            *path = named.to_owned();
        }
        self
    }

    /// Replaces the error's path with `named`, if it is `path`.
    pub(crate) fn renamed(mut self, path: &Path, named: &Path) -> Error {
        if let Some(own) = self.path_mut().filter(|own| *own == path) {
            *own = named.to_owned();
        }
        self
    }

    pub(crate) fn path_mut(&mut self) -> Option<&mut PathBuf> {
        path_of!(self)
    }

    /// Returns the kernel's error number. Errors without one have an equivalent: the nearest number
    /// for [`Error::Refused`], `EINVAL` for [`Error::Alignment`], `EMSGSIZE` for
    /// [`Error::TooLong`], `ESTALE` for [`Error::Interfered`] and [`Error::Truncated`], `EINTR` for
    /// [`Error::Interrupted`], `EPERM` for [`Error::Forked`], `EIO` for [`Error::Differs`],
    /// [`Error::Damaged`] and [`Error::Foreign`].
    pub fn errno(&self) -> i32 {
        match self {
            Error::File { errno, .. }
            | Error::NotYet { errno, .. }
            | Error::Poisoned { errno, .. }
            | Error::Refused { errno, .. }
            | Error::Engine { errno, .. } => *errno,
            Error::Alignment { .. } => libc::EINVAL,
            Error::Damaged { .. } | Error::Differs { .. } | Error::Foreign { .. } => libc::EIO,
            Error::Interrupted => libc::EINTR,
            Error::Forked => libc::EPERM,
            Error::TooLong { .. } => libc::EMSGSIZE,
            Error::Interfered { .. } | Error::Truncated { .. } => libc::ESTALE,
        }
    }
}

pub(crate) trait Tried<T> {
    /// Converts a kernel's error into an [`Error::File`] without an offset.
    fn tried(self, path: &Path, action: Action) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, path: &Path, action: Action) -> Result<T, Error> {
        self.map_err(|error| Error::file(path, action, None, &error.into()))
    }
}

/// Keeps the kind. The whole error becomes the inner error, in which [`Error::errno_in`] finds the
/// error number.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(io::Error::from_raw_os_error(error.errno()).kind(), error)
    }
}

/// Returns the kernel's error number in an I/O error. If there is none, returns `EINVAL` for
/// arguments that the standard library refused, such as a path with a NUL, and `EIO` otherwise.
pub(crate) fn errno_of(error: &io::Error) -> i32 {
    let otherwise = match error.kind() {
        io::ErrorKind::InvalidInput => libc::EINVAL,
        _ => libc::EIO,
    };
    Error::errno_in(error).unwrap_or(otherwise)
}

fn words(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

fn known((shortest, longest): (u64, u64)) -> String {
    if shortest == longest { format!("{longest}") } else { format!("{shortest} to {longest}") }
}

fn place(offset: Option<u64>) -> String {
    offset.map_or(String::new(), |offset| format!(" at byte {offset}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_was_tried_where_and_the_kernels_own_words() {
        let error = Error::file(
            Path::new("/data/file"),
            Action::Write,
            Some(4096),
            &io::Error::from_raw_os_error(28),
        );
        assert_eq!(
            error.to_string(),
            "/data/file: write at byte 4096: No space left on device (os error 28)"
        );
        let error = io::Error::from(error);
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(Error::errno_in(&error), Some(28));
        // Converted once more, like the error of a reader passed to a `Writer`.
        let error = Error::file(Path::new("/data/file"), Action::Read, None, &error);
        assert_eq!(error.errno(), 28);
        assert_eq!(Error::errno_in(&io::Error::other("no number")), None);
        let error =
            Error::file(Path::new("/no"), Action::Open, None, &io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "/no: open: No such file or directory (os error 2)");
    }
}
