//! The library's method: `wrote::Log`, used by threads.

use super::Promise;
use super::message::Messages;
use super::usual::record;
use crate::arrivals::Arrivals;
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use wrote::Log;
use wrote_jobs::clock::{Timer, clocked};
use wrote_jobs::histogram;
use wrote_jobs::machine::usage::Usage;
use wrote_result::document::Run;
use wrote_result::{Error, Stop};

/// The input of the producers.
pub(super) struct Task {
    pub log: Log,
    pub promise: Promise,
    pub stop: Stop,
    /// The time after which no producer sends another message.
    pub slice: Option<Duration>,
}

/// The number and the bytes of the messages that producers sent, and their latencies.
pub(super) struct Sent {
    pub latencies: Histogram<u64>,
    pub messages: u64,
    pub bytes: u64,
}

/// Appends the messages of all producers concurrently, and returns once the kernel has received
/// them, as the usual methods do. The clock starts when all producers are ready.
pub(super) fn append(
    task: &Task,
    timer: Timer,
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
        clocked(&timer, Usage::now, || {
            start.wait();
            let ended = producers.into_iter().map(|producer| producer.join());
            // All producers finish before the first error is returned.
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
        // Each message ends where the next one begins, so one reading of the clock serves both
        // (M10).
        let now = Instant::now();
        record(&mut latencies, now - began);
        began = now;
    }
    let sent = messages.sent();
    Ok(Sent { latencies, messages: sent, bytes: messages.bytes_of(sent) })
}

/// Combines what all producers sent. If they did not wait for their messages, waits until all
/// messages are written.
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
