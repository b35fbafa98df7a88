//! Flushes between the operations of a task, and after the last one.

use super::Worker;
use crate::spec::JobSpec;
use std::time::Instant;
use wrote::engine::Op;
use wrote_result::Error;

/// The number of a flush among completions; operations are numbered by their places.
const FLUSH: u64 = u64::MAX;

/// The writes that no flush covers yet.
#[derive(Debug)]
pub(super) struct Flushes {
    /// Files written since their last flush, by their numbers.
    dirty: Vec<bool>,
    /// Files written at all.
    written: Vec<bool>,
    since_fsync: u32,
    /// Writes since the last `fsync(2)` or `fdatasync(2)`.
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
        let fdatasync = self.since_fdatasync > 0 && spec.fdatasync == Some(self.since_fdatasync);
        self.fsync_is_due(spec) || fdatasync
    }

    fn fsync_is_due(&self, spec: &JobSpec) -> bool {
        self.since_fsync > 0 && spec.fsync == Some(self.since_fsync)
    }
}

impl Worker<'_> {
    /// Waits for the operations in flight, and flushes every file written since its last flush.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.collect(usize::MAX)?;
        if !self.spec.latency_with_flush {
            self.acknowledge()?;
        }
        let with_metadata = self.flushes.fsync_is_due(&self.spec);
        self.flush_dirty(with_metadata)?;
        if with_metadata {
            self.flushes.since_fsync = 0;
        }
        // An fsync covers everything that an fdatasync does.
        self.flushes.since_fdatasync = 0;
        if self.spec.latency_with_flush {
            self.acknowledge()?;
        }
        if self.paced {
            self.read_clock();
            self.room_since_ns = self.now_ns;
        }
        Ok(())
    }

    /// Flushes every file that the task wrote, by the flush that the task asks for at its end (M1).
    pub(super) fn flush_at_end(&mut self) -> Result<(), Error> {
        if self.spec.end_fsync || self.spec.end_fdatasync {
            self.flushes.dirty.clone_from(&self.flushes.written);
            self.flush_dirty(self.spec.end_fsync)?;
        }
        Ok(())
    }

    fn flush_dirty(&mut self, with_metadata: bool) -> Result<(), Error> {
        for index in 0..self.files.len() {
            if !std::mem::take(&mut self.flushes.dirty[index]) {
                continue;
            }
            let file = self.files[index].1;
            let op = if with_metadata { Op::Fsync { file } } else { Op::Fdatasync { file } };
            let begin = self.spec.latencies.then(Instant::now);
            self.engine.queue(FLUSH, op);
            let mut flushed = Vec::with_capacity(1);
            self.engine.reap(1, &mut flushed)?;
            flushed.into_iter().try_for_each(|completion| completion.result.map(drop))?;
            if let Some(begin) = begin {
                self.tally.flushed(begin.elapsed().as_nanos() as u64);
            }
        }
        if self.tally.waits_for_flush() {
            self.read_clock();
            self.tally.durable(self.now_ns);
        }
        Ok(())
    }
}
