//! The counters of each listener and of the whole server.

use crate::lock;
use crate::memory::{Memory, Pool};
use crate::refusals::Reason;
use crate::target::Level;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// The upper bounds of the histogram's buckets, in microseconds.
const BOUNDS_US: [u64; 13] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// The state shared by all listeners.
#[derive(Debug)]
pub(crate) struct Totals {
    /// The number of open connections.
    pub connections: AtomicU64,
    /// The memory held by clients.
    pub memory: Arc<Memory>,
    pub started: SystemTime,
    /// Whether the last reload succeeded, and the time of the last successful reload.
    pub is_reloaded: AtomicBool,
    pub reloaded: Mutex<SystemTime>,
}

impl Default for Totals {
    fn default() -> Totals {
        let now = SystemTime::now();
        Totals {
            connections: AtomicU64::new(0),
            memory: Arc::default(),
            started: now,
            is_reloaded: AtomicBool::new(true),
            reloaded: Mutex::new(now),
        }
    }
}

impl Totals {
    /// Records the outcome of a reload.
    pub(crate) fn note_reload(&self, is_right: bool) {
        self.is_reloaded.store(is_right, Ordering::Relaxed);
        if is_right {
            *lock(&self.reloaded) = SystemTime::now();
        }
    }
}

/// A counter for each reason of a refusal.
pub(crate) type Reasons = [AtomicU64; Reason::ALL.len()];

/// The counters of a listener. They only increase, unless they are marked as gauges.
///
/// For listeners with answers, messages = acknowledged + unacknowledged + unanswered whenever the
/// server is idle.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Gauge: the number of open connections.
    pub connections: AtomicU64,
    pub connections_total: AtomicU64,
    /// The number of messages in the log by promised level; the first element is for messages
    /// without answers.
    messages_total: [AtomicU64; 1 + Level::ALL.len()],
    pub bytes_total: AtomicU64,
    /// The number of oversized messages accepted in part.
    pub cut_messages_total: AtomicU64,
    pub acks_total: [AtomicU64; Level::ALL.len()],
    /// Gauge: the number of messages in the log that are still to be answered.
    pub unacked_messages: AtomicU64,
    /// The number of messages in the log whose connection was closed before they were answered.
    pub unanswered_messages_total: AtomicU64,
    /// The durations from append to answer. Each connection times one batch at a time.
    pub ack_durations: Durations,
    /// The number of datagrams that the kernel dropped because its buffer was full.
    pub udp_dropped_total: AtomicU64,
    /// The number of datagrams (UDP or Unix) truncated to the maximum length.
    pub udp_truncated_total: AtomicU64,
    /// Gauge: the number of connections that are waiting for room in the log.
    pub paused_connections: AtomicU64,
    pub refused: Reasons,
    pub rejected: Reasons,
}

impl Metrics {
    /// Counts appended messages by their promised level.
    pub(crate) fn take(&self, answer: Option<Level>, messages: u64, bytes: u64) {
        add(&self.messages_total[answer.map_or(0, |level| 1 + level as usize)], messages);
        add(&self.bytes_total, bytes);
        if answer.is_some() {
            add(&self.unacked_messages, messages);
        }
    }

    /// Counts acknowledged messages.
    pub(crate) fn acknowledge(&self, level: Level, messages: u64) {
        sub(&self.unacked_messages, messages);
        add(&self.acks_total[level as usize], messages);
    }

    /// Counts messages whose connection was closed before they were answered.
    pub(crate) fn forget(&self, messages: u64) {
        sub(&self.unacked_messages, messages);
        add(&self.unanswered_messages_total, messages);
    }

    /// Returns the number of messages with a promised level; `None` means messages without answers.
    pub(crate) fn messages(&self, answer: Option<Level>) -> u64 {
        read(&self.messages_total[answer.map_or(0, |level| 1 + level as usize)])
    }
}

/// Returns the sums over all listeners.
pub(crate) fn figures<'a>(
    totals: &Totals,
    listeners: impl Iterator<Item = &'a Metrics> + Clone,
) -> Figures {
    let sum = |of: fn(&Metrics) -> u64| listeners.clone().map(of).sum();
    Figures {
        connections: sum(|of| read(&of.connections)),
        messages: sum(|of| of.messages_total.iter().map(read).sum()),
        bytes: sum(|of| read(&of.bytes_total)),
        acks: sum(|of| of.acks_total.iter().map(read).sum()),
        unacked: sum(|of| read(&of.unacked_messages)),
        unanswered: sum(|of| read(&of.unanswered_messages_total)),
        in_flight_bytes: Pool::ALL.into_iter().map(|pool| totals.memory.held(pool)).sum(),
        cut: sum(|of| read(&of.cut_messages_total)),
        udp_dropped: sum(|of| read(&of.udp_dropped_total)),
        udp_truncated: sum(|of| read(&of.udp_truncated_total)),
        refused: sum(|of| of.refused.iter().chain(&of.rejected).map(read).sum()),
    }
}

/// The server's figures at one moment. Totals are counted from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The number of open connections.
    pub connections: u64,
    /// The number of messages appended.
    pub messages: u64,
    /// The number of bytes of appended messages.
    pub bytes: u64,
    /// The number of messages acknowledged.
    pub acks: u64,
    /// The number of appended messages that are still to be acknowledged.
    pub unacked: u64,
    /// The number of appended messages whose connection was closed before they were answered.
    pub unanswered: u64,
    /// The number of bytes of unfinished messages and unsent answers.
    pub in_flight_bytes: u64,
    /// The number of oversized stream messages accepted in part.
    pub cut: u64,
    /// The number of datagrams that the kernel dropped because its buffer was full.
    pub udp_dropped: u64,
    /// The number of datagrams truncated to the maximum length.
    pub udp_truncated: u64,
    /// The number of refused connections and messages.
    pub refused: u64,
}

/// Counts a sender as waiting for room until it is dropped.
#[derive(Debug)]
pub(crate) struct Paused(Arc<Metrics>);

impl Paused {
    pub(crate) fn of(metrics: &Arc<Metrics>) -> Paused {
        add(&metrics.paused_connections, 1);
        Paused(metrics.clone())
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        sub(&self.0.paused_connections, 1);
    }
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

pub(crate) fn sub(counter: &AtomicU64, by: u64) {
    counter.fetch_sub(by, Ordering::Relaxed);
}

pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// A histogram of durations with fixed buckets, which uses a fixed amount of memory.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// The counts between consecutive bounds; the last one is for durations above all bounds.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    pub(crate) fn observe(&self, duration: Duration) {
        let bucket = BOUNDS_US.partition_point(|&bound| Duration::from_micros(bound) < duration);
        add(&self.buckets[bucket], 1);
        add(&self.sum_ns, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns each bound in seconds, with the number of durations up to it.
    pub(crate) fn cumulated(&self) -> Vec<(f64, u64)> {
        let mut count = 0;
        let up_to = |(bound, bucket): (f64, &AtomicU64)| {
            count += read(bucket);
            (bound, count)
        };
        let bounds = BOUNDS_US.into_iter().map(|bound| bound as f64 / 1e6);
        bounds.chain([f64::INFINITY]).zip(&self.buckets).map(up_to).collect()
    }

    pub(crate) fn sum_s(&self) -> f64 {
        read(&self.sum_ns) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_each_bucket_that_holds_it() {
        let durations = Durations::default();
        for us in [100, 500, 501, 9_000_000, 60_000_000] {
            durations.observe(Duration::from_micros(us));
        }
        let cumulated = durations.cumulated();
        assert_eq!(cumulated[..3], [(0.0005, 2), (0.001, 3), (0.0025, 3)]);
        assert_eq!(cumulated[12..], [(10.0, 4), (f64::INFINITY, 5)]);
        assert!((durations.sum_s() - 69.001_101).abs() < 1e-9);
    }
}
