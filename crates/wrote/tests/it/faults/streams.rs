//! A `Writer` and a `Reader` as subjects: streams of bytes.

use super::{Kept, Outcome, Subject};
use crate::path;
use libc::{EIO, ENOSPC};
use proptest::prelude::*;
use std::io::{BufRead, Read, Seek, SeekFrom, Write};
use std::sync::LazyLock;
use wrote::engine::Fault;
use wrote::{Error, Reader, Sim, SyncPolicy, Writer, WriterOptions};

const BS_BYTES: usize = 4096;

fn options(direct: bool) -> WriterOptions {
    Writer::options().bs(BS_BYTES).iodepth(3).direct(direct)
}

/// Returns `len` bytes, starting at `start`, of the sequence that is written.
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

/// A script with pieces of many lengths and single bytes, and with some syncs.
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

/// A subject that executes the script without interruption, and ends with `finish`.
#[derive(Debug)]
struct Writing {
    direct: bool,
    sync: SyncPolicy,
}

pub fn subjects() -> Vec<Box<dyn Subject>> {
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    for direct in [false, true] {
        subjects.push(Box::new(Reading { direct }));
        for sync in [SyncPolicy::No, SyncPolicy::Always] {
            subjects.push(Box::new(Writing { direct, sync }));
        }
    }
    subjects
}

impl Subject for Writing {
    fn work(&self, sim: &Sim, fault: Option<Fault>) -> Outcome {
        let (mut synced, mut written) = (0, 0);
        let mut failure: Option<std::io::Error> = None;
        let options = options(self.direct).sync(self.sync);
        let mut writer = options.on(&sim.disk()).open(path()).unwrap();
        for step in SCRIPT {
            let bytes = match step {
                Step::Write(len) | Step::ReadFrom(len) => &whole()[written..written + len],
                _ => &[],
            };
            let result = match step {
                Step::Write(_) => writer.write_all(bytes),
                Step::ReadFrom(_) => writer.read_from(bytes).map(drop),
                Step::Flush => writer.flush(),
                Step::SyncData => writer.sync_data().map_err(std::io::Error::from),
                Step::Seek(_) => unreachable!("the script goes straight on"),
            };
            match (result, &failure) {
                (Err(error), None) => failure = Some(error),
                (result, Some(first)) => {
                    assert_eq!(result.unwrap_err().to_string(), first.to_string(), "W2: for ever");
                }
                (Ok(()), None) => {
                    written += bytes.len();
                    if matches!(step, Step::SyncData) || self.sync == SyncPolicy::Always {
                        synced = written;
                    }
                }
            }
        }
        match (writer.finish(), &failure) {
            (Err(error), Some(first)) => assert_eq!(error.to_string(), first.to_string(), "W2"),
            (Err(error), None) => failure = Some(error.into()),
            (Ok(done), failure) => {
                assert!(failure.is_none(), "an error is not forgotten: {failure:?}");
                assert_eq!(done.bytes, written as u64);
                synced = written;
            }
        }
        let failures = failure.map(|error| error.downcast::<Error>().unwrap());
        let stable = Kept::prefix(&whole()[..synced]);
        let now = match (&failures, fault) {
            (None, _) => Kept::OneOf(vec![Some(whole().to_vec())]),
            // A prefix remains. It may be followed by a block whose padding could not be cut off.
            (_, None | Some(Fault::Once(_))) => Kept::Prefix {
                bytes: whole().to_vec(),
                len_min: synced,
                len_max: whole().len() + if fault.is_some() { 511 } else { 0 },
            },
            _ => stable.clone(),
        };
        Outcome {
            failures: Vec::from_iter(failures),
            files: vec![(path().to_owned(), now, stable)],
        }
    }

    /// Returns false, because an error in extending the file ahead is not reported.
    fn tells(&self) -> bool {
        false
    }

    fn capacities(&self) -> Vec<u64> {
        (0..whole().len() as u64).step_by(3000).collect()
    }
}

fn whole() -> &'static [u8] {
    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let bytes = SCRIPT.iter().map(|step| match step {
            Step::Write(len) | Step::ReadFrom(len) => *len,
            _ => 0,
        });
        content(0, bytes.sum())
    });
    &WHOLE
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
    for replaces in [false, true] {
        let sim = Sim::new(0);
        sim.set_capacity(9 << 20);
        let options = options(true).size_hint(20 << 20).replace(replaces);
        assert_eq!(options.on(&sim.disk()).open(path()).unwrap_err().errno(), ENOSPC);
        assert_eq!(sim.contents(path()), (!replaces).then(Vec::new));
    }
}

#[test]
fn a_writer_that_appends_writes_no_old_byte_but_those_of_the_block_that_it_read() {
    for fault in [Fault::Rot, Fault::Misdirected] {
        for operation in 0..6 {
            let sim = Sim::new(operation);
            let writing = Writing { direct: true, sync: SyncPolicy::No };
            assert!(writing.work(&sim, None).failures.is_empty());
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

#[test]
fn a_sync_makes_up_for_an_earlier_one_that_lied() {
    // W1
    let sim = Sim::new(1);
    let mut writer = options(false).on(&sim.disk()).open(path()).unwrap();
    writer.write_all(b"text").unwrap();
    sim.fault(sim.operations() + 1, Fault::Lie);
    writer.sync_data().unwrap();
    writer.write_all(b"more").unwrap();
    writer.finish().unwrap();
    assert_eq!(sim.after_power_loss(path()).unwrap(), b"textmore");
}

const READ_BYTES: usize = 30 * BS_BYTES + 123;

fn read_content() -> &'static [u8] {
    static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| content(0, READ_BYTES));
    &CONTENT
}

/// Creates a disk with the file to be read.
fn disk_with_file(seed: u64) -> Sim {
    let sim = Sim::new(seed);
    let mut writer = Writer::options().bs(BS_BYTES).on(&sim.disk()).open(path()).unwrap();
    writer.write_all(read_content()).unwrap();
    writer.finish().unwrap();
    sim
}

fn open(sim: &Sim, direct: bool) -> Reader {
    Reader::options().bs(BS_BYTES).iodepth(4).direct(direct).on(&sim.disk()).open(path()).unwrap()
}

fn read(reader: &mut Reader) -> (Vec<u8>, Option<std::io::Error>) {
    let mut found = Vec::new();
    loop {
        match reader.fill_buf() {
            Ok([]) => return (found, None),
            Ok(bytes) => {
                found.extend_from_slice(bytes);
                let len = bytes.len();
                reader.consume(len);
            }
            Err(error) => return (found, Some(error)),
        }
    }
}

/// A subject that reads a file to its end.
#[derive(Debug)]
struct Reading {
    direct: bool,
}

impl Subject for Reading {
    fn disk(&self, seed: u64) -> Sim {
        disk_with_file(seed)
    }

    fn work(&self, sim: &Sim, fault: Option<Fault>) -> Outcome {
        let whole = read_content();
        let mut reader = open(sim, self.direct);
        let (mut found, failure) = read(&mut reader);
        assert!(whole.starts_with(&found));
        let failure = failure.map(|failure| failure.downcast::<Error>().unwrap());
        if let Some(failure) = &failure {
            let Error::File { offset: Some(place), .. } = *failure else { panic!("{failure}") };
            // An operation either succeeds as a whole or fails, so the first bytes may be missing.
            let place = place as usize;
            assert!((found.len()..found.len() + BS_BYTES).contains(&place), "{place}");
            // A later call tries again.
            if matches!(fault, Some(Fault::Once(_))) {
                let (rest, again) = read(&mut reader);
                assert!(again.is_none(), "{again:?}");
                found.extend(rest);
            } else {
                let operations = sim.operations();
                assert!(reader.read(&mut [0; 10]).is_err() && reader.read(&mut [0; 10]).is_err());
                assert!(sim.operations() > operations);
            }
        }
        let is_once = failure.is_none() || matches!(fault, Some(Fault::Once(_)));
        assert!(found == whole || !is_once, "nothing is lost");
        let kept = Kept::OneOf(vec![Some(whole.to_vec())]);
        let failures = Vec::from_iter(failure);
        Outcome { failures, files: vec![(path().to_owned(), kept.clone(), kept)] }
    }

    fn shorts(&self) -> &'static [u64] {
        &[1, 700]
    }

    /// Returns true only for reads through the page cache, because a failed direct read-ahead is
    /// retried without an error.
    fn tells(&self) -> bool {
        !self.direct
    }

    fn power_losses(&self) -> u64 {
        1
    }
}

#[test]
fn a_reader_that_is_dropped_with_reads_in_flight_leaves_nothing_behind() {
    // W5
    let sim = disk_with_file(3);
    for pieces in 0..20 {
        let mut reader = open(&sim, true);
        let mut some = vec![0; pieces * BS_BYTES + 1];
        reader.read_exact(&mut some).unwrap();
        assert!(read_content().starts_with(&some));
        drop(reader);
    }
    let (found, failure) = read(&mut open(&sim, true));
    assert!(failure.is_none() && found == read_content());
}
