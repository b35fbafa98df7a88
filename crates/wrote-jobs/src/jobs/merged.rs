//! Figures of several jobs together.

use super::reports::JobReport;
use hdrhistogram::Histogram;
use std::time::Duration;

/// Returns the values of all histograms in one.
pub fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let mut all = Histogram::new(3).expect("3 digits are possible");
    histograms.for_each(|one| all.add(one).expect("it grows as it must"));
    all
}

/// Returns the time from the first start of these jobs to the last end, and zero without a job.
pub fn span<'a>(jobs: impl Iterator<Item = &'a JobReport>) -> Duration {
    let (mut began, mut ended) = (i128::MAX, i128::MIN);
    for job in jobs {
        let start = job.started_at.as_nanosecond();
        began = began.min(start);
        ended = ended.max(start + job.elapsed.as_nanos() as i128);
    }
    Duration::from_nanos(u64::try_from(ended.saturating_sub(began)).unwrap_or(0))
}
