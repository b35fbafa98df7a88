//! When each operation of a job that is held to a rate is due (M5).

use std::time::Duration;

const NS_PER_S: u128 = 1_000_000_000;

/// The rate of one direction, and what of it was used up.
///
/// An operation is due when the rate allows all that came before it: its place in time follows from
/// the count alone, never from when the others were done. So a job that fell behind catches up, and
/// its operations count their time from when they were due.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    bytes_per_s: Option<u64>,
    operations_per_s: Option<u64>,
    bytes: u64,
    operations: u64,
}

impl Pace {
    /// A rate of 0 is none.
    pub(crate) fn new(bytes_per_s: Option<u64>, operations_per_s: Option<u32>) -> Pace {
        let some = |rate: Option<u64>| rate.filter(|rate| *rate > 0);
        Pace {
            bytes_per_s: some(bytes_per_s),
            operations_per_s: some(operations_per_s.map(u64::from)),
            bytes: 0,
            operations: 0,
        }
    }

    /// Whether there is a rate at all.
    pub(crate) fn holds(&self) -> bool {
        self.bytes_per_s.is_some() || self.operations_per_s.is_some()
    }

    /// When the next operation is due, in nanoseconds from the start; the later of both rates.
    pub(crate) fn due_ns(&self) -> u64 {
        let due = |done: u64, rate: Option<u64>| {
            rate.map_or(0, |rate| (u128::from(done) * NS_PER_S).div_ceil(rate.into()))
        };
        let due =
            due(self.bytes, self.bytes_per_s).max(due(self.operations, self.operations_per_s));
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// An operation of so many bytes was queued.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.operations += 1;
    }
}

/// How long to sleep until something is due. With operations in flight only for a little while,
/// so that their completions are seen soon after they came; with none as long as it takes, but so
/// that a request to stop is heard.
pub(crate) fn nap(until_due: Duration, in_flight: bool) -> Duration {
    const SEEN_WITHIN: Duration = Duration::from_micros(50);
    const HEARD_WITHIN: Duration = Duration::from_millis(50);
    until_due.min(if in_flight { SEEN_WITHIN } else { HEARD_WITHIN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_a_rate_all_is_due_at_once() {
        for mut pace in [Pace::new(None, None), Pace::new(Some(0), Some(0))] {
            pace.count(1 << 30);
            assert!(!pace.holds());
            assert_eq!(pace.due_ns(), 0);
        }
    }

    #[test]
    fn operations_are_due_at_even_distances_from_the_start() {
        let mut pace = Pace::new(None, Some(4));
        let mut due = Vec::new();
        for _ in 0..4 {
            due.push(pace.due_ns());
            pace.count(123);
        }
        assert_eq!(due, [0, 250_000_000, 500_000_000, 750_000_000]);
    }

    #[test]
    fn the_slower_of_two_rates_holds() {
        let mut pace = Pace::new(Some(1000), Some(1));
        pace.count(500);
        assert_eq!(pace.due_ns(), 1_000_000_000);
        pace.count(4500);
        assert_eq!(pace.due_ns(), 5_000_000_000);
    }

    #[test]
    fn nobody_sleeps_past_what_is_due_nor_long_while_something_is_in_flight() {
        let (short, long) = (Duration::from_micros(3), Duration::from_secs(3));
        assert_eq!(nap(short, false), short);
        assert_eq!(nap(short, true), short);
        assert!(nap(long, true) <= Duration::from_micros(50));
        assert!(nap(long, false) <= Duration::from_millis(50));
    }

    proptest! {
        #[test]
        fn no_more_is_due_than_the_rate_allows_and_one(
            rate in 1..10_000_000_u32,
            elapsed_ns in 0..100_000_000_000_u64,
        ) {
            let allowed = u128::from(elapsed_ns) * u128::from(rate) / NS_PER_S;
            // The operation after those that are allowed, and the one that is due at once.
            let pace = Pace {
                operations: allowed as u64 + 1,
                ..Pace::new(None, Some(rate))
            };
            prop_assert!(pace.due_ns() > elapsed_ns);
        }
    }
}
