//! Accepts records from 64 tasks. Each task continues once its record is durable. A task that waits
//! for that, or for room in the log, blocks no thread.
//!
//! `cargo run --release -p wrote --example ingest -- FOLDER`

use std::error::Error;
use std::time::Instant;
use tokio::task::JoinSet;
use wrote::{Log, SyncPolicy};

const TASKS: u64 = 64;
const RECORDS_PER_TASK: u64 = 500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: ingest FOLDER")?;
    let log = Log::options().sync(SyncPolicy::Always).open(folder)?;
    let (began, mut tasks) = (Instant::now(), JoinSet::new());
    for task in 0..TASKS {
        tasks.spawn(append(log.clone(), task));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let rate = (TASKS * RECORDS_PER_TASK) as f64 / began.elapsed().as_secs_f64();
    println!("{rate:.0} durable records a second");
    Ok(log.close()?)
}

async fn append(log: Log, task: u64) -> Result<(), wrote::Error> {
    for number in 0..RECORDS_PER_TASK {
        let record = format!("task {task}, record {number}: what a program takes from its network");
        let ticket = loop {
            match log.try_append(&[&record])? {
                Some(ticket) => break ticket,
                None => log.room().await?,
            }
        };
        ticket.into_owned().await?;
    }
    Ok(())
}
