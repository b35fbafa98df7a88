//! The border between C and Rust: arguments come in, results and errors go out, and no panic does.

use crate::error::{Error, Kind};
use library::Error as Failure;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The path in the error of an argument.
const ARGUMENT: &str = "argument";

/// Does the work of a call. Stores the description of an error where the caller wants it, and
/// returns its number; 0 for success.
///
/// # Safety
///
/// `error` is NULL or points to a pointer that may be written.
pub unsafe fn call(error: *mut *mut Error, work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let described = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => Error::new(&failure),
        Err(_) => Error::of_panic(),
    };
    let errno = described.errno;
    if !error.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *error = Box::into_raw(Box::new(described)) };
    }
    errno
}

/// Does the work of a call that can't fail, such as freeing a handle.
pub fn quietly(work: impl FnOnce()) {
    // The hook has printed the panic, and no caller could do anything about it.
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// Returns the error of an argument that can't be.
pub fn refused(because: &str) -> Failure {
    Failure::Refused { path: PathBuf::from(ARGUMENT), because: because.to_owned() }
}

/// Returns a path.
///
/// # Safety
///
/// `path` is NULL or a string.
pub unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(refused("the path is NULL"));
    }
    // SAFETY: promised by the caller.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Returns the bytes of an argument, which may be NULL where there are none.
///
/// # Safety
///
/// `bytes` points to `len` bytes that can be read.
pub unsafe fn bytes<'a>(bytes: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    match (bytes.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(refused("the bytes are NULL, and their length is not 0")),
        // SAFETY: promised by the caller.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(bytes.cast(), len) }),
    }
}

/// Returns the bytes of each of `count` pieces.
///
/// # Safety
///
/// `pieces` points to `count` pieces, each of bytes that can be read.
pub unsafe fn pieces<'a>(
    pieces: *const libc::iovec,
    count: usize,
) -> Result<Vec<&'a [u8]>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if pieces.is_null() {
        return Err(refused("the pieces are NULL, and their count is not 0"));
    }
    // SAFETY: promised by the caller.
    let pieces = unsafe { std::slice::from_raw_parts(pieces, count) };
    // SAFETY: promised by the caller.
    pieces.iter().map(|piece| unsafe { bytes(piece.iov_base, piece.iov_len) }).collect()
}

/// Returns the handle of a call that needs it alone.
///
/// # Safety
///
/// `handle` is NULL or a live handle that no other call uses at this time.
pub unsafe fn alone<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: promised by the caller.
    unsafe { handle.as_mut() }.ok_or_else(|| refused("the handle is NULL"))
}

/// Returns the handle of a call that any thread may make at any time.
///
/// # Safety
///
/// `handle` is NULL or a live handle that every thread only shares.
pub unsafe fn shared<'a, T>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: promised by the caller.
    unsafe { handle.as_ref() }.ok_or_else(|| refused("the handle is NULL"))
}

/// Stores a result that the caller may not want.
///
/// # Safety
///
/// `place` is NULL or may be written.
pub unsafe fn give<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: promised by the caller.
        unsafe { place.write(value) };
    }
}

/// Stores a new handle, which the caller must want: nothing else could free it.
///
/// # Safety
///
/// `place` is NULL or may be written.
pub unsafe fn hand_over<T>(
    place: *mut *mut T,
    open: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    if place.is_null() {
        return Err(refused("there is no place for the handle"));
    }
    let handle = Box::into_raw(Box::new(open()?));
    // SAFETY: promised by the caller.
    unsafe { place.write(handle) };
    Ok(())
}

/// Frees a handle.
///
/// # Safety
///
/// `handle` is NULL, or was stored by `hand_over` and not freed yet.
pub unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: `hand_over` made it from a box.
        quietly(|| drop(unsafe { Box::from_raw(handle) }));
    }
}

impl Error {
    fn of_panic() -> Error {
        let message = c"the library panicked: its text is on standard error";
        let (kind, errno) = (Kind::Panic, libc::EIO);
        Error { kind, errno, path: None, offset: None, message: message.to_owned() }
    }
}
