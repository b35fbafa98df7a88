//! Turns at a log that has no room: its senders take them one after another.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wrote::Log;

/// The senders of one log that wait for room, in the order in which they came. While there are any,
/// a sender that comes later waits behind them, so that none is starved.
///
/// Only the one whose turn it is waits for the log itself. A turn is worth what its sender had read
/// before it; nothing that a client does is awaited in it.
#[derive(Debug)]
pub(crate) struct Turns(Arc<Semaphore>);

/// The right to append before all others. Dropping it passes it on.
pub(crate) type Turn = OwnedSemaphorePermit;

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns(Arc::new(Semaphore::new(1)))
    }

    /// Tells whether a sender waits for room, so that others have to wait for their turn.
    pub(crate) fn are_taken(&self) -> bool {
        self.0.available_permits() == 0
    }

    /// Waits for the turn behind all who wait already.
    pub(crate) fn next(&self) -> impl Future<Output = Turn> + Send + use<> {
        let turns = Arc::clone(&self.0);
        async move { turns.acquire_owned().await.expect("it is never closed") }
    }

    /// Tells whether a sender may append now: in its turn, or while no other waits.
    pub(crate) fn lets(&self, turn: Option<&Turn>) -> bool {
        turn.is_some() || !self.are_taken()
    }

    /// Waits for the turn of a sender that could not append; in its turn, for room in the log.
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
            // One that gives up is passed over.
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
