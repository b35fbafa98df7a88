//! A `Reader` on a simulated disk whose reads fail.

use crate::path;
use libc::{EAGAIN, EINTR, EIO};
use std::io::{BufRead, Read, Write};
use wrote::engine::Fault;
use wrote::{Error, Reader, Sim, Writer};

const BS_BYTES: usize = 4096;
const LEN_BYTES: usize = 30 * BS_BYTES + 123;

fn content() -> Vec<u8> {
    (0..LEN_BYTES).map(|place| (place / 251 + place * 7 + 1) as u8).collect()
}

/// Creates the file. Returns the disk and the number of its next operation.
fn disk(seed: u64) -> (Sim, u64) {
    let sim = Sim::new(seed);
    let mut writer = Writer::options().bs(BS_BYTES).on(&sim.disk()).open(path()).unwrap();
    writer.write_all(&content()).unwrap();
    writer.finish().unwrap();
    let next = sim.operations();
    (sim, next)
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

fn at_every_operation(fault: Fault, check: impl Fn(&Sim, bool, Reader)) {
    for direct in [false, true] {
        let (sim, first) = disk(0);
        assert!(read(&mut open(&sim, direct)).0 == content());
        let operations = sim.operations() - first;
        assert!(operations > 20, "{operations} operations");
        for operation in 0..operations {
            let (sim, first) = disk(operation);
            sim.fault(first + operation, fault);
            let reader = open(&sim, direct);
            check(&sim, direct, reader);
        }
    }
}

#[test]
fn short_reads_and_interruptions_are_not_seen() {
    // W4
    for fault in [Fault::Short(1), Fault::Short(700), Fault::Once(EINTR), Fault::Once(EAGAIN)] {
        at_every_operation(fault, |_, direct, mut reader| {
            let (found, failure) = read(&mut reader);
            assert!(failure.is_none(), "{fault:?}, direct: {direct}: {failure:?}");
            assert!(found == content(), "{fault:?}, direct: {direct}");
        });
    }
}

#[test]
fn an_error_stands_at_its_place_and_the_bytes_before_it_are_returned() {
    at_every_operation(Fault::Forever(EIO), |sim, direct, mut reader| {
        let (found, failure) = read(&mut reader);
        let failure = failure.unwrap();
        assert_eq!(Error::errno_in(&failure), Some(EIO));
        assert!(content().starts_with(&found));
        let inner = failure.get_ref().unwrap().downcast_ref::<Error>().unwrap();
        let Error::File { offset: Some(place), .. } = *inner else { panic!("{inner}") };
        // An operation either succeeds as a whole or fails, so the first bytes may be missing.
        let place = place as usize;
        assert!((found.len()..found.len() + BS_BYTES).contains(&place), "{place}: {}", found.len());
        // A later call tries again.
        assert!(reader.read(&mut [0; 10]).is_err(), "direct: {direct}");
        let operations = sim.operations();
        assert!(reader.read(&mut [0; 10]).is_err());
        assert!(sim.operations() > operations);
    });
}

#[test]
fn of_a_read_that_fails_once_nothing_is_lost_and_what_was_read_ahead_needs_no_caller_to_try_again()
{
    at_every_operation(Fault::Once(EIO), |sim, direct, mut reader| {
        let (mut found, failure) = read(&mut reader);
        if failure.is_some() {
            let (rest, again) = read(&mut reader);
            assert!(again.is_none(), "{again:?}");
            found.extend(rest);
        } else {
            assert!(direct, "only a direct read is tried again by itself");
        }
        assert!(found == content(), "after {} operations", sim.operations());
    });
}

#[test]
fn a_reader_that_is_dropped_with_reads_in_flight_leaves_nothing_behind() {
    // W5
    let (sim, _) = disk(3);
    for pieces in 0..20 {
        let mut reader = open(&sim, true);
        let mut some = vec![0; pieces * BS_BYTES + 1];
        reader.read_exact(&mut some).unwrap();
        assert!(content().starts_with(&some));
        drop(reader);
    }
    let (found, failure) = read(&mut open(&sim, true));
    assert!(failure.is_none() && found == content());
}
