//! Tests on disks whose reads, writes and flushes fail, and on file systems that are cut off from
//! their disks.
//!
//! Each test needs device-mapper. `cargo xtask lab faulty-disk` runs the tests in a guest that has
//! it. One cycle of a fault, a cut-off and a mount tests all rungs of the engine, because cycles
//! are slow there.

/// Tests in which the library chooses the rung. They run with io_uring, and in an environment that
/// refuses it.
mod chosen;
mod disk;
/// Tests that name each rung.
mod named;

use disk::{Fault, FaultyDisk};
use std::path::Path;
use wrote::Error;

const FILE_SYSTEMS: [&str; 2] = ["ext4", "xfs"];
/// The faults that break every durable write.
const FAULTS: [Fault; 2] = [Fault::Everything, Fault::Writes];
/// The faults that break a write in place. They include failing flushes, which do not reliably
/// break a write to a new block: that write needs a journal commit, whose flush is part of a write,
/// and device-mapper drops the error of such a flush (`dm_io_complete` in `drivers/md/dm.c`).
const FAULTS_IN_PLACE: [Fault; 3] = [Fault::Everything, Fault::Writes, Fault::Flushes];

fn on_each_file_system(mut cycle: impl FnMut(&mut FaultyDisk)) -> Result<(), String> {
    for fs in FILE_SYSTEMS {
        cycle(&mut FaultyDisk::new(fs)?);
    }
    Ok(())
}

/// Asserts that the error comes from the device, or from a file system that no longer accepts
/// writes (EROFS of ext4), and that it names a path on the disk.
fn assert_of_the_device(error: &Error, disk: &FaultyDisk, case: &str) {
    assert!(matches!(error.errno(), libc::EIO | libc::EROFS), "{case}: {error}");
    let folder = disk.path().display().to_string();
    assert!(error.to_string().starts_with(&folder), "{case}: {error}");
}

/// Returns bytes that are different for each number.
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
