//! The usual strategies of an asynchronous program that appends to one file. Each producer is a
//! task, and the file is synced once at the end.

use flume::{Receiver, Sender};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use trial::Result;
use trial::append::Messages;
use trial::outcome::Outcome;
use trial::place::timed;

/// Threads of [`Job::flume_ten`].
const TEN: usize = 10;

/// The messages and the path of the file.
pub struct Job {
    messages: Arc<Messages>,
    path: PathBuf,
}

/// A message, and its producer's channel for the answer.
type Request = (Vec<u8>, Sender<()>);

/// Appends the messages by `strategy` to a file at `path`, and removes it.
pub fn run(
    strategy: impl AsyncFnOnce(&Job) -> Result<()>,
    messages: Messages,
    path: &Path,
) -> Result<Outcome> {
    let (bytes, operations) = (messages.total_bytes(), messages.work.messages);
    let runtime = Runtime::new()?;
    let job = Job { messages: Arc::new(messages), path: path.to_owned() };
    timed(path, bytes, operations, || runtime.block_on(strategy(&job)))
}

impl Job {
    /// One task writes all messages.
    pub async fn one_loop(&self) -> Result<()> {
        let mut file = File::create_new(&self.path).await?;
        for producer in 0..self.messages.work.producers {
            for message in self.messages.share(producer) {
                file.write_all(message).await?;
            }
        }
        Ok(file.sync_data().await?)
    }

    /// Each task locks the file.
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

    /// A tokio channel to one task.
    pub async fn mpsc(&self) -> Result<()> {
        let mut file = File::create_new(&self.path).await?;
        let (to, mut from) = mpsc::unbounded_channel::<Vec<u8>>();
        let writer = tokio::spawn(async move {
            while let Some(message) = from.recv().await {
                file.write_all(&message).await?;
            }
            file.sync_data().await
        });
        self.send(move |message| Ok(to.send(message)?)).await?;
        Ok(writer.await??)
    }

    /// A flume channel to a thread with a `BufWriter`.
    pub async fn flume(&self) -> Result<()> {
        self.buffered(None).await
    }

    /// The same, with an `fdatasync` each second.
    pub async fn flume_every_sec(&self) -> Result<()> {
        self.buffered(Some(Duration::from_secs(1))).await
    }

    async fn buffered(&self, sync_each: Option<Duration>) -> Result<()> {
        let mut file = BufWriter::new(std::fs::File::create_new(&self.path)?);
        let (to, from) = flume::unbounded::<Vec<u8>>();
        let writer = thread::spawn(move || -> Result<()> {
            let mut synced = Instant::now();
            for message in from {
                file.write_all(&message)?;
                if sync_each.is_some_and(|each| synced.elapsed() >= each) {
                    file.flush()?;
                    file.get_ref().sync_data()?;
                    synced = Instant::now();
                }
            }
            Ok(file.into_inner()?.sync_data()?)
        });
        self.send(move |message| Ok(to.send(message)?)).await?;
        joined(writer)
    }

    /// A flume channel to ten threads.
    pub async fn flume_ten(&self) -> Result<()> {
        let file = std::fs::File::create_new(&self.path)?;
        let (to, from) = flume::unbounded::<Vec<u8>>();
        let writer = || -> Result<JoinHandle<Result<()>>> {
            let mut file = std::fs::File::options().append(true).open(&self.path)?;
            let from: Receiver<Vec<u8>> = from.clone();
            Ok(thread::spawn(move || Ok(from.iter().try_for_each(|one| file.write_all(&one))?)))
        };
        let writers: Vec<_> = (0..TEN).map(|_| writer()).collect::<Result<_>>()?;
        self.send(move |message| Ok(to.send(message)?)).await?;
        writers.into_iter().try_for_each(joined)?;
        Ok(file.sync_data()?)
    }

    /// A flume channel to a thread that answers each message.
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

    /// Runs a task for each producer that passes its messages to `send`.
    async fn send<F>(&self, send: F) -> Result<()>
    where
        F: Fn(Vec<u8>) -> Result<()> + Clone + Send + 'static,
    {
        let all = move |messages: Arc<Messages>, producer| {
            let send = send.clone();
            async move { messages.share(producer).try_for_each(|one| send(one.to_vec())) }
        };
        self.tasks(all).await
    }

    /// Runs a task for each producer until all are done, and drops the channel that they share.
    async fn tasks<F>(&self, task: impl Fn(Arc<Messages>, u32) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for producer in 0..self.messages.work.producers {
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
