//! The state shared by the stream, the requests and the session of one connection.

use crate::config::Limits;
use crate::config::access::{self, Access};
use crate::lock;
use crate::memory::{Account, Pool};
use crate::port::{Admission, Port};
use crate::refusals::{Client, Refusal};
use crate::stamp::Stamper;
use bytes::Bytes;
use hyper::HeaderMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The memory of a request before its body arrives: its task, its head, and hyper's state.
const REQUEST_BYTES: usize = 16 << 10;

/// The phase in which the last request has been read and answered completely, or none has begun.
const IS_OVER: u8 = 0;
/// The phase in which the client's next bytes belong to a request head.
const AWAITS_HEAD: u8 = 1;
/// The phase in which a request is being served, or its answer is being sent.
const SERVES: u8 = 2;

/// Records of an answer. hyper drops them once they are written.
struct Unwritten {
    bytes: Vec<u8>,
    exchange: Arc<Exchange>,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Exchange {
    pub port: Port,
    admission: Admission,
    pub stamper: Option<Box<Stamper>>,
    phase: AtomicU8,
    /// Whether everything written has been sent.
    is_flushed: AtomicBool,
    /// Whether the answer follows new records until the client disconnects.
    follows: AtomicBool,
    /// The number of bytes received of the next request's head.
    head_bytes: AtomicUsize,
    /// The number of bytes of answer records that have not been written yet.
    answer_bytes: AtomicUsize,
    /// Why the stream was cut.
    refusal: Mutex<Option<Refusal>>,
}

impl Exchange {
    pub(super) fn new(admission: Admission, port: Port, certificate: Option<String>) -> Exchange {
        let stamper = Stamper::of(&port.listen, admission.client(), certificate);
        Exchange {
            port,
            admission,
            stamper,
            phase: AtomicU8::new(IS_OVER),
            is_flushed: AtomicBool::new(true),
            follows: AtomicBool::new(false),
            head_bytes: AtomicUsize::new(0),
            answer_bytes: AtomicUsize::new(0),
            refusal: Mutex::new(None),
        }
    }

    /// Notes that a request head is expected.
    pub(super) fn await_head(&self) {
        self.phase.store(AWAITS_HEAD, Ordering::Relaxed);
    }

    /// Returns whether a request head is expected and has not arrived completely.
    pub(super) fn awaits_head(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == AWAITS_HEAD
    }

    /// Notes that a request head has arrived.
    pub(super) fn begin(&self) {
        self.phase.store(SERVES, Ordering::Relaxed);
        self.follows.store(false, Ordering::Relaxed);
        self.head_bytes.store(0, Ordering::Relaxed);
        for pool in [Pool::Messages, Pool::Strangers] {
            // Reducing the amount cannot fail.
            let _ = self.admission.account.hold(pool, 0, &self.limits());
        }
    }

    /// Notes that the request has been read completely and its answer written.
    pub(super) fn end(&self) {
        self.follows.store(false, Ordering::Relaxed);
        self.phase.store(IS_OVER, Ordering::Relaxed);
    }

    /// Notes that the answer continues until the client disconnects.
    pub(super) fn follow(&self) {
        self.follows.store(true, Ordering::Relaxed);
    }

    /// Returns whether the answer continues until the client disconnects.
    pub(super) fn follows(&self) -> bool {
        self.follows.load(Ordering::Relaxed)
    }

    /// Returns whether a request has begun but has not been read completely, so that more of it may
    /// arrive.
    pub(super) fn is_cut_short(&self) -> bool {
        self.phase.load(Ordering::Relaxed) != IS_OVER
    }

    /// Returns whether the connection is waiting for its next request.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_cut_short() && self.is_flushed.load(Ordering::Relaxed)
    }

    pub(super) fn set_flushed(&self, is_flushed: bool) {
        self.is_flushed.store(is_flushed, Ordering::Relaxed);
    }

    /// Counts received bytes of a request head.
    pub(super) fn count_head(&self, bytes: usize) {
        if self.awaits_head() {
            self.head_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Accounts for an incomplete request head, whose client may not have authenticated yet.
    pub(super) fn hold_head(&self) -> Result<(), Refusal> {
        match self.head_bytes.load(Ordering::Relaxed) {
            0 => Ok(()),
            bytes => self.admission.account.hold(self.head_pool(), bytes, &self.limits()),
        }
    }

    /// Accounts for a request whose body is being read, and for `bytes` of it. Replaces the
    /// previous amount.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), Refusal> {
        self.admission.account.hold(Pool::Messages, REQUEST_BYTES + bytes, &self.limits())
    }

    /// Releases the memory accounted for a request.
    pub(super) fn release(&self) {
        // Reducing the amount cannot fail.
        let _ = self.admission.account.hold(Pool::Messages, 0, &self.limits());
    }

    /// Accounts for answer records until they are written.
    pub(super) fn hold_answer(self: &Arc<Self>, mut bytes: Vec<u8>) -> Result<Bytes, Refusal> {
        bytes.shrink_to_fit();
        let held = bytes.len();
        let all = self.answer_bytes.fetch_add(held, Ordering::Relaxed) + held;
        let unwritten = Unwritten { bytes, exchange: self.clone() };
        self.admission.account.hold(Pool::Answers, all, &self.limits())?;
        Ok(Bytes::from_owner(unwritten))
    }

    /// Returns the current limits.
    pub(super) fn limits(&self) -> Arc<Limits> {
        self.port.settings.borrow().limits.clone()
    }

    fn access(&self) -> Arc<Access> {
        self.port.settings.borrow().access.clone()
    }

    /// Returns whether a request with this token, which may be empty, is currently accepted.
    pub(super) fn lets_in(&self, token: &[u8]) -> bool {
        let access = self.access();
        !access.asks_for_token() || access.accepts(token)
    }

    /// Returns why a request seems to come from a web page; `None` if it does not. A page can have
    /// any host name, and can reach a local client's listener only if that has neither tokens nor
    /// TLS.
    pub(super) fn mark_of_page(&self, headers: &HeaderMap) -> Option<&'static str> {
        let is_local = self.client().0.is_some_and(|address| address.to_canonical().is_loopback());
        let is_open = !self.port.listen.is_tls && !self.access().asks_for_token();
        access::mark_of_page(headers, Some(&*self.port.host).filter(|_| is_local && is_open))
    }

    pub(super) fn client(&self) -> Client {
        self.admission.client()
    }

    pub(super) fn account(&self) -> &Account {
        &self.admission.account
    }

    fn head_pool(&self) -> Pool {
        if self.access().asks_for_token() { Pool::Strangers } else { Pool::Messages }
    }

    /// Stores the reason for cutting the stream.
    pub(super) fn refuse(&self, refusal: Refusal) {
        *lock(&self.refusal) = Some(refusal);
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        lock(&self.refusal).take()
    }
}

impl AsRef<[u8]> for Unwritten {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        let (held, exchange) = (self.bytes.len(), &self.exchange);
        let left = exchange.answer_bytes.fetch_sub(held, Ordering::Relaxed) - held;
        // Reducing the amount cannot fail.
        let _ = exchange.account().hold(Pool::Answers, left, &exchange.limits());
    }
}
