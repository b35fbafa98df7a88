//! Claims: how producers get a place each in the batch that is open, without a lock.
//!
//! One word says which slot the open batch is in, how many records were claimed in it, and how many
//! bytes. A producer adds its own to the word and so gets place and sequence at once; it copies its
//! bytes there and publishes them by adding their number to the slot's progress. The first whose claim
//! does not fit closes the batch: it alone knows where the batch ends. When as many bytes were published
//! as were claimed the batch is ready, and whoever saw to the last of them learns it.
//!
//! The idea of a claim by one addition is that of Aeron's term buffers; that of a batch which is closed
//! and then released by its last writer that of WiredTiger's log slots.

use super::atomics::{
    AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, yield_now,
};
use super::{Format, batch, segment};
use std::collections::VecDeque;

/// The word: 36 bits of bytes, 22 of records, 6 of the slot.
const COUNT_SHIFT: u32 = 36;
const SLOT_SHIFT: u32 = 58;
const BYTES_MASK: u64 = (1 << COUNT_SHIFT) - 1;
const COUNT_MASK: u64 = (1 << (SLOT_SHIFT - COUNT_SHIFT)) - 1;
const ONE_RECORD: u64 = 1 << COUNT_SHIFT;
/// The most records of a batch. Those who come too late are counted too, until they see that: as many
/// as there are threads between two instructions, for whom three quarters of the numbers are left.
const COUNT_MAX: u64 = (COUNT_MASK + 1) / 4;
/// The most slots.
pub(super) const SLOTS_MAX: u32 = 1 << (u64::BITS - SLOT_SHIFT);
/// The most bytes of a batch: a thousand threads may overshoot by that.
pub(super) const CAPACITY_MAX: usize = 64 << 20;

/// A slot's progress when its batch is closed and everything in it published.
const READY: u64 = 1 << 63;

/// How a log lies in its segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub format: Format,
    /// The most bytes of a batch, headers and all.
    pub capacity: u64,
    /// A batch begins at a multiple of this.
    pub block_bytes: u64,
    /// A segment that has not room for a whole batch below this is followed by the next.
    pub segment_bytes: u64,
    /// What the checksums of its records begin from.
    pub log_id: u64,
}

/// Where a batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The sequence of its first record.
    pub first_sequence: u64,
    /// The number of its segment.
    pub segment: u64,
    /// Where in its segment; 0 where it begins the segment.
    pub offset: u64,
}

/// A place for one record.
#[derive(Debug)]
#[must_use = "a batch is written only when every place in it was published"]
pub(super) struct Place {
    pub slot: usize,
    /// The address of the slot's buffer, as it was given to [`Claims::free`].
    pub address: usize,
    /// Bytes from the beginning of the slot's buffer.
    pub offset: usize,
    pub len: usize,
    pub sequence: u64,
    /// What the checksum of the record begins from.
    pub seed: u32,
}

/// A batch that no more records come into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub slot: usize,
    pub start: Start,
    /// Bytes in the buffer, with what is left for headers.
    pub bytes: usize,
    pub count: u64,
}

impl Closed {
    /// The sequence behind its last record.
    pub(super) fn end_sequence(&self) -> u64 {
        self.start.first_sequence + self.count
    }
}

/// What a claim was answered.
#[derive(Debug)]
pub(super) enum Claimed {
    Place(Place),
    /// Nothing is open: all buffers are on their way, or the log has ended.
    Full,
}

/// A pair of cache lines of its own (x86-64 fetches them in pairs): what every producer changes must not
/// lie beside what others only read.
#[repr(align(128))]
struct Apart<T>(T);

/// One buffer's worth of records.
#[repr(align(128))]
struct Slot {
    /// Bytes published; once the batch is closed, what is missing to [`READY`] of them.
    progress: AtomicU64,
    first_sequence: AtomicU64,
    address: AtomicUsize,
    seed: AtomicU32,
}

/// What only changes between two batches.
struct Turn {
    /// The slot of the open batch, or of the next where none is open.
    slot: usize,
    /// Where that batch begins.
    start: Start,
    is_open: bool,
    /// Buffers of slots that are not in use.
    free: Vec<Option<usize>>,
    /// Closed batches that nobody has taken yet, in order.
    closed: VecDeque<Closed>,
    /// The next batch begins a segment, full or not.
    rotate: bool,
    /// Nothing is opened any more.
    ended: bool,
}

/// The places of all records on their way.
pub(super) struct Claims {
    word: Apart<AtomicU64>,
    layout: Layout,
    slots: Box<[Slot]>,
    turn: Mutex<Turn>,
    /// A batch was opened, or the log has ended.
    opened: Condvar,
}

impl Claims {
    /// None of the slots has a buffer yet; nothing is open until the first is given one.
    pub(super) fn new(layout: Layout, slots: u32, start: Start) -> Claims {
        assert!((2..=SLOTS_MAX).contains(&slots) && layout.capacity <= CAPACITY_MAX as u64);
        let slot = || Slot {
            progress: AtomicU64::new(0),
            first_sequence: AtomicU64::new(0),
            address: AtomicUsize::new(0),
            seed: AtomicU32::new(0),
        };
        Claims {
            word: Apart(AtomicU64::new(over(&layout))),
            layout,
            slots: (0..slots).map(|_| slot()).collect(),
            turn: Mutex::new(Turn {
                slot: 0,
                start,
                is_open: false,
                free: vec![None; slots as usize],
                closed: VecDeque::new(),
                rotate: false,
                ended: false,
            }),
            opened: Condvar::new(),
        }
    }

    /// Bytes that a record's frame may have at most.
    pub(super) fn frame_bytes_max(&self) -> usize {
        self.layout.capacity as usize - head_bytes(self.layout.format, true)
    }

    /// Claims a place for a frame of `bytes`, which fits into an empty batch. The second of the answer
    /// is whether that made a batch ready.
    pub(super) fn claim(&self, bytes: usize) -> (Claimed, bool) {
        debug_assert!(bytes <= self.frame_bytes_max());
        let mut made_ready = false;
        loop {
            // Without this look a crowd that waits would count on and on.
            if self.is_over(self.word.0.load(Ordering::Acquire)) {
                return (Claimed::Full, made_ready);
            }
            let word = self.word.0.fetch_add(ONE_RECORD + bytes as u64, Ordering::AcqRel);
            let (slot, count, offset) = unpack(word);
            if count < COUNT_MAX && offset + bytes as u64 <= self.layout.capacity {
                let place = self.place(slot, count, offset as usize, bytes);
                return (Claimed::Place(place), made_ready);
            }
            if self.is_over(word) {
                return (Claimed::Full, made_ready);
            }
            made_ready |= self.turn_over(word);
        }
    }

    /// The slot is ours until we publish, so what it says can't change.
    fn place(&self, slot: usize, count: u64, offset: usize, len: usize) -> Place {
        let Slot { first_sequence, address, seed, .. } = &self.slots[slot];
        Place {
            slot,
            address: address.load(Ordering::Relaxed),
            offset,
            len,
            sequence: first_sequence.load(Ordering::Relaxed) + count,
            seed: seed.load(Ordering::Relaxed),
        }
    }

    /// The bytes are in their place. Tells whether that made a batch ready.
    pub(super) fn publish(&self, place: Place) -> bool {
        self.progress(place.slot, place.len as u64)
    }

    fn progress(&self, slot: usize, by: u64) -> bool {
        // Release: who takes the batch sees the bytes. Acquire: so that of several publishers the last,
        // which makes it ready, passes on what it has seen of the others.
        let before = self.slots[slot].progress.fetch_add(by, Ordering::AcqRel);
        before.wrapping_add(by) == READY
    }

    /// Closes the open batch if it has records. Tells whether that made it ready.
    pub(super) fn close_open(&self) -> bool {
        self.has_open_records() && self.close()
    }

    /// Closes the open batch, by a claim that never fits.
    fn close(&self) -> bool {
        if self.is_over(self.word.0.load(Ordering::Acquire)) {
            return false;
        }
        let word = self.word.0.fetch_add(over(&self.layout), Ordering::AcqRel);
        !self.is_over(word) && self.turn_over(word)
    }

    /// Whether the word is that of a batch whose end was passed.
    fn is_over(&self, word: u64) -> bool {
        let (_, count, offset) = unpack(word);
        count > COUNT_MAX || offset > self.layout.capacity
    }

    /// Ends the open batch where `word` says, and opens the next if its slot is free. Called by the one
    /// whose claim was the first that did not fit.
    fn turn_over(&self, word: u64) -> bool {
        let (slot, count, offset) = unpack(word);
        let mut turn = self.turn();
        let start = turn.start;
        turn.closed.push_back(Closed { slot, start, bytes: offset as usize, count });
        turn.is_open = false;
        turn.slot = (slot + 1) % self.slots.len();
        turn.start = self.start_after(&mut turn, count, offset);
        self.open_next(&mut turn);
        drop(turn);
        let claimed = offset - head_bytes(self.layout.format, start.offset == 0) as u64;
        self.progress(slot, READY - claimed)
    }

    /// Where the batch after one with so many records and bytes begins.
    fn start_after(&self, turn: &mut Turn, count: u64, bytes: u64) -> Start {
        let Start { first_sequence, segment, offset } = turn.start;
        if count == 0 {
            return turn.start;
        }
        let first_sequence = first_sequence + count;
        let end = offset + bytes.next_multiple_of(self.layout.block_bytes);
        let rotate = std::mem::take(&mut turn.rotate);
        if rotate || end + self.layout.capacity > self.layout.segment_bytes {
            let segment = match self.layout.format {
                Format::Framed => segment + 1,
                Format::Lines => first_sequence,
            };
            return Start { first_sequence, segment, offset: 0 };
        }
        Start { first_sequence, segment, offset: end }
    }

    /// Opens the next batch if nothing is open, its slot has a buffer, and the log goes on.
    fn open_next(&self, turn: &mut Turn) {
        if turn.is_open || turn.ended {
            return;
        }
        let Some(address) = turn.free[turn.slot].take() else { return };
        let head = head_bytes(self.layout.format, turn.start.offset == 0);
        let slot = &self.slots[turn.slot];
        slot.progress.store(0, Ordering::Relaxed);
        slot.address.store(address, Ordering::Relaxed);
        slot.first_sequence.store(turn.start.first_sequence, Ordering::Relaxed);
        let seed = segment::seed(self.layout.log_id, turn.start.segment);
        slot.seed.store(seed, Ordering::Relaxed);
        turn.is_open = true;
        // Release: who claims a place sees what the slot says. Not a store: whoever waits for room adds to
        // the word too, and of two additions and a store the model checker does not know the order.
        self.word.0.swap((turn.slot as u64) << SLOT_SHIFT | head as u64, Ordering::AcqRel);
        self.opened.notify_all();
    }

    /// Gives a slot a buffer, at this address: what was in it is written.
    pub(super) fn free(&self, slot: usize, address: usize) {
        let mut turn = self.turn();
        let before = turn.free[slot].replace(address);
        debug_assert!(before.is_none(), "a slot is freed once");
        self.open_next(&mut turn);
    }

    /// The next batch in order, if it is ready.
    pub(super) fn take_ready(&self) -> Option<Closed> {
        let mut turn = self.turn();
        let front = turn.closed.front()?;
        // Acquire: the bytes of every producer are seen.
        let progress = self.slots[front.slot].progress.load(Ordering::Acquire);
        if progress == READY { turn.closed.pop_front() } else { None }
    }

    /// Whether there is a closed batch, ready or not.
    pub(super) fn has_closed(&self) -> bool {
        !self.turn().closed.is_empty()
    }

    /// Whether the open batch has records.
    pub(super) fn has_open_records(&self) -> bool {
        let word = self.word.0.load(Ordering::Acquire);
        let (_, count, _) = unpack(word);
        !self.is_over(word) && count > 0
    }

    /// The sequence that the next record gets, and where it goes at the earliest. Of the batches that
    /// were claimed before, none is left out.
    pub(super) fn next_start(&self) -> Start {
        loop {
            let turn = self.turn();
            if !turn.is_open {
                return turn.start;
            }
            let word = self.word.0.load(Ordering::Acquire);
            if !self.is_over(word) {
                let (_, count, offset) = unpack(word);
                let mut start = turn.start;
                start.first_sequence += count;
                if count > 0 {
                    start.offset += offset.next_multiple_of(self.layout.block_bytes);
                }
                return start;
            }
            // Somebody is about to turn over, and only they know the count.
            drop(turn);
            yield_now();
        }
    }

    /// The batch after the open one begins a segment.
    pub(super) fn rotate(&self) {
        self.turn().rotate = true;
    }

    /// Whether a batch is open, or none ever will be again.
    pub(super) fn has_room(&self) -> bool {
        !self.is_over(self.word.0.load(Ordering::Acquire)) || self.has_ended()
    }

    /// Waits until a batch is open or the log has ended.
    pub(super) fn wait_for_room(&self) {
        let mut turn = self.turn();
        while !turn.ended && self.is_over(self.word.0.load(Ordering::Acquire)) {
            turn = self.opened.wait(turn).expect("nobody panics while they hold the turn");
        }
    }

    /// No place is given out any more, and who waits for one is told. What was claimed before can still
    /// be published. Tells whether that made a batch ready.
    pub(super) fn end(&self) -> bool {
        self.turn().ended = true;
        self.opened.notify_all();
        self.close()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.turn().ended
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().expect("nobody panics while they hold the turn")
    }
}

/// What a claim adds that never fits, and what the word is while nothing is open.
fn over(layout: &Layout) -> u64 {
    layout.capacity + 1
}

fn unpack(word: u64) -> (usize, u64, u64) {
    let slot = (word >> SLOT_SHIFT) as usize;
    (slot, word >> COUNT_SHIFT & COUNT_MASK, word & BYTES_MASK)
}

/// Bytes that a batch leaves for the headers before its first record.
pub(super) fn head_bytes(format: Format, begins_segment: bool) -> usize {
    match format {
        Format::Lines => 0,
        Format::Framed if begins_segment => segment::HEADER_BYTES + batch::HEADER_BYTES,
        Format::Framed => batch::HEADER_BYTES,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const HEAD: usize = batch::HEADER_BYTES;

    fn claims(slots: u32) -> Claims {
        let layout = Layout {
            format: Format::Framed,
            capacity: 512,
            block_bytes: 512,
            segment_bytes: 1024,
            log_id: 1,
        };
        let start = Start { first_sequence: 100, segment: 7, offset: 512 };
        let claims = Claims::new(layout, slots, start);
        (0..slots as usize).for_each(|slot| claims.free(slot, slot * 1000));
        claims
    }

    fn place(claims: &Claims, bytes: usize) -> Place {
        match claims.claim(bytes) {
            (Claimed::Place(place), _) => place,
            other => panic!("no place: {other:?}"),
        }
    }

    #[test]
    fn places_follow_each_other_and_so_do_sequences() {
        let claims = claims(2);
        let first = place(&claims, 100);
        let second = place(&claims, 50);
        assert_eq!((first.sequence, first.offset, first.slot), (100, HEAD, 0));
        assert_eq!((second.sequence, second.offset, second.slot), (101, HEAD + 100, 0));
    }

    #[test]
    fn a_batch_is_ready_when_it_is_closed_and_everything_in_it_published() {
        let claims = claims(2);
        let (first, second) = (place(&claims, 100), place(&claims, 50));
        assert!(!claims.publish(second));
        assert!(!claims.close_open() && claims.take_ready().is_none());
        assert!(claims.publish(first));
        let start = Start { first_sequence: 100, segment: 7, offset: 512 };
        let closed = Closed { slot: 0, start, bytes: HEAD + 150, count: 2 };
        assert_eq!(claims.take_ready(), Some(closed));
    }

    #[test]
    fn a_claim_that_does_not_fit_closes_the_batch_and_goes_into_the_next() {
        let claims = claims(2);
        let first = place(&claims, 300);
        let second = place(&claims, 300);
        assert_eq!((second.slot, second.sequence), (1, 101));
        assert!(claims.publish(first) && claims.take_ready().is_some());
    }

    #[test]
    fn a_segment_that_has_no_room_for_a_whole_batch_is_followed_by_the_next() {
        let claims = claims(2);
        let first = place(&claims, 10);
        assert!(claims.publish(first) ^ claims.close_open());
        let second = place(&claims, 10);
        assert_eq!(second.offset, segment::HEADER_BYTES + HEAD);
        let start = Start { first_sequence: 101, segment: 8, offset: 0 };
        assert_eq!(claims.next_start().segment, start.segment);
        assert!(claims.publish(second) ^ claims.close_open());
        claims.take_ready().unwrap();
        assert_eq!(claims.take_ready().unwrap().start, start);
    }

    #[test]
    fn without_a_free_buffer_there_is_no_place_until_one_is_given_back() {
        let claims = claims(2);
        let places = [place(&claims, 300), place(&claims, 300)];
        assert!(matches!(claims.claim(300), (Claimed::Full, _)));
        assert!(!claims.has_room());
        places.into_iter().for_each(|place| assert!(claims.publish(place)));
        let closed = claims.take_ready().unwrap();
        assert_eq!(closed.slot, 0);
        claims.free(0, 0);
        assert_eq!(place(&claims, 300).sequence, 102);
    }

    #[test]
    fn a_batch_without_records_is_not_closed_and_takes_no_room_in_the_segment() {
        let claims = claims(2);
        assert!(!claims.close_open() && !claims.has_closed());
        assert!(claims.end());
        let closed = claims.take_ready().unwrap();
        assert_eq!((closed.count, closed.bytes), (0, HEAD));
        assert_eq!(claims.next_start(), closed.start);
        assert!(matches!(claims.claim(10), (Claimed::Full, _)) && claims.has_room());
    }

    #[test]
    fn records_of_many_threads_lie_side_by_side_and_are_counted_once() {
        let claims = claims(4);
        let taken = std::sync::Mutex::new(Vec::new());
        let producers = 4;
        let each = 2000;
        std::thread::scope(|scope| {
            for _ in 0..producers {
                scope.spawn(|| {
                    for number in 0..each {
                        loop {
                            match claims.claim(9 + number % 90) {
                                (Claimed::Place(place), _) => {
                                    let Place { slot, offset, len, sequence, .. } = place;
                                    taken.lock().unwrap().push((sequence, slot, offset, len));
                                    claims.publish(place);
                                    break;
                                }
                                (Claimed::Full, _) => claims.wait_for_room(),
                            }
                        }
                    }
                });
            }
            let mut next = 100;
            while next < 100 + producers * each as u64 {
                claims.close_open();
                match claims.take_ready() {
                    Some(closed) => {
                        assert_eq!(closed.start.first_sequence, next);
                        next = closed.end_sequence();
                        claims.free(closed.slot, 0);
                    }
                    None => yield_now(),
                }
            }
        });
        let mut taken = taken.into_inner().unwrap();
        taken.sort_unstable();
        for (index, pair) in taken.windows(2).enumerate() {
            let [(sequence, slot, offset, len), (after, slot_after, offset_after, _)] = *pair
            else {
                unreachable!("windows of two")
            };
            assert_eq!((sequence, after), (100 + index as u64, 101 + index as u64));
            assert!(slot != slot_after || offset_after <= offset + len);
        }
    }
}
