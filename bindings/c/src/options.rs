//! Options and figures as structs of C, which grow at their end in later versions.

use crate::border::refused;
use library::{Error as Failure, SyncPolicy};
use std::time::Duration;

/// When writes become durable without a call for each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// WROTE_SYNC_NO for a writer, WROTE_SYNC_ALWAYS for a log.
    Default = 0,
    /// With every write, which survives a power loss once its call, or the wait for its record, has
    /// returned.
    Always = 1,
    /// About once a second.
    EverySec = 2,
    /// About once in sync_interval_ms.
    Interval = 3,
    /// Only by an explicit call, or when the kernel decides.
    No = 4,
}

/// Returns the policy that `sync` names; `None` for the default. Any number may come from C.
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

/// Options of a writer: `wrote_writer_options options = { sizeof options };` and then the ones that
/// you want. 0 is the default of each.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WriterOptions {
    /// sizeof(wrote_writer_options).
    pub size: usize,
    /// The expected length in bytes. The space is reserved at once, so that a lack of it shows now.
    pub size_hint: u64,
    /// One of enum wrote_sync.
    pub sync: u32,
    /// The interval of WROTE_SYNC_INTERVAL.
    pub sync_interval_ms: u32,
    /// The permissions of a new file, less the umask. 0 is 0666.
    pub mode: u32,
    /// An existing name is an error, EEXIST.
    pub create_new: bool,
    /// Write through the page cache, for a file that is soon read again and need not last.
    pub cached: bool,
}

/// Options of a log: `wrote_log_options options = { sizeof options };` and then the ones that you
/// want. 0 is the default of each.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LogOptions {
    /// sizeof(wrote_log_options).
    pub size: usize,
    /// The approximate length of a segment in bytes. 0 is 64 MiB.
    pub segment_bytes: u64,
    /// The most bytes of the log on disk; then its oldest segments go. 0 keeps all.
    pub retain_bytes: u64,
    /// For how many seconds the log keeps records at least. 0 keeps all.
    pub retain_age_s: u64,
    /// The size of each buffer, into which a record must fit. 0 is 1 MiB.
    pub buffer_bytes: usize,
    /// The number of buffers. 0 is 8.
    pub buffers: u32,
    /// One of enum wrote_sync.
    pub sync: u32,
    /// The interval of WROTE_SYNC_INTERVAL.
    pub sync_interval_ms: u32,
    /// The permissions of a new log's files, less the umask. 0 is 0666.
    pub mode: u32,
}

/// The figures of a log.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct LogStats {
    /// Records found on opening.
    pub found_records: u64,
    /// Bytes found on opening after the last whole record, of a write that a crash cut short.
    pub torn_bytes: u64,
    /// The sequence of the first record that is there.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Every record before this one survives a crash of the process.
    pub written_sequence: u64,
    /// Every record before this one survives a power loss.
    pub durable_sequence: u64,
    /// Batches written.
    pub batches: u64,
    /// Flushes, and writes that were durable by themselves.
    pub flushes: u64,
    /// The time that they took, in nanoseconds.
    pub flush_time_ns: u64,
    /// Bytes written to segments, with the padding of blocks.
    pub written_bytes: u64,
    /// The part of them that was flushed.
    pub flushed_bytes: u64,
    /// Segments begun.
    pub segments: u64,
    /// Segments that retention removed.
    pub removed: u64,
    /// Whether the opening found that the log had been closed.
    pub found_closed: bool,
}

/// A struct whose first field is its size as the caller's header has it, and whose other bytes may
/// all be zero.
///
/// # Safety
///
/// Both must be so.
pub unsafe trait Sized: Copy {}

// SAFETY: numbers and booleans behind a size.
unsafe impl Sized for WriterOptions {}
// SAFETY: numbers and booleans behind a size.
unsafe impl Sized for LogOptions {}

/// Returns the caller's options, with zeros for options that the caller's header does not have yet;
/// all zeros for NULL.
///
/// # Safety
///
/// `options` is NULL or points to as many bytes as its first field says.
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
    // SAFETY: the bytes behind a later version's struct.
    let later =
        unsafe { std::slice::from_raw_parts(options.cast::<u8>().add(known), size - known) };
    if later.iter().any(|&byte| byte != 0) {
        return Err(refused("the options set one that this version of libwrote does not have"));
    }
    Ok(whole)
}
