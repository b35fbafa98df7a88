//! Schedules messages at a given rate (M5). The module is separate because two scenarios use it.

use std::time::{Duration, Instant};
use wrote_jobs::pace::{Pace, nap};
use wrote_jobs::rate::Rate;
use wrote_result::Stop;

/// The last part of a wait, in which the thread yields instead of sleeping. A sleep overruns by at
/// least 50 us (`PR_SET_TIMERSLACK`, prctl(2)), and the overrun would be measured as latency.
const AWAKE: Duration = Duration::from_micros(200);

/// The arrival times of one producer's messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    pace: Pace,
    start: Option<Instant>,
}

impl Arrivals {
    /// Returns the arrivals for producer `number` of `producers`; empty without a rate. Each
    /// producer has a different sequence of arrivals, which is the same in every run.
    pub(crate) fn new(rate: Option<Rate>, number: u32, producers: u32) -> Arrivals {
        Arrivals::seeded(rate, number, producers, number.into())
    }

    /// Like [`Arrivals::new`], with the sequence of arrivals determined by a seed.
    pub(crate) fn seeded(rate: Option<Rate>, number: u32, producers: u32, seed: u64) -> Arrivals {
        let pace = rate.map(|rate| Pace::share(rate, number, producers, seed));
        Arrivals { pace: pace.unwrap_or_default(), start: None }
    }

    /// Waits until the next message (`bytes` long) is due, and returns the time at which it was
    /// due; `None` without a rate, or if the user asked to stop.
    pub(crate) fn wait(&mut self, bytes: usize, stop: &Stop) -> Option<Instant> {
        let due = self.due(bytes)?;
        while let Some(left) = time_until(due) {
            if stop.is_requested() {
                return None;
            }
            match left.checked_sub(AWAKE) {
                Some(left) if !left.is_zero() => std::thread::sleep(nap(left)),
                _ => std::thread::yield_now(),
            }
        }
        Some(due)
    }

    /// Returns when the next message is due; `None` without a rate. The clock starts at the first
    /// call.
    fn due(&mut self, bytes: usize) -> Option<Instant> {
        if !self.pace.holds() {
            return None;
        }
        let start = *self.start.get_or_insert_with(Instant::now);
        let due = start.checked_add(Duration::from_nanos(self.pace.due_ns()))?;
        self.pace.count(bytes);
        Some(due)
    }
}

/// Returns the time left until `due`; `None` if it has passed.
fn time_until(due: Instant) -> Option<Duration> {
    due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_jobs::rate::Amount;
    use wrote_result::document::Process;

    #[test]
    fn a_message_is_due_by_those_before_it_however_late_it_is_asked_for() {
        let rate = Rate { amount: Amount::OperationsPerS(1000), process: Process::Linear };
        let mut arrivals = Arrivals::new(Some(rate), 0, 1);
        let stop = Stop::new();
        let first = arrivals.wait(500, &stop).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        // M5: the latency of a message delayed by a slow one begins at the message's due time.
        let second = arrivals.wait(500, &stop).unwrap();
        assert_eq!(second - first, Duration::from_millis(1));
        assert_eq!(arrivals.wait(500, &stop).unwrap() - first, Duration::from_millis(2));
    }

    #[test]
    fn without_a_rate_nothing_is_due_and_nobody_waits() {
        assert_eq!(Arrivals::new(None, 0, 1).wait(500, &Stop::new()), None);
    }

    #[test]
    fn a_stop_is_heard_long_before_the_next_message_is_due() {
        let rate = Rate { amount: Amount::BytesPerS(1), process: Process::Linear };
        let (mut arrivals, stop) = (Arrivals::new(Some(rate), 0, 1), Stop::new());
        assert!(arrivals.wait(1_000_000, &stop).is_some());
        stop.request();
        // Otherwise the wait would take eleven days.
        assert_eq!(arrivals.wait(1_000_000, &stop), None);
    }
}
