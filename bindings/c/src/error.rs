//! `wrote_error`: what failed, where, and the kernel's error number.

use crate::border;
use library::Error as Failure;
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use wrote_bindings::in_language;

/// The kind of an error. Later versions may have more kinds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel refused an operation on a file. The errno gives the reason.
    File = 1,
    /// A log has no room for a record yet: the disk is full, or there is no descriptor or memory.
    /// The log keeps the record and tries again. Use wrote_log_ticket() to wait for the record
    /// again, instead of appending it again.
    NotYet = 2,
    /// An earlier flush failed. Writes since the previous flush are in doubt, and nothing more is
    /// written.
    Poisoned = 3,
    /// The file does not support a direct operation at this offset or of this length.
    Alignment = 4,
    /// A record, a line or a request does not fit into a buffer.
    TooLong = 5,
    /// The request is invalid for this path. Nothing was changed.
    Refused = 6,
    /// Another program changed the length of a file to which this program appends.
    Interfered = 7,
    /// The log was truncated before a record that this reader has read. Seek, and continue reading.
    Truncated = 8,
    /// A copy differs from its source.
    Differs = 9,
    /// Written bytes can no longer be read.
    Damaged = 10,
    /// A segment of another log is in this log's folder.
    Foreign = 11,
    /// The work was interrupted.
    Interrupted = 12,
    /// The handle was opened by the parent process, before fork(2).
    Forked = 13,
    /// A thread, ring or descriptor could not be created.
    Engine = 14,
    /// A bug in the library. Free the handle of the call, and do not use it for anything else.
    Panic = 15,
    /// An error that this version does not know.
    Other = 16,
}

/// C's names of the options that Rust's errors mention.
const OPTIONS: [&str; 2] = ["wrote_log_options.buffer_bytes", "wrote_lines_options.buffer_bytes"];

/// The description of an error.
pub struct Error {
    pub(crate) kind: Kind,
    pub(crate) errno: c_int,
    pub(crate) path: Option<CString>,
    pub(crate) offset: Option<u64>,
    pub(crate) message: CString,
}

impl Error {
    pub(crate) fn new(failure: &Failure) -> Error {
        let path = failure.path().map(|path| string(path.as_os_str().as_bytes()));
        let message = string(in_language(failure.to_string(), OPTIONS).as_bytes());
        let offset = wrote_bindings::offset(failure);
        Error { kind: kind(failure), errno: failure.errno(), path, offset, message }
    }

    pub(crate) fn of_panic() -> Error {
        let message = c"the library panicked: its text is on standard error";
        let (kind, errno) = (Kind::Panic, libc::EIO);
        Error { kind, errno, path: None, offset: None, message: message.to_owned() }
    }
}

/// Returns a string for C, which ends at the first NUL in `bytes`.
fn string(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_else(|error| {
        let end = error.nul_position();
        CString::new(&bytes[..end]).unwrap_or_default()
    })
}

fn kind(failure: &Failure) -> Kind {
    match failure {
        Failure::File { .. } => Kind::File,
        Failure::NotYet { .. } => Kind::NotYet,
        Failure::Poisoned { .. } => Kind::Poisoned,
        Failure::Alignment { .. } => Kind::Alignment,
        Failure::TooLong { .. } => Kind::TooLong,
        Failure::Refused { .. } => Kind::Refused,
        Failure::Interfered { .. } => Kind::Interfered,
        Failure::Truncated { .. } => Kind::Truncated,
        Failure::Differs { .. } => Kind::Differs,
        Failure::Damaged { .. } => Kind::Damaged,
        Failure::Foreign { .. } => Kind::Foreign,
        Failure::Interrupted => Kind::Interrupted,
        Failure::Forked => Kind::Forked,
        Failure::Engine { .. } => Kind::Engine,
        _ => Kind::Other,
    }
}

/// Returns the kind of an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_error_kind(error: *const Error) -> Kind {
    // SAFETY: promised by the caller.
    unsafe { (*error).kind }
}

/// Returns the number of an error, as in errno.h. The failed call also returned this number. It is
/// the kernel's number or, if the library itself refused, the nearest one (EBUSY, EISDIR, EINVAL,
/// EMSGSIZE, EIO, ESTALE, EPERM, EINTR).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_error_errno(error: *const Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { (*error).errno }
}

/// Returns the file or folder that an error concerns, or NULL. The string lives as long as the
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_error_path(error: *const Error) -> *const c_char {
    // SAFETY: promised by the caller.
    let error = unsafe { &*error };
    error.path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr())
}

/// Returns the file offset at which the operation failed, or -1 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_error_offset(error: *const Error) -> i64 {
    // SAFETY: promised by the caller.
    let offset = unsafe { (*error).offset };
    offset.and_then(|offset| i64::try_from(offset).ok()).unwrap_or(-1)
}

/// Returns a line of text for people, with the path, action, offset and the kernel's message. The
/// string lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_error_message(error: *const Error) -> *const c_char {
    // SAFETY: promised by the caller.
    unsafe { (*error).message.as_ptr() }
}

/// Frees the description of an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_error_free(error: *mut Error) {
    // SAFETY: promised by the caller.
    unsafe { border::free(error) };
}
