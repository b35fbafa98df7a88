//! Other programs' I/O, sampled beside runs: while this program makes none, every request in the
//! disk's queue is another's. This holds for rows that flush, too, whose journal and metadata can't
//! be told from other programs' bytes within a run.

use super::counters::Counters;
use std::time::{Duration, Instant};
use std::{fs, thread};
use wrote::device::BlockDevice;

/// The time of a sample.
pub const SAMPLE: Duration = Duration::from_millis(50);

/// Other programs' I/O in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Foreign {
    /// The part of the time in which requests were in the device's queue, from 0 to 1.
    queued_share: f64,
    /// Writes and flushes.
    writes_per_s: f64,
}

impl Foreign {
    /// Samples the device for [`SAMPLE`]. Without counters the share of time is that in which a
    /// task of the machine waited for I/O (`/proc/pressure/io`, Linux 4.20); `None` where that is
    /// missing too.
    pub fn sample(device: Option<&BlockDevice>) -> Option<Foreign> {
        let look = || (device.and_then(Counters::of), stalled_us(), Instant::now());
        let (counted, stalled, began) = look();
        thread::sleep(SAMPLE);
        let (counted_after, stalled_after, ended) = look();
        let elapsed = ended - began;
        if let Some((after, before)) = counted_after.zip(counted) {
            return Some(Foreign::of(&after.since(&before), elapsed));
        }
        let stalled = Duration::from_micros(stalled_after?.saturating_sub(stalled?));
        let queued_share = stalled.div_duration_f64(elapsed).min(1.0);
        Some(Foreign { queued_share, writes_per_s: 0.0 })
    }

    /// The kernel counts the time of a request when it is complete: one that is still in flight
    /// after the whole sample took all of it.
    fn of(counted: &Counters, elapsed: Duration) -> Foreign {
        let queued = Duration::from_millis(counted.queued_ms);
        let queued_share = match counted.in_flight {
            0 => queued.div_duration_f64(elapsed).min(1.0),
            _ => 1.0,
        };
        let writes_per_s = (counted.writes + counted.flushes) as f64 / elapsed.as_secs_f64();
        Foreign { queued_share, writes_per_s }
    }

    /// Returns its part of a run's time, or of the writes and flushes that the device completed a
    /// second of it, if that is more: short requests of others delay a flush, too.
    pub fn share(self, all_per_s: f64) -> f64 {
        self.queued_share.max(self.writes_per_s / all_per_s).min(1.0)
    }
}

/// Returns the time in which some task waited for I/O: `some avg10=0.00 .. total=123`.
fn stalled_us() -> Option<u64> {
    let text = fs::read_to_string("/proc/pressure/io").ok()?;
    text.lines().next()?.rsplit_once("total=")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(queued_ms: u64, in_flight: u64, writes: u64) -> Foreign {
        let counted = Counters { queued_ms, in_flight, writes, ..Counters::default() };
        Foreign::of(&counted, Duration::from_millis(50))
    }

    #[test]
    fn requests_in_the_queue_are_a_part_of_the_time_and_one_that_lasts_is_all_of_it() {
        let share = |queued_ms, in_flight| foreign(queued_ms, in_flight, 0).share(1000.0);
        assert_eq!([share(0, 0), share(10, 0), share(400, 0)], [0.0, 0.2, 1.0]);
        // A slow disk completes none of its requests within a sample.
        assert_eq!(share(0, 1), 1.0);
    }

    #[test]
    fn short_requests_of_others_are_a_part_of_all_writes() {
        // 1,400 a second, of 1,600 with our own, in 8 % of the time.
        assert_eq!(foreign(4, 0, 70).share(1600.0), 0.875);
        assert_eq!(foreign(4, 0, 70).share(140_000.0), 0.08);
        assert_eq!(foreign(0, 0, 0).share(0.0), 0.0, "nobody wrote");
    }

    #[test]
    fn a_sample_without_a_device_is_the_pressure_of_the_machine() {
        let sampled = Foreign::sample(None);
        assert_eq!(sampled.is_some(), stalled_us().is_some());
        let share = sampled.map_or(0.0, |sampled| sampled.share(1.0));
        assert!((0.0..=1.0).contains(&share), "{sampled:?}");
    }
}
