//! The log that receives a connection's messages, and the connection's wait for room in it.

use super::Wait;
use crate::channel::Turn;
use crate::metrics::Paused;
use crate::port::Port;
use crate::refusals::Refusal;
use crate::target::Target;
use std::task::{Context, Poll};

/// A wait that may result in a turn to append.
type Turned = Wait<Result<Option<Turn>, Refusal>>;

/// A connection's access to its log.
pub(super) struct Room {
    pub target: Target,
    /// The channel's generation when `target` was opened.
    pub generation: u64,
    /// The current wait, if the log had no room for the first kept message or other senders wait
    /// for room.
    wait: Option<(Turned, Paused)>,
    /// The right to append before all senders that wait for room.
    turn: Option<Turn>,
}

impl Room {
    pub(super) fn new(target: Target, port: &Port) -> Room {
        Room { target, generation: port.channel.generation(), wait: None, turn: None }
    }

    /// Returns whether the connection is waiting.
    pub(super) fn is_awaited(&self) -> bool {
        self.wait.is_some()
    }

    /// Returns whether other senders wait for room and this connection does not have the turn.
    pub(super) fn is_taken(&self, port: &Port) -> bool {
        !port.channel.turns.lets(self.turn.as_ref())
    }

    /// Switches to the new log if the channel has reopened it after a failure.
    pub(super) fn renew(&mut self, port: &Port) {
        let generation = port.channel.generation();
        if generation != self.generation
            && let Some(target) = port.channel.target()
        {
            (self.target, self.generation) = (target, generation);
        }
    }

    /// Begins to wait for a turn, or for room in the log's buffers if the connection already has
    /// the turn.
    pub(super) fn pause(&mut self, port: &Port) {
        let target = self.target.clone();
        let wait: Turned = match self.turn.take() {
            Some(turn) => Box::pin(async move {
                target.room().await.map_err(Refusal::Log)?;
                Ok(Some(turn))
            }),
            None => {
                let next = port.channel.turns.next();
                Box::pin(async move { Ok(Some(next.await)) })
            }
        };
        self.wait = Some((wait, Paused::of(&port.metrics)));
    }

    /// Begins to wait until messages are accepted again. If the server shuts down first, the data
    /// that the sender has in flight is lost.
    pub(super) fn hold(&mut self, port: &Port) {
        self.turn = None;
        let good_look = port.channel.next_good_look();
        let drains = port.drains();
        let wait = Box::pin(async move {
            tokio::select! {
                () = good_look => Ok(None),
                () = drains => Err(Refusal::Closed),
            }
        });
        self.wait = Some((wait, Paused::of(&port.metrics)));
    }

    /// Polls the wait, if any. Returns whether the connection continues with its kept bytes. If it
    /// `holds`, it begins to wait again after a failure of the log.
    pub(super) fn poll(
        &mut self,
        port: &Port,
        holds: bool,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, Refusal>> {
        let Some((wait, _)) = &mut self.wait else { return Poll::Ready(Ok(true)) };
        let Poll::Ready(waited) = wait.as_mut().poll(context) else { return Poll::Pending };
        self.wait = None;
        match waited {
            // The failure is temporary: the log may be reopened, or space may become free.
            Err(Refusal::Log(_)) if holds => {
                self.hold(port);
                return Poll::Ready(Ok(false));
            }
            waited => self.turn = waited?,
        }
        Poll::Ready(Ok(true))
    }

    /// Ends the wait, and passes on the turn.
    pub(super) fn pass(&mut self) {
        (self.wait, self.turn) = (None, None);
    }
}
