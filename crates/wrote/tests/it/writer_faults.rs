//! A `Writer` on a simulated disk that fails or loses its power.

use crate::path;
use libc::{EAGAIN, EDQUOT, EINTR, EIO, ENOSPC};
use proptest::prelude::*;
use std::io::{Seek, SeekFrom, Write};
use wrote::engine::Fault;
use wrote::{Error, Sim, SyncPolicy, Writer, WriterOptions};

const BS_BYTES: usize = 4096;

fn options(direct: bool) -> WriterOptions {
    Writer::options().bs(BS_BYTES).iodepth(3).direct(direct)
}

/// Returns `len` bytes of the written sequence.
fn content(start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|place| (place / 251 + place * 7 + 1) as u8).collect()
}

/// A step of a script.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize),
    ReadFrom(usize),
    Flush,
    SyncData,
    Seek(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0usize..3 * BS_BYTES).prop_map(Step::Write),
        3 => (0usize..700).prop_map(Step::Write),
        2 => Just(Step::Write(BS_BYTES)),
        1 => (0usize..3 * BS_BYTES).prop_map(Step::ReadFrom),
        2 => Just(Step::Flush),
        2 => Just(Step::SyncData),
        2 => (0usize..5 * BS_BYTES).prop_map(Step::Seek),
    ]
}

fn take(writer: &mut Writer, step: Step, number: usize, model: &mut Vec<u8>, at: &mut usize) {
    match step {
        Step::Write(len) | Step::ReadFrom(len) => {
            let bytes = content(number * 1000 + *at, len);
            if matches!(step, Step::Write(_)) {
                writer.write_all(&bytes).unwrap();
            } else {
                assert_eq!(writer.read_from(&bytes[..]).unwrap(), len as u64);
            }
            let end = *at + len;
            if len > 0 {
                model.resize(model.len().max(end), 0);
                model[*at..end].copy_from_slice(&bytes);
            }
            *at = end;
        }
        Step::Flush => writer.flush().unwrap(),
        Step::SyncData => writer.sync_data().unwrap(),
        Step::Seek(place) => {
            assert_eq!(writer.seek(SeekFrom::Start(place as u64)).unwrap(), place as u64);
            *at = place;
        }
    }
    assert_eq!(writer.stream_position().unwrap(), *at as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_writes_flushes_and_seeks_leave_what_a_plain_file_would_hold(
        steps in prop::collection::vec(step(), 0..24),
        direct in any::<bool>(),
        refuse in any::<bool>(),
        durable in any::<bool>(),
        old in 0usize..3000,
        seed in any::<u64>(),
    ) {
        let sim = Sim::new(seed);
        if refuse {
            sim.refuse_direct_at_transfer();
        }
        let mut model = content(7, old);
        let mut first = options(false).on(&sim.disk()).open(path()).unwrap();
        first.write_all(&model).unwrap();
        first.finish().unwrap();
        let mut writer = options(direct).append(true).on(&sim.disk()).open(path()).unwrap();
        let mut at = old;
        for (number, step) in steps.into_iter().enumerate() {
            take(&mut writer, step, number, &mut model, &mut at);
        }
        let written = if durable { writer.finish() } else { writer.close() }.unwrap();
        prop_assert_eq!(written.bytes, model.len() as u64);
        prop_assert!(sim.contents(path()).unwrap() == model);
        if durable {
            // W1
            prop_assert!(sim.after_power_loss(path()).unwrap() == model);
        }
    }
}

/// Pieces of many lengths and single bytes, with some syncs.
const SCRIPT: [Step; 14] = [
    Step::Write(100),
    Step::SyncData,
    Step::Write(BS_BYTES - 100),
    Step::Write(3 * BS_BYTES + 17),
    Step::Flush,
    Step::Write(1),
    Step::SyncData,
    Step::Write(1),
    Step::Write(BS_BYTES),
    Step::ReadFrom(2 * BS_BYTES + 5),
    Step::SyncData,
    Step::SyncData,
    Step::Write(5 * BS_BYTES),
    Step::Write(333),
];

/// The result of a script.
struct Outcome {
    /// Bytes that a successful sync has covered.
    synced_bytes: usize,
    /// Bytes written until the first error.
    written_bytes: usize,
    failure: Option<std::io::Error>,
}

fn script(sim: &Sim, direct: bool, sync: SyncPolicy) -> Outcome {
    let mut outcome = Outcome { synced_bytes: 0, written_bytes: 0, failure: None };
    let mut writer = options(direct).sync(sync).on(&sim.disk()).open(path()).unwrap();
    for step in SCRIPT {
        let bytes = match step {
            Step::Write(len) | Step::ReadFrom(len) => content(outcome.written_bytes, len),
            _ => Vec::new(),
        };
        let result = match step {
            Step::Write(_) => writer.write_all(&bytes),
            Step::ReadFrom(_) => writer.read_from(&bytes[..]).map(drop),
            Step::Flush => writer.flush(),
            Step::SyncData => writer.sync_data().map_err(std::io::Error::from),
            Step::Seek(_) => unreachable!("the script goes straight on"),
        };
        match (result, &outcome.failure) {
            (Err(error), None) => outcome.failure = Some(error),
            (result, Some(first)) => {
                assert_eq!(result.unwrap_err().to_string(), first.to_string(), "W2: for ever");
            }
            (Ok(()), None) => {
                outcome.written_bytes += bytes.len();
                if matches!(step, Step::SyncData) || sync == SyncPolicy::Always {
                    outcome.synced_bytes = outcome.written_bytes;
                }
            }
        }
    }
    match (writer.finish(), &outcome.failure) {
        (Err(error), Some(first)) => assert_eq!(error.to_string(), first.to_string(), "W2"),
        (Err(error), None) => outcome.failure = Some(error.into()),
        (Ok(written), failure) => {
            assert!(failure.is_none(), "an error is not forgotten: {failure:?}");
            assert_eq!(written.bytes, outcome.written_bytes as u64);
            outcome.synced_bytes = outcome.written_bytes;
        }
    }
    outcome
}

/// Runs the script with the fault at every operation, in every mode.
fn at_every_operation(fault: Fault, seeds: u64, check: impl Fn(&Sim, Outcome)) {
    for direct in [false, true] {
        for sync in [SyncPolicy::No, SyncPolicy::Always] {
            let undisturbed = Sim::new(0);
            assert!(script(&undisturbed, direct, sync).failure.is_none());
            for operation in 0..undisturbed.operations() {
                for seed in 0..seeds {
                    let sim = Sim::new(operation * 1000 + seed);
                    sim.fault(operation, fault);
                    let outcome = script(&sim, direct, sync);
                    check(&sim, outcome);
                }
            }
        }
    }
}

fn whole() -> Vec<u8> {
    let bytes = SCRIPT.iter().map(|step| match step {
        Step::Write(len) | Step::ReadFrom(len) => *len,
        _ => 0,
    });
    content(0, bytes.sum())
}

#[test]
fn short_writes_and_interruptions_are_not_seen() {
    // W4
    for fault in [
        Fault::Short(0),
        Fault::Short(1),
        Fault::Short(700),
        Fault::Once(EINTR),
        Fault::Once(EAGAIN),
    ] {
        at_every_operation(fault, 3, |sim, outcome| {
            assert!(outcome.failure.is_none(), "{fault:?}: {:?}", outcome.failure);
            assert!(sim.contents(path()).unwrap() == whole());
            assert!(sim.after_power_loss(path()).unwrap() == whole());
        });
    }
}

#[test]
fn what_was_synced_is_there_after_a_power_loss_at_any_operation() {
    // W1
    at_every_operation(Fault::PowerLoss, 20, |sim, outcome| {
        let found = sim.after_power_loss(path()).unwrap_or_default();
        let synced = outcome.synced_bytes;
        assert!(found.get(..synced) == Some(&whole()[..synced]), "of {synced} bytes some are gone");
    });
}

#[test]
fn an_error_in_the_background_comes_back_and_what_is_left_is_a_prefix() {
    // W2
    for errno in [EIO, ENOSPC, EDQUOT] {
        for fault in [Fault::Once(errno), Fault::Forever(errno)] {
            at_every_operation(fault, 3, |sim, outcome| {
                let left = sim.contents(path()).unwrap();
                // W1: the file keeps every synced byte.
                assert!(left.len() >= outcome.synced_bytes, "{} bytes are left", left.len());
                match outcome.failure {
                    Some(error) => {
                        let inner = error.get_ref().unwrap().downcast_ref::<Error>().unwrap();
                        assert_eq!(inner.errno(), errno);
                    }
                    // Extending the file ahead is optional.
                    None => assert!(left == whole()),
                }
                if matches!(fault, Fault::Once(_)) {
                    let known = &whole()[..left.len().min(whole().len())];
                    let padded = left.len() - known.len() < 512;
                    assert!(padded && left[..known.len()] == *known, "{} bytes", left.len());
                }
            });
        }
    }
}

#[test]
fn of_a_full_disk_what_was_written_stays_and_no_zeros_behind_it() {
    for direct in [false, true] {
        for capacity_bytes in (0..whole().len() as u64).step_by(3000) {
            let sim = Sim::new(capacity_bytes);
            sim.set_capacity(capacity_bytes);
            let outcome = script(&sim, direct, SyncPolicy::No);
            assert_eq!(outcome.failure.unwrap().kind(), std::io::ErrorKind::StorageFull);
            let left = sim.contents(path()).unwrap();
            assert!(left == whole()[..left.len()], "{} of {capacity_bytes} bytes", left.len());
        }
    }
}

#[test]
fn an_error_leaves_what_was_there_before_an_append() {
    // W7
    for direct in [false, true] {
        for errno in [EIO, ENOSPC] {
            for operation in 0..4 {
                let sim = Sim::new(operation);
                let old = content(0, 1234);
                let mut first = options(direct).on(&sim.disk()).open(path()).unwrap();
                first.write_all(&old).unwrap();
                first.finish().unwrap();
                sim.fault(sim.operations() + operation, Fault::Once(errno));
                let appended = options(direct).append(true).on(&sim.disk()).open(path());
                let _ = appended.and_then(|mut writer| {
                    let _ = writer.write_all(&content(1234, 3 * BS_BYTES));
                    writer.finish()
                });
                let left = sim.contents(path()).unwrap();
                assert!(left.get(..1234) == Some(&old), "{} bytes are left", left.len());
            }
        }
    }
}

#[test]
fn a_disk_with_no_room_for_the_hint_is_left_as_free_as_it_was() {
    let sim = Sim::new(0);
    sim.set_capacity(9 << 20);
    let opened = options(true).size_hint(20 << 20).on(&sim.disk()).open(path());
    assert_eq!(opened.unwrap_err().errno(), ENOSPC);
    assert_eq!(sim.contents(path()).unwrap(), b"");
}

#[test]
fn a_file_whose_name_was_not_synced_is_no_promise() {
    // Shows that the tests above see the folder's sync.
    let lost = (0..50).filter(|&seed| {
        let sim = Sim::new(seed);
        let mut writer = options(true).on(&sim.disk()).open(path()).unwrap();
        writer.write_all(b"text").unwrap();
        writer.close().unwrap();
        sim.after_power_loss(path()).is_none()
    });
    assert!(lost.count() > 0);
}

#[test]
fn a_flush_that_lies_changes_nothing_on_the_running_system_and_the_next_one_makes_up_for_it() {
    at_every_operation(Fault::Lie, 1, |sim, outcome| {
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_eq!(sim.contents(path()), Some(whole()));
        let mut writer = options(false).append(true).on(&sim.disk()).open(path()).unwrap();
        writer.write_all(b"more").unwrap();
        writer.finish().unwrap();
        assert_eq!(sim.after_power_loss(path()), Some([&whole()[..], b"more"].concat()), "W1");
    });
}

#[test]
fn a_writer_that_appends_writes_no_old_byte_but_those_of_the_block_that_it_read() {
    for fault in [Fault::Rot, Fault::Misdirected] {
        for operation in 0..6 {
            let sim = Sim::new(operation);
            assert!(script(&sim, true, SyncPolicy::No).failure.is_none());
            let before = sim.contents(path()).unwrap();
            sim.fault(sim.operations() + operation, fault);
            let mut writer = options(true).append(true).on(&sim.disk()).open(path()).unwrap();
            writer.write_all(&content(0, BS_BYTES)).unwrap();
            writer.finish().unwrap();
            let found = sim.contents(path()).unwrap();
            let kept = before.len() / 512 * 512;
            assert!(found[..kept] == before[..kept], "{fault:?} of operation {operation}");
            assert!(found[before.len()..] == content(0, BS_BYTES), "{fault:?}");
        }
    }
}
