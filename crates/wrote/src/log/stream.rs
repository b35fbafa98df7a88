//! `LogStream`: the records of a log for async code.

mod feed;
mod queue;

use super::reader::{LogReader, Record};
use super::watch::Bell;
use crate::Error;
use crate::fork::Process;
use feed::Feed;
use futures_core::Stream;
use queue::{Queue, RecordBatch};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The records of a log in order, for any async runtime.
///
/// [`LogReader::into_stream`] makes one, of a log that this process has open or that any process
/// writes:
///
/// ```
/// use futures_util::StreamExt;
/// use wrote::Log;
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("events");
/// let log = Log::open(&folder)?;
/// let mut stream = log.reader(0)?.following()?.into_stream()?;
/// log.append(b"hello")?.wait()?;
/// log.close()?; // the stream ends after the last record
/// # struct Unparker(std::thread::Thread);
/// # impl std::task::Wake for Unparker {
/// #     fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
/// # }
/// # fn block_on<T>(future: impl Future<Output = T>) -> T {
/// #     let mut future = std::pin::pin!(future);
/// #     let waker = std::sync::Arc::new(Unparker(std::thread::current())).into();
/// #     loop {
/// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
/// #             std::task::Poll::Ready(done) => return done,
/// #             std::task::Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// block_on(async {
///     while let Some(record) = stream.next().await {
///         println!("{}", String::from_utf8_lossy(&record?.bytes));
///     }
///     Ok(())
/// })
/// # }
/// ```
///
/// A record that the stream yields was passed to the kernel: it survives a process crash, but
/// perhaps not a kernel crash. [`crate::Log::durable_sequence`] shows what is durable.
///
/// # Errors
///
/// An error is the last item: a failed read, [`Error::Damaged`] for a record lost by the disk, or
/// the failure of the open log, after all records written before. On a full disk the stream
/// continues when the log does.
///
/// # Cost
///
/// A separate thread reads for the stream, so a poll never waits for the disk. The thread reads up
/// to three batches of 256 KiB ahead of the consumer, or three records if they are longer, and then
/// sleeps until the consumer takes one (W8). It also has the buffers of a [`LogReader`], at most
/// 6.5 MiB. Many consumers of one log should share a stream. Dropping the stream ends the thread
/// after the current read.
#[must_use = "a stream yields nothing unless it is polled"]
pub struct LogStream {
    queue: Arc<Queue>,
    batch: RecordBatch,
    /// Ends the sleep of a reader that follows.
    bell: Option<Bell>,
    process: Process,
    /// The stream has reported that this is not the process that opened it.
    is_over: bool,
}

impl LogReader {
    /// Converts the reader to a stream, for async code. A following reader's stream waits for
    /// further records endlessly, and for those of an open log until that is closed; otherwise it
    /// ends with the log. Fails if a thread or an `eventfd(2)` can't be created; every other error
    /// is an item of the stream ([`LogStream`]).
    pub fn into_stream(mut self) -> Result<LogStream, Error> {
        if let Some(own) = self.followed_log() {
            return LogStream::start(None, move |feed| feed.of_log(&own, self));
        }
        let bell = self.bell()?;
        LogStream::start(bell, move |feed| feed.of_reader(self))
    }
}

impl LogStream {
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

impl fmt::Debug for LogStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStream").finish_non_exhaustive()
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
        let driver = log.driver();
        // None waits; one waits for a record, one for room.
        for (from, records) in [(0, 0), (1, 0), (0, 50_000)] {
            for _ in 0..records {
                drop(log.append(&[b'x'; 64]).unwrap());
            }
            log.sync().unwrap();
            let streams = [
                log.reader(from).unwrap().following().unwrap().into_stream().unwrap(),
                LogReader::open(folder.path().join("log"), from)
                    .and_then(LogReader::following)
                    .and_then(LogReader::into_stream)
                    .unwrap(),
                log.reader(from).unwrap().into_stream().unwrap(),
            ];
            for mut stream in streams {
                let queue = Arc::downgrade(&stream.queue);
                let context = &mut Context::from_waker(Waker::noop());
                let _ = Pin::new(&mut stream).poll_next(context);
                drop(stream);
                wait_for_end(&queue);
                assert!(driver.state.written.all().is_empty(), "from {from}");
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
