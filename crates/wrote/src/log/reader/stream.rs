//! Streams: the records of a log for async code.

use super::{LogReader, Record};
use crate::Error;
use crate::fork::Process;
use crate::log::wait::wake_one;
use crate::log::watch::Bell;
use futures_core::Stream;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::SystemTime;

/// The stream that [`LogReader::into_stream`] returns.
#[must_use = "a stream yields nothing unless it is polled"]
pub(super) struct LogStream {
    queue: Arc<Queue>,
    batch: RecordBatch,
    /// Ends the sleep of a reader that follows.
    bell: Option<Bell>,
    process: Process,
    /// The stream has reported that this is not the process that opened it.
    is_over: bool,
}

impl LogStream {
    pub(super) fn of(mut reader: LogReader) -> Result<LogStream, Error> {
        let bell = reader.bell()?;
        LogStream::start(bell, move |feed| feed.read(reader))
    }

    fn start(
        bell: Option<Bell>,
        run: impl FnOnce(&mut Feed) -> Result<(), Error> + Send + 'static,
    ) -> Result<LogStream, Error> {
        let queue = Arc::new(Queue::default());
        let mut feed = Feed::new(Arc::clone(&queue));
        std::thread::Builder::new()
            .name("wrote-stream".to_owned())
            .spawn(move || {
                let outcome = run(&mut feed);
                feed.end(outcome);
            })
            .map_err(|error| {
                let what = "starting the thread of a stream";
                Error::Engine { what, errno: crate::error::errno_of(&error) }
            })?;
        let (batch, process) = (RecordBatch::default(), Process::this());
        Ok(LogStream { queue, batch, bell, process, is_over: false })
    }
}

impl Stream for LogStream {
    type Item = Result<Record, Error>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Record, Error>>> {
        if let Err(error) = self.process.check() {
            let is_told = std::mem::replace(&mut self.is_over, true);
            return Poll::Ready((!is_told).then_some(Err(error)));
        }
        loop {
            if let Some(record) = self.batch.take() {
                return Poll::Ready(Some(Ok(record)));
            }
            match ready!(self.queue.poll(context.waker())) {
                Some(Ok(batch)) => self.batch = batch,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // Its thread, and the bell, are the parent's.
            return;
        }
        self.queue.leave();
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}

/// The result of [`Feed::pass_on`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    Records,
    /// There was no record to read.
    Nothing,
    /// The stream was dropped.
    Left,
}

/// The thread's end of a stream. Dropping it ends the stream, also by a panic.
struct Feed {
    queue: Arc<Queue>,
}

impl Feed {
    fn new(queue: Arc<Queue>) -> Feed {
        Feed { queue }
    }

    fn end(&self, outcome: Result<(), Error>) {
        self.queue.end(outcome);
    }

    /// Reads all that the reader reads, and waits where it follows.
    fn read(&mut self, mut reader: LogReader) -> Result<(), Error> {
        loop {
            let mut is_first = true;
            let passed = self.pass_on(&mut reader, |reader| {
                // Only the first record of a batch is waited for.
                let waits = std::mem::take(&mut is_first);
                if waits { reader.find_next(None) } else { reader.advance() }
            })?;
            if passed != Passed::Records {
                return Ok(());
            }
        }
    }

    /// Passes a batch of the records to which `next` moves the reader on to the stream, those
    /// before an error too.
    fn pass_on(
        &self,
        reader: &mut LogReader,
        mut next: impl FnMut(&mut LogReader) -> Result<Option<u64>, Error>,
    ) -> Result<Passed, Error> {
        let mut batch = RecordBatch::default();
        let end = loop {
            match next(reader) {
                Ok(Some(sequence)) => batch.push(sequence, reader.written_at(), reader.record()),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
            if batch.is_full() {
                break Ok(());
            }
        };
        let passed = match batch.is_empty() {
            true => Passed::Nothing,
            false if self.queue.push(batch) => Passed::Records,
            false => Passed::Left,
        };
        end.map(|()| passed)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // It counts only where the thread has named no other end.
        let what = "the thread of a stream panicked";
        self.queue.end(Err(Error::Engine { what, errno: libc::EIO }));
    }
}

/// Bytes and records at which a batch is full, and the batches that wait for the consumer.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_RECORDS: usize = 4096;
const BATCHES_MAX: usize = 2;

/// Some records in one buffer.
#[derive(Debug, Default)]
struct RecordBatch {
    bytes: Vec<u8>,
    /// The sequence and the time of each record, and the end of its bytes.
    records: VecDeque<(u64, Option<SystemTime>, usize)>,
    /// The end of the record that was taken last.
    taken: usize,
}

impl RecordBatch {
    /// Appends the record `sequence`.
    fn push(&mut self, sequence: u64, written_at: Option<SystemTime>, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.records.push_back((sequence, written_at, self.bytes.len()));
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.records.len() >= BATCH_RECORDS
    }

    fn take(&mut self) -> Option<Record> {
        let (sequence, written_at, end) = self.records.pop_front()?;
        let begin = std::mem::replace(&mut self.taken, end);
        Some(Record { sequence, bytes: self.bytes[begin..end].to_vec(), written_at })
    }
}

/// The batches between the thread and the stream.
#[derive(Debug, Default)]
struct Queue {
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
    /// The stream was dropped.
    is_left: bool,
}

impl Queue {
    /// Takes the next batch, or the end. Wakes `waker` when there is either.
    fn poll(&self, waker: &Waker) -> Poll<Option<Result<RecordBatch, Error>>> {
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
    fn leave(&self) {
        let mut shared = self.shared();
        shared.is_left = true;
        let consumer = shared.consumer.take();
        self.changed.notify_one();
        drop(shared);
        drop(consumer);
    }

    /// Appends a batch once there is room. Returns whether there is still a stream.
    fn push(&self, batch: RecordBatch) -> bool {
        let is_full = |shared: &mut Shared| !shared.is_left && shared.batches.len() >= BATCHES_MAX;
        let shared = self.changed.wait_while(self.shared(), is_full);
        let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
        shared.batches.push_back(batch);
        let is_left = shared.is_left;
        wake_consumer(shared);
        !is_left
    }

    /// Ends the stream after the queued batches. The first end counts.
    fn end(&self, end: Result<(), Error>) {
        let mut shared = self.shared();
        shared.end.get_or_insert(end);
        wake_consumer(shared);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Log, SyncPolicy};
    use std::sync::Weak;
    use std::task::Waker;

    /// Waits until the stream's thread has ended.
    fn wait_for_end(queue: &Weak<Queue>) {
        while queue.upgrade().is_some() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_stream_that_is_dropped_ends_its_thread_and_is_waited_for_no_more() {
        let folder = fixtures::folder();
        let log = Log::options().sync(SyncPolicy::No).open(folder.path().join("log")).unwrap();
        log.append(b"hello").unwrap().wait().unwrap();
        // None waits; one waits for a record, one for room.
        for (from, records) in [(0, 0), (1, 0), (0, 50_000)] {
            for _ in 0..records {
                drop(log.append(&[b'x'; 64]).unwrap());
            }
            log.sync().unwrap();
            let streams = [
                log.reader(from).unwrap().following().and_then(LogStream::of).unwrap(),
                LogReader::open(folder.path().join("log"), from)
                    .and_then(LogReader::following)
                    .and_then(LogStream::of)
                    .unwrap(),
                log.reader(from).and_then(LogStream::of).unwrap(),
            ];
            for mut stream in streams {
                let queue = Arc::downgrade(&stream.queue);
                let context = &mut Context::from_waker(Waker::noop());
                let _ = Pin::new(&mut stream).poll_next(context);
                drop(stream);
                wait_for_end(&queue);
            }
        }
        log.close().unwrap();
    }

    #[test]
    fn a_thread_that_panics_ends_its_stream_with_an_error() {
        let mut stream = LogStream::start(None, |_| panic!("on purpose")).unwrap();
        let context = &mut Context::from_waker(Waker::noop());
        let error = loop {
            match Pin::new(&mut stream).poll_next(context) {
                Poll::Ready(item) => break item.unwrap().unwrap_err(),
                Poll::Pending => std::thread::yield_now(),
            }
        };
        assert_eq!(error.errno(), libc::EIO);
        assert!(Pin::new(&mut stream).poll_next(context).is_ready());
    }
}
