//! Which operations on one file must wait for which.

use std::ops::Range;

/// What an operation touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// Nothing of a file: a lease.
    Nothing,
    /// Looks at these bytes.
    Read(Range<u64>),
    /// Changes these bytes, or whether they are there.
    Write(Range<u64>),
    /// Promises that all that was changed before is stable.
    Sync,
}

impl Touch {
    /// What a change of `len` bytes from `offset` touches in a file that ends at `end`. Beyond the
    /// end it also makes the bytes between, which read as zeros from then on.
    pub(super) fn change(offset: u64, len: u64, end: u64) -> Touch {
        match len {
            0 => Touch::Write(offset..offset),
            _ => Touch::Write(offset.min(end)..offset.saturating_add(len)),
        }
    }

    /// Whether this may begin only after `earlier`, which was started before, is complete: so
    /// operations on the same bytes happen in the order in which they were started, never two writes
    /// at once on one block (W3), and a flush covers what was started before it (W1).
    pub(super) fn must_follow(&self, earlier: &Touch) -> bool {
        match (earlier, self) {
            (Touch::Write(_), Touch::Sync) => true,
            (Touch::Read(_), Touch::Read(_)) => false,
            (Touch::Read(a) | Touch::Write(a), Touch::Read(b) | Touch::Write(b)) => {
                a.start.max(b.start) < a.end.min(b.end)
            }
            _ => false,
        }
    }

    /// Whether a read or a flush may have to wait for it.
    pub(super) fn changes(&self) -> bool {
        matches!(self, Touch::Write(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_a_change_waits_for_it_and_nothing_else_does() {
        // W3
        let (write, read) = (Touch::Write(10..20), Touch::Read(10..20));
        for later in [Touch::Write(19..30), Touch::Read(0..11), Touch::Read(12..13)] {
            assert!(later.must_follow(&write));
        }
        for later in [Touch::Write(20..30), Touch::Read(0..10), Touch::Nothing] {
            assert!(!later.must_follow(&write) && !later.must_follow(&read));
        }
        assert!(Touch::Write(5..11).must_follow(&read));
        assert!(!Touch::Read(5..11).must_follow(&read));
    }

    #[test]
    fn a_flush_waits_for_every_change_and_for_no_read() {
        // W1
        assert!(Touch::Sync.must_follow(&Touch::Write(0..1)));
        assert!(!Touch::Sync.must_follow(&Touch::Read(0..1)));
        assert!(!Touch::Sync.must_follow(&Touch::Sync));
        assert!(!Touch::Write(0..1).must_follow(&Touch::Sync));
    }

    #[test]
    fn a_change_beyond_the_end_touches_the_gap() {
        let gap = Touch::change(100, 10, 40);
        assert!(Touch::Read(50..60).must_follow(&gap));
        assert!(!Touch::Read(30..40).must_follow(&gap));
        // Appends that follow each other do not wait for each other.
        assert!(!Touch::change(110, 10, 110).must_follow(&Touch::change(100, 10, 100)));
        assert!(!Touch::Read(0..200).must_follow(&Touch::change(100, 0, 40)));
    }
}
