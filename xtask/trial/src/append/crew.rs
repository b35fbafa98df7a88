//! Producers that start together, each a thread with its share of the messages.

use super::{Messages, Work};
use crate::Result;
use crate::clock::{Clock, Who};
use crate::outcome::{Outcome, Percentiles};
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Appends one message of a producer.
pub trait Step: FnMut(&[u8]) -> Result<()> + Send {}

impl<F: FnMut(&[u8]) -> Result<()> + Send> Step for F {}

/// The messages that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Each message, because its producer waits for it.
    Each,
    /// No message: two reads of the clock would be a large part of the figure.
    None,
}

/// The producers.
#[derive(Clone, Copy, Debug)]
pub struct Crew<'a> {
    /// The numbers of messages and producers.
    pub work: &'a Work,
    /// The messages.
    pub messages: &'a Messages,
    /// The messages that are timed.
    pub timing: Timing,
}

impl Crew<'_> {
    /// Calls a producer's step with each of its messages, and then `finish`, inside the clock.
    pub fn run<S: Step>(
        &self,
        steps: Vec<S>,
        finish: impl FnOnce() -> Result<()>,
    ) -> Result<Outcome> {
        let bytes = self.messages.total_bytes();
        let (ready, begin) = (Barrier::new(steps.len() + 1), Barrier::new(steps.len() + 1));
        let (clock, histograms) = thread::scope(|scope| {
            let start = |(producer, step): (usize, S)| {
                let (ready, begin) = (&ready, &begin);
                scope.spawn(move || {
                    ready.wait();
                    begin.wait();
                    self.produce(producer as u32, step)
                })
            };
            let producers: Vec<_> = steps.into_iter().enumerate().map(start).collect();
            ready.wait();
            let clock = Clock::start(Who::Us);
            begin.wait();
            let each = producers.into_iter().map(|producer| match producer.join() {
                Ok(done) => done,
                Err(_) => Err("a producer panicked".into()),
            });
            (clock, each.collect::<Result<Vec<Histogram<u64>>>>())
        });
        let (clock, histograms) = (clock?, histograms?);
        finish()?;
        let outcome = clock.stop(bytes, self.work.messages)?;
        Ok(Outcome { latency_ns: Percentiles::of(&all(&histograms)?), ..outcome })
    }

    fn produce(&self, producer: u32, mut step: impl Step) -> Result<Histogram<u64>> {
        let mut histogram = Histogram::new(3)?;
        let share = self.messages.share(producer);
        match self.timing {
            Timing::None => share.into_iter().try_for_each(step)?,
            Timing::Each => {
                for message in share {
                    let begin = Instant::now();
                    step(message)?;
                    histogram.record(begin.elapsed().as_nanos() as u64)?;
                }
            }
        }
        Ok(histogram)
    }
}

fn all(histograms: &[Histogram<u64>]) -> Result<Histogram<u64>> {
    let mut sum = Histogram::new(3)?;
    for histogram in histograms {
        sum.add(histogram)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let crew = Crew { work: &WORK, messages: &messages, timing: Timing::Each };
        let mut seen_at_the_end = 0;
        let appended = crew.run(vec![step; 3], || {
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
        let crew = Crew { work: &WORK, messages: &messages, timing: Timing::None };
        let steps = vec![|_: &[u8]| Err("no room".into()); 3];
        let message = crew.run(steps, || Ok(())).expect_err("failed").to_string();
        assert_eq!(message, "no room");
    }
}
