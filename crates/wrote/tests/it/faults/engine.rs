//! The engine as a subject: blocks that are written concurrently, and a flush.

use super::{Kept, Outcome, Subject};
use crate::path;
use libc::{EAGAIN, ECANCELED, EINTR, EINVAL, EIO};
use std::sync::LazyLock;
use wrote::engine::{Completion, Engine, Fault, FileId, Op, Options};
use wrote::{Error, FileOptions, Ioengine, Sim};

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 12;
const DEPTH: u32 = 4;

fn engine(sim: &Sim) -> Engine {
    Engine::simulated(sim, &Options::new(Ioengine::IoUring, DEPTH, BLOCK_BYTES)).unwrap()
}

/// Creates the file, and makes its name durable.
fn open(sim: &Sim, engine: &mut Engine, direct: bool) -> FileId {
    let options = FileOptions::new().create_new(true).write(true).direct(direct);
    let file = engine.open_file(path(), &options).unwrap();
    sim.sync();
    file
}

fn whole_file() -> &'static [u8] {
    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let bytes = 0..BLOCKS as usize * BLOCK_BYTES;
        bytes.map(|place| (place / BLOCK_BYTES * 13 + place % BLOCK_BYTES / 7 + 1) as u8).collect()
    });
    &WHOLE
}

fn block(number: u64) -> &'static [u8] {
    &whole_file()[number as usize * BLOCK_BYTES..][..BLOCK_BYTES]
}

fn queue_block(engine: &mut Engine, file: FileId, number: u64, durable: bool) {
    let mut buffer = engine.lease().unwrap();
    buffer.copy_from_slice(block(number));
    let offset = number * BLOCK_BYTES as u64;
    engine.queue(number, Op::Write { file, offset, buffer, durable });
}

/// Writes every block and flushes once, and returns the completions.
fn write_and_flush(engine: &mut Engine, file: FileId, durable: bool) -> Vec<Completion> {
    let mut completions = Vec::new();
    for number in 0..BLOCKS {
        queue_block(engine, file, number, durable);
        engine.reap(0, &mut completions).unwrap();
    }
    engine.reap(usize::MAX, &mut completions).unwrap();
    engine.queue(BLOCKS, Op::Fdatasync { file });
    engine.reap(1, &mut completions).unwrap();
    completions
}

/// A subject that writes the blocks directly or through the page cache, each of them durably or
/// not.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    direct: bool,
    durable: bool,
}

pub fn subjects() -> Vec<Box<dyn Subject>> {
    let blocks = |(direct, durable)| Box::new(Blocks { direct, durable }) as Box<dyn Subject>;
    [(false, false), (false, true), (true, false), (true, true)].map(blocks).into()
}

impl Subject for Blocks {
    fn work(&self, sim: &Sim, fault: Option<Fault>) -> Outcome {
        let mut engine = engine(sim);
        let file = open(sim, &mut engine, self.direct);
        let mut completions = write_and_flush(&mut engine, file, self.durable);
        assert_eq!(engine.buffers_free(), DEPTH as usize, "W5: every buffer came back");
        completions.sort_by_key(|completion| completion.user_data);
        let answered = completions.iter().map(|completion| completion.user_data);
        assert!(answered.eq(0..=BLOCKS), "every operation is answered exactly once");
        for completion in &completions {
            if let Err(Error::File { offset: Some(offset), .. }) = &completion.result {
                assert_eq!(offset / BLOCK_BYTES as u64, completion.user_data);
            }
        }
        let flush = completions.pop().expect("the flush is the last");
        if matches!(fault, Some(Fault::Once(_))) && flush.result.is_err() {
            let operations = sim.operations();
            assert!(matches!(engine.flush(file), Err(Error::Poisoned { .. })), "W2");
            assert_eq!(sim.operations(), operations, "W2: it is never tried again");
        }
        let known = |is_known: bool| {
            if completions.iter().all(|write| is_known && write.result.is_ok()) {
                return Kept::OneOf(vec![Some(whole_file().to_vec())]);
            }
            let block = |write: &Completion| {
                let is_known = is_known && matches!(write.result, Ok(BLOCK_BYTES));
                block(write.user_data).iter().map(move |byte| is_known.then_some(*byte))
            };
            let known: Vec<_> = completions.iter().flat_map(block).collect();
            let len_min = known.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            Kept::Bytes { known, len_min, len_max: whole_file().len() }
        };
        let files =
            vec![(path().to_owned(), known(true), known(self.durable || flush.result.is_ok()))];
        completions.push(flush);
        let failures = completions.into_iter().filter_map(|completion| completion.result.err());
        Outcome { failures: failures.collect(), files }
    }

    /// Each size is half a block more than a number of whole blocks, so that a write is first short
    /// and then refused.
    fn capacities(&self) -> Vec<u64> {
        (0..BLOCKS).map(|blocks| blocks * BLOCK_BYTES as u64 + BLOCK_BYTES as u64 / 2).collect()
    }
}

fn failures(completions: &[Completion]) -> Vec<&Error> {
    completions.iter().filter_map(|completion| completion.result.as_ref().err()).collect()
}

#[test]
fn an_interruption_that_never_ends_is_an_error() {
    for errno in [EINTR, EAGAIN] {
        let sim = Sim::new(3);
        let mut engine = engine(&sim);
        let file = open(&sim, &mut engine, true);
        queue_block(&mut engine, file, 0, false);
        sim.fault(sim.operations(), Fault::Forever(errno));
        assert_eq!(engine.drain().unwrap_err().errno(), errno);
        assert_eq!(engine.flush(file).unwrap_err().errno(), errno);
    }
}

#[test]
fn a_failed_flush_poisons_the_file_for_good() {
    // W2
    let sim = Sim::new(3);
    let mut engine = engine(&sim);
    let file = open(&sim, &mut engine, true);
    queue_block(&mut engine, file, 0, false);
    engine.drain().unwrap();
    sim.fault(sim.operations(), Fault::Once(EIO));
    assert_eq!(engine.flush(file).unwrap_err().errno(), EIO);
    let operations = sim.operations();
    // The disk works again, but the lost bytes stay lost, so nothing more is promised.
    for _ in 0..3 {
        assert!(matches!(engine.flush(file), Err(Error::Poisoned { errno: EIO, .. })));
    }
    queue_block(&mut engine, file, 1, false);
    assert!(matches!(engine.drain(), Err(Error::Poisoned { errno: EIO, .. })));
    assert_eq!(sim.operations(), operations, "a failed flush is never tried again");
    // The contents can still be read.
    let buffer = engine.lease().unwrap();
    engine.queue(0, Op::Read { file, offset: 0, buffer });
    engine.drain().unwrap();
}

#[test]
fn a_flush_that_the_file_system_cancels_has_failed_and_a_transfer_goes_on() {
    // W2: no thread has exited, so the ring has not returned this flush without starting it.
    let sim = Sim::new(3);
    let mut engine = engine(&sim);
    let file = open(&sim, &mut engine, true);
    sim.fault(sim.operations(), Fault::Once(ECANCELED));
    queue_block(&mut engine, file, 0, false);
    engine.drain().unwrap();
    sim.fault(sim.operations(), Fault::Once(ECANCELED));
    assert_eq!(engine.flush(file).unwrap_err().errno(), ECANCELED);
    assert!(matches!(engine.flush(file), Err(Error::Poisoned { errno: ECANCELED, .. })));
}

#[test]
fn bytes_that_a_failed_flush_lost_are_not_brought_back_by_a_later_one() {
    // W2: Linux behaves like this, because it marks the pages clean after the error.
    let lost = (0..20).filter(|&seed| {
        let sim = Sim::new(seed);
        let mut engine = engine(&sim);
        let file = open(&sim, &mut engine, false);
        queue_block(&mut engine, file, 0, false);
        engine.drain().unwrap();
        sim.fault(sim.operations(), Fault::Once(EIO));
        assert_eq!(engine.flush(file).unwrap_err().errno(), EIO);
        drop(engine);
        // Another process flushes the file successfully.
        let mut other = self::engine(&sim);
        let options = FileOptions::new().write(true);
        let file = other.open_file(path(), &options).unwrap();
        other.flush(file).unwrap();
        assert_eq!(sim.contents(path()).unwrap(), block(0), "the running system has the bytes");
        other.close_file(file).unwrap();
        sim.after_power_loss(path()).unwrap() != block(0)
    });
    assert_eq!(lost.count(), 20);
}

#[test]
fn a_flush_that_lies_makes_nothing_stable_and_rot_stays_on_the_disk() {
    let sim = Sim::new(8);
    let mut engine = engine(&sim);
    let file = open(&sim, &mut engine, true);
    for number in 0..2 {
        queue_block(&mut engine, file, number, false);
        engine.drain().unwrap();
        let fault = [Fault::Short(u64::MAX), Fault::Lie][number as usize];
        sim.fault(sim.operations(), fault);
        engine.flush(file).unwrap();
    }
    let mut read = |fault| {
        sim.fault(sim.operations(), fault);
        let mut completions = Vec::new();
        let buffer = engine.lease().unwrap();
        engine.queue(0, Op::Read { file, offset: 0, buffer });
        engine.reap(1, &mut completions).unwrap();
        completions.pop().unwrap().buffer.unwrap().to_vec()
    };
    let different =
        |found: &[u8]| found.iter().zip(block(0)).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    assert!(different(&read(Fault::Misdirected)) > 1);
    assert_eq!(different(&read(Fault::Rot)), 1);
    assert_eq!(different(&read(Fault::Short(u64::MAX))), 1);
    let stable = sim.after_power_loss(path()).unwrap();
    assert_eq!(different(&stable), 1);
    assert_ne!(stable.get(BLOCK_BYTES..), Some(block(1)));
}

#[test]
fn a_flush_beside_one_that_failed_promises_nothing() {
    // W2: one of two flushes gets the error, and neither may promise anything.
    for seed in 0..50 {
        let sim = Sim::new(seed);
        let mut engine = engine(&sim);
        let file = open(&sim, &mut engine, false);
        queue_block(&mut engine, file, 0, false);
        engine.drain().unwrap();
        sim.fault(sim.operations(), Fault::Once(EIO));
        engine.queue(1, Op::Fdatasync { file });
        engine.queue(2, Op::Fsync { file });
        let mut completions = Vec::new();
        engine.reap(2, &mut completions).unwrap();
        assert_eq!(failures(&completions).len(), 2);
    }
}

#[test]
fn direct_io_refused_at_open_or_at_the_first_transfer_falls_back_and_says_so() {
    // W6
    for (at_transfer, words) in [(false, "open: "), (true, "write: ")] {
        for durable in [false, true] {
            let sim = Sim::new(9);
            if !at_transfer {
                sim.refuse_direct_at_open()
            } else {
                sim.refuse_direct_at_transfer()
            }
            let mut engine = engine(&sim);
            let file = open(&sim, &mut engine, true);
            let completions = write_and_flush(&mut engine, file, durable);
            assert!(failures(&completions).is_empty());
            assert_eq!(sim.contents(path()).unwrap(), whole_file());
            assert!(!engine.is_direct(file));
            let [step] = &engine.effective().fallbacks[..] else { panic!("one step down") };
            assert_eq!((step.wanted, step.got), ("O_DIRECT", "page cache"));
            assert!(step.because.starts_with(words) && step.because.contains("Invalid argument"));
        }
    }
}

#[test]
fn an_invalid_argument_after_direct_io_worked_is_an_error_and_no_fallback() {
    let sim = Sim::new(5);
    let mut engine = engine(&sim);
    let file = open(&sim, &mut engine, true);
    queue_block(&mut engine, file, 0, false);
    engine.drain().unwrap();
    sim.fault(sim.operations(), Fault::Once(EINVAL));
    queue_block(&mut engine, file, 1, false);
    assert_eq!(engine.drain().unwrap_err().errno(), EINVAL);
    assert!(engine.effective().fallbacks.is_empty());
}

#[test]
fn a_read_is_whole_up_to_the_end_of_the_file_whatever_is_short() {
    // W4
    for direct in [false, true] {
        for bytes in [0, 1, 511, 512, 700, 4000] {
            for operation in 0..4 {
                let sim = Sim::new(operation);
                let mut engine = engine(&sim);
                let file = open(&sim, &mut engine, direct);
                for number in 0..2 {
                    queue_block(&mut engine, file, number, false);
                }
                engine.drain().unwrap();
                if direct && (bytes == 0 || bytes % 512 != 0) {
                    // A direct read that ends within a block means the end of the file.
                    continue;
                }
                sim.fault(sim.operations() + operation, Fault::Short(bytes));
                for number in 0..3 {
                    let buffer = engine.lease().unwrap();
                    let offset = number * BLOCK_BYTES as u64;
                    engine.queue(number, Op::Read { file, offset, buffer });
                    let mut completions = Vec::new();
                    engine.reap(1, &mut completions).unwrap();
                    let completion = completions.pop().unwrap();
                    let found = completion.result.unwrap();
                    assert_eq!(found, if number < 2 { BLOCK_BYTES } else { 0 });
                    let buffer = completion.buffer.unwrap();
                    assert!(number == 2 || buffer[..] == *block(number));
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "two writes in flight")]
fn two_writes_in_flight_on_one_block_are_a_mistake() {
    // W3
    let sim = Sim::new(0);
    let mut engine = engine(&sim);
    let file = open(&sim, &mut engine, false);
    queue_block(&mut engine, file, 0, false);
    queue_block(&mut engine, file, 0, false);
}

#[test]
fn a_truncation_waits_for_what_is_in_flight_and_stands_interruptions() {
    // W4
    for fault in [None, Some(Fault::Once(EINTR)), Some(Fault::Once(EAGAIN))] {
        let sim = Sim::new(7);
        let mut engine = engine(&sim);
        let file = open(&sim, &mut engine, true);
        for number in 0..DEPTH.into() {
            queue_block(&mut engine, file, number, false);
        }
        if let Some(fault) = fault {
            sim.fault(DEPTH.into(), fault);
        }
        engine.truncate(file, 5000).unwrap();
        assert_eq!(sim.contents(path()).unwrap(), whole_file()[..5000]);
        engine.truncate(file, 6000).unwrap();
        let expected = [&whole_file()[..5000], &[0; 1000][..]].concat();
        assert_eq!(sim.contents(path()).unwrap(), expected);
    }
}

#[test]
fn a_truncation_that_fails_names_the_length_and_one_of_a_poisoned_file_is_refused() {
    // W2
    let sim = Sim::new(7);
    let mut engine = engine(&sim);
    let file = open(&sim, &mut engine, false);
    sim.fault(0, Fault::Once(EIO));
    let error = engine.truncate(file, 512).unwrap_err();
    assert!(error.to_string().starts_with("/sim/file: truncate at byte 512: "), "{error}");
    sim.fault(1, Fault::Once(EIO));
    engine.flush(file).unwrap_err();
    assert!(matches!(engine.truncate(file, 512), Err(Error::Poisoned { errno: EIO, .. })));
}

#[test]
fn the_disk_works_while_nobody_waits_for_it() {
    for seed in 0..20 {
        let sim = Sim::new(seed);
        let mut engine = engine(&sim);
        let file = open(&sim, &mut engine, true);
        queue_block(&mut engine, file, 0, false);
        let mut completions = Vec::new();
        // A thousand polls almost certainly find the completion.
        for _ in 0..1000 {
            engine.reap(0, &mut completions).unwrap();
        }
        assert_eq!(completions.len(), 1);
    }
}
