//! A worker's flushes, and the start times of the writes that no flush covers yet (M11).

use super::Worker;
use crate::spec::{JobSpec, SyncEach};
use hdrhistogram::Histogram;
use std::path::PathBuf;
use std::time::Instant;
use wrote::engine::{Engine, FileId, Op};
use wrote_result::Error;

/// The completion number of a flush. Operations have the numbers of their slots.
const FLUSH: u64 = u64::MAX;

/// The writes that no flush covers yet.
#[derive(Debug)]
pub(super) struct Flushes {
    /// Whether each file has been written since its last flush.
    dirty: Vec<bool>,
    /// Whether each file has ever been written.
    written: Vec<bool>,
    since_fsync: u32,
    /// The number of writes since the last `fsync(2)` or `fdatasync(2)`.
    since_fdatasync: u32,
}

impl Flushes {
    pub(super) fn new(files: usize) -> Flushes {
        let (dirty, written) = (vec![false; files], vec![false; files]);
        Flushes { dirty, written, since_fsync: 0, since_fdatasync: 0 }
    }

    pub(super) fn count(&mut self, file: usize) {
        self.dirty[file] = true;
        self.written[file] = true;
        self.since_fsync += 1;
        self.since_fdatasync += 1;
    }

    pub(super) fn is_due(&self, spec: &JobSpec) -> bool {
        let fdatasync = spec.writes.fdatasync == Some(self.since_fdatasync);
        self.fsync_is_due(spec) || self.since_fdatasync > 0 && fdatasync
    }

    pub(super) fn fsync_is_due(&self, spec: &JobSpec) -> bool {
        self.since_fsync > 0 && spec.writes.fsync == Some(self.since_fsync)
    }

    /// Makes the next flush include every file that has ever been written.
    pub(super) fn begin_again(&mut self) {
        self.dirty.clone_from(&self.written);
    }

    /// Flushes every file that has been written since its last flush, and records the time of each
    /// flush.
    pub(super) fn flush(
        &mut self,
        engine: &mut Engine,
        files: &[(PathBuf, FileId)],
        with_metadata: bool,
        mut flush_ns: Option<&mut Histogram<u64>>,
    ) -> Result<(), Error> {
        for (&(_, file), dirty) in files.iter().zip(&mut self.dirty) {
            if !std::mem::take(dirty) {
                continue;
            }
            let op = if with_metadata { Op::Fsync { file } } else { Op::Fdatasync { file } };
            let timed = flush_ns.as_deref_mut().map(|flush_ns| (flush_ns, Instant::now()));
            engine.queue(FLUSH, op);
            let mut flushed = Vec::with_capacity(1);
            engine.reap(1, &mut flushed)?;
            flushed.into_iter().try_for_each(|completion| completion.result.map(drop))?;
            if let Some((flush_ns, begin)) = timed {
                flush_ns.saturating_record(begin.elapsed().as_nanos() as u64);
            }
        }
        if with_metadata {
            self.since_fsync = 0;
        }
        // An `fsync` covers everything that an `fdatasync` covers.
        self.since_fdatasync = 0;
        Ok(())
    }
}

/// Returns the maximum number of writes between two flushes, if they have to be timed until the
/// flush; `None` if there are no flushes between writes, or if the writes' own latencies include
/// them.
pub(super) fn flushed_together(spec: &JobSpec) -> Option<u32> {
    let times = spec.latencies && spec.order.rw.write && !spec.writes.latency_with_flush;
    let flushes = spec.writes.fsync.into_iter().chain(spec.writes.fdatasync).min();
    flushes.filter(|_| times && spec.writes.sync == SyncEach::No)
}

/// The maximum number of writes whose start times are kept.
const KEPT_MAX: usize = 1 << 16;

/// The start times of the writes since the last flush. If there are too many, only every second,
/// then every fourth, and so on, is kept (W8), and represents the others.
#[derive(Clone, Debug)]
pub struct Unflushed {
    began_ns: Vec<u64>,
    seen: u64,
    /// One start time is kept for this number of writes.
    stride: u64,
}

impl Unflushed {
    /// Allocates memory, before the clock starts, for the start times of `writes` writes (M10).
    pub fn with_room_for(writes: usize) -> Unflushed {
        Unflushed { began_ns: Vec::with_capacity(writes.min(KEPT_MAX)), seen: 0, stride: 1 }
    }

    /// Records a write that began at `began_ns`.
    pub fn add(&mut self, began_ns: u64) {
        if self.seen.is_multiple_of(self.stride) {
            if self.began_ns.len() == KEPT_MAX {
                self.thin_out();
            }
            if self.seen.is_multiple_of(self.stride) {
                self.began_ns.push(began_ns);
            }
        }
        self.seen += 1;
    }

    /// Drops every second start time.
    fn thin_out(&mut self) {
        let mut number = 0_usize;
        self.began_ns.retain(|_| {
            number += 1;
            number % 2 == 1
        });
        self.stride *= 2;
    }

    /// Records, for each write, the time until it was flushed.
    pub fn flushed(&mut self, now_ns: u64, durable_ns: &mut Histogram<u64>) {
        for began_ns in self.began_ns.drain(..) {
            durable_ns.saturating_record_n(now_ns.saturating_sub(began_ns), self.stride);
        }
        (self.seen, self.stride) = (0, 1);
    }

    /// Discards the writes so far.
    pub fn forget(&mut self) {
        self.began_ns.clear();
        (self.seen, self.stride) = (0, 1);
    }
}

impl Worker<'_> {
    /// Waits for the operations in flight, and flushes every file that has been written since its
    /// last flush.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.collect(usize::MAX)?;
        if !self.spec.writes.latency_with_flush {
            self.acknowledge()?;
        }
        self.flush_dirty(self.flushes.fsync_is_due(&self.spec))?;
        if self.spec.writes.latency_with_flush {
            self.acknowledge()?;
        }
        if self.paces.hold {
            self.read_clock();
            self.room_since_ns = self.now_ns;
        }
        Ok(())
    }

    /// Flushes every file that the job has written, with the kind of flush that it requests for its
    /// end (M1).
    pub(super) fn flush_at_end(&mut self) -> Result<(), Error> {
        if self.spec.writes.end_fsync || self.spec.writes.end_fdatasync {
            self.flushes.begin_again();
            self.flush_dirty(self.spec.writes.end_fsync)?;
        }
        Ok(())
    }

    fn flush_dirty(&mut self, with_metadata: bool) -> Result<(), Error> {
        let flush_ns = self.spec.latencies.then_some(&mut self.tally.flush_ns);
        self.flushes.flush(&mut self.engine, &self.files, with_metadata, flush_ns)?;
        if self.tally.waits_for_flush() {
            self.read_clock();
            self.tally.durable(self.now_ns);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushed(unflushed: &mut Unflushed, now_ns: u64) -> Histogram<u64> {
        let mut durable_ns = crate::worker::tally::histogram();
        unflushed.flushed(now_ns, &mut durable_ns);
        durable_ns
    }

    #[test]
    fn each_write_takes_until_the_flush_that_covers_it() {
        // M11
        let mut unflushed = Unflushed::with_room_for(3);
        [10, 20, 30].into_iter().for_each(|began_ns| unflushed.add(began_ns));
        let durable_ns = flushed(&mut unflushed, 100);
        assert_eq!((durable_ns.len(), durable_ns.min(), durable_ns.max()), (3, 70, 90));
        unflushed.add(110);
        assert_eq!(flushed(&mut unflushed, 120).max(), 10);
        unflushed.add(110);
        unflushed.forget();
        assert!(flushed(&mut unflushed, 120).is_empty());
    }

    #[test]
    fn of_very_many_writes_some_stand_for_all_and_memory_has_a_bound() {
        // W8
        for writes in [KEPT_MAX as u64, 100_000, 1_000_000] {
            let mut unflushed = Unflushed::with_room_for(usize::MAX);
            (0..writes).for_each(|began_ns| unflushed.add(began_ns));
            assert!(unflushed.began_ns.capacity() <= KEPT_MAX);
            let durable_ns = flushed(&mut unflushed, writes);
            let count = durable_ns.len() as f64 / writes as f64;
            assert!((0.99..1.01).contains(&count), "{writes}: {count}");
            let median = durable_ns.value_at_quantile(0.5) as f64 / writes as f64;
            assert!((0.49..0.51).contains(&median), "{writes}: {median}");
        }
    }
}
