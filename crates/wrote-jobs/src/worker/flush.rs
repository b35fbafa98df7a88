//! Flushes between the operations of a task, and after the last.

use super::Worker;
use std::time::Instant;
use wrote::Op;
use wrote_result::Error;

/// The number of a flush among completions; operations are numbered by their places.
const FLUSH: u64 = u64::MAX;

impl Worker<'_> {
    pub(super) fn flush_is_due(&self) -> bool {
        self.task.fsync_after == Some(self.since_fsync)
            || self.task.fdatasync_after == Some(self.since_fdatasync)
    }

    /// Waits for what is in flight, and flushes every file that was written since its last flush.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.engine.reap(usize::MAX, &mut self.completions)?;
        if !self.task.latency_with_flush {
            self.acknowledge()?;
        }
        let with_metadata = self.task.fsync_after == Some(self.since_fsync);
        self.flush_dirty(with_metadata)?;
        if with_metadata {
            self.since_fsync = 0;
        }
        if with_metadata || self.task.fdatasync_after == Some(self.since_fdatasync) {
            self.since_fdatasync = 0;
        }
        if self.task.latency_with_flush {
            self.acknowledge()?;
        }
        if self.paced {
            self.read_clock();
            self.room_since_ns = self.now_ns;
        }
        Ok(())
    }

    pub(super) fn flush_dirty(&mut self, with_metadata: bool) -> Result<(), Error> {
        for index in 0..self.files.len() {
            if !std::mem::take(&mut self.dirty[index]) {
                continue;
            }
            let file = self.files[index].1;
            let op = if with_metadata { Op::Fsync { file } } else { Op::Fdatasync { file } };
            let begin = self.task.latencies.then(Instant::now);
            self.engine.queue(FLUSH, op);
            let mut flushed = Vec::with_capacity(1);
            self.engine.reap(1, &mut flushed)?;
            flushed.into_iter().try_for_each(|completion| completion.result.map(drop))?;
            if let Some(begin) = begin {
                self.tally.flushed(begin.elapsed().as_nanos() as u64);
            }
        }
        Ok(())
    }
}
