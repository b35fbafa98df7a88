//! How fast bytes are taken, and when the disk stands still: a clock that says when a request is due.

use crate::units;
use clap::Args;
use std::time::{Duration, Instant};

/// What was asked for on the command line.
#[derive(Args, Clone, Copy, Debug, Default)]
#[group(id = "pace")]
pub struct Asked {
    /// Take the first N bytes that are written, over all files, at --fast-rate, and what comes
    /// after at --slow-rate.
    #[arg(long, value_name = "N", value_parser = units::bytes, requires = "slow_rate")]
    pub fast_bytes: Option<u64>,
    /// Bytes per second while they are fast; without it, as fast as they come.
    #[arg(long, value_name = "RATE", value_parser = units::rate, requires = "fast_bytes")]
    pub fast_rate: Option<u64>,
    /// Bytes per second when they are slow; without --fast-bytes, from the first byte on.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub slow_rate: Option<u64>,
    /// After nothing was written for so long, the fast bytes are there again.
    #[arg(long, value_name = "TIME", value_parser = units::time, requires = "fast_bytes")]
    pub idle_restores: Option<Duration>,
    /// How late a writer may come and still be given what it was due. Without it, every wait that
    /// the machine makes too long would be missing from the rate.
    #[arg(long, value_name = "TIME", value_parser = units::time, default_value = "100ms")]
    pub credit: Duration,
    /// The first read or write after N bytes that were read or written answers only after --stall.
    #[arg(long, value_name = "N", value_parser = units::bytes, requires = "stall")]
    pub stall_after: Option<u64>,
    /// For how long everything stands still, once.
    #[arg(long, value_name = "TIME", value_parser = units::time, requires = "stall_after")]
    pub stall: Option<Duration>,
}

/// The clock of one mounted file system.
#[derive(Debug)]
pub struct Pace {
    asked: Asked,
    fast_left_bytes: u64,
    /// When the last write was due.
    due: Option<Instant>,
    moved_bytes: u64,
    has_stalled: bool,
}

impl Pace {
    /// Keeps the pace that is `asked`.
    pub fn new(asked: Asked) -> Pace {
        let fast_left_bytes = asked.fast_bytes.unwrap_or(0);
        Pace { asked, fast_left_bytes, due: None, moved_bytes: 0, has_stalled: false }
    }

    /// When a write of so many bytes that comes `now` may be answered.
    pub fn write(&mut self, length_bytes: u64, now: Instant) -> Instant {
        self.restore(now);
        let fast_bytes = length_bytes.min(self.fast_left_bytes);
        self.fast_left_bytes -= fast_bytes;
        let time = duration(fast_bytes, self.asked.fast_rate)
            + duration(length_bytes - fast_bytes, self.asked.slow_rate);
        let earliest = now.checked_sub(self.asked.credit).unwrap_or(now);
        // The first write has come too late for nothing yet.
        let due = self.due.map_or(now, |due| due.max(earliest)) + time;
        self.due = Some(due);
        self.stall(length_bytes, due, now)
    }

    /// When a read of so many bytes that comes `now` may be answered.
    pub fn read(&mut self, length_bytes: u64, now: Instant) -> Instant {
        self.stall(length_bytes, now, now)
    }

    fn restore(&mut self, now: Instant) {
        let idle = self.due.map_or(Duration::ZERO, |due| now.saturating_duration_since(due));
        if self.asked.idle_restores.is_some_and(|restores| idle >= restores) {
            self.fast_left_bytes = self.asked.fast_bytes.unwrap_or(0);
            // As at the first write: a pause that was wanted is not made up for.
            self.due = None;
        }
    }

    /// `due`, or the stall's end where this is the request that meets it.
    fn stall(&mut self, length_bytes: u64, due: Instant, now: Instant) -> Instant {
        let is_after = self.asked.stall_after.is_some_and(|after| self.moved_bytes >= after);
        self.moved_bytes = self.moved_bytes.saturating_add(length_bytes);
        match self.asked.stall {
            Some(stall) if is_after && !self.has_stalled => {
                self.has_stalled = true;
                due.max(now + stall)
            }
            _ => due,
        }
    }
}

/// How long so many bytes take at a rate; no time without one.
fn duration(bytes: u64, rate: Option<u64>) -> Duration {
    let seconds = rate.map_or(0.0, |rate| bytes as f64 / rate as f64);
    Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// 1000 bytes at 1000 bytes a second, then 100 a second.
    const CLIFF: Asked = Asked {
        fast_bytes: Some(1000),
        fast_rate: Some(1000),
        slow_rate: Some(100),
        idle_restores: None,
        credit: Duration::from_millis(100),
        stall_after: None,
        stall: None,
    };

    /// Writes pieces one after the other, each as soon as the last was answered; gives when that
    /// was, in seconds from the start.
    fn written(pace: &mut Pace, start: Instant, pieces: &[u64]) -> Vec<f64> {
        let mut now = start;
        let mut answered = |bytes| {
            now = now.max(pace.write(bytes, now));
            (now - start).as_secs_f64()
        };
        pieces.iter().copied().map(&mut answered).collect()
    }

    #[test]
    fn without_a_request_nothing_waits() {
        let (mut pace, now) = (Pace::new(Asked::default()), Instant::now());
        assert_eq!(pace.write(1 << 40, now), now);
        assert_eq!(pace.read(1 << 40, now), now);
    }

    #[test]
    fn the_first_bytes_are_fast_and_the_rest_are_slow_to_the_byte() {
        let answered = written(&mut Pace::new(CLIFF), Instant::now(), &[500, 600, 100]);
        let expected = [0.5, 2.0, 3.0];
        for (answered, expected) in answered.iter().zip(expected) {
            assert!((answered - expected).abs() < 1e-6, "{answered} {expected}");
        }
    }

    #[test]
    fn a_wait_that_was_a_little_too_long_is_made_up_for_and_a_pause_is_not() {
        let (mut pace, start) = (Pace::new(CLIFF), Instant::now());
        assert_eq!(pace.write(100, start), start + SECOND / 10);
        // 50 ms late: due as if it had come in time.
        assert_eq!(pace.write(100, start + SECOND * 15 / 100), start + SECOND / 5);
        // A pause of 10 s: no more than the credit is given back.
        let due = pace.write(200, start + SECOND * 10);
        assert_eq!(due, start + SECOND * 10 + SECOND / 10);
    }

    #[test]
    fn idle_time_restores_the_fast_bytes_where_that_was_asked() {
        for (idle_restores, expected_s) in [(None, 9.9), (Some(SECOND * 3), 0.9)] {
            let (mut pace, start) = (Pace::new(Asked { idle_restores, ..CLIFF }), Instant::now());
            let over = pace.write(1000, start);
            let later = over + SECOND * 4;
            let took_s = (pace.write(1000, later) - later).as_secs_f64();
            assert!((took_s - expected_s).abs() < 1e-6, "{took_s}");
        }
    }

    #[test]
    fn one_request_after_so_many_bytes_stands_still_whether_it_reads_or_writes() {
        let asked = Asked { stall_after: Some(100), stall: Some(SECOND), ..Asked::default() };
        let now = Instant::now();
        let mut pace = Pace::new(asked);
        assert_eq!(pace.write(60, now), now);
        assert_eq!(pace.read(60, now), now);
        assert_eq!(pace.read(60, now), now + SECOND);
        assert_eq!(pace.write(60, now), now);
    }
}
