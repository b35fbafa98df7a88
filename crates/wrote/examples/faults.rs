//! Tests a program's file code on a disk that loses power at each operation in turn.
//!
//! The program keeps a value in a file. Its first version overwrites the value in place; the second
//! alternates between two slots. Both flush before they acknowledge, and both pass every test on a
//! working disk.
//!
//! `cargo run -p wrote --example faults`

use wrote::engine::{Fault, Options};
use wrote::file::DirectFile;
use wrote::{Disk, Error, FileOptions, Ioengine, Sim};

const SLOT_BYTES: usize = 4096;
const SAVES: u64 = 4;
const SEEDS: u64 = 50;

/// The number of slots that are written in turn.
#[derive(Clone, Copy)]
struct Slots(u64);

/// Saves the value `number` durably.
fn save(disk: &Disk, file: &DirectFile, slots: Slots, number: u64) -> Result<(), Error> {
    let mut buffer = disk.lease()?;
    buffer.fill(number as u8);
    file.write(buffer, number % slots.0 * SLOT_BYTES as u64)?;
    file.sync_data()
}

/// Returns the newest intact value; `None` if there is none.
fn load(file: &DirectFile, slots: Slots) -> Result<Option<u64>, Error> {
    let mut newest = None;
    for slot in 0..slots.0 {
        let bytes = file.read(slot * SLOT_BYTES as u64, SLOT_BYTES)?.to_vec();
        // A slot that repeats a single number is intact. For arbitrary values, a checksum would be
        // needed to tell.
        if bytes.len() == SLOT_BYTES && bytes.iter().all(|&byte| byte == bytes[0]) {
            newest = newest.max(Some(u64::from(bytes[0])));
        }
    }
    Ok(newest)
}

fn open(sim: &Sim) -> Result<(Disk, DirectFile), Error> {
    let disk = Disk::simulated(sim, &Options::new(Ioengine::IoUring, 4, SLOT_BYTES))?;
    let options = FileOptions::new().create(true).write(true).direct(true);
    let file = disk.open_file("/data/value", &options)?;
    Ok((disk, file))
}

/// Saves values until the power fails at `operation`, and returns the last acknowledged value;
/// `None` if the power did not fail.
fn lose_power_at(operation: u64, sim: &Sim, slots: Slots) -> Result<Option<u64>, Error> {
    let (disk, file) = open(sim)?;
    save(&disk, &file, slots, 0)?;
    sim.sync(); // the file's name and first value are stable
    sim.fault(sim.operations() + operation, Fault::PowerLoss);
    for number in 1..=SAVES {
        if save(&disk, &file, slots, number).is_err() {
            return Ok(Some(number - 1));
        }
    }
    Ok(None)
}

/// Returns the number of power losses, and how many of them left neither the acknowledged value nor
/// the next one.
fn count_lost(slots: Slots) -> Result<(u64, u64), Error> {
    let (mut moments, mut lost) = (0, 0);
    for seed in 0..SEEDS {
        for operation in 0.. {
            let sim = Sim::new(seed);
            let Some(acknowledged) = lose_power_at(operation, &sim, slots)? else { break };
            sim.restart();
            let found = load(&open(&sim)?.1, slots)?;
            moments += 1;
            lost += u64::from(found != Some(acknowledged) && found != Some(acknowledged + 1));
        }
    }
    Ok((moments, lost))
}

fn main() -> Result<(), Error> {
    for (slots, way) in [(Slots(1), "overwritten in place"), (Slots(2), "two slots in turn")] {
        let (moments, lost) = count_lost(slots)?;
        println!("{way}: the value was lost at {lost} of {moments} moments of a power loss");
    }
    Ok(())
}

#[test]
fn a_value_that_is_overwritten_in_place_is_lost_and_one_in_two_slots_is_not() {
    assert!(count_lost(Slots(1)).unwrap().1 > 0);
    assert_eq!(count_lost(Slots(2)).unwrap().1, 0);
}
