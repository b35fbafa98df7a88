//! Producers that start together, each a thread with its share of the messages.

use super::Messages;
use crate::Result;
use crate::clock::Clock;
use crate::outcome::{Outcome, Percentiles};
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// The messages to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Each message is timed, because its producer waits for it.
    Each,
    /// No message is timed, because two readings of the clock would be a large part of the figure.
    None,
}

/// Appends each message with `step`, and times it.
pub fn append_each<S>(messages: &Messages, step: S) -> Result<Outcome>
where
    S: FnMut(&[u8]) -> Result<()> + Send + Clone,
{
    append(messages, vec![step; messages.work.producers as usize], Timing::Each, || Ok(()))
}

/// Calls each producer's step with each of its messages, and then calls `finish`, all while the
/// clock runs.
pub fn append<S>(
    messages: &Messages,
    steps: Vec<S>,
    timing: Timing,
    finish: impl FnOnce() -> Result<()>,
) -> Result<Outcome>
where
    S: FnMut(&[u8]) -> Result<()> + Send,
{
    let (ready, begin) = (Barrier::new(steps.len() + 1), Barrier::new(steps.len() + 1));
    let (clock, histograms) = thread::scope(|scope| {
        let start = |(producer, step): (usize, S)| {
            let (ready, begin) = (&ready, &begin);
            scope.spawn(move || {
                ready.wait();
                begin.wait();
                produce(messages, producer as u32, timing, step)
            })
        };
        let producers: Vec<_> = steps.into_iter().enumerate().map(start).collect();
        ready.wait();
        let clock = Clock::start();
        begin.wait();
        let each = producers.into_iter().map(|producer| match producer.join() {
            Ok(done) => done,
            Err(_) => Err("a producer panicked".into()),
        });
        (clock, each.collect::<Result<Vec<Histogram<u64>>>>())
    });
    let (clock, histograms) = (clock?, histograms?);
    finish()?;
    let outcome = clock.stop(messages.total_bytes(), messages.work.messages)?;
    let mut all = Histogram::new(3)?;
    histograms.iter().try_for_each(|histogram| all.add(histogram))?;
    Ok(Outcome { latency_ns: Percentiles::of(&all), ..outcome })
}

fn produce(
    messages: &Messages,
    producer: u32,
    timing: Timing,
    mut step: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Histogram<u64>> {
    let mut histogram = Histogram::new(3)?;
    for message in messages.share(producer) {
        if timing == Timing::None {
            step(message)?;
            continue;
        }
        let begin = Instant::now();
        step(message)?;
        histogram.record(begin.elapsed().as_nanos() as u64)?;
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::Work;
    use std::sync::Mutex;

    const WORK: Work = Work { messages: 100, producers: 3, shortest: 300, longest: 2000 };

    #[test]
    fn every_message_is_handed_over_once_and_then_it_is_finished() {
        let messages = Messages::new(&WORK).expect("a range");
        let seen = Mutex::new(Vec::new());
        let step = |message: &[u8]| {
            seen.lock().expect("nobody panics").push(message.len());
            Ok(())
        };
        let mut seen_at_the_end = 0;
        let appended = append(&messages, vec![step; 3], Timing::Each, || {
            seen_at_the_end = seen.lock().expect("nobody panics").len();
            Ok(())
        });
        let appended = appended.expect("no failure");
        assert_eq!(seen_at_the_end, 100);
        assert_eq!(appended.latency_ns.expect("timed").count, 100);
        let bytes: usize = seen.lock().expect("nobody panics").iter().sum();
        assert_eq!(appended.bytes, bytes as u64);
    }

    #[test]
    fn a_producer_that_fails_fails_the_work() {
        let messages = Messages::new(&WORK).expect("a range");
        let steps = vec![|_: &[u8]| Err("no room".into()); 3];
        let failed = append(&messages, steps, Timing::None, || Ok(()));
        assert_eq!(failed.expect_err("failed").to_string(), "no room");
    }
}
