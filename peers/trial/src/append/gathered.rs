//! A program without a log: a thread gathers waiting messages, makes them durable together, and
//! notifies each producer.

use super::tasks::by_tasks;
use super::{Messages, crew};
use crate::Result;
use crate::outcome::Outcome;
use crate::place::{Place, sync_folder, zeros};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// A message, and its producer's channel for the result.
struct Waiting {
    message: Vec<u8>,
    answer: oneshot::Sender<Result<(), String>>,
}

/// A function that makes messages durable together.
type Commit<'a> = dyn FnMut(&[Vec<u8>]) -> Result<()> + Send + 'a;

/// Appends to a file of zeros. The producers are threads.
pub fn threads(messages: &Messages, path: &Path) -> Result<Outcome> {
    over_zeros(messages, path, |commit| by_threads(messages, commit))
}

/// Appends to a file of zeros. The producers are tasks of tokio.
pub fn tasks(messages: &Messages, path: &Path) -> Result<Outcome> {
    over_zeros(messages, path, |commit| {
        gathered(commit, |to| {
            let to = Arc::new(to);
            by_tasks(messages, move |message: &[u8]| {
                let (answer, answered) = oneshot::channel();
                let sent = to.send(Waiting { message: message.to_vec(), answer });
                async move {
                    sent.map_err(|_| "it is gone")?;
                    Ok(answered.await??)
                }
            })
        })
    })
}

/// Appends lines to a growing file, through a `BufWriter`. The producers are threads.
pub fn lines(messages: &Messages, path: &Path) -> Result<Outcome> {
    let place = Place::take(path)?;
    let mut file = BufWriter::new(File::options().append(true).create_new(true).open(path)?);
    sync_folder(path)?;
    let appended = by_threads(messages, |lines| {
        for line in lines {
            file.write_all(line)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        Ok(file.get_ref().sync_data()?)
    })?;
    place.check_length(appended.bytes + appended.operations)?;
    Ok(appended)
}

/// Appends with `commit`. The producers are threads, each with at most one message waiting.
fn by_threads(
    messages: &Messages,
    commit: impl FnMut(&[Vec<u8>]) -> Result<()> + Send,
) -> Result<Outcome> {
    gathered(commit, |to| {
        crew::append_each(messages, |message: &[u8]| {
            let (answer, answered) = oneshot::channel();
            to.send(Waiting { message: message.to_vec(), answer }).map_err(|_| "it is gone")?;
            Ok(answered.blocking_recv()??)
        })
    })
}

/// Runs `append` with a commit function that overwrites zeros in a file with a single write, and
/// flushes.
fn over_zeros(
    messages: &Messages,
    path: &Path,
    append: impl FnOnce(&mut Commit<'_>) -> Result<Outcome>,
) -> Result<Outcome> {
    let place = Place::take(path)?;
    let file = zeros(path, messages.total_bytes())?;
    let (mut offset, mut bytes) = (0, Vec::new());
    let appended = append(&mut |messages| {
        bytes.clear();
        messages.iter().for_each(|message| bytes.extend_from_slice(message));
        file.write_all_at(&bytes, offset)?;
        offset += bytes.len() as u64;
        Ok(file.sync_data()?)
    })?;
    place.check_length(appended.bytes)?;
    Ok(appended)
}

fn gathered(
    commit: impl FnMut(&[Vec<u8>]) -> Result<()> + Send,
    append: impl FnOnce(mpsc::UnboundedSender<Waiting>) -> Result<Outcome>,
) -> Result<Outcome> {
    let (to, from) = mpsc::unbounded_channel();
    thread::scope(|scope| {
        let gatherer = scope.spawn(|| gather(from, commit));
        let appended = append(to);
        gatherer.join().map_err(|_| "the thread that gathers panicked")?;
        appended
    })
}

/// Commits messages until all producers have finished.
fn gather(
    mut from: mpsc::UnboundedReceiver<Waiting>,
    mut commit: impl FnMut(&[Vec<u8>]) -> Result<()>,
) {
    let (mut messages, mut answers) = (Vec::new(), Vec::new());
    while let Some(first) = from.blocking_recv() {
        let all = std::iter::once(first).chain(std::iter::from_fn(|| from.try_recv().ok()));
        for Waiting { message, answer } in all {
            messages.push(message);
            answers.push(answer);
        }
        let became = commit(&messages).map_err(|error| error.to_string());
        messages.clear();
        for answer in answers.drain(..) {
            // A producer that failed no longer waits.
            let _ = answer.send(became.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::Work;

    const WORK: Work = Work { messages: 200, producers: 8, shortest: 300, longest: 2000 };

    #[test]
    fn every_message_is_written_and_answered_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let messages = Messages::new(&WORK).expect("a range");
        for append in [threads, tasks] {
            let outcome = append(&messages, &folder.path().join("file")).expect("room");
            assert_eq!((outcome.operations, outcome.bytes), (200, messages.total_bytes()));
            assert_eq!(outcome.latency_ns.expect("timed").count, 200);
        }
    }

    #[test]
    fn at_most_one_message_of_each_producer_is_committed_together() {
        let messages = Messages::new(&WORK).expect("a range");
        let mut commits = Vec::new();
        let commit = |messages: &[Vec<u8>]| {
            commits.push(messages.len());
            Ok(())
        };
        by_threads(&messages, commit).expect("no failure");
        assert_eq!(commits.iter().sum::<usize>(), 200);
        assert!(commits.iter().all(|&count| (1..=8).contains(&count)), "{commits:?}");
    }

    #[test]
    fn a_commit_that_fails_fails_those_that_wait_for_it() {
        let messages = Messages::new(&WORK).expect("a range");
        let failed = by_threads(&messages, |_: &[Vec<u8>]| Err("full".into()));
        assert_eq!(failed.expect_err("full").to_string(), "full");
    }
}
