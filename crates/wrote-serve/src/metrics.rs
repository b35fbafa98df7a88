//! The counters of a server.

use crate::limits::Reason;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of a server. Each only goes up, but for those that are said to be a state.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// State: connections that are open.
    pub connections: AtomicU64,
    pub connections_total: AtomicU64,
    pub messages_total: AtomicU64,
    pub bytes_total: AtomicU64,
    pub acks_total: AtomicU64,
    /// Datagrams that the kernel dropped, since its buffer was full.
    pub udp_dropped_total: AtomicU64,
    /// Datagrams, of UDP or a Unix socket, that were longer than a message may be.
    pub udp_truncated_total: AtomicU64,
    /// State: bytes of unfinished messages and unsent answers.
    pub in_flight_bytes: AtomicU64,
    /// State: connections that wait for room in their log.
    pub paused_connections: AtomicU64,
    refused: [AtomicU64; Reason::ALL.len()],
}

impl Metrics {
    pub(crate) fn refuse(&self, reason: Reason) {
        add(&self.refused[reason as usize], 1);
    }

    pub(crate) fn refused(&self, reason: Reason) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn figures(&self) -> Figures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            connections: read(&self.connections),
            messages: read(&self.messages_total),
            bytes: read(&self.bytes_total),
            acks: read(&self.acks_total),
            udp_dropped: read(&self.udp_dropped_total),
            udp_truncated: read(&self.udp_truncated_total),
            refused: Reason::ALL.into_iter().map(|reason| self.refused(reason)).sum(),
        }
    }
}

/// A server's figures at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Connections that are open.
    pub connections: u64,
    /// Messages taken so far.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages answered so far.
    pub acks: u64,
    /// Datagrams that the kernel dropped so far, since its buffer was full.
    pub udp_dropped: u64,
    /// Datagrams cut so far, since they were longer than a message may be.
    pub udp_truncated: u64,
    /// Connections and messages refused so far.
    pub refused: u64,
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

pub(crate) fn sub(counter: &AtomicU64, by: u64) {
    counter.fetch_sub(by, Ordering::Relaxed);
}
