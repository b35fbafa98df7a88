//! `wrote_ticket`: waits for one record, by blocking or by an event loop.

use crate::border::{self, alone, call, hand_over, shared};
use crate::error::Error;
use library::Error as Failure;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use wrote_bindings::EventFd;

/// The promise for one record, or for a group of them. It does not keep its log open.
pub struct Ticket {
    sequence: u64,
    state: State,
}

enum State {
    Waiting(library::Ticket<'static>),
    /// The answer, which is given again.
    Done(Result<(), Failure>),
}

impl Ticket {
    pub(crate) fn new(ticket: library::Ticket<'_>) -> Ticket {
        Ticket { sequence: ticket.sequence(), state: State::Waiting(ticket.into_owned()) }
    }

    /// Waits by `wait`, unless it has been done.
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

/// An eventfd(2) for a log to wake an event loop. One serves any number of tickets. Any thread may
/// use it at any time, except for wrote_wakeup_free().
pub struct Wakeup(Arc<wrote_bindings::Wakeup<EventFd>>);

impl Wakeup {
    fn new() -> Result<Wakeup, Failure> {
        EventFd::new().map(|signal| Wakeup(wrote_bindings::Wakeup::of(signal)))
    }
}

/// Makes a wakeup, which is freed by wrote_wakeup_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_open(
    wakeup: *mut *mut Wakeup,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || hand_over(wakeup, Wakeup::new)) }
}

/// Returns the descriptor to wait for, by poll(2), epoll(7) or io_uring(7): when it is readable,
/// call wrote_wakeup_clear(), and then poll the tickets again. It belongs to the wakeup; do not
/// close it. Returns -1 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_fd(wakeup: *const Wakeup) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { wakeup.as_ref() }.map_or(-1, |wakeup| wakeup.0.signal().as_fd().as_raw_fd())
}

/// Makes the descriptor unreadable again, before the tickets are polled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_clear(wakeup: *const Wakeup) {
    // SAFETY: promised by the caller.
    if let Some(wakeup) = unsafe { wakeup.as_ref() } {
        border::quietly(|| wakeup.0.clear());
    }
}

/// Frees a wakeup. Tickets that were polled with it may live on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_wakeup_free(wakeup: *mut Wakeup) {
    // SAFETY: promised by the caller.
    unsafe { border::free(wakeup) };
}

/// Returns the sequence of the ticket's record, the last one of a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_sequence(ticket: *const Ticket) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { ticket.as_ref() }.map_or(u64::MAX, |ticket| ticket.sequence)
}

/// Lets the ticket wait until its record survives a power loss, whatever its log promises. To be
/// called before the first wait or poll; later it has no effect.
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

/// Waits until the record is as safe as its log promises: with WROTE_SYNC_ALWAYS it survives a
/// power loss, and so does every record before it; else a crash of the process.
///
/// WROTE_KIND_NOT_YET: the disk is full, and the record may still be written. Wait again by
/// wrote_log_ticket(). Any other error is final: the record is not safe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_wait(ticket: *mut Ticket, error: *mut *mut Error) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { call(error, || alone(ticket)?.done(library::Ticket::wait)) }
}

/// Asks without waiting. Sets `done` once the record is as safe as wrote_ticket_wait() says. Until
/// then the wakeup becomes readable when it is worth asking again, once at least.
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

/// Frees a ticket. Its record is written all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wrote_ticket_free(ticket: *mut Ticket) {
    // SAFETY: promised by the caller.
    unsafe { border::free(ticket) };
}
