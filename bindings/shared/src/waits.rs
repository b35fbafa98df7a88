//! `Waits`: the tickets of a log for which the tasks of one event loop wait.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use wrote::{Error, Ticket};

/// Tickets of one log, each with its waiter: what the language resolves.
///
/// A log makes its records safe in their order, so only the first ticket is polled, and then those
/// behind it that are ready too: one wake-up of the event loop serves all tasks of a flush.
pub struct Waits<T> {
    /// Waiters for the log's promise, and waiters for more.
    queues: [VecDeque<Entry<T>>; 2],
}

struct Entry<T> {
    ticket: Ticket<'static>,
    waiter: T,
    is_polled: bool,
}

/// The waiter of a ticket that was answered.
pub struct Answer<T> {
    /// The waiter that `Waits::add` got.
    pub waiter: T,
    /// The ticket's record.
    pub sequence: u64,
    /// Whether the record is as safe as was waited for.
    pub result: Result<(), Error>,
}

impl<T> Entry<T> {
    fn poll(&mut self, waker: &Waker) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.ticket).poll(&mut Context::from_waker(waker))
    }
}

impl<T> Default for Waits<T> {
    fn default() -> Waits<T> {
        Waits { queues: [VecDeque::new(), VecDeque::new()] }
    }
}

impl<T> Waits<T> {
    /// Adds a ticket; `is_durable` where it waits for more than its log promises. Wakes the loop
    /// where it is the first.
    pub fn add(&mut self, ticket: Ticket<'static>, is_durable: bool, waiter: T, waker: Waker) {
        let queue = &mut self.queues[usize::from(is_durable)];
        let sequence = ticket.sequence();
        let place = queue.iter().rposition(|other| other.ticket.sequence() <= sequence);
        let place = place.map_or(0, |place| place + 1);
        queue.insert(place, Entry { ticket, waiter, is_polled: false });
        if place == 0 {
            // The first one is polled by the loop's next turn, when other tasks have appended.
            waker.wake();
        }
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// Takes the waiters whose tickets are ready. The first of the others wakes the loop.
    pub fn answers(&mut self, waker: &Waker) -> Vec<Answer<T>> {
        let mut answers = Vec::new();
        for queue in &mut self.queues {
            while let Some(entry) = queue.front_mut() {
                let mut polled = Poll::Pending;
                // The first poll would only ask for another turn of the loop, so that other tasks
                // append first. They have appended already, unless this turn has answered some of
                // them.
                if !std::mem::replace(&mut entry.is_polled, true) && answers.is_empty() {
                    polled = entry.poll(Waker::noop());
                }
                if polled.is_pending() {
                    polled = entry.poll(waker);
                }
                let Poll::Ready(result) = polled else { break };
                let Some(Entry { ticket, waiter, .. }) = queue.pop_front() else { break };
                answers.push(Answer { waiter, sequence: ticket.sequence(), result });
            }
        }
        answers
    }
}
