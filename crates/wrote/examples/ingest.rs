//! Accepts records from 64 tasks. Each continues once its record is durable: with a `Log`, and with
//! a channel and a thread that batches, writes and syncs.
//!
//! `cargo run --release -p wrote --example ingest -- FOLDER`

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use wrote::{Log, SyncPolicy};

const TASKS: u64 = 64;
const RECORDS_PER_TASK: u64 = 500;
const RECORDS: u64 = TASKS * RECORDS_PER_TASK;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: ingest FOLDER")?);
    std::fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let by_log = runtime.block_on(by_log(&folder.join("log")))?;
    println!("Log: {by_log:.0} durable records a second");
    let by_channel = runtime.block_on(by_channel(&folder.join("channel")))?;
    println!("channel and thread: {by_channel:.0} durable records a second");
    Ok(())
}

fn text(task: u64, number: u64) -> String {
    format!("task {task}, record {number}: what a program takes from its network")
}

/// Returns records per second with a log.
async fn by_log(folder: &Path) -> Result<f64, Failure> {
    let log = Log::options().sync(SyncPolicy::Always).open(folder)?;
    let (began, mut tasks) = (Instant::now(), JoinSet::new());
    for task in 0..TASKS {
        let log = log.clone();
        tasks.spawn(async move {
            for number in 0..RECORDS_PER_TASK {
                let record = text(task, number);
                let ticket = loop {
                    match log.try_append(&[&record])? {
                        Some(ticket) => break ticket,
                        None => log.room().await?,
                    }
                };
                ticket.into_owned().await?;
            }
            Ok::<(), wrote::Error>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let rate = RECORDS as f64 / began.elapsed().as_secs_f64();
    log.close()?;
    Ok(rate)
}

/// A record, and the sender for the confirmation that it is durable.
type Message = (String, oneshot::Sender<()>);

/// Returns records per second with a thread that writes what has arrived, and syncs it.
async fn by_channel(path: &Path) -> Result<f64, Failure> {
    let file = File::create_new(path)?;
    let (sender, receiver) = mpsc::channel::<Message>(1024);
    let writer = thread::spawn(move || write(file, receiver));
    let (began, mut tasks) = (Instant::now(), JoinSet::new());
    for task in 0..TASKS {
        let sender = sender.clone();
        tasks.spawn(async move {
            for number in 0..RECORDS_PER_TASK {
                let (answer, answered) = oneshot::channel();
                sender.send((text(task, number), answer)).await?;
                answered.await?;
            }
            Ok::<(), Failure>(())
        });
    }
    drop(sender);
    let mut ended = Ok(());
    while let Some(task) = tasks.join_next().await {
        ended = ended.and(task?);
    }
    // The writer's error is the cause of the others.
    writer.join().expect("it does not panic")?;
    ended?;
    Ok(RECORDS as f64 / began.elapsed().as_secs_f64())
}

/// Writes all available records, syncs them, confirms, and repeats.
fn write(mut file: File, mut receiver: mpsc::Receiver<Message>) -> io::Result<()> {
    let (mut lines, mut answers) = (Vec::new(), Vec::new());
    while let Some(first) = receiver.blocking_recv() {
        let rest = std::iter::from_fn(|| receiver.try_recv().ok());
        for (text, answer) in std::iter::once(first).chain(rest) {
            lines.extend_from_slice(text.as_bytes());
            lines.push(b'\n');
            answers.push(answer);
        }
        file.write_all(&lines)?;
        file.sync_data()?;
        lines.clear();
        for answer in answers.drain(..) {
            // A task that is gone needs no confirmation.
            let _ = answer.send(());
        }
    }
    Ok(())
}
