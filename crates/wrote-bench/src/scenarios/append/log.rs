//! The library's own way: `wrote::Log`, from threads or tasks.

use super::message::Messages;
use super::usual::record;
use super::{AppendAs, Promise};
use crate::arrivals::Arrivals;
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use wrote::Log;
use wrote_jobs::clock::{Timer, clocked};
use wrote_jobs::histogram;
use wrote_jobs::machine::usage::Usage;
use wrote_result::document::Run;
use wrote_result::{Error, Stop};

/// The input of a producer.
#[derive(Clone)]
pub(super) struct Task {
    pub log: Log,
    pub promise: Promise,
    pub stop: Stop,
    /// The time after which no producer sends another message.
    pub slice: Option<Duration>,
}

/// The latencies of the messages that producers sent, their number and their bytes.
pub(super) struct Sent {
    pub latencies: Histogram<u64>,
    pub messages: u64,
    pub bytes: u64,
}

/// Appends all producers' messages concurrently, until the kernel has them, as in the usual ways.
/// The clock starts when all producers are ready.
pub(super) fn append(
    task: &Task,
    append_as: AppendAs,
    timer: Timer,
    runtime: &Runtime,
    producers: Vec<(Messages, Arrivals)>,
) -> Result<(Sent, Run), Error> {
    match append_as {
        // Before any thread waits for the clock.
        AppendAs::Threads => by_threads(task, &timer.begun()?, producers),
        AppendAs::Tasks => {
            let append = || finish(task, runtime.block_on(by_tasks(task, producers)));
            clocked(&timer, Usage::now, append)
        }
    }
}

fn by_threads(
    task: &Task,
    timer: &Timer,
    producers: Vec<(Messages, Arrivals)>,
) -> Result<(Sent, Run), Error> {
    let start = Barrier::new(producers.len() + 1);
    std::thread::scope(|scope| {
        let begin = |(messages, arrivals)| {
            let start = &start;
            scope.spawn(move || {
                let latencies = histogram();
                start.wait();
                produce(task, messages, arrivals, latencies)
            })
        };
        let producers: Vec<_> = producers.into_iter().map(begin).collect();
        clocked(timer, Usage::now, || {
            start.wait();
            let ended = producers.into_iter().map(|producer| producer.join());
            // Waits for all before returning the first error.
            let ended: Vec<_> =
                ended.map(|ended| ended.unwrap_or_else(|_| Err(panicked()))).collect();
            finish(task, ended)
        })
    })
}

fn produce(
    task: &Task,
    mut messages: Messages,
    mut arrivals: Arrivals,
    mut latencies: Histogram<u64>,
) -> Result<Sent, Error> {
    let mut began = Instant::now();
    let until = task.slice.map(|slice| began + slice);
    while let Some(message) = messages.next_before(until, began) {
        task.stop.check()?;
        began = arrivals.wait(message.len(), &task.stop).unwrap_or(began);
        let ticket = task.log.append(message)?;
        if task.promise.waits {
            ticket.wait()?;
        }
        // One message ends where the next begins, so one clock reading serves both (M10).
        let now = Instant::now();
        record(&mut latencies, now - began);
        began = now;
    }
    Ok(Sent::of(latencies, &messages))
}

async fn by_tasks(task: &Task, producers: Vec<(Messages, Arrivals)>) -> Vec<Result<Sent, Error>> {
    let begin =
        |(messages, arrivals)| tokio::spawn(produce_async(task.clone(), messages, arrivals));
    let producers: Vec<_> = producers.into_iter().map(begin).collect();
    let mut ended = Vec::with_capacity(producers.len());
    for producer in producers {
        ended.push(producer.await.unwrap_or_else(|_| Err(panicked())));
    }
    ended
}

async fn produce_async(
    task: Task,
    mut messages: Messages,
    mut arrivals: Arrivals,
) -> Result<Sent, Error> {
    let mut latencies = histogram();
    let mut began = Instant::now();
    let until = task.slice.map(|slice| began + slice);
    while let Some(message) = messages.next_before(until, began) {
        task.stop.check()?;
        began = arrivals.wait_async(message.len(), &task.stop).await.unwrap_or(began);
        let ticket = task.log.append(message)?;
        if task.promise.waits {
            ticket.await?;
        }
        let now = Instant::now();
        record(&mut latencies, now - began);
        began = now;
    }
    Ok(Sent::of(latencies, &messages))
}

impl Sent {
    fn of(latencies: Histogram<u64>, messages: &Messages) -> Sent {
        let sent = messages.sent();
        Sent { latencies, messages: sent, bytes: messages.bytes_of(sent) }
    }
}

/// Combines what all producers sent. If none waited for its messages, waits for them here.
fn finish(task: &Task, ended: Vec<Result<Sent, Error>>) -> Result<Sent, Error> {
    let mut all = Sent { latencies: histogram(), messages: 0, bytes: 0 };
    for of_one in ended {
        let of_one = of_one?;
        all.latencies.add(&of_one.latencies).expect("all histograms have the same bounds");
        all.messages += of_one.messages;
        all.bytes += of_one.bytes;
    }
    let next = task.log.stats().next_sequence;
    if !task.promise.waits && next > 0 {
        task.log.ticket(next - 1).until_written().wait()?;
    }
    Ok(all)
}

fn panicked() -> Error {
    Error::Failed("a producer ended early: it panicked".into())
}
