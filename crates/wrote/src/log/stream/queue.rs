//! `Queue`: the batches of records between a stream and the thread that reads for it.

use super::super::reader::Record;
use super::super::wait::wake_one;
use crate::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::time::SystemTime;

/// Bytes and records at which a batch is full, and the batches that wait for the consumer.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_RECORDS: usize = 4096;
const BATCHES_MAX: usize = 2;

/// Some records in one buffer.
#[derive(Debug, Default)]
pub(super) struct RecordBatch {
    bytes: Vec<u8>,
    /// The sequence and the time of each record, and the end of its bytes.
    records: VecDeque<(u64, Option<SystemTime>, usize)>,
    /// The end of the record that was taken last.
    taken: usize,
}

impl RecordBatch {
    /// Appends the record `sequence`.
    pub(super) fn push(&mut self, sequence: u64, written_at: Option<SystemTime>, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.records.push_back((sequence, written_at, self.bytes.len()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.records.len() >= BATCH_RECORDS
    }

    pub(super) fn take(&mut self) -> Option<Record> {
        let (sequence, written_at, end) = self.records.pop_front()?;
        let begin = std::mem::replace(&mut self.taken, end);
        Some(Record { sequence, bytes: self.bytes[begin..end].to_vec(), written_at })
    }
}

/// Waking it, as a log's frontier does, ends [`Queue::sleep`].
#[derive(Debug, Default)]
pub(super) struct Queue {
    shared: Mutex<Shared>,
    /// Wakes the thread.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Shared {
    batches: VecDeque<RecordBatch>,
    /// How the thread ended; an error is returned once.
    end: Option<Result<(), Error>>,
    consumer: Option<Waker>,
    /// It was woken since the last sleep.
    is_woken: bool,
    /// The stream was dropped.
    is_left: bool,
}

impl Queue {
    /// Takes the next batch, or the end. Wakes `waker` when there is either.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Option<Result<RecordBatch, Error>>> {
        let mut shared = self.shared();
        if let Some(batch) = shared.batches.pop_front() {
            self.changed.notify_one();
            return Poll::Ready(Some(Ok(batch)));
        }
        match &mut shared.end {
            Some(end) => Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err)),
            None => {
                // A waker is the caller's code: it is dropped without the lock.
                let before = shared.consumer.replace(waker.clone());
                drop(shared);
                drop(before);
                Poll::Pending
            }
        }
    }

    /// Gives up the rest, as the stream was dropped.
    pub(super) fn leave(&self) {
        let mut shared = self.shared();
        shared.is_left = true;
        let consumer = shared.consumer.take();
        self.changed.notify_one();
        drop(shared);
        drop(consumer);
    }

    /// Appends a batch once there is room. Returns whether there is still a stream.
    pub(super) fn push(&self, batch: RecordBatch) -> bool {
        let is_full = |shared: &mut Shared| !shared.is_left && shared.batches.len() >= BATCHES_MAX;
        let shared = self.changed.wait_while(self.shared(), is_full);
        let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
        shared.batches.push_back(batch);
        let is_left = shared.is_left;
        wake_consumer(shared);
        !is_left
    }

    /// Ends the stream after the queued batches. The first end counts.
    pub(super) fn end(&self, end: Result<(), Error>) {
        let mut shared = self.shared();
        shared.end.get_or_insert(end);
        wake_consumer(shared);
    }

    /// Sleeps until the queue was woken since the last sleep. Returns whether there is still a
    /// stream.
    pub(super) fn sleep(&self) -> bool {
        let is_idle = |shared: &mut Shared| !shared.is_left && !shared.is_woken;
        let shared = self.changed.wait_while(self.shared(), is_idle);
        let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
        shared.is_woken = false;
        !shared.is_left
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the consumer, whose waker may poll the stream at once.
fn wake_consumer(mut shared: MutexGuard<'_, Shared>) {
    let consumer = shared.consumer.take();
    drop(shared);
    if let Some(consumer) = consumer {
        wake_one(consumer);
    }
}

impl Wake for Queue {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.shared().is_woken = true;
        self.changed.notify_one();
    }
}
