//! The handle of an operation, to block on or to await.

use super::buffer::DiskBuffer;
use super::entry::Outcome;
use super::{Disk, ReadBytes};
use crate::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A started operation, which will be executed. [`Operation::wait`] blocks; it is also a `Future`
/// for [`Disk::block_on`] or any other executor, on any thread.
///
/// Dropping it cancels nothing (W5). The operation continues, and its buffer returns to the pool
/// when it is complete. The error of a dropped change is returned by the file's next flush or by
/// [`DirectFile::close`](super::DirectFile::close). Only an operation that waits for a buffer is
/// cancelled. If more operations were dropped than the engine's `iodepth`, dropping waits (W8).
///
/// # On another executor
///
/// A pending operation uses no CPU: the disk's thread waits for it, and wakes its task once. Where
/// operations complete inside calls ([`Ioengine::Psync`](crate::Ioengine::Psync), a simulated
/// disk), a poll carries them out until its own is complete.
#[must_use = "the operation continues, but its error reaches only the next flush"]
pub struct Operation<T: Output> {
    state: State,
    output: PhantomData<fn() -> T>,
}

enum State {
    Started {
        disk: Disk,
        key: usize,
    },
    /// Complete before it was started: no work, or an error.
    Over(Result<Outcome, Error>),
    Taken,
}

/// The result of an [`Operation`]: `()`, [`ReadBytes`] or [`DiskBuffer`].
#[doc(hidden)]
pub trait Output: From<Outcome> {}

impl Output for () {}
impl Output for ReadBytes {}
impl Output for DiskBuffer {}

impl From<Outcome> for () {
    fn from(_: Outcome) {}
}

impl From<Outcome> for ReadBytes {
    fn from(outcome: Outcome) -> ReadBytes {
        let Outcome::Read(bytes) = outcome else { unreachable!("only reads start as such") };
        bytes
    }
}

impl From<Outcome> for DiskBuffer {
    fn from(outcome: Outcome) -> DiskBuffer {
        let Outcome::Lease(buffer) = outcome else { unreachable!("only leases start as such") };
        buffer
    }
}

impl<T: Output> Operation<T> {
    pub(super) fn started(disk: Disk, key: usize) -> Operation<T> {
        Operation { state: State::Started { disk, key }, output: PhantomData }
    }

    pub(super) fn over(result: Result<Outcome, Error>) -> Operation<T> {
        Operation { state: State::Over(result), output: PhantomData }
    }

    /// Returns whether the operation is known to be complete or failed. Only a wait or a poll
    /// notices new completions.
    pub fn is_over(&self) -> bool {
        match &self.state {
            State::Started { disk, key } => disk.is_over(*key),
            State::Over(_) | State::Taken => true,
        }
    }

    /// Waits until the operation is complete. Other operations continue, and their awaiting tasks
    /// are woken. Panics if its result was already taken by awaiting it.
    pub fn wait(mut self) -> Result<T, Error> {
        let result = match std::mem::replace(&mut self.state, State::Taken) {
            State::Started { disk, key } => disk.shared().wait(key),
            State::Over(result) => result,
            State::Taken => panic!("the operation has given its result"),
        };
        result.map(T::from)
    }
}

impl<T: Output> Future for Operation<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let result = match std::mem::replace(&mut self.state, State::Taken) {
            State::Started { disk, key } => match disk.shared().poll(key, context.waker()) {
                Poll::Ready(result) => result,
                Poll::Pending => {
                    self.state = State::Started { disk, key };
                    return Poll::Pending;
                }
            },
            State::Over(result) => result,
            State::Taken => panic!("the operation has given its result"),
        };
        Poll::Ready(result.map(T::from))
    }
}

impl<T: Output> Drop for Operation<T> {
    fn drop(&mut self) {
        if let State::Started { disk, key } = &self.state {
            disk.shared().forget(*key);
        }
    }
}

impl<T: Output> fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Started { .. } => "started",
            State::Over(_) => "over",
            State::Taken => "taken",
        };
        f.debug_tuple("Operation").field(&state).finish()
    }
}
