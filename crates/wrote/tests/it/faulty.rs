//! Disks whose reads, writes and flushes fail, and file systems disconnected from them.
//!
//! Each test needs device-mapper. `cargo xtask lab faulty-disk` runs them in a guest that has it.
//! One cycle of a fault, a cut and a mount serves all rungs of the engine, because cycles are slow
//! there.

/// The library chooses the rung: the tests run with io_uring, and where it is refused.
mod chosen;
mod disk;
/// The tests name each rung.
mod named;

use disk::{Fault, FaultyDisk};
use std::path::Path;
use wrote::Error;

const FILE_SYSTEMS: [&str; 2] = ["ext4", "xfs"];
/// The faults that break every durable write.
const FAULTS: [Fault; 2] = [Fault::Everything, Fault::Writes];
/// The faults that break a write in place. A new block needs a commit of the journal. Its flush
/// comes with a write, and device-mapper drops the error of such a flush (`dm_io_complete` in
/// `drivers/md/dm.c`).
const FAULTS_IN_PLACE: [Fault; 3] = [Fault::Everything, Fault::Writes, Fault::Flushes];

fn on_each_file_system(mut cycle: impl FnMut(&mut FaultyDisk)) -> Result<(), String> {
    for fs in FILE_SYSTEMS {
        cycle(&mut FaultyDisk::new(fs)?);
    }
    Ok(())
}

/// Asserts that the error comes from the device, or from a file system that has given up (EROFS of
/// ext4), and names a path on the disk.
fn assert_of_the_device(error: &Error, disk: &FaultyDisk, case: &str) {
    assert!(matches!(error.errno(), libc::EIO | libc::EROFS), "{case}: {error}");
    let folder = disk.path().display().to_string();
    assert!(error.to_string().starts_with(&folder), "{case}: {error}");
}

/// Returns bytes that no other number has.
fn content(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (place, piece) in bytes.chunks_mut(100).enumerate() {
        piece.fill((number * 97 + place as u64 * 7 + place as u64 / 256) as u8);
    }
    bytes
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
