//! Streams, which yield the records of a log to async code.

use super::{LogReader, Record};
use crate::Error;
use crate::fork::Process;
use crate::log::wait::wake_one;
use crate::log::watch::Bell;
use futures_core::Stream;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::SystemTime;

/// The stream that [`LogReader::into_stream`] returns.
#[must_use = "a stream yields nothing unless it is polled"]
pub(super) struct LogStream {
    /// The batches that the stream's thread has read; `None` once the stream has been dropped.
    batches: Option<Receiver<Result<RecordBatch, Error>>>,
    consumer: Arc<Consumer>,
    batch: RecordBatch,
    /// The bell that ends the sleep of a following reader.
    bell: Option<Bell>,
    process: Process,
    is_over: bool,
}

/// The waker of the task that waits for the stream. A waker is the task's code, which may poll the
/// stream at once. So the lock is not held while the waker is called or dropped.
type Consumer = Mutex<Option<Waker>>;

fn swap(consumer: &Consumer, waker: Option<Waker>) -> Option<Waker> {
    std::mem::replace(&mut *consumer.lock().unwrap_or_else(PoisonError::into_inner), waker)
}

impl LogStream {
    pub(super) fn of(mut reader: LogReader) -> Result<LogStream, Error> {
        let bell = reader.bell()?;
        LogStream::start(bell, move |feed| feed.read(reader))
    }

    fn start(
        bell: Option<Bell>,
        run: impl FnOnce(&Feed) -> Result<(), Error> + Send + 'static,
    ) -> Result<LogStream, Error> {
        let (feed, batches) = sync_channel(BATCHES_MAX);
        let consumer = Arc::new(Consumer::default());
        let feed = Feed { batches: Some(feed), consumer: Arc::clone(&consumer) };
        let run = move || {
            if let Err(error) = run(&feed) {
                feed.push(Err(error));
            }
        };
        std::thread::Builder::new().name("wrote-stream".to_owned()).spawn(run).map_err(
            |error| {
                let what = "starting the thread of a stream";
                Error::Engine { what, errno: crate::error::errno_of(&error) }
            },
        )?;
        let (batch, process) = (RecordBatch::default(), Process::this());
        Ok(LogStream { batches: Some(batches), consumer, batch, bell, process, is_over: false })
    }

    fn poll_batch(&self, waker: &Waker) -> Poll<Option<Result<RecordBatch, Error>>> {
        let Some(batches) = &self.batches else { return Poll::Ready(None) };
        for is_known in [false, true] {
            match batches.try_recv() {
                Ok(batch) => return Poll::Ready(Some(batch)),
                Err(TryRecvError::Disconnected) => return Poll::Ready(None),
                // A batch may have arrived before the thread knew the waker, so try once more.
                Err(TryRecvError::Empty) if !is_known => {
                    drop(swap(&self.consumer, Some(waker.clone())));
                }
                Err(TryRecvError::Empty) => {}
            }
        }
        Poll::Pending
    }
}

impl Stream for LogStream {
    type Item = Result<Record, Error>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Record, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let end = loop {
            if let Err(error) = self.process.check() {
                break Some(Err(error));
            }
            if let Some(record) = self.batch.take() {
                return Poll::Ready(Some(Ok(record)));
            }
            match ready!(self.poll_batch(context.waker())) {
                Some(Ok(batch)) => self.batch = batch,
                Some(Err(error)) => break Some(Err(error)),
                None => break None,
            }
        };
        self.is_over = true;
        Poll::Ready(end)
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        let batches = self.batches.take();
        if !self.process.is_this() {
            // The stream's thread, the locks of the channel, and the bell belong to the parent
            // process.
            return std::mem::forget(batches);
        }
        drop(batches);
        drop(swap(&self.consumer, None));
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}

/// The thread's end of a stream. Dropping it, even in a panic, ends the stream.
struct Feed {
    batches: Option<SyncSender<Result<RecordBatch, Error>>>,
    consumer: Arc<Consumer>,
}

impl Feed {
    /// Passes on everything that the reader reads. A following reader waits at the end of the log.
    fn read(&self, mut reader: LogReader) -> Result<(), Error> {
        loop {
            let mut batch = RecordBatch::default();
            // The reader may wait only for the first record of a batch.
            let mut next = reader.find_next(None);
            while let Ok(Some(sequence)) = next {
                batch.push(sequence, reader.written_at(), reader.record());
                if batch.is_full() {
                    break;
                }
                next = reader.advance();
            }
            // The records before an error are passed on, too.
            if batch.is_empty() || !self.push(Ok(batch)) {
                return next.map(drop);
            }
            next?;
        }
    }

    /// Passes on a batch once there is room. Returns whether the stream still exists.
    fn push(&self, batch: Result<RecordBatch, Error>) -> bool {
        let is_read = self.batches.as_ref().is_some_and(|batches| batches.send(batch).is_ok());
        swap(&self.consumer, None).into_iter().for_each(wake_one);
        is_read
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let what = "the thread of a stream panicked";
            self.push(Err(Error::Engine { what, errno: libc::EIO }));
        }
        self.batches = None;
        swap(&self.consumer, None).into_iter().for_each(wake_one);
    }
}

/// The numbers of bytes and of records at which a batch is full, and the maximum number of batches
/// that wait for the consumer.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_RECORDS: usize = 4096;
const BATCHES_MAX: usize = 2;

/// Several records in one buffer.
#[derive(Debug, Default)]
struct RecordBatch {
    bytes: Vec<u8>,
    /// The sequence and the time of each record, and the end of its bytes in the buffer.
    records: VecDeque<(u64, Option<SystemTime>, usize)>,
    /// The end of the last record taken, in the buffer.
    taken: usize,
}

impl RecordBatch {
    /// Appends record `sequence` with its time and bytes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Log, SyncPolicy};
    use std::sync::Weak;
    use std::task::Waker;

    /// Waits until the stream's thread has exited.
    fn wait_for_end(consumer: &Weak<Consumer>) {
        while consumer.upgrade().is_some() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_stream_that_is_dropped_ends_its_thread_and_is_waited_for_no_more() {
        let folder = fixtures::folder();
        let log = Log::options().sync(SyncPolicy::No).open(folder.path().join("log")).unwrap();
        log.append(b"hello").unwrap().wait().unwrap();
        // In the first case the thread does not wait; in the others, it waits for a record and for
        // room, respectively.
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
                let consumer = Arc::downgrade(&stream.consumer);
                let context = &mut Context::from_waker(Waker::noop());
                let _ = Pin::new(&mut stream).poll_next(context);
                drop(stream);
                wait_for_end(&consumer);
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
