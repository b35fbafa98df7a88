//! Marks that record the bytes over time during a run. Their number is limited.

/// The maximum number of marks. When it is reached, every second mark is dropped (W8).
pub const MARKS_MAX: usize = 1000;

/// The minimum interval between marks. Operations found by a single poll of the queue may have
/// completed over a longer time. Dividing their bytes by the time since the previous poll would
/// give an impossible speed.
const APART_NS_MIN: u64 = 5_000_000;

/// The number of bytes done by a certain time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The number of bytes done since the clock started.
    pub end_bytes: u64,
    /// When the last of these bytes was acknowledged, in nanoseconds since the clock started.
    pub end_ns: u64,
}

/// The marks of one direction of a run.
///
/// They are distributed about evenly over both the bytes and the time: the next mark is set as soon
/// as enough bytes or enough time has passed. If the device becomes a hundred times slower, there
/// are therefore still marks. The interval between marks depends on the progress of the run, whose
/// length need not be known in advance. The interval is at least 5 ms.
#[derive(Clone, Debug)]
pub struct Trail {
    marks: Vec<Mark>,
    /// When the clock started.
    from_ns: u64,
    /// The state at the last poll, whether or not it was marked.
    last: Mark,
    every: Mark,
    /// The bytes and the time at which the next mark is due; it is set when either is reached.
    next: Mark,
}

impl Trail {
    pub(super) fn new() -> Trail {
        Trail {
            marks: Vec::with_capacity(MARKS_MAX),
            from_ns: 0,
            last: Mark::default(),
            every: Mark::default(),
            next: Mark::default(),
        }
    }

    /// Records that `bytes` bytes have been done so far. Between marks, this takes only a few
    /// comparisons (M10).
    pub(super) fn pass(&mut self, bytes: u64, now_ns: u64) {
        let now = Mark { end_bytes: bytes, end_ns: now_ns.saturating_sub(self.from_ns) };
        if now.end_bytes == self.last.end_bytes || now.end_ns <= self.last.end_ns {
            return;
        }
        self.last = now;
        let is_due = now.end_bytes >= self.next.end_bytes || now.end_ns >= self.next.end_ns;
        if is_due && self.since_mark_ns() >= APART_NS_MIN {
            self.mark(now);
        }
    }

    /// Returns the time between the last mark and the last poll.
    fn since_mark_ns(&self) -> u64 {
        self.last.end_ns - self.marks.last().map_or(0, |mark| mark.end_ns)
    }

    fn mark(&mut self, now: Mark) {
        if self.marks.len() == MARKS_MAX {
            self.thin(now);
        }
        self.marks.push(now);
        self.next = Mark {
            end_bytes: now.end_bytes + self.every.end_bytes,
            end_ns: now.end_ns + self.every.end_ns,
        };
    }

    /// Drops every second mark, and spaces later marks like the remaining ones.
    fn thin(&mut self, now: Mark) {
        let mut number = 0;
        self.marks.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        let left = (MARKS_MAX / 2) as u64;
        self.every = Mark { end_bytes: now.end_bytes / left, end_ns: now.end_ns / left };
    }

    /// Discards all marks, and restarts at `now_ns`.
    pub(super) fn begin_again(&mut self, now_ns: u64) {
        *self = Trail { from_ns: now_ns, ..Trail::new() };
    }

    /// Returns the marks. The last mark is at the end of the run. If the last interval is too
    /// short, it is merged with the previous one.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks = self.marks.clone();
        let rest = match marks.last() {
            Some(mark) if *mark == self.last => return marks,
            Some(mark) => self.last.end_bytes - mark.end_bytes,
            None => 0,
        };
        if rest < self.every.end_bytes / 2 || self.since_mark_ns() < APART_NS_MIN {
            marks.pop();
        }
        if self.last != Mark::default() {
            marks.push(self.last);
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn passed(steps: impl IntoIterator<Item = (u64, u64)>) -> Trail {
        let (mut trail, mut bytes, mut now_ns) = (Trail::new(), 0, 0);
        for (more_bytes, more_ns) in steps {
            bytes += more_bytes;
            now_ns += more_ns;
            trail.pass(bytes, now_ns);
        }
        trail
    }

    #[test]
    fn a_short_run_has_a_mark_for_each_batch() {
        let marks = passed([(100, 5 * MS), (200, 7 * MS)]).marks();
        assert_eq!(
            marks,
            [Mark { end_bytes: 100, end_ns: 5 * MS }, Mark { end_bytes: 300, end_ns: 12 * MS }]
        );
        assert!(Trail::new().marks().is_empty());
    }

    #[test]
    fn operations_that_complete_together_have_no_speed_of_their_own() {
        // Four operations every 20 ms, seen within a microsecond, and a last one right after them.
        let burst = [(100, 20 * MS - 3), (100, 1), (100, 1), (100, 1)];
        let bursts = burst.into_iter().cycle().take(400).chain([(100, 1)]);
        let marks = passed(bursts).marks();
        let per_ms = |pair: &[Mark]| {
            let bytes = pair[1].end_bytes - pair[0].end_bytes;
            bytes as f64 / ((pair[1].end_ns - pair[0].end_ns) as f64 / MS as f64)
        };
        assert!(marks.windows(2).all(|pair| per_ms(pair) <= 40.1), "{marks:?}");
        assert_eq!(marks.last().unwrap().end_bytes, 40_100);
    }

    #[test]
    fn a_long_run_has_hundreds_of_marks_that_lie_evenly() {
        let marks = passed((0..100_000).map(|_| (512, MS))).marks();
        assert!((MARKS_MAX / 2..=MARKS_MAX).contains(&marks.len()), "{}", marks.len());
        let sizes: Vec<u64> =
            marks.windows(2).map(|pair| pair[1].end_bytes - pair[0].end_bytes).collect();
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(most <= &(3 * least), "{least}..{most}");
        assert_eq!(marks.last().unwrap().end_bytes, 51_200_000);
    }

    #[test]
    fn a_device_that_becomes_a_hundred_times_slower_has_marks_then_too() {
        // As much time for a hundredth of the bytes.
        let fast = (0..50_000).map(|_| (1000, MS / 10));
        let marks = passed(fast.chain((0..500).map(|_| (1000, 10 * MS)))).marks();
        let slow = marks.iter().filter(|mark| mark.end_bytes > 50_000_000).count();
        assert!(slow > 100, "{slow} of {}", marks.len());
    }

    #[test]
    fn operations_before_counting_are_forgotten() {
        let mut trail = passed([(100, 5 * MS), (100, 5 * MS)]);
        trail.begin_again(10 * MS);
        trail.pass(50, 30 * MS);
        assert_eq!(trail.marks(), [Mark { end_bytes: 50, end_ns: 20 * MS }]);
    }

    proptest! {
        #[test]
        fn marks_are_few_and_rise_and_end_where_the_run_does(
            steps in prop::collection::vec((0..1_000_000_u64, 1..10_000_000_u64), 0..5000),
        ) {
            let marks = passed(steps.iter().copied()).marks();
            let bytes: u64 = steps.iter().map(|(bytes, _)| bytes).sum();
            prop_assert!(marks.len() <= MARKS_MAX + 1);
            prop_assert_eq!(marks.last().map_or(0, |mark| mark.end_bytes), bytes);
            let rises = |pair: &[Mark]| {
                pair[0].end_bytes < pair[1].end_bytes && pair[0].end_ns < pair[1].end_ns
            };
            prop_assert!(marks.windows(2).all(rises));
        }
    }
}
