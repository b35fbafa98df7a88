//! A program without a log: a thread gathers waiting messages, writes them at once over zeros,
//! flushes once, and answers each producer.

use super::Messages;
use super::tasks::by_tasks;
use crate::Result;
use crate::outcome::Outcome;
use crate::place::{Place, sync_folder};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// A message, and its producer's channel for the result.
struct Waiting {
    message: Vec<u8>,
    answer: oneshot::Sender<io::Result<()>>,
}

/// The producers are threads.
pub fn threads(messages: &Messages, path: &Path) -> Result<Outcome> {
    gathered(messages, path, |to| {
        messages.append_each(|message: &[u8]| {
            let (answer, answered) = oneshot::channel();
            to.send(Waiting { message: message.to_vec(), answer }).map_err(|_| "it is gone")?;
            Ok(answered.blocking_recv()??)
        })
    })
}

/// The producers are tasks of tokio.
pub fn tasks(messages: &Messages, path: &Path) -> Result<Outcome> {
    gathered(messages, path, |to| {
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
}

fn gathered(
    messages: &Messages,
    path: &Path,
    append: impl FnOnce(mpsc::UnboundedSender<Waiting>) -> Result<Outcome>,
) -> Result<Outcome> {
    let place = Place::take(path)?;
    let mut file = File::create_new(path)?;
    io::copy(&mut io::repeat(0).take(messages.total_bytes()), &mut file)?;
    file.sync_all()?;
    sync_folder(path)?;
    let (to, from) = mpsc::unbounded_channel();
    let gatherer = thread::spawn(move || gather(from, &file));
    let appended = append(to);
    gatherer.join().map_err(|_| "the thread that gathers panicked")?;
    let appended = appended?;
    place.check_length(appended.bytes)?;
    Ok(appended)
}

/// Writes and flushes messages until all producers are gone.
fn gather(mut from: mpsc::UnboundedReceiver<Waiting>, file: &File) {
    let (mut offset, mut bytes, mut answers) = (0, Vec::new(), Vec::new());
    while let Some(first) = from.blocking_recv() {
        let mut take = |waiting: Waiting| {
            bytes.extend_from_slice(&waiting.message);
            answers.push(waiting.answer);
        };
        take(first);
        while let Ok(next) = from.try_recv() {
            take(next);
        }
        let became = file.write_all_at(&bytes, offset).and_then(|()| file.sync_data());
        offset += bytes.len() as u64;
        bytes.clear();
        for answer in answers.drain(..) {
            let became = became.as_ref().map_err(|error| io::Error::other(error.to_string()));
            // A producer that failed no longer waits.
            let _ = answer.send(became.map(|&()| ()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Work;
    use super::*;

    #[test]
    fn every_message_is_written_and_answered_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = Work { messages: 200, producers: 8, shortest: 300, longest: 2000 };
        let messages = Messages::new(&work).expect("a range");
        for append in [threads, tasks] {
            let outcome = append(&messages, &folder.path().join("file")).expect("room");
            assert_eq!((outcome.operations, outcome.bytes), (200, messages.total_bytes()));
            assert_eq!(outcome.latency_ns.expect("timed").count, 200);
        }
    }
}
