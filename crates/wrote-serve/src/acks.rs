//! Acknowledgements: when records become safe, wakes together the connections that wait for them
//! and that one worker serves for one listener.
//!
//! One flush makes the records of many connections safe. A single task waits for it and wakes them
//! all. If each connection waited for the flush itself, it would be woken twice.

use crate::lock;
use crate::target::{Health, Level, Target};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::task::yield_now;
use wrote::{Error, Ticket};

/// The connections of one listener and worker that wait for their records to be safe.
#[derive(Debug)]
pub(crate) struct Acks {
    level: Level,
    /// The number of log failures so far.
    failures: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The log that they wait for, and its generation.
    log: Option<(u64, Target)>,
    /// For each connection: the sequence before which all records must be safe, a unique number,
    /// and its waker. Sorted in this order.
    wakers: VecDeque<(u64, u64, Waker)>,
    number: u64,
    error: Option<Error>,
    /// The waker of the acknowledging task while no connection waits.
    idle: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub end: u64,
    number: u64,
    failures: u64,
}

impl Acks {
    pub(crate) fn new(level: Level) -> Acks {
        Acks { level, failures: AtomicU64::new(0), waiting: Mutex::default() }
    }

    /// Wakes the task of `context` once all records of `log` before `end` are safe, or the log has
    /// failed. `generation` is the number of times that the log was opened.
    pub(crate) fn wait(
        &self,
        (generation, log): (u64, &Target),
        end: u64,
        context: &Context<'_>,
    ) -> Result<Wait, Error> {
        let mut waiting = lock(&self.waiting);
        let known = waiting.log.as_ref().map(|(known, _)| *known);
        if known.is_some_and(|known| known > generation) {
            // A new generation means that the previous log failed.
            return Err(failure(log).unwrap_or(Error::Interrupted));
        }
        let mut woken = VecDeque::new();
        if known != Some(generation)
            && let Some((_, old)) = waiting.log.replace((generation, log.clone()))
        {
            woken = self.fail(&mut waiting, failure(&old));
        }
        let (number, failures) = (waiting.number, self.failures.load(Ordering::Relaxed));
        waiting.number += 1;
        let at = waiting.wakers.partition_point(|(other, ..)| *other <= end);
        waiting.wakers.insert(at, (end, number, context.waker().clone()));
        let idle = waiting.idle.take();
        drop(waiting);
        wake(woken);
        if let Some(idle) = idle {
            idle.wake();
        }
        Ok(Wait { end, number, failures })
    }

    pub(crate) fn forget(&self, wait: Wait) {
        let mut waiting = lock(&self.waiting);
        let begin = waiting.wakers.partition_point(|(end, ..)| *end < wait.end);
        let same = waiting.wakers.range(begin..).take_while(|(end, ..)| *end == wait.end);
        let at = same.into_iter().position(|(_, number, _)| *number == wait.number);
        if let Some(at) = at {
            waiting.wakers.remove(begin + at);
        }
    }

    /// Fails if the log has failed since the wait began.
    pub(crate) fn check(&self, wait: Wait) -> Result<(), Error> {
        if self.failures.load(Ordering::Relaxed) == wait.failures {
            return Ok(());
        }
        Err(lock(&self.waiting).error.clone().unwrap_or(Error::Interrupted))
    }

    /// Wakes connections for as long as the server runs.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let (generation, log, ticket) = poll_fn(|context| self.next(context)).await;
            // Connections with pending messages append them first, so that these share the flush.
            yield_now().await;
            let outcome = ticket.await;
            let mut waiting = lock(&self.waiting);
            if waiting.log.as_ref().is_none_or(|(known, _)| *known != generation) {
                // The waiting connections have already received the error.
                continue;
            }
            let woken = match outcome {
                Ok(()) => {
                    let reached = log.reached(self.level);
                    let count = waiting.wakers.partition_point(|(end, ..)| *end <= reached);
                    waiting.wakers.drain(..count).collect()
                }
                Err(error) => self.fail(&mut waiting, Some(error)),
            };
            drop(waiting);
            wake(woken);
        }
    }

    /// Returns a ticket for the records of the first waiting connection, with the log and its
    /// generation.
    fn next(&self, context: &Context<'_>) -> Poll<(u64, Target, Ticket<'static>)> {
        let mut waiting = lock(&self.waiting);
        let (Some((end, ..)), Some((generation, log))) = (waiting.wakers.front(), &waiting.log)
        else {
            waiting.idle = Some(context.waker().clone());
            return Poll::Pending;
        };
        Poll::Ready((*generation, log.clone(), log.ticket(self.level, end - 1)))
    }

    /// Counts a log failure and keeps its error. Removes and returns all waiting connections, which
    /// the caller must wake.
    fn fail(&self, waiting: &mut Waiting, error: Option<Error>) -> VecDeque<(u64, u64, Waker)> {
        self.failures.fetch_add(1, Ordering::Relaxed);
        waiting.error = error;
        std::mem::take(&mut waiting.wakers)
    }
}

fn failure(log: &Target) -> Option<Error> {
    match log.health() {
        Health::Well => None,
        Health::Waits(error) | Health::Failed(error) => Some(error),
    }
}

fn wake(woken: VecDeque<(u64, u64, Waker)>) {
    woken.into_iter().for_each(|(_, _, waker)| waker.wake());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;
    use wrote::{Log, SyncPolicy};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn log() -> (tempfile::TempDir, Log) {
        let folder = fixtures::folder();
        let log = Log::options().sync(SyncPolicy::No).open(folder.path().join("log")).unwrap();
        (folder, log)
    }

    /// Polls the acknowledging task until it is idle.
    fn settle(acks: &Arc<Acks>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let task = tokio::spawn(acks.clone().run());
            while lock(&acks.waiting).idle.is_none() {
                yield_now().await;
            }
            task.abort();
        });
    }

    #[test]
    fn all_whose_records_are_safe_are_woken_and_who_has_ended_is_not() {
        let (_folder, log) = log();
        let acks = Arc::new(Acks::new(Level::Durable));
        let wakes: [Arc<Woken>; 3] = Default::default();
        let mut waits = Vec::new();
        for woken in &wakes {
            let sequence = log.append(b"a record").unwrap().sequence();
            let waker = Waker::from(woken.clone());
            let context = Context::from_waker(&waker);
            waits.push(acks.wait((0, &Target::Log(log.clone())), sequence + 1, &context).unwrap());
        }
        acks.forget(waits[1]);
        settle(&acks);
        assert_eq!(log.durable_sequence(), 3); // W1
        assert_eq!(wakes.map(|woken| woken.0.load(Ordering::SeqCst)), [1, 0, 1]);
        assert!(waits.into_iter().all(|wait| acks.check(wait).is_ok()));
    }

    #[test]
    fn waiters_for_a_replaced_log_fail_and_later_ones_do_not() {
        let ((_old_folder, old), (_new_folder, new)) = (log(), log());
        let acks = Arc::new(Acks::new(Level::Durable));
        let (before, after): (Arc<Woken>, Arc<Woken>) = Default::default();
        let (waker, later) = (Waker::from(before.clone()), Waker::from(after.clone()));
        let end = old.append(b"a record").unwrap().sequence() + 1;
        let wait =
            acks.wait((0, &Target::Log(old.clone())), end, &Context::from_waker(&waker)).unwrap();
        old.close().unwrap();
        let end = new.append(b"a record").unwrap().sequence() + 1;
        let next =
            acks.wait((1, &Target::Log(new.clone())), end, &Context::from_waker(&later)).unwrap();
        assert_eq!(before.0.load(Ordering::SeqCst), 1);
        assert!(acks.check(wait).is_err() && acks.check(next).is_ok()); // W2
        assert!(
            acks.wait((0, &Target::Log(old.clone())), 1, &Context::from_waker(&waker)).is_err()
        );
        settle(&acks);
        assert_eq!(after.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_level_is_read_as_it_is_written() {
        for level in [Level::Received, Level::Written, Level::Durable] {
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert!("safe".parse::<Level>().is_err());
    }
}
