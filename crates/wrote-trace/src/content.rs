//! Models which bytes of a file a crash would leave. It keeps only ranges, no data.

use crate::call::How;
use rangemap::RangeSet;
use std::ops::Range;

/// Reasons why some writes were not observed.
pub const STORES: &str =
    "stores through a shared mapping are not seen if no later flush covers them";
pub const BEYOND: &str = "stores through more than 16 GiB of shared mappings, or 64 MiB where the kernel does not note \
     them, are not seen";
pub const BEFORE: &str =
    "what was written before the trace began, and not flushed since, is not known";

/// The bytes of a file, by their fate: written, flushed or lost.
#[derive(Debug, Default)]
pub struct Content {
    /// Whether the file has had a writable shared mapping.
    pub is_mapped: bool,
    /// Why there may be writes that were neither observed nor covered by a flush.
    pub unseen: Option<&'static str>,
    /// Written bytes that are not durable.
    dirty: RangeSet<u64>,
    /// Bytes of `dirty` whose flush failed; no later flush saves them (W2).
    lost: RangeSet<u64>,
    /// Bytes of `dirty` that were written directly and overwrote durable bytes.
    in_place: RangeSet<u64>,
    /// Durable bytes with allocated blocks on disk.
    settled: RangeSet<u64>,
    /// Zeros after the data that only allocate space and are not durable yet.
    zeros: Range<u64>,
    /// Whether the size has a change that is not durable.
    is_resized: bool,
    /// Whether a size change that is not durable has cut off durable bytes.
    is_cut: bool,
    /// The latest changes, each with its end time. A flush that began before that time may miss the
    /// change.
    recent: Vec<(u64, Range<u64>)>,
}

/// The range of all bytes and the size.
const ALL: Range<u64> = 0..u64::MAX;
/// The range that represents the size in [`Content::note`].
pub const SIZE: Range<u64> = SIZE_START..u64::MAX;
const SIZE_START: u64 = u64::MAX - 1;
/// The maximum number of latest changes kept per file; earlier ones are merged.
const RECENT_MAX: usize = 32;

impl Content {
    /// Returns the content of a file that existed before the trace; all its bytes are durable.
    pub fn found(size_bytes: u64) -> Content {
        let mut found = Content::default();
        if size_bytes > 0 {
            found.settled.insert(0..size_bytes);
        }
        found
    }

    /// Returns the content of a file with unflushed changes. Nothing is known about them except
    /// whether a flush of them failed.
    pub fn spoilt(size_bytes: u64, is_lost: bool) -> Content {
        let mut spoilt = Content { is_resized: true, ..Content::found(size_bytes) };
        spoilt.write(0..size_bytes.max(u64::from(is_lost)), How::default(), false, 0);
        if is_lost {
            spoilt.lose();
        }
        spoilt
    }

    /// Returns whether data or size have unflushed changes.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.is_resized || !self.zeros.is_empty()
    }

    /// Returns whether all unflushed changes overwrite blocks in place.
    pub fn is_in_place(&self) -> bool {
        let has_gap = |range| self.in_place.gaps(range).next().is_some();
        !self.is_resized && self.zeros.is_empty() && !self.dirty.iter().any(has_gap)
    }

    /// Returns whether durable bytes were cut off and the cut is not durable yet.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns whether a crash may leave bytes that were durable at some time.
    pub fn was_durable(&self) -> bool {
        self.is_cut || !self.settled.is_empty()
    }

    /// Returns the number of unflushed bytes, not counting zeros that follow durable data.
    pub fn dirty_bytes(&self) -> u64 {
        let dirty: u64 = self.dirty.iter().map(|range| range.end - range.start).sum();
        let zeros = if self.settled.is_empty() { self.zeros.clone() } else { 0..0 };
        dirty + zeros.end - zeros.start
    }

    /// Returns whether the file contains only zeros, which may merely allocate space for data.
    pub fn has_only_zeros(&self) -> bool {
        !self.zeros.is_empty() && self.settled.is_empty() && self.dirty.is_empty()
    }

    /// Returns whether there are bytes whose flush failed and that have not been rewritten.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns whether a write to `bytes` rewrites bytes whose flush failed.
    pub fn repeats_lost(&self, bytes: &Range<u64>) -> bool {
        self.lost.overlaps(bytes)
    }

    /// Notes that a change of `bytes` ended at `ended_ns`.
    pub fn note(&mut self, ended_ns: u64, bytes: Range<u64>) {
        if let [(_, first), (second_ns, second), ..] = &self.recent[..]
            && self.recent.len() == RECENT_MAX
        {
            let joined = first.start.min(second.start)..first.end.max(second.end);
            self.recent[1] = (*second_ns, joined);
            self.recent.remove(0);
        }
        self.recent.push((ended_ns, bytes));
    }

    /// Marks the changes that ended at these times as covered by the next flush of all bytes.
    pub fn precede(&mut self, ended: &[u64]) {
        self.recent.retain(|(ended_ns, _)| !ended.contains(ended_ns));
    }

    /// Returns the bytes whose changes had not ended when a flush began.
    fn late(&self, began_ns: u64) -> RangeSet<u64> {
        let is_late = |of: &&(u64, Range<u64>)| of.0 > began_ns && !of.1.is_empty();
        self.recent.iter().filter(is_late).map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Returns whether a size change had not ended when a flush began.
    fn is_size_late(&self, began_ns: u64) -> bool {
        self.late(began_ns).contains(&SIZE.start)
    }

    /// Handles a write of `bytes` by a call that began at `began_ns`.
    pub fn write(&mut self, bytes: Range<u64>, how: How, is_zeros: bool, began_ns: u64) {
        if bytes.is_empty() || is_zeros && !how.is_durable && self.prepare(&bytes) {
            return;
        }
        if how.is_durable && bytes.end > self.zeros.start {
            // The write also makes the size durable, and a hole before it reads as zeros.
            self.zeros.start = bytes.end.min(self.zeros.end);
        } else if overlaps(&self.zeros, &bytes) {
            self.mix();
        }
        self.lost.remove(bytes.clone());
        self.in_place.remove(bytes.clone());
        if how.is_durable {
            // Like `fdatasync(2)`, the write also makes the size durable.
            self.flush_size(began_ns);
            self.dirty.remove(bytes.clone());
            self.settled.insert(bytes);
            return;
        }
        if how.is_direct && self.settled.gaps(&bytes).next().is_none() {
            self.in_place.insert(bytes.clone());
        }
        self.dirty.insert(bytes);
    }

    /// Adds `bytes`, which are zeros, to the earlier zeros if they follow these and replace no
    /// other bytes. Returns whether it did. A hole in between reads as zeros, too.
    fn prepare(&mut self, bytes: &Range<u64>) -> bool {
        let zeros = if self.zeros.is_empty() { bytes.clone() } else { self.zeros.clone() };
        let all = zeros.start..zeros.end.max(bytes.end);
        let is_behind =
            zeros.start <= bytes.start && !self.ranges().iter().any(|of| of.overlaps(&all));
        if is_behind {
            self.zeros = all;
        }
        is_behind
    }

    /// Treats the zeros like other written bytes from now on.
    fn mix(&mut self) {
        let zeros = std::mem::take(&mut self.zeros);
        if !zeros.is_empty() {
            self.dirty.insert(zeros);
        }
    }

    /// Changes the size. Bytes after the new end are removed.
    pub fn resize(&mut self, to_bytes: u64) {
        self.erase(to_bytes..u64::MAX);
    }

    /// Erases a range: zeros it, or truncates the file if the range extends to the maximum.
    pub fn erase(&mut self, bytes: Range<u64>) {
        self.mix();
        self.is_resized = true;
        self.is_cut |= self.settled.overlaps(&bytes);
        self.ranges().into_iter().for_each(|ranges| ranges.remove(bytes.clone()));
    }

    /// Cuts a range out of the file or inserts one, so that the following bytes move.
    pub fn shift(&mut self, at_byte: u64, from_bytes: u64, to_bytes: u64) {
        self.mix();
        self.is_resized = true;
        let cut_end = at_byte + from_bytes.saturating_sub(to_bytes);
        if cut_end > at_byte {
            self.erase(at_byte..cut_end);
        }
        let moved = |byte: u64| (byte.max(cut_end) + to_bytes).saturating_sub(from_bytes);
        for ranges in self.ranges() {
            let later: Vec<_> = ranges.overlapping(&(cut_end..u64::MAX)).cloned().collect();
            ranges.remove(cut_end..u64::MAX);
            ranges.extend(later.into_iter().map(|range| moved(range.start)..moved(range.end)));
        }
        for (_, Range { start, end }) in &mut self.recent {
            *start = match *start {
                SIZE_START => SIZE_START,
                byte if byte >= cut_end => moved(byte),
                byte => byte.min(at_byte),
            };
            *end = match *end {
                u64::MAX => u64::MAX,
                byte if byte > cut_end => moved(byte),
                byte => byte.min(at_byte),
            };
        }
    }

    fn ranges(&mut self) -> [&mut RangeSet<u64>; 4] {
        [&mut self.dirty, &mut self.lost, &mut self.in_place, &mut self.settled]
    }

    /// Handles a flush that began at `began_ns`: makes everything durable, except bytes whose
    /// earlier flush failed, and changes that ended after this flush had begun.
    pub fn flush(&mut self, began_ns: u64) {
        self.flush_range(&ALL, began_ns);
        for range in self.lost.iter() {
            self.settled.remove(range.clone());
            self.in_place.remove(range.clone());
        }
        self.flush_size(began_ns);
        // The changes that this flush covers are durable, so that no other flush can miss them.
        self.recent.retain(|(ended_ns, _)| *ended_ns > began_ns);
    }

    /// Makes the size durable, as each flush and durable write does.
    pub fn flush_size(&mut self, began_ns: u64) {
        if !self.is_size_late(began_ns) {
            (self.is_resized, self.is_cut) = (false, false);
        }
    }

    /// Makes a range durable as [`Content::flush`] does, but not the size.
    pub fn flush_range(&mut self, bytes: &Range<u64>, began_ns: u64) {
        let mut kept = self.late(began_ns);
        if self.zeros.is_empty() || !kept.overlaps(&self.zeros) {
            self.mix();
        }
        kept.extend(self.lost.iter().cloned());
        let of_range = |range: &Range<u64>| range.start.max(bytes.start)..range.end.min(bytes.end);
        let dirty = self.dirty.overlapping(bytes).map(of_range);
        for range in
            dirty.flat_map(|range| kept.gaps(&range).collect::<Vec<_>>()).collect::<Vec<_>>()
        {
            self.dirty.remove(range.clone());
            self.in_place.remove(range.clone());
            self.settled.insert(range);
        }
    }

    /// Handles a flush that failed.
    pub fn lose(&mut self) {
        self.mix();
        self.lost.clone_from(&self.dirty);
    }
}

fn overlaps(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Content {
        /// Returns whether part of a range was written and not flushed.
        pub fn is_dirty_in(&self, bytes: &Range<u64>) -> bool {
            self.dirty.overlaps(bytes) || overlaps(&self.zeros, bytes)
        }
    }

    const BYTES: usize = 24;

    /// A model of one byte of the file.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Byte {
        is_dirty: bool,
        is_lost: bool,
        is_in_place: bool,
        is_settled: bool,
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(Range<u64>, How, bool),
        Resize(u64),
        Erase(Range<u64>),
        Cut(Range<u64>),
        Insert(Range<u64>),
        Flush,
        FlushRange(Range<u64>),
        Lose,
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = || (0..16_u64, 1..8_u64).prop_map(|(from, count)| from..from + count);
        let how = (any::<bool>(), any::<bool>());
        let how =
            how.prop_map(|(is_direct, is_durable)| How { is_direct, is_durable, is_atomic: false });
        prop_oneof![
            4 => (range(), how, any::<bool>())
                .prop_map(|(bytes, how, is_zeros)| Step::Write(bytes, how, is_zeros)),
            1 => (0..20_u64).prop_map(Step::Resize),
            1 => range().prop_map(Step::Erase),
            1 => range().prop_map(Step::Cut),
            1 => range().prop_map(Step::Insert),
            1 => Just(Step::Flush),
            1 => range().prop_map(Step::FlushRange),
            1 => Just(Step::Lose),
        ]
    }

    fn take(step: &Step, bytes: &mut Vec<Byte>, content: &mut Content) {
        let ends = |range: &Range<u64>| range.start as usize..range.end as usize;
        match step {
            Step::Write(range, how, is_zeros) => {
                let zeros = content.zeros.clone();
                content.write(range.clone(), *how, *is_zeros, 0);
                // A hole between zeros reads as zeros, too.
                if content.zeros.start == zeros.start && !zeros.is_empty() {
                    let hole = zeros.end..content.zeros.end.max(zeros.end);
                    bytes[ends(&hole)].iter_mut().for_each(|byte| byte.is_dirty = true);
                }
                if how.is_durable {
                    let holes = zeros.start.min(range.start)..zeros.end.min(range.start);
                    bytes[ends(&holes)].iter_mut().for_each(|byte| byte.is_dirty = false);
                }
                let was_settled = bytes[ends(range)].iter().all(|byte| byte.is_settled);
                for byte in &mut bytes[ends(range)] {
                    byte.is_dirty = !how.is_durable;
                    byte.is_lost = false;
                    byte.is_in_place = how.is_direct && !how.is_durable && was_settled;
                    byte.is_settled |= how.is_durable;
                }
            }
            Step::Resize(size) => {
                content.resize(*size);
                bytes[*size as usize..].fill(Byte::default());
            }
            Step::Erase(range) => {
                content.erase(range.clone());
                bytes[ends(range)].fill(Byte::default());
            }
            Step::Cut(range) => {
                let count = range.end - range.start;
                content.shift(range.start, 1000, 1000 - count);
                bytes.drain(ends(range));
                bytes.resize(BYTES, Byte::default());
            }
            Step::Insert(range) => {
                let count = range.end - range.start;
                content.shift(range.start, 1000, 1000 + count);
                let at = range.start as usize;
                bytes.splice(at..at, vec![Byte::default(); count as usize]);
                bytes.truncate(BYTES);
                // The real file keeps the bytes that are shifted beyond the end of this small
                // model.
                content.erase(BYTES as u64..u64::MAX);
            }
            Step::Flush => {
                content.flush(0);
                for byte in bytes {
                    byte.is_settled = (byte.is_settled || byte.is_dirty) && !byte.is_lost;
                    byte.is_dirty = byte.is_lost;
                    byte.is_in_place = false;
                }
            }
            Step::FlushRange(range) => {
                content.flush_range(range, 0);
                for byte in bytes[ends(range)].iter_mut().filter(|byte| !byte.is_lost) {
                    byte.is_settled |= byte.is_dirty;
                    (byte.is_dirty, byte.is_in_place) = (false, false);
                }
            }
            Step::Lose => {
                content.lose();
                bytes.iter_mut().for_each(|byte| byte.is_lost = byte.is_dirty);
            }
        }
    }

    #[test]
    fn zeros_behind_the_data_prepare_space_until_a_record_is_there() {
        const DURABLE: How = How { is_direct: false, is_durable: true, is_atomic: false };
        let mut content = Content::found(10);
        content.write(10..20, How::default(), true, 0);
        content.write(20..30, How::default(), true, 0);
        assert!(content.is_dirty() && content.dirty_bytes() == 0);
        content.write(10..15, DURABLE, false, 0);
        assert_eq!(content.zeros, 15..30);
        content.write(15..30, DURABLE, false, 0);
        assert!(!content.is_dirty());
        content.write(30..40, How::default(), true, 0);
        content.write(40..50, DURABLE, false, 0);
        assert!(!content.is_dirty(), "a hole has zeros, too");
        content.write(0..10, How::default(), true, 0);
        assert_eq!(content.dirty_bytes(), 10, "zeros over data are data");
        // The file contains nothing but the zeros, so they are its data.
        let mut new = Content::default();
        new.write(0..10, How::default(), true, 0);
        assert_eq!(new.dirty_bytes(), 10);
    }

    #[test]
    fn an_empty_file_has_no_bytes() {
        let found = Content::found(0);
        assert!(!found.is_dirty() && found.settled.is_empty());
    }

    proptest! {
        #[test]
        fn ranges_are_what_each_byte_is(steps in prop::collection::vec(step(), 1..30)) {
            let (mut bytes, mut content) = (vec![Byte::default(); BYTES], Content::found(10));
            bytes[..10].iter_mut().for_each(|byte| byte.is_settled = true);
            for step in &steps {
                let cut = |bytes: &[Byte]| bytes.iter().filter(|byte| byte.is_settled).count();
                let (settled, was_cut) = (cut(&bytes), content.is_cut());
                take(step, &mut bytes, &mut content);
                let is_durable = matches!(step, Step::Write(_, How { is_durable: true, .. }, _));
                let keeps = is_durable || matches!(step, Step::Flush);
                prop_assert!(!(keeps && content.is_cut()));
                if matches!(step, Step::Resize(_) | Step::Erase(_) | Step::Cut(_)) {
                    prop_assert!(content.is_dirty() && !content.is_in_place());
                    prop_assert_eq!(content.is_cut(), was_cut || cut(&bytes) < settled);
                }
                let dirty = bytes.iter().filter(|byte| byte.is_dirty);
                let zeros = content.zeros.end - content.zeros.start;
                let counted = if content.settled.is_empty() { 0 } else { zeros };
                let data = dirty.clone().count() as u64 - counted;
                prop_assert_eq!(content.dirty_bytes(), data, "{:?}", step);
                if keeps {
                    prop_assert_eq!(content.is_dirty(), dirty.clone().count() > 0);
                    prop_assert_eq!(content.is_in_place(), dirty.clone().all(|of| of.is_in_place));
                }
                prop_assert_eq!(content.has_lost(), bytes.iter().any(|byte| byte.is_lost));
                for (at, byte) in (0..).zip(&bytes) {
                    let one = at..at + 1;
                    prop_assert_eq!(content.is_dirty_in(&one), byte.is_dirty, "{} {:?}", at, step);
                    prop_assert_eq!(content.repeats_lost(&one), byte.is_lost, "{} {:?}", at, step);
                    prop_assert_eq!(content.settled.contains(&at), byte.is_settled);
                    prop_assert_eq!(content.in_place.contains(&at), byte.is_in_place);
                }
            }
        }
    }
}
