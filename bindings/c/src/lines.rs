//! `wrote_lines`: a plain line file under the user's own name, to which many threads append.

use crate::border::{
    self, Sized, bytes, call, give_ticket, given, hand_over, options, path, policy, shared,
};
use crate::error::Error;
use crate::log::Ticket;
use library::{Error as Failure, LinesOptions as Builder};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use wrote_bindings::Options;

/// Options of a line file. Write `wrote_lines_options options = { sizeof options };`, and then set
/// the options that you want. 0 means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LinesOptions {
    /// sizeof(wrote_lines_options).
    pub size: usize,
    /// The maximum number of bytes that are collected while earlier lines are written. A line must
    /// fit. 0 means 1 MiB.
    pub buffer_bytes: usize,
    /// One of enum wrote_sync.
    pub sync: u32,
    /// The interval of WROTE_SYNC_INTERVAL.
    pub sync_interval_ms: u32,
    /// The permissions of a new file, less the umask. 0 means 0666.
    pub mode: u32,
    /// Whether opening waits until another writer has closed the file. Otherwise, it fails if there
    /// is one.
    pub waits: bool,
}

// SAFETY: the struct consists of numbers and booleans after a size.
unsafe impl Sized for LinesOptions {}

/// A plain line file. Any number of threads may call its functions at any time, except for
/// wrote_lines_free().
pub struct Lines(library::Lines);

fn open(path: &Path, options: LinesOptions) -> Result<Lines, Failure> {
    let builder = library::Lines::options()
        .waits(options.waits)
        .set(Builder::sync, policy(options.sync, options.sync_interval_ms)?)
        .set(Builder::buffer_bytes, given(options.buffer_bytes))
        .set(Builder::mode, given(options.mode));
    builder.open(path).map(Lines)
}

/// Opens a line file, or creates it. If a crash has left a torn end, the end is moved to
/// NAME.torn-0 (or the next free number). A second writer is refused. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_lines_open(
    file: *const c_char,
    how: *const LinesOptions,
    lines: *mut *mut Lines,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || hand_over(lines, || open(path(file)?, options(how)?))) }
}

/// Appends a line, which must not contain a line feed: copies its bytes, and adds a line feed.
///
/// `ticket` may be NULL. Without a ticket, the line is written within about 10 ms, and
/// wrote_lines_flush() makes it durable. Free a ticket with wrote_ticket_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_lines_append(
    lines: *const Lines,
    line: *const c_void,
    len: usize,
    ticket: *mut *mut Ticket,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || give_ticket(ticket, shared(lines)?.0.append(bytes(line, len)?)?)) }
}

/// Appends a line, and waits until it survives a power loss (WROTE_SYNC_ALWAYS, the default), or
/// otherwise a crash of the process. Threads that wait at the same time share a flush.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_lines_append_wait(
    lines: *const Lines,
    line: *const c_void,
    len: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(lines)?.0.append(bytes(line, len)?)?.wait()) }
}

/// Makes every line appended so far durable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_lines_flush(lines: *const Lines, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(lines)?.0.flush()) }
}

/// Reopens the path; to be called after another program has renamed the file. Makes all earlier
/// lines durable first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_lines_reopen(lines: *const Lines, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(lines)?.0.reopen()) }
}

/// Makes all lines durable, and closes the file. Later appends by any thread are refused. Call
/// wrote_lines_free() afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_lines_close(lines: *const Lines, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(lines)?.0.close()) }
}

/// Frees a line file. No other thread may be in a call with it. If it has not been closed, it is
/// closed first, and an error in closing it is lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_lines_free(lines: *mut Lines) {
    // SAFETY: promised by the caller.
    unsafe { border::free(lines) };
}
