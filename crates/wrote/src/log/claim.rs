//! Claims: how producers get places in the open batch without taking a lock.
//!
//! One atomic word holds the slot of the open batch, the number of claimed records, and their total
//! length. A producer adds its record to the word, and the result of the addition determines the
//! record's place and sequence. The producer copies its bytes there, then publishes them by adding
//! their length to the slot's progress. The first claim that does not fit closes the batch, because
//! only that claim knows where the batch ends. A closed batch is ready once every claimed byte is
//! published. The call that publishes the last byte returns [`Ready`].
//!
//! Claiming by a single addition comes from Aeron's term buffers. Letting the last writer release a
//! closed batch comes from WiredTiger's log slots.

use super::segment::{Layout, Start};
use super::{batch, segment};
use std::collections::VecDeque;

// With `--cfg loom`, the crate `loom` runs a test with every possible order of its threads' steps.
#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(loom))]
use std::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now,
};

/// The layout of the word: 36 bits for the bytes, 22 for the records, and 6 for the slot.
const COUNT_SHIFT: u32 = 36;
const SLOT_SHIFT: u32 = 58;
const BYTES_MASK: u64 = (1 << COUNT_SHIFT) - 1;
const COUNT_MASK: u64 = (1 << (SLOT_SHIFT - COUNT_SHIFT)) - 1;
const ONE_RECORD: u64 = 1 << COUNT_SHIFT;
/// The number of records after which a batch accepts no more claims. A claim that comes too late is
/// still counted until its thread notices that the batch is closed. Each thread can be late once,
/// and three quarters of the counter's range are left for such claims.
const COUNT_MAX: u64 = (COUNT_MASK + 1) / 4;
/// The maximum number of records in an atomic append. Only one thread at a time may exceed
/// [`COUNT_MAX`] by this number.
pub(super) const GROUP_MAX: usize = COUNT_MAX as usize;
pub(super) const SLOTS_MAX: u32 = 1 << (u64::BITS - SLOT_SHIFT);
/// The maximum length of a batch in bytes. The word has room for a thousand threads that each
/// exceed the maximum by the same length.
pub(super) const CAPACITY_MAX: usize = 64 << 20;

/// The progress of a slot once its batch is closed and every record in it is published.
const READY: u64 = 1 << 63;

#[derive(Debug)]
#[must_use = "a batch is written only when every place in it was published"]
pub(super) struct Place {
    pub slot: usize,
    /// The address of the slot's buffer, as passed to [`Claims::free`].
    pub address: usize,
    /// The offset of the place in the slot's buffer.
    pub offset: usize,
    pub len: usize,
    /// The sequence of the place's first record.
    pub sequence: u64,
    /// The checksum of the segment's identity. The record's checksum continues it.
    pub seed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClosedBatch {
    pub slot: usize,
    pub start: Start,
    /// The length of the batch in the buffer in bytes, including the space for headers.
    pub bytes: usize,
    pub count: u64,
}

impl ClosedBatch {
    pub(super) fn end_sequence(&self) -> u64 {
        self.start.first_sequence + self.count
    }
}

/// Whether a call has made a batch ready for the flusher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the flusher sleeps until it is notified of a ready batch"]
pub(super) struct Ready(pub bool);

#[derive(Debug)]
#[must_use = "a batch is written only when every place in it was published"]
pub(super) struct Claim {
    /// The claimed place; `None` while no batch is open, because every buffer is in flight, or the
    /// log is closed or has failed.
    pub place: Option<Place>,
    /// Whether the batch that this claim closed, if any, is ready.
    pub ready: Ready,
}

/// A value padded to a pair of cache lines, because x86-64 fetches them in pairs. The word, which
/// every producer changes, must not share a line with fields that producers only read.
#[repr(align(128))]
struct CachePadded<T>(T);

#[repr(align(128))]
struct Slot {
    /// The number of bytes published. Closing the batch adds [`READY`] minus the number of bytes
    /// claimed.
    progress: AtomicU64,
    first_sequence: AtomicU64,
    address: AtomicUsize,
    seed: AtomicU32,
    /// Nonzero if some records of the batch were appended atomically.
    whole: AtomicU32,
}

/// The state that changes only from one batch to the next.
struct Turn {
    /// The slot of the open batch; while none is open, the slot of the next one.
    slot: usize,
    start: Start,
    is_open: bool,
    /// The addresses of the buffers of unused slots.
    free: Vec<Option<usize>>,
    /// The closed batches that the flusher has not taken yet, in order.
    closed: VecDeque<ClosedBatch>,
    /// Whether the next batch starts a new segment even if the current one is not full.
    rotate: bool,
    /// Whether no batch is opened until [`Claims::resume`] is called.
    is_paused: bool,
    /// Whether the log is closed or has failed, so that no more batches are opened.
    ended: bool,
}

/// The places of all records that have not been written yet.
pub(super) struct Claims {
    word: CachePadded<AtomicU64>,
    layout: Layout,
    slots: Box<[Slot]>,
    turn: Mutex<Turn>,
    /// A lock held by the thread that claims a place for a group.
    group: Mutex<()>,
    /// The condition variable that is signalled when a batch is opened, or the log is closed or
    /// fails.
    opened: Condvar,
}

impl Claims {
    /// Creates claims without an open batch. The first batch opens when its slot gets a buffer.
    pub(super) fn new(layout: Layout, slots: u32, start: Start) -> Claims {
        assert!((2..=SLOTS_MAX).contains(&slots) && layout.capacity <= CAPACITY_MAX as u64);
        let slot = |_| Slot {
            progress: AtomicU64::new(0),
            first_sequence: AtomicU64::new(0),
            address: AtomicUsize::new(0),
            seed: AtomicU32::new(0),
            whole: AtomicU32::new(0),
        };
        Claims {
            word: CachePadded(AtomicU64::new(over(&layout))),
            layout,
            slots: (0..slots).map(slot).collect(),
            turn: Mutex::new(Turn {
                slot: 0,
                start,
                is_open: false,
                free: vec![None; slots as usize],
                closed: VecDeque::new(),
                rotate: false,
                is_paused: false,
                ended: false,
            }),
            group: Mutex::new(()),
            opened: Condvar::new(),
        }
    }

    pub(super) fn frame_bytes_max(&self) -> usize {
        self.layout.capacity as usize - head_bytes(true)
    }

    /// Claims a place for a frame of `bytes` bytes, which must fit into an empty batch.
    pub(super) fn claim(&self, bytes: usize) -> Claim {
        self.claim_frames(bytes, 1)
    }

    /// Claims a single place for several frames with a total length of `bytes`, which must fit into
    /// an empty batch. Marks their batch as valid only as a whole.
    pub(super) fn claim_group(&self, bytes: usize, frames: usize) -> Claim {
        debug_assert!((1..=GROUP_MAX).contains(&frames));
        let group = self.group.lock().expect("no thread panics while it claims");
        let claim = self.claim_frames(bytes, frames);
        drop(group);
        if let Some(place) = &claim.place {
            // Relaxed is enough: the place is published later, with Release, and the flusher reads
            // the flag only after that.
            self.slots[place.slot].whole.store(1, Ordering::Relaxed);
        }
        claim
    }

    fn claim_frames(&self, bytes: usize, frames: usize) -> Claim {
        debug_assert!(bytes <= self.frame_bytes_max());
        let mut ready = Ready(false);
        loop {
            // Without this check, the claims of many waiting threads would overflow the count.
            if self.is_over(self.word.0.load(Ordering::Acquire)) {
                return Claim { place: None, ready };
            }
            let claimed = ONE_RECORD * frames as u64 + bytes as u64;
            let word = self.word.0.fetch_add(claimed, Ordering::AcqRel);
            let (slot, count, offset) = unpack(word);
            let is_countable = count + frames as u64 <= COUNT_MAX;
            if is_countable && offset + bytes as u64 <= self.layout.capacity {
                let place = self.place(slot, count, offset as usize, bytes);
                return Claim { place: Some(place), ready };
            }
            if self.is_over(word) {
                return Claim { place: None, ready };
            }
            ready.0 |= self.turn_over(word).0;
        }
    }

    /// Returns the description of a claimed place. The fields of the slot can't change before the
    /// place is published.
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

    pub(super) fn publish(&self, place: Place) -> Ready {
        self.progress(place.slot, place.len as u64)
    }

    fn progress(&self, slot: usize, by: u64) -> Ready {
        // Release makes the bytes visible to the flusher. Acquire is for the last publisher, which
        // makes the batch ready: it passes on the bytes of the other publishers.
        let before = self.slots[slot].progress.fetch_add(by, Ordering::AcqRel);
        Ready(before.wrapping_add(by) == READY)
    }

    pub(super) fn close_open(&self) -> Ready {
        if self.has_open_records() { self.close() } else { Ready(false) }
    }

    /// Closes the open batch with a claim that never fits.
    fn close(&self) -> Ready {
        if self.is_over(self.word.0.load(Ordering::Acquire)) {
            return Ready(false);
        }
        let word = self.word.0.fetch_add(over(&self.layout), Ordering::AcqRel);
        if self.is_over(word) { Ready(false) } else { self.turn_over(word) }
    }

    /// Returns whether the word states that no batch is open, or that its claims have exceeded the
    /// batch.
    fn is_over(&self, word: u64) -> bool {
        let (_, count, offset) = unpack(word);
        count > COUNT_MAX || offset > self.layout.capacity
    }

    /// Closes the open batch, whose last state was `word`, and opens the next one if its slot is
    /// free. Only the thread whose claim was the first that did not fit calls this function.
    fn turn_over(&self, word: u64) -> Ready {
        let (slot, count, offset) = unpack(word);
        let mut turn = self.turn();
        let start = turn.start;
        turn.closed.push_back(ClosedBatch { slot, start, bytes: offset as usize, count });
        turn.is_open = false;
        turn.slot = (slot + 1) % self.slots.len();
        turn.start = self.start_after(&mut turn, count, offset);
        self.open_next(&mut turn);
        drop(turn);
        let claimed = offset - head_bytes(start.offset == 0) as u64;
        self.progress(slot, READY - claimed)
    }

    /// Returns the start of the batch that follows one with `count` records and a length of
    /// `bytes`.
    fn start_after(&self, turn: &mut Turn, count: u64, bytes: u64) -> Start {
        if count == 0 {
            return turn.start;
        }
        let mut at = turn.start;
        at.first_sequence += count;
        at.offset += bytes.next_multiple_of(self.layout.block_bytes);
        self.layout.start(at, std::mem::take(&mut turn.rotate), bytes)
    }

    /// Opens the next batch if its slot has a buffer, unless a batch is open already, or the log is
    /// closed, has failed or is paused.
    fn open_next(&self, turn: &mut Turn) {
        if turn.is_open || turn.ended || turn.is_paused {
            return;
        }
        let Some(address) = turn.free[turn.slot].take() else { return };
        let head = head_bytes(turn.start.offset == 0);
        let slot = &self.slots[turn.slot];
        slot.progress.store(0, Ordering::Relaxed);
        slot.address.store(address, Ordering::Relaxed);
        slot.first_sequence.store(turn.start.first_sequence, Ordering::Relaxed);
        let seed = segment::seed(self.layout.log_id, turn.start.segment);
        slot.seed.store(seed, Ordering::Relaxed);
        slot.whole.store(0, Ordering::Relaxed);
        turn.is_open = true;
        // Release makes the fields of the slot visible to a producer that claims a place. A swap is
        // used instead of a store, because waiting producers also add to the word, and loom does
        // not support the ordering of two additions and a store.
        self.word.0.swap(((turn.slot as u64) << SLOT_SHIFT) + head as u64, Ordering::AcqRel);
        self.opened.notify_all();
    }

    /// Gives a slot the buffer at `address`, after the slot's last batch has been written.
    pub(super) fn free(&self, slot: usize, address: usize) {
        let mut turn = self.turn();
        let before = turn.free[slot].replace(address);
        debug_assert!(before.is_none(), "a slot is freed once");
        self.open_next(&mut turn);
    }

    /// Returns the next batch in order if it is ready. [`Claims::take_ready`] also takes it.
    pub(super) fn next_ready(&self) -> Option<ClosedBatch> {
        self.ready(&self.turn())
    }

    pub(super) fn take_ready(&self) -> Option<ClosedBatch> {
        let mut turn = self.turn();
        self.ready(&turn)?;
        turn.closed.pop_front()
    }

    fn ready(&self, turn: &Turn) -> Option<ClosedBatch> {
        let front = turn.closed.front()?;
        // Acquire makes the bytes of all producers visible.
        let progress = self.slots[front.slot].progress.load(Ordering::Acquire);
        (progress == READY).then_some(*front)
    }

    /// Returns whether the batch in this slot, which must have been ready, is valid only as a
    /// whole.
    pub(super) fn is_whole(&self, slot: usize) -> bool {
        self.slots[slot].whole.load(Ordering::Relaxed) != 0
    }

    /// Closes the open batch, and keeps the next one from being opened until [`Claims::resume`].
    /// Producers wait as if all buffers were in flight.
    pub(super) fn pause(&self) -> Ready {
        self.turn().is_paused = true;
        self.close()
    }

    /// Returns whether no batch is open and the flusher has taken all closed ones.
    pub(super) fn is_idle(&self) -> bool {
        let turn = self.turn();
        !turn.is_open && turn.closed.is_empty()
    }

    /// Ends a pause, and continues at `start` if given. Every slot must have its buffer.
    pub(super) fn resume(&self, start: Option<Start>) {
        let mut turn = self.turn();
        turn.is_paused = false;
        if let Some(start) = start {
            (turn.start, turn.rotate) = (start, false);
        }
        self.open_next(&mut turn);
    }

    /// Returns whether a closed batch, ready or not, waits for the flusher.
    pub(super) fn has_closed(&self) -> bool {
        !self.turn().closed.is_empty()
    }

    pub(super) fn has_open_records(&self) -> bool {
        let word = self.word.0.load(Ordering::Acquire);
        let (_, count, _) = unpack(word);
        !self.is_over(word) && count > 0
    }

    /// Returns the sequence of the next record, and the earliest position at which it can be
    /// written. All earlier claims are included.
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
            // Another thread is about to close the batch, and only that thread knows the count.
            drop(turn);
            yield_now();
        }
    }

    /// Requests that the batch after the open one starts a new segment.
    pub(super) fn rotate(&self) {
        self.turn().rotate = true;
    }

    pub(super) fn has_room(&self) -> bool {
        !self.is_over(self.word.0.load(Ordering::Acquire)) || self.has_ended()
    }

    /// Waits until a batch is open, the log is closed or has failed, or `gives_up` returns true.
    pub(super) fn wait_for_room(&self, gives_up: impl Fn() -> bool) {
        let mut turn = self.turn();
        while !turn.ended && !gives_up() && self.is_over(self.word.0.load(Ordering::Acquire)) {
            turn = self.opened.wait(turn).expect("no thread panics while it holds the turn");
        }
    }

    /// Wakes every thread that waits for room, so that it checks again whether it gives up.
    pub(super) fn wake_waiting(&self) {
        drop(self.turn());
        self.opened.notify_all();
    }

    /// Refuses all later claims, because the log is being closed or has failed, and wakes the
    /// producers that wait for room. Places that are claimed already can still be published.
    pub(super) fn end(&self) -> Ready {
        self.turn().ended = true;
        self.opened.notify_all();
        self.close()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.turn().ended
    }

    #[cfg(test)]
    pub(super) fn lock_all(&self) -> impl Sized {
        (self.turn(), self.group.lock())
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().expect("no thread panics while it holds the turn")
    }
}

/// Returns a number that makes every claim exceed the batch when added to the word. It is also the
/// value of the word while no batch is open.
fn over(layout: &Layout) -> u64 {
    layout.capacity + 1
}

fn unpack(word: u64) -> (usize, u64, u64) {
    let slot = (word >> SLOT_SHIFT) as usize;
    (slot, word >> COUNT_SHIFT & COUNT_MASK, word & BYTES_MASK)
}

/// Returns the number of bytes that a batch reserves for headers before its first record.
pub(super) fn head_bytes(begins_segment: bool) -> usize {
    batch::HEADER_BYTES + if begins_segment { segment::HEADER_BYTES } else { 0 }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const HEAD: usize = batch::HEADER_BYTES;

    fn claims(slots: u32) -> Claims {
        let layout =
            Layout { capacity: 512, block_bytes: 512, segment_bytes: 1024, ramp: None, log_id: 1 };
        let start = Start { first_sequence: 100, segment: 7, offset: 512 };
        let claims = Claims::new(layout, slots, start);
        (0..slots as usize).for_each(|slot| claims.free(slot, slot * 1000));
        claims
    }

    fn place(claims: &Claims, bytes: usize) -> Place {
        claims.claim(bytes).place.expect("a place")
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
    fn the_longest_frame_fits_behind_the_headers_of_a_segment_and_its_batch() {
        assert_eq!(claims(2).frame_bytes_max(), 512 - 64 - 48);
    }

    #[test]
    fn a_batch_is_ready_when_it_is_closed_and_everything_in_it_published() {
        let claims = claims(2);
        let (first, second) = (place(&claims, 100), place(&claims, 50));
        assert!(!claims.publish(second).0);
        assert!(!claims.close_open().0 && claims.take_ready().is_none());
        assert!(claims.publish(first).0);
        let start = Start { first_sequence: 100, segment: 7, offset: 512 };
        let closed = ClosedBatch { slot: 0, start, bytes: HEAD + 150, count: 2 };
        assert_eq!((claims.next_ready(), claims.take_ready()), (Some(closed), Some(closed)));
    }

    #[test]
    fn a_word_keeps_its_parts_up_to_their_limits() {
        assert_eq!(unpack(u64::MAX), (SLOTS_MAX as usize - 1, (1 << 22) - 1, (1 << 36) - 1));
        assert_eq!(unpack(ONE_RECORD + 7), (0, 1, 7));
        // A thousand threads may each claim a whole batch beyond the limit.
        let most = 1000 * CAPACITY_MAX as u64;
        assert!((64_000_000_000..=BYTES_MASK).contains(&most));
        assert_eq!(4 * COUNT_MAX, COUNT_MASK + 1);
    }

    #[test]
    fn a_group_has_sequences_in_a_row_and_marks_its_batch() {
        let claims = claims(2);
        let group = claims.claim_group(100, 3).place.unwrap();
        let after = place(&claims, 50);
        assert_eq!((group.sequence, after.sequence, after.offset), (100, 103, HEAD + 100));
        assert!(claims.is_whole(group.slot) && !claims.is_whole(1));
        assert!(!claims.publish(group).0 && !claims.publish(after).0 && claims.close_open().0);
        assert_eq!(claims.take_ready().unwrap().end_sequence(), 104);
    }

    #[test]
    fn a_batch_ends_at_the_most_records() {
        let claims = claims(2);
        let group = claims.claim_group(100, GROUP_MAX).place.unwrap();
        assert!(claims.has_room() && !claims.publish(group).0);
        let next = claims.claim(10);
        let place = next.place.unwrap();
        assert_eq!((place.slot, place.sequence), (1, 100 + GROUP_MAX as u64));
        // The claim closed the batch, and that made the batch ready.
        assert!(next.ready.0 && claims.has_closed());
        let _ = claims.publish(place);
    }

    #[test]
    fn the_next_record_goes_into_the_open_batch_or_the_block_behind_it() {
        let claims = claims(2);
        let begin = Start { first_sequence: 100, segment: 7, offset: 512 };
        assert_eq!(claims.next_start(), begin);
        let _ = claims.publish(place(&claims, 10));
        assert_eq!(claims.next_start(), Start { first_sequence: 101, offset: 1024, ..begin });
    }

    #[test]
    fn a_rotation_starts_a_segment_with_the_batch_after_the_open_one() {
        let layout = claims(2).layout;
        let start = Start { first_sequence: 100, segment: 7, offset: 512 };
        let claims = Claims::new(Layout { segment_bytes: 1 << 20, ..layout }, 2, start);
        assert!(!claims.has_room() && claims.claim(10).place.is_none() && !claims.has_closed());
        (0..2).for_each(|slot| claims.free(slot, 0));
        let write = || {
            assert!(!claims.publish(place(&claims, 10)).0 && claims.close_open().0);
            claims.next_start()
        };
        assert_eq!(write(), Start { first_sequence: 101, segment: 7, offset: 1024 });
        claims.rotate();
        assert_eq!(write(), Start { first_sequence: 102, segment: 8, offset: 0 });
    }

    #[test]
    fn a_pause_ends_with_batches_at_the_place_that_is_given() {
        let claims = claims(2);
        assert!(claims.pause().0 && claims.take_ready().is_some());
        claims.free(0, 0);
        assert!(claims.claim(10).place.is_none());
        let start = Start { first_sequence: 90, segment: 9, offset: 0 };
        claims.resume(Some(start));
        assert_eq!((claims.next_start(), place(&claims, 10).sequence), (start, 90));
    }

    #[test]
    fn a_producer_waits_until_there_is_a_buffer_or_it_gives_up() {
        let claims = Claims::new(claims(2).layout, 2, claims(2).next_start());
        let (gives_up, waits) = (AtomicU32::new(0), AtomicU32::new(0));
        let wait = || {
            claims.wait_for_room(|| {
                waits.store(1, Ordering::SeqCst);
                gives_up.load(Ordering::SeqCst) == 1
            });
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(wait);
            while waits.load(Ordering::SeqCst) == 0 && !waiting.is_finished() {
                yield_now();
            }
            gives_up.store(1, Ordering::SeqCst);
            claims.wake_waiting();
            waiting.join().unwrap();
            assert_eq!(waits.swap(0, Ordering::SeqCst), 1);
            gives_up.store(0, Ordering::SeqCst);
            let waiting = scope.spawn(|| {
                wait();
                claims.has_room()
            });
            while waits.load(Ordering::SeqCst) == 0 && !waiting.is_finished() {
                yield_now();
            }
            claims.free(0, 0);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn a_pause_is_idle_once_the_last_batch_was_taken() {
        let claims = claims(2);
        let first = place(&claims, 100);
        assert!(!claims.is_idle());
        assert!(!claims.publish(first).0 && claims.pause().0);
        assert!(!claims.is_idle());
        assert!(claims.take_ready().is_some() && claims.is_idle());
    }

    #[test]
    fn a_claim_that_does_not_fit_closes_the_batch_and_goes_into_the_next() {
        let claims = claims(2);
        let first = place(&claims, 300);
        let second = place(&claims, 300);
        assert_eq!((second.slot, second.sequence), (1, 101));
        assert!(claims.publish(first).0 && claims.take_ready().is_some());
    }

    #[test]
    fn a_segment_that_has_no_room_for_a_whole_batch_is_followed_by_the_next() {
        let claims = claims(2);
        let first = place(&claims, 10);
        assert!(claims.publish(first).0 ^ claims.close_open().0);
        let second = place(&claims, 10);
        assert_eq!(second.offset, segment::HEADER_BYTES + HEAD);
        let start = Start { first_sequence: 101, segment: 8, offset: 0 };
        assert_eq!(claims.next_start().segment, start.segment);
        assert!(claims.publish(second).0 ^ claims.close_open().0);
        claims.take_ready().unwrap();
        assert_eq!(claims.take_ready().unwrap().start, start);
    }

    #[test]
    fn without_a_free_buffer_there_is_no_place_until_one_is_given_back() {
        let claims = claims(2);
        let places = [place(&claims, 300), place(&claims, 300)];
        assert!(claims.claim(300).place.is_none());
        assert!(!claims.has_room());
        places.into_iter().for_each(|place| assert!(claims.publish(place).0));
        let closed = claims.take_ready().unwrap();
        assert_eq!(closed.slot, 0);
        claims.free(0, 0);
        assert_eq!(place(&claims, 300).sequence, 102);
    }

    #[test]
    fn a_batch_without_records_is_not_closed_and_takes_no_room_in_the_segment() {
        let claims = claims(2);
        assert!(!claims.close_open().0 && !claims.has_closed());
        assert!(claims.end().0);
        let closed = claims.take_ready().unwrap();
        assert_eq!((closed.count, closed.bytes), (0, HEAD));
        assert_eq!(claims.next_start(), closed.start);
        assert!(claims.claim(10).place.is_none() && claims.has_room());
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
                            let Some(place) = claims.claim(9 + number % 90).place else {
                                claims.wait_for_room(|| false);
                                continue;
                            };
                            let Place { slot, offset, len, sequence, .. } = place;
                            taken.lock().unwrap().push((sequence, slot, offset, len));
                            let _ = claims.publish(place);
                            break;
                        }
                    }
                });
            }
            let mut next = 100;
            while next < 100 + producers * each as u64 {
                let _ = claims.close_open();
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
