//! `wrote_log`: records from many threads in one order, each acknowledged once it is safe; and
//! `wrote_ticket`, which waits for one record, by blocking or with an event loop.

use crate::border::{
    self, Sized, alone, bytes, call, give, give_ticket, given, hand_over, options, path, pieces,
    policy, shared,
};
use crate::error::Error;
use library::{Error as Failure, LogOptions as Builder, Survives};
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use wrote_bindings::{EventFd, Options};

/// Options of a log. Write `wrote_log_options options = { sizeof options };`, and then set the
/// options that you want. 0 means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LogOptions {
    /// sizeof(wrote_log_options).
    pub size: usize,
    /// The approximate length of a segment, in bytes. 0 means 64 MiB.
    pub segment_bytes: u64,
    /// The maximum size of the log on disk, in bytes. Beyond it, the oldest segments are removed. 0
    /// means no limit.
    pub retain_bytes: u64,
    /// The minimum age, in seconds, at which the log removes records. 0 means that it keeps them
    /// forever.
    pub retain_age_s: u64,
    /// The size of each buffer, in bytes. A record must fit. 0 means 1 MiB.
    pub buffer_bytes: usize,
    /// The number of buffers. 0 means 8.
    pub buffers: u32,
    /// One of enum wrote_sync.
    pub sync: u32,
    /// The interval of WROTE_SYNC_INTERVAL.
    pub sync_interval_ms: u32,
    /// The permissions of a new log's files, less the umask. 0 means 0666.
    pub mode: u32,
}

// SAFETY: the struct consists of numbers and booleans after a size.
unsafe impl Sized for LogOptions {}

/// The figures of a log.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct LogStats {
    /// The number of records found when the log was opened.
    pub found_records: u64,
    /// The number of bytes that were found after the last complete record when the log was opened.
    /// A crash interrupted their write.
    pub torn_bytes: u64,
    /// The sequence of the first record that still exists.
    pub first_sequence: u64,
    /// The sequence of the next record.
    pub next_sequence: u64,
    /// The sequence before which every record survives a crash of the process.
    pub written_sequence: u64,
    /// The sequence before which every record survives a power loss.
    pub durable_sequence: u64,
    /// The number of batches written.
    pub batches: u64,
    /// The number of flushes, including writes that were themselves durable.
    pub flushes: u64,
    /// The total time of these flushes, in nanoseconds.
    pub flush_time_ns: u64,
    /// The number of bytes written to segments, including the padding of blocks.
    pub written_bytes: u64,
    /// The number of the written bytes that have been flushed.
    pub flushed_bytes: u64,
    /// The number of segments begun.
    pub segments: u64,
    /// The number of segments that retention has removed.
    pub removed: u64,
    /// Whether, when the log was opened, it had been closed properly.
    pub found_closed: bool,
}

/// An append-only log in a folder. Any number of threads may call its functions at any time, except
/// for wrote_log_free().
pub struct Log(pub(crate) library::Log);

/// The worst event that a record survives.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The record is in this process's memory.
    Nothing = 0,
    /// The record is in the kernel's memory.
    ProcessCrash = 1,
    /// The record is on the device, perhaps in its volatile cache.
    OsCrash = 2,
    /// The record is on stable storage.
    PowerLoss = 3,
}

fn open(folder: &Path, options: LogOptions) -> Result<Log, Failure> {
    let builder = library::Log::options()
        .set(Builder::sync, policy(options.sync, options.sync_interval_ms)?)
        .set(Builder::segment_bytes, given(options.segment_bytes))
        .set(Builder::retain_bytes, given(options.retain_bytes))
        .set(Builder::retain_age, given(options.retain_age_s).map(Duration::from_secs))
        .set(Builder::buffer_bytes, given(options.buffer_bytes))
        .set(Builder::buffers, given(options.buffers))
        .set(Builder::mode, given(options.mode));
    builder.open(folder).map(Log)
}

/// Opens the log in a folder, and creates the folder and the log if they are missing. A second
/// writer is refused, whether in this process or in another. `options` may be NULL. Any thread may
/// call this function at any time.
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

/// Appends a record: copies its bytes, and assigns its sequence. The record is only in memory when
/// this returns. Waits only while all buffers are in flight.
///
/// `sequence` and `ticket` may be NULL. Without a ticket, the record is written within about 10 ms,
/// and wrote_log_sync() makes it durable. Free a ticket with wrote_ticket_free().
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

/// Appends a record, and waits until it is as safe as the log promises. With WROTE_SYNC_ALWAYS, the
/// record and every record before it then survive a power loss; otherwise, they survive a crash of
/// the process. Threads that wait at the same time share a flush. `sequence` may be NULL.
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
            // The record has its sequence even if the wait fails because the disk is full.
            give(sequence, ticket.sequence());
            ticket.wait()
        })
    }
}

/// Appends consecutive records. After a crash, either all of them exist or none does. Together they
/// must fit into one buffer. Stores the first record's sequence in `sequence`, and a ticket for all
/// of the records in `ticket`. Both may be NULL.
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

/// Creates a ticket for a record that any caller has appended. The ticket waits until the record is
/// as safe as the log promises. Free it with wrote_ticket_free().
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

/// Makes every record appended so far durable, whatever the log's sync policy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_sync(log: *const Log, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(log)?.0.sync()) }
}

/// Durably removes the segments whose records are all before `sequence`. Stores the sequence of the
/// first remaining record in `first`, which may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_trim_before(
    log: *const Log,
    sequence: u64,
    first: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || shared(log)?.0.trim_before(sequence).map(|sequence| give(first, sequence)))
    }
}

/// Durably removes record `sequence` and all later ones. The next record gets that sequence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_truncate_from(
    log: *const Log,
    sequence: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(log)?.0.truncate_from(sequence)) }
}

/// Stores in `survives` the worst event that a record currently survives.
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

/// Stores the log's figures in the first `size` bytes of `stats`. Pass sizeof(wrote_log_stats).
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

/// Closes the log: writes all records, makes them durable, and marks the log as closed. Returns the
/// first error since the log was opened. Later appends by any thread are refused. Call
/// wrote_log_free() afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_close(log: *const Log, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || shared(log)?.0.close()) }
}

/// Frees a log. No other thread may be in a call with it, but its tickets and readers may outlive
/// it. If it has not been closed, it is closed first, and an error in closing it is lost. To see
/// such an error, call wrote_log_close() first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_log_free(log: *mut Log) {
    // SAFETY: promised by the caller.
    unsafe { border::free(log) };
}

/// The promise for one record, or for a group of records. A ticket does not keep its log open.
pub struct Ticket {
    sequence: u64,
    state: State,
}

enum State {
    Waiting(library::Ticket<'static>),
    /// The result, which is returned again by later calls.
    Done(Result<(), Failure>),
}

impl Ticket {
    pub(crate) fn new(ticket: library::Ticket<'_>) -> Ticket {
        Ticket { sequence: ticket.sequence(), state: State::Waiting(ticket.into_owned()) }
    }

    /// Waits by means of `wait`, unless an earlier call has already returned the result.
    fn done(
        &mut self,
        wait: impl FnOnce(library::Ticket<'static>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let panicked = Err(border::refused("an earlier wait for the ticket panicked"));
        let result = match std::mem::replace(&mut self.state, State::Done(panicked)) {
            State::Waiting(ticket) => wait(ticket),
            State::Done(result) => result,
        };
        self.state = State::Done(result.clone());
        result
    }
}

/// An eventfd(2) that a log uses to wake an event loop. It serves any number of tickets. Any thread
/// may use it at any time, except for wrote_wakeup_free().
pub struct Wakeup(Arc<wrote_bindings::Wakeup<EventFd>>);

impl Wakeup {
    fn new() -> Result<Wakeup, Failure> {
        EventFd::new().map(|signal| Wakeup(wrote_bindings::Wakeup::of(signal)))
    }
}

/// Creates a wakeup. Free it with wrote_wakeup_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_open(
    wakeup: *mut *mut Wakeup,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || hand_over(wakeup, Wakeup::new)) }
}

/// Returns the descriptor to wait for, with poll(2), epoll(7) or io_uring(7). When it is readable,
/// call wrote_wakeup_clear(), and then poll the tickets again. The wakeup owns the descriptor; do
/// not close it. Returns -1 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_fd(wakeup: *const Wakeup) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { wakeup.as_ref() }.map_or(-1, |wakeup| wakeup.0.signal().as_fd().as_raw_fd())
}

/// Makes the descriptor unreadable again. Call this before polling the tickets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_clear(wakeup: *const Wakeup) {
    // SAFETY: promised by the caller.
    if let Some(wakeup) = unsafe { wakeup.as_ref() } {
        border::quietly(|| wakeup.0.clear());
    }
}

/// Frees a wakeup. Tickets that were polled with it may outlive it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_free(wakeup: *mut Wakeup) {
    // SAFETY: promised by the caller.
    unsafe { border::free(wakeup) };
}

/// Returns the sequence of the ticket's record, or of the last record of its group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_sequence(ticket: *const Ticket) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { ticket.as_ref() }.map_or(u64::MAX, |ticket| ticket.sequence)
}

/// Makes the ticket wait until its record survives a power loss, whatever its log promises. Must be
/// called before the first wait or poll; after that, it has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_until_durable(
    ticket: *mut Ticket,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let ticket = alone(ticket)?;
            let state = std::mem::replace(&mut ticket.state, State::Done(Ok(())));
            ticket.state = match state {
                State::Waiting(waiting) => State::Waiting(waiting.until_durable()),
                done => done,
            };
            Ok(())
        })
    }
}

/// Waits until the record is as safe as its log promises. With WROTE_SYNC_ALWAYS, it and every
/// record before it then survive a power loss; otherwise, they survive a crash of the process.
///
/// WROTE_KIND_NOT_YET means that the disk is full, and the record may still be written. Use
/// wrote_log_ticket() to wait for it again. Any other error is final: the record is not safe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_wait(ticket: *mut Ticket, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(ticket)?.done(library::Ticket::wait)) }
}

/// Checks without waiting, and sets `done` to whether the record is as safe as described for
/// wrote_ticket_wait(). If it is not, the wakeup's descriptor becomes readable when it is worth
/// checking again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_poll(
    ticket: *mut Ticket,
    wakeup: *const Wakeup,
    done: *mut bool,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        call(error, || {
            let waker = shared(wakeup)?.0.waker();
            let ticket = alone(ticket)?;
            if done.is_null() {
                return Err(border::refused("there is no place for the answer"));
            }
            done.write(false);
            if let State::Waiting(waiting) = &mut ticket.state {
                match Pin::new(waiting).poll(&mut Context::from_waker(&waker)) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(result) => ticket.state = State::Done(result),
                }
            }
            let State::Done(result) = &ticket.state else { return Ok(()) };
            done.write(result.is_ok());
            result.clone()
        })
    }
}

/// Frees a ticket. Its record is still written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_free(ticket: *mut Ticket) {
    // SAFETY: promised by the caller.
    unsafe { border::free(ticket) };
}
