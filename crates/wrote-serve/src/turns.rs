//! Turns at a log without room: senders append one after another.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wrote::Log;

/// Senders of one log that wait for room, in order of arrival. Later senders queue after them, so
/// that none starves.
///
/// Only the sender whose turn it is waits for the log itself. A turn covers what its sender had
/// read before; it never waits for a client.
#[derive(Debug)]
pub(crate) struct Turns(Arc<Semaphore>);

/// The right to append before all others, passed on when dropped.
pub(crate) type Turn = OwnedSemaphorePermit;

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns(Arc::new(Semaphore::new(1)))
    }

    /// Returns whether a sender waits for room, so that others have to queue.
    pub(crate) fn are_taken(&self) -> bool {
        self.0.available_permits() == 0
    }

    /// Waits for a turn, in order of arrival.
    pub(crate) fn next(&self) -> impl Future<Output = Turn> + Send + use<> {
        let turns = Arc::clone(&self.0);
        async move { turns.acquire_owned().await.expect("it is never closed") }
    }

    /// Returns whether a sender may append now: in its turn, or if no other waits.
    pub(crate) fn lets(&self, turn: Option<&Turn>) -> bool {
        turn.is_some() || !self.are_taken()
    }

    /// Waits for the turn of a sender that could not append, and then for room in the log.
    pub(crate) async fn wait(
        &self,
        turn: &mut Option<Turn>,
        log: &Log,
    ) -> Result<(), wrote::Error> {
        match turn {
            Some(_) => log.room().await,
            None => {
                *turn = Some(self.next().await);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn turns_are_taken_in_the_order_in_which_they_were_asked_for() {
        let context = &mut Context::from_waker(Waker::noop());
        let turns = Turns::new();
        assert!(!turns.are_taken());
        let (mut first, mut second) = (pin!(turns.next()), pin!(turns.next()));
        let Poll::Ready(turn) = first.as_mut().poll(context) else { panic!("it waits") };
        assert!(turns.are_taken() && second.as_mut().poll(context).is_pending());
        {
            // A sender that gives up is skipped.
            let mut third = pin!(turns.next());
            assert!(third.as_mut().poll(context).is_pending());
        }
        let mut last = pin!(turns.next());
        assert!(last.as_mut().poll(context).is_pending());
        drop(turn);
        let Poll::Ready(turn) = second.as_mut().poll(context) else { panic!("it was next") };
        assert!(last.as_mut().poll(context).is_pending());
        drop(turn);
        assert!(last.as_mut().poll(context).is_ready());
        assert!(!turns.are_taken());
    }
}
