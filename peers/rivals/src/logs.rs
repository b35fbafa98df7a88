//! Logs and databases, with each message durable before its producer continues. Without group
//! commit in the database, a thread makes all waiting messages durable together.

pub mod fjall;
pub mod raft_engine;
pub mod redis;
pub mod sqlite;
pub mod walrus;

use flume::{Receiver, Sender, bounded, unbounded};
use std::thread;
use trial::Result;
use trial::append::{Messages, Timing};
use trial::outcome::Outcome;

/// Returns `appended`, and fails unless `log` has `stored` all its messages.
fn check(log: &str, stored: u64, appended: Outcome) -> Result<Outcome> {
    if stored == appended.operations {
        return Ok(appended);
    }
    Err(format!("{log} has {stored} messages").into())
}

/// A message, and its producer's channel for the result.
struct Waiting {
    message: Vec<u8>,
    answer: Sender<Result<(), String>>,
}

/// Runs producers that send their messages to a thread. It makes all waiting messages durable at
/// once by `commit`. At most one message of each producer waits.
fn append_gathered(
    messages: &Messages,
    commit: impl FnMut(&[Vec<u8>]) -> Result<()> + Send,
) -> Result<Outcome> {
    let (to, from) = unbounded();
    thread::scope(|scope| {
        let gatherer = scope.spawn(move || gather(&from, commit));
        let steps = (0..messages.work.producers).map(|_| {
            let (to, (answer, answers)) = (to.clone(), bounded(1));
            move |message: &[u8]| {
                to.send(Waiting { message: message.to_vec(), answer: answer.clone() })?;
                Ok(answers.recv()??)
            }
        });
        let steps = steps.collect();
        drop(to);
        let appended = messages.append(steps, Timing::Each, || Ok(()));
        gatherer.join().map_err(|_| "the thread that gathers panicked")?;
        appended
    })
}

/// Commits messages until all producers are gone.
fn gather(from: &Receiver<Waiting>, mut commit: impl FnMut(&[Vec<u8>]) -> Result<()>) {
    while let Ok(first) = from.recv() {
        let all = std::iter::once(first).chain(from.try_iter());
        let (messages, answers): (Vec<_>, Vec<_>) =
            all.map(|waiting| (waiting.message, waiting.answer)).unzip();
        let became = commit(&messages).map_err(|error| error.to_string());
        for answer in answers {
            // A producer that failed no longer waits.
            let _ = answer.send(became.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trial::append::Work;

    const WORK: Work = Work { messages: 100, producers: 8, shortest: 300, longest: 2000 };

    fn sink(commits: &mut Vec<usize>) -> impl FnMut(&[Vec<u8>]) -> Result<()> {
        |messages| {
            commits.push(messages.len());
            if commits.len() > 1000 { Err("full".into()) } else { Ok(()) }
        }
    }

    #[test]
    fn every_message_is_committed_once_and_at_most_one_of_each_producer_together() {
        let messages = Messages::new(&WORK).expect("a range");
        let mut commits = Vec::new();
        append_gathered(&messages, sink(&mut commits)).expect("no failure");
        assert_eq!(commits.iter().sum::<usize>(), 100);
        assert!(commits.iter().all(|&count| (1..=8).contains(&count)), "{commits:?}");
    }

    #[test]
    fn a_commit_that_fails_fails_those_that_wait_for_it() {
        let messages = Messages::new(&WORK).expect("a range");
        let mut commits = vec![0; 1000];
        let message = append_gathered(&messages, sink(&mut commits)).expect_err("full").to_string();
        assert_eq!(message, "full");
    }
}
