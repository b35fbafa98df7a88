//! The rate of the disk and its stall: a clock that says when a request is due.

use clap::Args;
use std::time::{Duration, Instant};
use wrote_result::units::{parse_duration, parse_size};

/// A writer whose next write follows an answer within this time is continuing; a later one has
/// paused.
const PAUSE: Duration = Duration::from_millis(100);
/// A continuing writer may be this late and still keep its due time. Otherwise, each wait that is
/// too long would lower the rate.
const CREDIT: Duration = Duration::from_secs(2);

/// The pace of the command line.
#[derive(Args, Clone, Copy, Debug, Default)]
#[group(id = "pace")]
pub struct PaceArguments {
    /// Take the first N bytes written, over all files, at --fast-rate, and later ones at
    /// --slow-rate.
    #[arg(long, value_name = "N", value_parser = parse_size, requires = "slow_rate")]
    pub fast_bytes: Option<u64>,
    /// Bytes per second while fast [default: without a limit].
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "slow_rate")]
    pub fast_rate: Option<u64>,
    /// Bytes per second when they are slow; without --fast-bytes, from the first byte on.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub slow_rate: Option<u64>,
    /// The pause without writes that restores the fast bytes.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "fast_bytes")]
    pub idle_restores: Option<Duration>,
    /// Be fast and slow in turn, each for this time, instead of by bytes.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "fast_bytes")]
    #[arg(requires = "fast_rate")]
    pub swing: Option<Duration>,
    /// Bytes per second of the first write at an offset of a file, as on a volume made from a
    /// snapshot.
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "slow_rate")]
    pub first_rate: Option<u64>,
    /// The first read or write after N transferred bytes answers only after --stall.
    #[arg(long, value_name = "N", value_parser = parse_size, requires = "stall")]
    pub stall_after: Option<u64>,
    /// The duration of the one stall.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "stall_after")]
    pub stall: Option<Duration>,
}

/// The clock of one mounted file system.
#[derive(Debug, Default)]
pub struct Pace {
    arguments: PaceArguments,
    fast_left_bytes: u64,
    /// The time of the first write.
    began: Option<Instant>,
    /// The due time of the last write.
    due: Option<Instant>,
    /// The time at which the last write was answered.
    answered: Option<Instant>,
    moved_bytes: u64,
    has_stalled: bool,
}

impl Pace {
    /// Creates a clock that keeps the pace described by `arguments`.
    pub fn new(arguments: PaceArguments) -> Pace {
        let fast_left_bytes = arguments.fast_bytes.unwrap_or(0);
        Pace { arguments, fast_left_bytes, ..Pace::default() }
    }

    /// Returns when a write of `length_bytes` that arrives at `now` may be answered.
    pub fn write(&mut self, length_bytes: u64, now: Instant) -> Instant {
        self.restore(now);
        let time = self.time(length_bytes, now);
        self.due_after(time, length_bytes, now)
    }

    /// Like [`Pace::write`], but for blocks that were never written before.
    pub fn write_first(&mut self, length_bytes: u64, now: Instant) -> Instant {
        match self.arguments.first_rate {
            None => self.write(length_bytes, now),
            rate => self.due_after(duration(length_bytes, rate), length_bytes, now),
        }
    }

    /// Returns when a write that takes this time may be answered.
    fn due_after(&mut self, time: Duration, length_bytes: u64, now: Instant) -> Instant {
        let goes_on = self.answered.is_some_and(|answered| now <= answered + PAUSE);
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        let start = self.due.filter(|_| goes_on).map_or(now, |due| due.max(earliest));
        self.due = Some(start + time);
        self.stall(length_bytes, start + time, now)
    }

    /// Records the time at which a write was answered.
    pub fn answered(&mut self, now: Instant) {
        self.answered = Some(now);
    }

    /// Returns the duration of a write.
    fn time(&mut self, length_bytes: u64, now: Instant) -> Duration {
        let PaceArguments { fast_rate, slow_rate, swing, .. } = self.arguments;
        let elapsed = now.duration_since(*self.began.get_or_insert(now));
        if let Some(swing) = swing {
            let is_fast = (elapsed.as_nanos() / swing.as_nanos().max(1)).is_multiple_of(2);
            return duration(length_bytes, if is_fast { fast_rate } else { slow_rate });
        }
        let fast_bytes = length_bytes.min(self.fast_left_bytes);
        self.fast_left_bytes -= fast_bytes;
        duration(fast_bytes, fast_rate) + duration(length_bytes - fast_bytes, slow_rate)
    }

    /// Returns when a read of `length_bytes` that arrives at `now` may be answered.
    pub fn read(&mut self, length_bytes: u64, now: Instant) -> Instant {
        self.stall(length_bytes, now, now)
    }

    fn restore(&mut self, now: Instant) {
        let idle = self.due.map_or(Duration::ZERO, |due| now.saturating_duration_since(due));
        if self.arguments.idle_restores.is_some_and(|restores| idle >= restores) {
            self.fast_left_bytes = self.arguments.fast_bytes.unwrap_or(0);
        }
    }

    /// Returns `due`, or the end of the stall if the stall affects this request.
    fn stall(&mut self, length_bytes: u64, due: Instant, now: Instant) -> Instant {
        let is_after = self.arguments.stall_after.is_some_and(|after| self.moved_bytes >= after);
        self.moved_bytes = self.moved_bytes.saturating_add(length_bytes);
        match self.arguments.stall {
            Some(stall) if is_after && !self.has_stalled => {
                self.has_stalled = true;
                due.max(now + stall)
            }
            _ => due,
        }
    }
}

/// Parses a positive number of bytes per second, such as `400MB/s` or `400MB`.
fn rate(text: &str) -> Result<u64, String> {
    match parse_size(text.strip_suffix("/s").unwrap_or(text))? {
        0 => Err("at 0 bytes a second nothing would ever end".into()),
        rate => Ok(rate),
    }
}

/// Returns how long `bytes` take at a rate; zero without a rate.
fn duration(bytes: u64, rate: Option<u64>) -> Duration {
    let seconds = rate.map_or(0.0, |rate| bytes as f64 / rate as f64);
    Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A pace of 1000 bytes at 1000 bytes per second, and 100 bytes per second after that.
    const CLIFF: PaceArguments = PaceArguments {
        fast_bytes: Some(1000),
        fast_rate: Some(1000),
        slow_rate: Some(100),
        idle_restores: None,
        swing: None,
        first_rate: None,
        stall_after: None,
        stall: None,
    };

    /// Writes pieces one after the other, each when the previous one is answered. Returns the times
    /// of the answers, in seconds after the start.
    fn written(pace: &mut Pace, start: Instant, pieces: &[u64]) -> Vec<f64> {
        let mut now = start;
        let mut answered = |bytes| {
            now = now.max(pace.write(bytes, now));
            pace.answered(now);
            (now - start).as_secs_f64()
        };
        pieces.iter().copied().map(&mut answered).collect()
    }

    #[test]
    fn a_rate_is_more_than_nothing() {
        assert_eq!(rate("40MB/s"), Ok(40_000_000));
        assert_eq!(rate("40000000"), Ok(40_000_000));
        assert!(rate("0").is_err());
    }

    #[test]
    fn without_a_request_nothing_waits() {
        let (mut pace, now) = (Pace::new(PaceArguments::default()), Instant::now());
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
    fn a_wait_that_the_machine_made_too_long_is_made_up_for_and_a_pause_is_not() {
        let (mut pace, start) = (Pace::new(CLIFF), Instant::now());
        let at = |tenths: u32| start + SECOND * tenths / 10;
        assert_eq!(pace.write(100, start), at(1));
        // The answer was 0.4 s late. The next write is due as if it had been in time, which is
        // immediately.
        pace.answered(at(5));
        assert_eq!(pace.write(100, at(5)), at(2));
        pace.answered(at(5));
        assert_eq!(pace.write(400, at(5)), at(6));
        pace.answered(at(6));
        // The writer paused for a second, so it has nothing to catch up on.
        assert_eq!(pace.write(100, at(16)), at(17));
    }

    #[test]
    fn new_blocks_have_their_own_rate_where_one_was_asked() {
        for (first_rate, expected_s) in [(None, 1.0), (Some(100), 10.0)] {
            let (mut pace, start) =
                (Pace::new(PaceArguments { first_rate, ..CLIFF }), Instant::now());
            let took_s = (pace.write_first(1000, start) - start).as_secs_f64();
            assert!((took_s - expected_s).abs() < 1e-6, "{took_s}");
        }
    }

    #[test]
    fn a_swinging_disk_is_fast_and_slow_in_turn() {
        let arguments = PaceArguments { swing: Some(SECOND), fast_bytes: None, ..CLIFF };
        let (mut pace, start) = (Pace::new(arguments), Instant::now());
        for (at_s, expected_s) in [(0, 0.1), (1, 1.0), (2, 0.1), (5, 1.0)] {
            let now = start + SECOND * at_s;
            let took_s = (pace.write(100, now) - now).as_secs_f64();
            assert!((took_s - expected_s).abs() < 1e-6, "{at_s} {took_s}");
        }
    }

    #[test]
    fn idle_time_restores_the_fast_bytes_where_that_was_asked() {
        for (idle_restores, expected_s) in [(None, 10.0), (Some(SECOND * 3), 1.0)] {
            let (mut pace, start) =
                (Pace::new(PaceArguments { idle_restores, ..CLIFF }), Instant::now());
            let over = pace.write(1000, start);
            let later = over + SECOND * 4;
            let took_s = (pace.write(1000, later) - later).as_secs_f64();
            assert!((took_s - expected_s).abs() < 1e-6, "{took_s}");
        }
    }

    #[test]
    fn one_request_after_so_many_bytes_stands_still_whether_it_reads_or_writes() {
        let arguments = PaceArguments {
            stall_after: Some(100),
            stall: Some(SECOND),
            ..PaceArguments::default()
        };
        let now = Instant::now();
        let mut pace = Pace::new(arguments);
        assert_eq!(pace.write(60, now), now);
        assert_eq!(pace.read(60, now), now);
        assert_eq!(pace.read(60, now), now + SECOND);
        assert_eq!(pace.write(60, now), now);
    }
}
