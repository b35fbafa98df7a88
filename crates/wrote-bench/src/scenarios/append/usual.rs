//! Usual methods of appending in Rust programs that use tokio and flume.

use super::message::Messages;
use super::{Kind, Opened};
use crate::arrivals::Arrivals;
use hdrhistogram::Histogram;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use wrote_jobs::histogram;
use wrote_result::{Error, Stop};

/// The number of writer threads, for methods with several.
const WRITERS: usize = 10;
/// The capacity of tokio's channel. Tokio has no unbounded channel on which a sender can wait.
const CHANNEL_MESSAGES: usize = 1024;

/// The input of a method, which is prepared before the clock starts.
pub(super) struct Task<'a> {
    /// The path of the new file, for methods in which each writer opens it.
    pub path: &'a Path,
    pub file: File,
    pub messages: Messages,
    pub arrivals: Arrivals,
    pub runtime: &'a Runtime,
    pub stop: &'a Stop,
}

/// A message on its way to the writer.
struct Sent {
    bytes: Vec<u8>,
    /// The time at which the task began to send the message.
    began: Instant,
}

/// A message whose task waits for an answer.
struct Delivery {
    bytes: Vec<u8>,
    written: oneshot::Sender<()>,
}

/// Sends every message, and returns the latencies until the messages were acknowledged: until the
/// write had returned and, if the method notifies the task, until the task was notified.
pub(super) fn append(kind: Kind, task: Task) -> Result<Histogram<u64>, Error> {
    match kind {
        Kind::Loop => task.runtime.block_on(in_a_loop(task)),
        Kind::Mutex => task.runtime.block_on(mutex(task)),
        Kind::Mpsc => task.runtime.block_on(tokio_mpsc(task)),
        Kind::FlumeBufWriter => {
            let writers = vec![BufWriter::new(opened(&task, Opened::Once)?)];
            task.runtime.block_on(flume_writers(task, writers))
        }
        Kind::FlumeWriters(how) => {
            let files = (0..WRITERS).map(|_| opened(&task, how));
            let files = files.collect::<Result<Vec<File>, Error>>()?;
            task.runtime.block_on(flume_writers(task, files))
        }
        Kind::Rendezvous => task.runtime.block_on(rendezvous(task)),
        Kind::Log(_) => unreachable!("not of this room"),
    }
}

async fn in_a_loop(task: Task<'_>) -> Result<Histogram<u64>, Error> {
    let Task { path, file, mut messages, mut arrivals, stop, .. } = task;
    let mut file = tokio::fs::File::from_std(file);
    let mut latencies = histogram();
    while let Some(message) = messages.next() {
        stop.check()?;
        let began = arrivals.wait(message.len(), stop).unwrap_or_else(Instant::now);
        file.write_all(message).await.map_err(Error::at(path, "write"))?;
        record(&mut latencies, began.elapsed());
    }
    file.flush().await.map_err(Error::at(path, "write"))?;
    Ok(latencies)
}

async fn mutex(task: Task<'_>) -> Result<Histogram<u64>, Error> {
    let Task { path, file, messages, arrivals, stop, .. } = task;
    let file = Arc::new(Mutex::new(tokio::fs::File::from_std(file)));
    let tasks = each(messages, arrivals, stop, |bytes, due| {
        let (file, stop) = (file.clone(), stop.clone());
        async move {
            let began = due.unwrap_or_else(Instant::now);
            let mut file = file.lock().await;
            // After an interruption, the waiting tasks take their turns without writing.
            if !stop.is_requested() {
                file.write_all(&bytes).await?;
            }
            Ok(Some(began.elapsed()))
        }
    });
    let latencies = latencies_of(tasks, path).await?;
    file.lock().await.flush().await.map_err(Error::at(path, "write"))?;
    Ok(latencies)
}

async fn tokio_mpsc(task: Task<'_>) -> Result<Histogram<u64>, Error> {
    let Task { path, file, messages, arrivals, stop, .. } = task;
    let (sender, mut receiver) = mpsc::channel::<Sent>(CHANNEL_MESSAGES);
    let (path, writers_stop) = (path.to_owned(), stop.clone());
    let writer = tokio::spawn(async move {
        let mut file = tokio::fs::File::from_std(file);
        let mut latencies = histogram();
        while let Some(sent) = receiver.recv().await {
            if !writers_stop.is_requested() {
                file.write_all(&sent.bytes).await.map_err(Error::at(&path, "write"))?;
                record(&mut latencies, sent.began.elapsed());
            }
        }
        file.flush().await.map_err(Error::at(&path, "write"))?;
        Ok(latencies)
    });
    each(messages, arrivals, stop, |bytes, due| {
        let sender = sender.clone();
        async move {
            let began = due.unwrap_or_else(Instant::now);
            // The receiver is gone only if the writer has failed. The writer then reports the
            // error.
            let _ = sender.send(Sent { bytes, began }).await;
        }
    });
    drop(sender);
    writer.await.map_err(panicked)?
}

/// Opens the file for one of several writers.
fn opened(task: &Task, how: Opened) -> Result<File, Error> {
    let file = match how {
        Opened::Once => task.file.try_clone(),
        Opened::Each => File::options().write(true).open(task.path),
    };
    file.map_err(Error::at(task.path, "write"))
}

/// Sends the messages into one channel, from which the threads of all writers take them.
async fn flume_writers<W: Write + Send + 'static>(
    task: Task<'_>,
    writers: Vec<W>,
) -> Result<Histogram<u64>, Error> {
    let (sender, receiver) = flume::unbounded();
    let begin = |mut file: W| {
        let (path, stop, receiver) = (task.path.to_owned(), task.stop.clone(), receiver.clone());
        std::thread::spawn(move || write_all(&receiver, &mut file, &path, &stop))
    };
    let writers: Vec<_> = writers.into_iter().map(begin).collect();
    drop(receiver);
    each(task.messages, task.arrivals, task.stop, |bytes, due| {
        let sender = sender.clone();
        async move {
            let began = due.unwrap_or_else(Instant::now);
            // The receivers are gone only if the writers have failed. The writers then report the
            // error.
            let _ = sender.send(Sent { bytes, began });
        }
    });
    drop(sender);
    let mut latencies = histogram();
    for writer in writers {
        let of_one = writer.join().map_err(panicked_thread)??;
        latencies.add(&of_one).expect("all histograms have the same bounds");
    }
    Ok(latencies)
}

/// Lets each task wait until a thread receives its message, and then for the answer that the
/// message is written.
async fn rendezvous(task: Task<'_>) -> Result<Histogram<u64>, Error> {
    let Task { path, mut file, messages, arrivals, stop, .. } = task;
    let (sender, receiver) = flume::bounded::<Delivery>(0);
    let (place, writers_stop) = (path.to_owned(), stop.clone());
    let writer = std::thread::spawn(move || {
        for asked in receiver {
            if !writers_stop.is_requested() {
                file.write_all(&asked.bytes).map_err(Error::at(&place, "write"))?;
            }
            let _ = asked.written.send(());
        }
        Ok::<_, Error>(())
    });
    let tasks = each(messages, arrivals, stop, |bytes, due| {
        let sender = sender.clone();
        async move {
            let began = due.unwrap_or_else(Instant::now);
            let (written, answer) = oneshot::channel();
            let _ = sender.send_async(Delivery { bytes, written }).await;
            // There is no answer only if the writer has failed. The writer then reports the error.
            Ok(answer.await.ok().map(|()| began.elapsed()))
        }
    });
    drop(sender);
    let latencies = latencies_of(tasks, path).await?;
    writer.join().map_err(panicked_thread)??;
    Ok(latencies)
}

/// Starts a task for each message when the message is due, and passes the due time to the task,
/// until the run stops.
fn each<F: Future<Output: Send> + Send + 'static>(
    mut messages: Messages,
    mut arrivals: Arrivals,
    stop: &Stop,
    task: impl Fn(Vec<u8>, Option<Instant>) -> F,
) -> Vec<JoinHandle<F::Output>> {
    let mut tasks = Vec::with_capacity(messages.count() as usize);
    while let Some(message) = messages.next().filter(|_| !stop.is_requested()) {
        let due = arrivals.wait(message.len(), stop);
        tasks.push(tokio::spawn(task(message.to_vec(), due)));
    }
    tasks
}

/// Waits for tasks that each wait until their message is written, and returns the latencies.
async fn latencies_of(
    tasks: Vec<JoinHandle<io::Result<Option<Duration>>>>,
    path: &Path,
) -> Result<Histogram<u64>, Error> {
    let mut latencies = histogram();
    for task in tasks {
        let latency = task.await.map_err(panicked)?.map_err(Error::at(path, "write"))?;
        latency.into_iter().for_each(|latency| record(&mut latencies, latency));
    }
    Ok(latencies)
}

/// Writes the received messages until every sender is gone.
fn write_all(
    receiver: &flume::Receiver<Sent>,
    file: &mut impl Write,
    path: &Path,
    stop: &Stop,
) -> Result<Histogram<u64>, Error> {
    let mut latencies = histogram();
    for sent in receiver {
        if !stop.is_requested() {
            file.write_all(&sent.bytes).map_err(Error::at(path, "write"))?;
            record(&mut latencies, sent.began.elapsed());
        }
    }
    file.flush().map_err(Error::at(path, "write"))?;
    Ok(latencies)
}

pub(super) fn record(latencies: &mut Histogram<u64>, latency: Duration) {
    latencies.saturating_record(latency.as_nanos().clamp(1, u64::MAX.into()) as u64);
}

fn panicked(error: JoinError) -> Error {
    Error::Failed(format!("a task that writes ended early: {error}"))
}

fn panicked_thread(_: Box<dyn std::any::Any + Send>) -> Error {
    Error::Failed("a thread that writes ended early: it panicked".into())
}
