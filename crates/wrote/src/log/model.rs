//! Tests of claims, with the steps of their threads in every order. `cargo xtask nightly threads`
//! runs them.
//!
//! The crate `loom` runs each test with every order of the threads' steps and with every value that
//! the memory model allows a read to see, within `LOOM_MAX_PREEMPTIONS`. It also detects deadlocks.

use super::claim::{Claim, Claims, ClosedBatch, Place, Ready, head_bytes};
use super::segment::{Layout, Start};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The length of every frame, in bytes. It exceeds the length of a segment header, so a batch that
/// does not start a segment has no room for an additional frame in the space of that header.
const FRAME: usize = 72;
/// The content of a cell that was claimed but not filled.
const SKIPPED: u64 = u64::MAX;

/// One frame of a buffer. Loom sees its accesses through `seen`; `content` holds its value.
#[derive(Default)]
struct Cell {
    seen: UnsafeCell<()>,
    content: AtomicU64,
}

// SAFETY: the only field that is not `Sync` is `seen`, whose value no thread touches. Loom tracks
// the accesses to it, and fails a test with two concurrent ones.
unsafe impl Sync for Cell {}

impl Cell {
    fn write(&self, content: u64) {
        self.seen.with_mut(|_| ());
        // This is the atomic type of the standard library, so loom does not explore its orderings.
        self.content.store(content, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.seen.with(|_| ());
        self.content.load(Ordering::Relaxed)
    }
}

/// A bell that is rung when a batch is ready.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.rings.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.rings.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// A log without a disk.
struct Scene {
    claims: Claims,
    layout: Layout,
    buffers: Vec<Vec<Cell>>,
    bell: Bell,
    /// Whether the bell is rung for every record, as it is by producers that wait for their
    /// records.
    is_eager: bool,
}

/// Returns the content of a cell that holds this record of this producer.
fn content(producer: u64, record: u64) -> u64 {
    (producer + 1) * 100 + record
}

impl Scene {
    /// Creates a scene with two slots, each with room for `records` records, and with segments of
    /// `batches` batches. One of the slots is open.
    fn new(records: usize, batches: u64) -> Arc<Scene> {
        let block_bytes = 256;
        let layout = Layout {
            capacity: (head_bytes(true) + records * FRAME) as u64,
            block_bytes,
            segment_bytes: batches * block_bytes - 1,
            ramp: None,
            log_id: 7,
        };
        let cells = layout.capacity as usize / FRAME;
        let buffer = || (0..cells).map(|_| Cell::default()).collect();
        let start = Start { first_sequence: 0, segment: 1, offset: 0 };
        let claims = Claims::new(layout, 2, start);
        claims.free(0, 0);
        claims.free(1, 1);
        let buffers = (0..2).map(|_| buffer()).collect();
        Arc::new(Scene { claims, layout, buffers, bell: Bell::default(), is_eager: false })
    }

    /// Creates a scene in which each producer wants its record to be written at once.
    fn eager(records: usize, batches: u64) -> Arc<Scene> {
        let scene = Arc::into_inner(Scene::new(records, batches)).expect("the only one");
        Arc::new(Scene { is_eager: true, ..scene })
    }

    fn ring_if(&self, ready: Ready) {
        if ready.0 {
            self.bell.ring();
        }
    }

    /// Claims a place for one frame; `None` once the log is closed.
    fn claim(&self) -> Option<Place> {
        self.claim_by(|| self.claims.claim(FRAME))
    }

    /// Claims a place for a group of frames; `None` once the log is closed.
    fn claim_group(&self, frames: usize) -> Option<Place> {
        self.claim_by(|| self.claims.claim_group(frames * FRAME, frames))
    }

    fn claim_by(&self, claim: impl Fn() -> Claim) -> Option<Place> {
        loop {
            let claim = claim();
            self.ring_if(claim.ready);
            match claim.place {
                Some(place) => return Some(place),
                None if self.claims.has_ended() => return None,
                None => self.claims.wait_for_room(|| false),
            }
        }
    }

    fn fill(&self, place: Place, content: u64) -> u64 {
        let sequence = place.sequence;
        assert_eq!(place.address, place.slot, "the buffer that the slot was given");
        for frame in 0..place.len / FRAME {
            self.buffers[place.slot][place.offset / FRAME + frame].write(content);
        }
        let ready = self.claims.publish(place);
        self.ring_if(Ready(ready.0 || self.is_eager));
        sequence
    }

    /// Appends records one after the other, and asserts that their sequences increase.
    fn produce(&self, producer: u64, records: u64) {
        let mut before = None;
        for record in 0..records {
            let place = self.claim().expect("the log goes on");
            let sequence = self.fill(place, content(producer, record));
            assert!(before < Some(sequence), "one producer's records stay in order"); // W9
            before = Some(sequence);
        }
    }

    /// Appends the records of a ready batch to `written`, and frees the batch's slot.
    fn write(&self, batch: ClosedBatch, written: &mut FlushedRecords) {
        let head = head_bytes(batch.start.offset == 0);
        assert_eq!(batch.start, written.expected(&self.layout), "batches follow each other");
        assert_eq!(batch.bytes, head + batch.count as usize * FRAME);
        for index in 0..batch.count as usize {
            let cell = &self.buffers[batch.slot][head / FRAME + index];
            written.records.push(cell.read());
        }
        if batch.count > 0 {
            written.last = Some(batch);
        }
        self.claims.free(batch.slot, batch.slot);
    }

    /// Writes ready batches until `records` records are written. Waits for the bell while none is
    /// ready.
    fn flush(&self, records: usize) -> FlushedRecords {
        let mut written = FlushedRecords::default();
        while written.records.len() < records {
            match self.claims.take_ready() {
                Some(batch) => self.write(batch, &mut written),
                None => self.bell.wait(),
            }
        }
        written
    }

    /// Works like [`Scene::flush`], but also closes batches that are not full.
    fn flush_eagerly(&self, records: usize) -> FlushedRecords {
        let mut written = FlushedRecords::default();
        while written.records.len() < records {
            match self.claims.take_ready() {
                Some(batch) => self.write(batch, &mut written),
                None if self.claims.close_open().0 => {}
                None => self.bell.wait(),
            }
        }
        written
    }
}

/// The records that the flusher has written.
#[derive(Default)]
struct FlushedRecords {
    records: Vec<u64>,
    last: Option<ClosedBatch>,
}

impl FlushedRecords {
    /// Returns the position where the next batch must begin.
    fn expected(&self, layout: &Layout) -> Start {
        let Some(last) = self.last else {
            return Start { first_sequence: 0, segment: 1, offset: 0 };
        };
        let end = last.start.offset + (last.bytes as u64).next_multiple_of(layout.block_bytes);
        let first_sequence = last.end_sequence();
        if end + layout.capacity <= layout.segment_bytes {
            return Start { first_sequence, segment: last.start.segment, offset: end };
        }
        Start { first_sequence, segment: last.start.segment + 1, offset: 0 }
    }

    /// Asserts that every record of every producer occurs exactly once, and that the records of
    /// each producer are in order.
    fn assert_whole(&self, producers: u64, records: u64) {
        assert_eq!(self.records.len() as u64, producers * records);
        for producer in 0..producers {
            let own = |found: &&u64| **found / 100 == producer + 1;
            let found: Vec<u64> = self.records.iter().filter(own).copied().collect();
            let sent: Vec<u64> = (0..records).map(|record| content(producer, record)).collect();
            assert_eq!(found, sent);
        }
    }
}

fn producers(scene: &Arc<Scene>, count: u64, records: u64) -> Vec<thread::JoinHandle<()>> {
    let start = |producer| {
        let scene = Arc::clone(scene);
        thread::spawn(move || scene.produce(producer, records))
    };
    (0..count).map(start).collect()
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Checks that every record is written exactly once. The bell is rung only by a thread whose call
/// makes a batch ready. The first record that does not fit closes its batch; the last batch is
/// closed once all producers have finished.
fn every_record_is_written_once(producing: u64, records: u64, room: usize) {
    loom::model(move || {
        let scene = Scene::new(room, 100);
        let flusher = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.flush((producing * records) as usize))
        };
        join(producers(&scene, producing, records));
        scene.ring_if(scene.claims.close_open());
        flusher.join().unwrap().assert_whole(producing, records);
    });
}

#[test]
fn of_two_producers_every_record_is_in_its_place_when_its_batch_is_ready() {
    every_record_is_written_once(2, 2, 2);
}

#[test]
fn a_producer_that_waits_for_room_is_woken_when_there_is_some() {
    // There is room for two batches of one record each, so the third and fourth records have to
    // wait.
    every_record_is_written_once(2, 2, 1);
}

#[test]
fn of_three_producers_one_turns_over() {
    loom::model(|| {
        let scene = Scene::new(2, 100);
        let others = producers(&scene, 2, 1);
        scene.produce(2, 1);
        join(others);
        scene.ring_if(scene.claims.close_open());
        scene.flush(3).assert_whole(3, 1);
    });
}

#[test]
fn a_batch_is_closed_while_places_in_it_are_claimed() {
    loom::model(|| {
        let scene = Scene::eager(2, 100);
        let producers = producers(&scene, 2, 2);
        scene.flush_eagerly(4).assert_whole(2, 2);
        join(producers);
    });
}

#[test]
fn two_who_close_a_batch_at_once_close_it_once() {
    loom::model(|| {
        let scene = Scene::new(2, 100);
        let producers = producers(&scene, 1, 1);
        let closer = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.ring_if(scene.claims.close_open()))
        };
        join(producers);
        scene.ring_if(scene.claims.close_open());
        scene.flush(1).assert_whole(1, 1);
        closer.join().unwrap();
        assert!(!scene.claims.has_closed() || scene.claims.take_ready().is_some_and(is_empty));
    });
}

fn is_empty(batch: ClosedBatch) -> bool {
    batch.count == 0
}

#[test]
fn a_batch_that_finds_no_room_in_its_segment_begins_the_next() {
    loom::model(|| {
        let scene = Scene::eager(1, 1);
        let producers = producers(&scene, 2, 1);
        let written = scene.flush_eagerly(2);
        written.assert_whole(2, 1);
        assert_eq!(written.last.map(|batch| batch.start.segment), Some(2));
        join(producers);
    });
}

#[test]
fn the_seed_of_a_place_is_that_of_its_batchs_segment() {
    loom::model(|| {
        let scene = Scene::new(1, 1);
        let claim = |scene: Arc<Scene>| {
            let place = scene.claim().expect("room");
            let segment = 1 + place.sequence;
            assert_eq!(place.seed, super::segment::seed(scene.layout.log_id, segment));
            scene.fill(place, 1);
        };
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || claim(scene))
        };
        claim(scene);
        other.join().unwrap();
    });
}

#[test]
fn a_group_is_written_whole_beside_other_records() {
    loom::model(|| {
        // A batch has room for two records, so the group starts a new batch if the other record
        // came first.
        let scene = Scene::new(2, 100);
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.fill(scene.claim().expect("room"), 1))
        };
        let place = scene.claim_group(2).expect("room");
        let first_sequence = scene.fill(place, 2);
        let single = other.join().unwrap();
        assert!(single == 0 && first_sequence == 1 || single == 2 && first_sequence == 0);
        let _ = scene.claims.end();
        let mut written = FlushedRecords::default();
        while let Some(batch) = scene.claims.take_ready() {
            scene.write(batch, &mut written);
        }
        let expected = if single == 0 { [1, 2, 2] } else { [2, 2, 1] };
        assert_eq!(written.records, expected);
    });
}

#[test]
fn a_place_that_nobody_filled_holds_nothing_up() {
    loom::model(|| {
        let scene = Scene::eager(2, 100);
        let panicked = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let place = scene.claim().expect("the log goes on");
                scene.fill(place, SKIPPED);
            })
        };
        let producers = producers(&scene, 1, 2);
        let mut written = scene.flush_eagerly(3);
        assert_eq!(written.records.iter().filter(|&&found| found == SKIPPED).count(), 1);
        written.records.retain(|&found| found != SKIPPED);
        written.assert_whole(1, 2);
        join(producers);
        panicked.join().unwrap();
    });
}

#[test]
fn the_end_of_a_log_ends_every_wait_for_room() {
    loom::model(|| {
        let scene = Scene::new(1, 100);
        // There is room for two batches, and none is ever written.
        let produce = || {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                let mut done = 0;
                while let Some(place) = scene.claim() {
                    scene.fill(place, done);
                    done += 1;
                }
                done
            })
        };
        let threads = [produce(), produce()];
        let _ = scene.claims.end();
        let done: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(done <= 2, "{done} records in room for two");
    });
}

#[test]
fn the_next_start_is_never_before_a_claimed_place() {
    loom::model(|| {
        let scene = Scene::new(1, 100);
        let other = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.produce(1, 1))
        };
        let place = scene.claim().expect("room");
        let sequence = scene.fill(place, 1);
        let next = scene.claims.next_start();
        assert!((sequence + 1..=2).contains(&next.first_sequence), "{next:?} after {sequence}");
        // Each batch holds one record and occupies one block.
        assert_eq!(next.offset, next.first_sequence * scene.layout.block_bytes);
        other.join().unwrap();
        let next = scene.claims.next_start();
        assert_eq!((next.first_sequence, next.offset), (2, 2 * scene.layout.block_bytes));
    });
}
