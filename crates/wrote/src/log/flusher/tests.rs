//! The order of flushes, and the records that wait for them.

use super::clock::SIMULATED_BYTES_PER_S;
use super::{Flush, Flusher};
use crate::log::LogOptions;
use crate::log::testing::{folder, read};
use crate::{Log, Sim, SyncPolicy};

const BUFFERS: u32 = 8;
const BUFFER_BYTES: usize = 4096;

/// Returns the options of a log whose segments have two batches.
fn small(sync: SyncPolicy) -> LogOptions {
    let options = Log::options().sync(sync).buffers(BUFFERS).buffer_bytes(BUFFER_BYTES);
    options.segment_bytes(2 * BUFFER_BYTES as u64)
}

fn visit<T>(log: &Log, look: impl FnOnce(&mut Flusher) -> T) -> T {
    log.driver().visit(|flusher| Ok(look(flusher))).unwrap()
}

/// Does one step, and returns how many files the running flush still waits for.
fn step(log: &Log) -> usize {
    let driver = log.driver();
    visit(log, |flusher| {
        flusher.step(&driver.state).unwrap();
        match flusher.flush {
            Flush::Running { left, .. } => left,
            _ => 0,
        }
    })
}

#[test]
fn behind_the_page_cache_segments_become_durable_one_by_one_the_oldest_first() {
    // W1, W9
    let mut most = 0;
    for seed in 0..40 {
        let sim = Sim::new(seed);
        let log = small(SyncPolicy::No).on(&sim.disk()).open(folder()).unwrap();
        let waiting = || visit(&log, |it| it.unflushed.iter().filter(|it| it.is_dirty).count());
        let absorbs = || visit(&log, |flusher| flusher.absorbing.is_some());
        let mut number = 0_u64;
        while !absorbs() || waiting() <= seed as usize % 4 {
            drop(log.append(&number.to_le_bytes().repeat(400)).unwrap());
            number += 1;
        }
        // All is written before anything is flushed.
        log.append(b"last").unwrap().until_written().wait().unwrap();
        let ends: Vec<u64> = visit(&log, |flusher| {
            // One may be in the flush that runs.
            let segments = flusher.unflushed.iter().chain(&flusher.segment);
            segments.map(|it| it.end_sequence).collect()
        });
        most = most.max(ends.len());
        let driver = log.driver();
        driver.state.durable.want(log.stats().next_sequence);
        let (before, mut reached) = (log.stats().durable_sequence, vec![]);
        for _ in 0..seed % 11 {
            assert!(step(&log) <= 1, "seed {seed}: two files are flushed at once");
            reached.push(log.stats().durable_sequence);
        }
        reached.dedup();
        reached.retain(|end| *end > before);
        assert_eq!(reached, ends[..reached.len().min(ends.len())], "seed {seed}");
        let durable = log.stats().durable_sequence;
        sim.restart();
        drop(log);
        let (records, end) = read(&sim, 0);
        end.unwrap();
        assert!(records.len() as u64 >= durable, "seed {seed}: {durable} were durable");
    }
    assert!(most >= 4, "{most} segments waited at most");
}

#[test]
fn records_wait_while_earlier_ones_are_late_to_be_durable() {
    let (mut late, mut slow) = (0, 0);
    for seed in 0..40 {
        let sim = Sim::new(seed);
        let options = small(SyncPolicy::EverySec).segment_bytes(16 * BUFFER_BYTES as u64);
        let log = options.on(&sim.disk()).open(folder()).unwrap();
        let (mut batches, mut absorbed) = (0, false);
        for number in 0..200_u64 {
            drop(log.append(&number.to_le_bytes().repeat(200)).unwrap());
            let has_begun =
                log.stats().batches > std::mem::replace(&mut batches, log.stats().batches);
            let absorbs = visit(&log, |flusher| {
                let absorbs = flusher.absorbing.is_some();
                if absorbed && absorbs && has_begun {
                    let running = match flusher.flush {
                        Flush::Running { bytes, .. } => bytes,
                        _ => 0,
                    };
                    // Batches in flight count once they are written.
                    let in_flight = u64::from(BUFFERS) * BUFFER_BYTES as u64;
                    let most = 2 * SIMULATED_BYTES_PER_S + running + in_flight;
                    assert!(flusher.behind_bytes <= most, "seed {seed}: {}", flusher.behind_bytes);
                    slow += 1;
                }
                absorbs
            });
            absorbed = absorbs;
        }
        late += log.stats().late_batches;
    }
    assert!(late > 100 && slow > 100, "{late}, {slow}");
}
