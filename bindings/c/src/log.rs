//! `wrote_log`: records from many threads in one order, each acknowledged when it is safe.

use crate::border::{self, bytes, call, give, hand_over, path, pieces, shared};
use crate::error::Error;
use crate::options::{LogOptions, LogStats, options, policy};
use crate::ticket::Ticket;
use library::{Error as Failure, Survives};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::time::Duration;

/// An append-only log in a folder. Any number of threads may call its functions at any time, except
/// for wrote_log_free().
pub struct Log(pub(crate) library::Log);

/// The worst event that a record survives.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It is in this process's memory.
    Nothing = 0,
    /// It is in the kernel's memory.
    ProcessCrash = 1,
    /// It is on the device, perhaps in its volatile cache.
    OsCrash = 2,
    /// It is on stable storage.
    PowerLoss = 3,
}

fn open(folder: &Path, options: LogOptions) -> Result<Log, Failure> {
    let LogOptions { sync, sync_interval_ms, .. } = options;
    let mut builder = library::Log::options();
    if let Some(sync) = policy(sync, sync_interval_ms)? {
        builder = builder.sync(sync);
    }
    if options.segment_bytes != 0 {
        builder = builder.segment_bytes(options.segment_bytes);
    }
    if options.retain_bytes != 0 {
        builder = builder.retain_bytes(options.retain_bytes);
    }
    if options.retain_age_s != 0 {
        builder = builder.retain_age(Duration::from_secs(options.retain_age_s));
    }
    if options.buffer_bytes != 0 {
        builder = builder.buffer_bytes(options.buffer_bytes);
    }
    if options.buffers != 0 {
        builder = builder.buffers(options.buffers);
    }
    if options.mode != 0 {
        builder = builder.mode(options.mode);
    }
    builder.open(folder).map(Log)
}

/// Opens the log in a folder, or makes both. A second writer is refused, in this process or
/// another. `options` may be NULL. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_open(
    folder: *const c_char,
    how: *const LogOptions,
    log: *mut *mut Log,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || hand_over(log, || open(path(folder)?, options(how)?))) }
}

/// Appends a record: copies its bytes and gives it its sequence. It survives nothing yet. Waits
/// only while all buffers are in flight.
///
/// `sequence` and `ticket` may be NULL. Without a ticket the record is written within about 10 ms,
/// and wrote_log_sync() makes it durable. A ticket is freed by wrote_ticket_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_append(
    log: *const Log,
    record: *const c_void,
    len: usize,
    sequence: *mut u64,
    ticket: *mut *mut Ticket,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let log = &shared(log)?.0;
            let appended = log.append(bytes(record, len)?)?;
            give(sequence, appended.sequence());
            give_ticket(ticket, appended)
        })
    }
}

/// Appends a record, and waits until it is as safe as the log promises: it then survives a power
/// loss (WROTE_SYNC_ALWAYS), and so does every record before it, or else a crash of the process.
/// Threads that wait at the same time share a flush. `sequence` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_append_wait(
    log: *const Log,
    record: *const c_void,
    len: usize,
    sequence: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let ticket = shared(log)?.0.append(bytes(record, len)?)?;
            // The record has its place, even where the wait fails for a full disk.
            give(sequence, ticket.sequence());
            ticket.wait()
        })
    }
}

/// Appends consecutive records. After a crash either all of them exist or none. All together must
/// fit into one buffer. The first one's sequence goes to `sequence`; `ticket` is for all. Both may
/// be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_append_all(
    log: *const Log,
    records: *const libc::iovec,
    count: usize,
    sequence: *mut u64,
    ticket: *mut *mut Ticket,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let records = pieces(records, count)?;
            let (sequences, appended) = shared(log)?.0.append_all(&records)?;
            give(sequence, sequences.start);
            give_ticket(ticket, appended)
        })
    }
}

/// Makes the ticket of a record that was appended by any caller, which waits for what the log
/// promises. It is freed by wrote_ticket_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_ticket(
    log: *const Log,
    sequence: u64,
    ticket: *mut *mut Ticket,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || hand_over(ticket, || Ok(Ticket::new(shared(log)?.0.ticket(sequence)))))
    }
}

/// Gives the caller a ticket where one is wanted.
///
/// # Safety
///
/// `ticket` is NULL or may be written.
unsafe fn give_ticket(
    ticket: *mut *mut Ticket,
    appended: library::Ticket<'_>,
) -> Result<(), Failure> {
    match ticket.is_null() {
        true => Ok(()),
        // SAFETY: promised by the caller.
        false => unsafe { border::hand_over(ticket, || Ok(Ticket::new(appended))) },
    }
}

/// Makes every record durable that was appended until now, whatever the log promises by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_sync(log: *const Log, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(log)?.0.sync()) }
}

/// Removes segments whose records are all before `sequence`, durably. The sequence of the first
/// record that is left goes to `first`, which may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_trim_before(
    log: *const Log,
    sequence: u64,
    first: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            give(first, shared(log)?.0.trim_before(sequence)?);
            Ok(())
        })
    }
}

/// Removes record `sequence` and all later ones, durably. The next record gets that sequence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_truncate_from(
    log: *const Log,
    sequence: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(log)?.0.truncate_from(sequence)) }
}

/// Stores what a record survives now in `survives`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_survives(
    log: *const Log,
    sequence: u64,
    survives: *mut Level,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let level = match shared(log)?.0.survives(sequence) {
                Survives::Nothing => Level::Nothing,
                Survives::ProcessCrash => Level::ProcessCrash,
                Survives::OsCrash => Level::OsCrash,
                Survives::PowerLoss => Level::PowerLoss,
            };
            give(survives, level);
            Ok(())
        })
    }
}

/// Stores the log's figures in the first `size` bytes of `stats`: pass sizeof(wrote_log_stats).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_get_stats(
    log: *const Log,
    stats: *mut LogStats,
    size: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            if stats.is_null() {
                return Err(border::refused("there is no place for the figures"));
            }
            let now = of(&shared(log)?.0.stats());
            stats.cast::<u8>().write_bytes(0, size);
            let known = size.min(size_of::<LogStats>());
            std::ptr::from_ref(&now).cast::<u8>().copy_to_nonoverlapping(stats.cast(), known);
            Ok(())
        })
    }
}

fn of(stats: &library::log::LogStats) -> LogStats {
    LogStats {
        found_records: stats.found_records,
        torn_bytes: stats.torn_bytes,
        first_sequence: stats.first_sequence,
        next_sequence: stats.next_sequence,
        written_sequence: stats.written_sequence,
        durable_sequence: stats.durable_sequence,
        batches: stats.batches,
        flushes: stats.flushes,
        flush_time_ns: u64::try_from(stats.flush_time.as_nanos()).unwrap_or(u64::MAX),
        written_bytes: stats.written_bytes,
        flushed_bytes: stats.flushed_bytes,
        segments: stats.segments,
        removed: stats.removed,
        found_closed: stats.found_closed,
    }
}

/// Ends the log: writes all records, makes them durable, and marks the log as closed. Returns any
/// error since the opening. Later appends by any thread are refused. Call wrote_log_free()
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_close(log: *const Log, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(log)?.0.close()) }
}

/// Frees a log, when no other thread is in a call with it. Its tickets and readers may live on. One
/// that is not closed is closed first, and an error of that is lost: call wrote_log_close() before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_free(log: *mut Log) {
    // SAFETY: promised by the caller.
    unsafe { border::free(log) };
}
