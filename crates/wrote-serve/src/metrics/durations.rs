//! A histogram of durations with fixed buckets and fixed memory.

use super::{add, read};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const BOUNDS_US: [u64; 13] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// Counts between consecutive bounds; the last is above all bounds.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    pub(crate) fn observe(&self, duration: Duration) {
        let bucket = BOUNDS_US.partition_point(|&bound| Duration::from_micros(bound) < duration);
        add(&self.buckets[bucket], 1);
        add(&self.sum_ns, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns each bound in seconds with the cumulative count.
    pub(crate) fn cumulated(&self) -> Vec<(f64, u64)> {
        let mut count = 0;
        let up_to = |(bound, bucket): (f64, &AtomicU64)| {
            count += read(bucket);
            (bound, count)
        };
        let bounds = BOUNDS_US.into_iter().map(|bound| bound as f64 / 1e6);
        bounds.chain([f64::INFINITY]).zip(&self.buckets).map(up_to).collect()
    }

    pub(crate) fn sum_s(&self) -> f64 {
        read(&self.sum_ns) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_each_bucket_that_holds_it() {
        let durations = Durations::default();
        for us in [100, 500, 501, 9_000_000, 60_000_000] {
            durations.observe(Duration::from_micros(us));
        }
        let cumulated = durations.cumulated();
        assert_eq!(cumulated[..3], [(0.0005, 2), (0.001, 3), (0.0025, 3)]);
        assert_eq!(cumulated[12..], [(10.0, 4), (f64::INFINITY, 5)]);
        assert!((durations.sum_s() - 69.001_101).abs() < 1e-9);
    }
}
