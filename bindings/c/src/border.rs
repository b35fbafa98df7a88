//! The border between C and Rust. It converts arguments and options, returns results and errors,
//! and catches every panic. In later versions, new options are added only at the end of their
//! structs.

use crate::error::Error;
use crate::log::Ticket;
use library::{Error as Failure, SyncPolicy};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the version of the library, such as "0.1.0". The string must not be freed. Any thread
/// may call this function.
#[unsafe(no_mangle)]
pub extern "C" fn wrote_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}

/// The path in the error of an invalid argument.
const ARGUMENT: &str = "argument";

/// Does the work of a call, and returns 0 or, if the work fails, the error's number. Stores the
/// error's description if the caller wants it.
///
/// # Safety
///
/// `error` is NULL, or points to a pointer that may be written.
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

/// Does the work of a call that can't report an error, such as freeing a handle.
pub fn quietly(work: impl FnOnce()) {
    // The hook has printed the panic, and no caller could do anything about it.
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// Returns the error of an invalid argument.
pub fn refused(because: &str) -> Failure {
    let (path, because) = (PathBuf::from(ARGUMENT), because.to_owned());
    Failure::Refused { path, because, errno: libc::EINVAL }
}

/// Returns the path that a string contains.
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

/// Returns the bytes of an argument. The pointer may be NULL if `len` is 0.
///
/// # Safety
///
/// `bytes` points to `len` readable bytes.
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
/// `pieces` points to `count` pieces, each of which is readable.
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

/// Returns the handle of a call that requires exclusive use of the handle.
///
/// # Safety
///
/// `handle` is NULL or a live handle, which no other call uses at the same time.
pub unsafe fn alone<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: promised by the caller.
    unsafe { handle.as_mut() }.ok_or_else(|| refused("the handle is NULL"))
}

/// Returns the handle of a call that any number of threads may make at the same time.
///
/// # Safety
///
/// `handle` is NULL or a live handle, to which every thread has only shared access.
pub unsafe fn shared<'a, T>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: promised by the caller.
    unsafe { handle.as_ref() }.ok_or_else(|| refused("the handle is NULL"))
}

/// Stores a result, unless the caller does not want it.
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

/// Opens a handle and stores it. `place` must not be NULL, because the handle could then never be
/// freed.
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

/// Stores a ticket, if the caller wants one.
///
/// # Safety
///
/// `ticket` is NULL or may be written.
pub unsafe fn give_ticket(
    ticket: *mut *mut Ticket,
    appended: library::Ticket<'_>,
) -> Result<(), Failure> {
    match ticket.is_null() {
        true => Ok(()),
        // SAFETY: promised by the caller.
        false => unsafe { hand_over(ticket, || Ok(Ticket::new(appended))) },
    }
}

/// Frees a handle.
///
/// # Safety
///
/// `handle` is NULL, or was stored by `hand_over` and has not been freed.
pub unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: `hand_over` created it from a box.
        quietly(|| drop(unsafe { Box::from_raw(handle) }));
    }
}

/// When writes become durable without an explicit call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// WROTE_SYNC_NO for a writer, WROTE_SYNC_ALWAYS for a log.
    Default = 0,
    /// With every write: the data survives a power loss once the call, or the wait for the record,
    /// has returned.
    Always = 1,
    /// About once a second.
    EverySec = 2,
    /// About once per sync_interval_ms.
    Interval = 3,
    /// Only by an explicit call, or when the kernel decides to write.
    No = 4,
}

/// Returns the policy with the number `sync`; `None` for the default. C may pass any number.
pub fn policy(sync: u32, interval_ms: u32) -> Result<Option<SyncPolicy>, Failure> {
    Ok(Some(match sync {
        number if number == Sync::Default as u32 => return Ok(None),
        number if number == Sync::Always as u32 => SyncPolicy::Always,
        number if number == Sync::EverySec as u32 => SyncPolicy::EverySec,
        number if number == Sync::Interval as u32 => {
            SyncPolicy::Interval(Duration::from_millis(interval_ms.into()))
        }
        number if number == Sync::No as u32 => SyncPolicy::No,
        _ => return Err(refused("sync is none of enum wrote_sync")),
    }))
}

/// Returns an option of C; `None` for 0, which means the default.
pub fn given<T: Default + PartialEq>(option: T) -> Option<T> {
    (option != T::default()).then_some(option)
}

/// A struct whose first field is its size in the caller's header, and whose other bytes may all be
/// zero.
///
/// # Safety
///
/// Both statements must be true of the type.
pub unsafe trait Sized: Copy {}

/// Returns the caller's options. Options that the caller's header does not contain yet are zero. If
/// the pointer is NULL, all options are zero.
///
/// # Safety
///
/// `options` is NULL, or points to as many bytes as its first field states.
pub unsafe fn options<T: Sized>(options: *const T) -> Result<T, Failure> {
    // SAFETY: all zeros are such a struct.
    let mut whole: T = unsafe { std::mem::zeroed() };
    if options.is_null() {
        return Ok(whole);
    }
    // SAFETY: the first field.
    let size = unsafe { options.cast::<usize>().read() };
    if size < size_of::<usize>() {
        return Err(refused("the options have no size: set their first field to their sizeof"));
    }
    let known = size.min(size_of::<T>());
    // SAFETY: `size` is promised by the caller, and `whole` has room for `known`.
    unsafe {
        let to = std::ptr::from_mut(&mut whole).cast::<u8>();
        options.cast::<u8>().copy_to_nonoverlapping(to, known);
    }
    // SAFETY: the bytes beyond this version's struct.
    let later =
        unsafe { std::slice::from_raw_parts(options.cast::<u8>().add(known), size - known) };
    if later.iter().any(|&byte| byte != 0) {
        return Err(refused("the options set one that this version of libwrote does not have"));
    }
    Ok(whole)
}
