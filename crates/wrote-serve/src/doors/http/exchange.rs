//! The facts that the stream, the requests and the session of one connection share.

use crate::limits::Refusal;
use crate::metrics::{add, read, sub};
use crate::port::Port;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The last request was read and answered as a whole, or none has begun.
const IS_OVER: u8 = 0;
/// The next bytes of the client belong to the head of a request.
const AWAITS_HEAD: u8 = 1;
/// A request is being served, or its answer is being sent.
const SERVES: u8 = 2;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub port: Port,
    phase: AtomicU8,
    /// Everything that was written has left.
    is_flushed: AtomicBool,
    /// Bytes of this connection that are counted as in flight.
    counted_bytes: AtomicUsize,
    /// Why the stream was cut off.
    refusal: Mutex<Option<Refusal>>,
}

impl Exchange {
    pub(super) fn new(port: Port) -> Exchange {
        Exchange {
            port,
            phase: AtomicU8::new(IS_OVER),
            is_flushed: AtomicBool::new(true),
            counted_bytes: AtomicUsize::new(0),
            refusal: Mutex::new(None),
        }
    }

    /// The head of a request is awaited.
    pub(super) fn await_head(&self) {
        self.phase.store(AWAITS_HEAD, Ordering::Relaxed);
    }

    /// The head of a request has come.
    pub(super) fn begin(&self) {
        self.phase.store(SERVES, Ordering::Relaxed);
        // It is room for as many bytes again: it cannot be refused.
        let _ = self.hold(0);
    }

    /// The request was read as a whole, and its answer is written.
    pub(super) fn end(&self) {
        self.phase.store(IS_OVER, Ordering::Relaxed);
    }

    /// Tells whether a request has begun that was not read to its end: more of it may come.
    pub(super) fn is_cut_short(&self) -> bool {
        self.phase.load(Ordering::Relaxed) != IS_OVER
    }

    /// Tells whether the connection waits for its next request.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_cut_short() && self.is_flushed.load(Ordering::Relaxed)
    }

    pub(super) fn set_flushed(&self, is_flushed: bool) {
        self.is_flushed.store(is_flushed, Ordering::Relaxed);
    }

    /// Counts bytes of a head that have come.
    pub(super) fn hold_head(&self, bytes: usize) -> Result<(), Refusal> {
        if self.phase.load(Ordering::Relaxed) != AWAITS_HEAD {
            return Ok(());
        }
        self.hold(self.counted_bytes.load(Ordering::Relaxed) + bytes)
    }

    /// Counts `bytes` of this connection as in flight, in place of those counted before.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Refusal> {
        let counter = &self.port.metrics.in_flight_bytes;
        let before = self.counted_bytes.swap(bytes, Ordering::Relaxed);
        if bytes <= before {
            if bytes < before {
                sub(counter, (before - bytes) as u64);
            }
            return Ok(());
        }
        add(counter, (bytes - before) as u64);
        let is_over = read(counter) > self.port.limits.in_flight_bytes as u64;
        if is_over { Err(Refusal::Memory) } else { Ok(()) }
    }

    /// Keeps the reason why the stream is cut off.
    pub(super) fn refuse(&self, refusal: Refusal) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        sub(&self.port.metrics.in_flight_bytes, *self.counted_bytes.get_mut() as u64);
    }
}
