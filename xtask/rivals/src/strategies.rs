//! The usual strategies of an asynchronous program that appends to one file. Each producer is a
//! task, and the file is synced once in the end.

use flume::{Receiver, Sender};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use trial::Result;
use trial::append::{Messages, Work};
use trial::clock::{Clock, Who};
use trial::outcome::Outcome;
use trial::place::Place;

/// Threads of [`Job::flume_ten`].
const TEN: usize = 10;

/// The messages, their producers and the path of the file.
pub struct Job {
    messages: Arc<Messages>,
    producers: u32,
    path: PathBuf,
}

/// A message, and the channel on which its producer waits for the answer.
type Request = (Vec<u8>, Sender<()>);

/// Appends the messages by `strategy` to a file at `path`, and removes it.
pub fn run(
    strategy: impl AsyncFnOnce(&Job) -> Result<()>,
    work: &Work,
    messages: Messages,
    path: &Path,
) -> Result<Outcome> {
    let bytes = messages.total_bytes();
    let place = Place::take(path)?;
    let runtime = Runtime::new()?;
    let job =
        Job { messages: Arc::new(messages), producers: work.producers, path: path.to_owned() };
    let clock = Clock::start(Who::Us)?;
    runtime.block_on(strategy(&job))?;
    let outcome = clock.stop(bytes, work.messages)?;
    place.check_length(bytes)?;
    Ok(outcome)
}

impl Job {
    /// One task writes all messages.
    pub async fn one_loop(&self) -> Result<()> {
        let mut file = File::create_new(&self.path).await?;
        for producer in 0..self.producers {
            for message in self.messages.share(producer) {
                file.write_all(message).await?;
            }
        }
        Ok(file.sync_data().await?)
    }

    /// Each task takes the lock of the file.
    pub async fn mutex(&self) -> Result<()> {
        let file = Arc::new(Mutex::new(File::create_new(&self.path).await?));
        let append = |messages: Arc<Messages>, producer| {
            let file = Arc::clone(&file);
            async move {
                for message in messages.share(producer) {
                    file.lock().await.write_all(message).await?;
                }
                Ok(())
            }
        };
        self.tasks(append).await?;
        Ok(file.lock().await.sync_data().await?)
    }

    /// tokio's channel leads to one task.
    pub async fn mpsc(&self) -> Result<()> {
        let mut file = File::create_new(&self.path).await?;
        let (to, mut from) = mpsc::unbounded_channel::<Vec<u8>>();
        let writer = tokio::spawn(async move {
            while let Some(message) = from.recv().await {
                file.write_all(&message).await?;
            }
            file.sync_data().await
        });
        let send = move |messages: Arc<Messages>, producer| {
            let to = to.clone();
            async move {
                for message in messages.share(producer) {
                    to.send(message.to_vec())?;
                }
                Ok(())
            }
        };
        self.tasks(send).await?;
        Ok(writer.await??)
    }

    /// flume's channel leads to a thread with a `BufWriter`.
    pub async fn flume(&self) -> Result<()> {
        let mut file = BufWriter::new(std::fs::File::create_new(&self.path)?);
        let (to, from) = flume::unbounded::<Vec<u8>>();
        let writer = thread::spawn(move || -> Result<()> {
            for message in from {
                file.write_all(&message)?;
            }
            Ok(file.into_inner()?.sync_data()?)
        });
        self.send(to).await?;
        joined(writer)
    }

    /// flume's channel leads to ten threads.
    pub async fn flume_ten(&self) -> Result<()> {
        let file = std::fs::File::create_new(&self.path)?;
        let (to, from) = flume::unbounded::<Vec<u8>>();
        let writer = || -> Result<JoinHandle<Result<()>>> {
            let mut file = std::fs::File::options().append(true).open(&self.path)?;
            let from: Receiver<Vec<u8>> = from.clone();
            Ok(thread::spawn(move || Ok(from.iter().try_for_each(|one| file.write_all(&one))?)))
        };
        let writers: Vec<_> = (0..TEN).map(|_| writer()).collect::<Result<_>>()?;
        self.send(to).await?;
        writers.into_iter().try_for_each(joined)?;
        Ok(file.sync_data()?)
    }

    /// flume's channel leads to a thread that answers each message.
    pub async fn rendezvous(&self) -> Result<()> {
        let mut file = std::fs::File::create_new(&self.path)?;
        let (to, from) = flume::unbounded::<Request>();
        let writer = thread::spawn(move || -> Result<()> {
            for (message, answer) in from {
                file.write_all(&message)?;
                answer.send(())?;
            }
            Ok(file.sync_data()?)
        });
        let send = move |messages: Arc<Messages>, producer| {
            let to = to.clone();
            async move {
                for message in messages.share(producer) {
                    let (answer, answers) = flume::bounded(0);
                    to.send((message.to_vec(), answer)).map_err(|_| "the writer is gone")?;
                    answers.recv_async().await?;
                }
                Ok(())
            }
        };
        self.tasks(send).await?;
        joined(writer)
    }

    /// Runs a task for each producer that sends its messages to a thread.
    async fn send(&self, to: Sender<Vec<u8>>) -> Result<()> {
        let send = move |messages: Arc<Messages>, producer| {
            let to = to.clone();
            async move {
                for message in messages.share(producer) {
                    to.send(message.to_vec())?;
                }
                Ok(())
            }
        };
        self.tasks(send).await
    }

    /// Runs a task for each producer until all are done, and drops the channel that they share.
    async fn tasks<F>(&self, task: impl Fn(Arc<Messages>, u32) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for producer in 0..self.producers {
            tasks.spawn(task(Arc::clone(&self.messages), producer));
        }
        drop(task);
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }
}

fn joined(writer: JoinHandle<Result<()>>) -> Result<()> {
    writer.join().map_err(|_| "a writer panicked")?
}
