//! Whole files by one call: saved and copied.

use crate::border::{bytes, call, give, path};
use crate::error::Error;
use std::ffi::{c_char, c_int, c_void};

/// Replaces the content of the file at `to`, or creates the file. The content is durable when this
/// returns.
///
/// After a crash of the process or the kernel or a power loss, at any moment, the file has either
/// its old content or the new, and other processes see one or the other. The new file gets the old
/// one's permissions, owner and attributes; symbolic links are followed and kept. EBUSY: the file
/// is a mount point, as single files in containers are, and nothing can replace it.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_write(
    to: *const c_char,
    data: *const c_void,
    len: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || library::write(path(to)?, bytes(data, len)?)) }
}

/// Creates a new file at `to` with this content, complete and durable. An existing name is an
/// error, EEXIST, and its file keeps its content.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_write_new(
    to: *const c_char,
    data: *const c_void,
    len: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || library::write_new(path(to)?, bytes(data, len)?)) }
}

/// Copies the file `from` to `to`, which must not exist yet. The copy is durable when this returns,
/// and has its name only once it is whole. It shares the blocks of `from` where the file system
/// can. The number of bytes goes to `len`, which may be NULL.
///
/// Any thread may call it at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_copy(
    from: *const c_char,
    to: *const c_char,
    len: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            give(len, library::copy(path(from)?, path(to)?)?.bytes);
            Ok(())
        })
    }
}
