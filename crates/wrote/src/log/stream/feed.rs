//! `Feed`: the work of a stream's thread, which reads records as they are written.

use super::super::driver::LogDriver;
use super::super::reader::LogReader;
use super::super::state::Goal;
use super::super::wait::Waiter;
use super::queue::{Queue, RecordBatch};
use crate::Error;
use std::sync::Arc;
use std::task::Waker;

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
pub(super) struct Feed {
    queue: Arc<Queue>,
}

impl Feed {
    pub(super) fn new(queue: Arc<Queue>) -> Feed {
        Feed { queue }
    }

    pub(super) fn end(&self, outcome: Result<(), Error>) {
        self.queue.end(outcome);
    }

    /// Reads what an open log writes, until the log is closed or fails.
    pub(super) fn of_log(
        &mut self,
        driver: &Arc<LogDriver>,
        mut reader: LogReader,
    ) -> Result<(), Error> {
        let state = &driver.state;
        let mut arrival = Arrival { driver, waiter: None };
        let mut cuts = state.cuts();
        let waker = Waker::from(Arc::clone(&self.queue));
        loop {
            // Registered before the look: no record that comes between the two is missed. A log
            // that is over writes no more after this moment.
            arrival.wake_at(reader.next_sequence(), &waker);
            let is_over = state.is_over();
            let written = state.written.done();
            if state.cuts() != cuts {
                let cut = state.cut_since(cuts);
                cuts = state.cuts();
                reader.pass_cut(cut.unwrap_or(0))?;
            } else if reader.next_sequence() < written {
                match self.pass_on(&mut reader, |reader| reader.read_written(written)) {
                    Ok(Passed::Left) => return Ok(()),
                    // It may have come to the end of records that were cut off.
                    Err(_) if state.cuts() != cuts => {}
                    passed => _ = passed?,
                }
            } else if is_over {
                return state.check();
            } else if !self.queue.sleep() {
                return Ok(());
            }
        }
    }

    /// Reads all that the reader reads, and waits where it follows.
    pub(super) fn of_reader(&mut self, mut reader: LogReader) -> Result<(), Error> {
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

/// Waits for a log's records. Dropping it takes it off the list of those to wake.
struct Arrival<'a> {
    driver: &'a LogDriver,
    waiter: Option<Waiter>,
}

impl Arrival<'_> {
    /// Wakes `waker` once the record `sequence` is written, or the log is over.
    fn wake_at(&mut self, sequence: u64, waker: &Waker) {
        self.forget();
        let frontier = self.driver.state.frontier(Goal::Written);
        self.waiter = Some(frontier.wake_at(sequence.saturating_add(1), None, waker));
    }

    fn forget(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.driver.state.frontier(Goal::Written).forget(waiter);
        }
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}
