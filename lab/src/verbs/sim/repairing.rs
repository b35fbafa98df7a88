//! The repair of a log from the simulated disk, in a folder of the host, and the records that can
//! be read before and after it.

use crate::verbs::sim::disk::{Disk, FOLDER};
use crate::verbs::sim::{Trouble, holds};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use wrote::engine::Engine;
use wrote::engine::{Op, Options};
use wrote::log::{repair as repair_log, verify};
use wrote::{Error, FileOptions, Ioengine};

/// Records by their sequence.
pub type RecordsBySequence = BTreeMap<u64, Vec<u8>>;

/// Returns all records that a reader finds, including those after damage before the record `end`.
pub fn readable(disk: &Disk, end: u64) -> RecordsBySequence {
    let (mut all, mut from) = (RecordsBySequence::new(), 0);
    loop {
        if read_from(disk, &mut from, &mut all).is_ok() || from >= end {
            return all;
        }
        from += 1;
    }
}

fn read_from(disk: &Disk, from: &mut u64, all: &mut RecordsBySequence) -> Result<(), Error> {
    let mut reader = disk.reader(*from)?;
    while let Some(record) = reader.next_within(Duration::ZERO)? {
        *from = record.sequence + 1;
        all.insert(record.sequence, record.bytes);
    }
    Ok(())
}

/// The folder of a file system in memory.
const MEMORY: &str = "/dev/shm";

/// Repairs the log with the library's function, which works on files of the host. Checks that no
/// damage remains.
pub fn repair(disk: &Disk) -> Result<(), Trouble> {
    let made = tempfile::TempDir::with_prefix_in("log-sim-", MEMORY);
    let folder = made.unwrap_or_else(|_| crate::fixtures::folder());
    let folder = folder.path();
    for path in disk.sim.names() {
        let name = path.file_name().unwrap_or_default();
        let contents = disk.sim.contents(&path).unwrap_or_default();
        fs::write(folder.join(name), contents).expect("the folder takes files");
    }
    repair_log(folder)?;
    let verified = verify(folder, None)?;
    holds(verified.damage.is_empty(), || {
        format!("damage is left after a repair: {:?}", verified.damage)
    })?;
    bring_back(disk, folder)
}

/// Replaces the files on the simulated disk with those in the folder, on stable storage.
fn bring_back(disk: &Disk, folder: &Path) -> Result<(), Trouble> {
    let mut engine = Engine::simulated(&disk.sim, &Options::new(Ioengine::IoUring, 4, 64 << 10))?;
    for path in disk.sim.names() {
        engine.remove(&path)?;
    }
    for entry in fs::read_dir(folder).expect("it was made").flatten() {
        let name = entry.file_name();
        if name == "lock" {
            continue;
        }
        let contents = fs::read(entry.path()).expect("it is there");
        let options = FileOptions::new().create_new(true).write(true);
        let file = engine.open_file(Path::new(FOLDER).join(name), &options)?;
        let mut offset = 0;
        for piece in contents.chunks(engine.buffer_bytes()) {
            let mut buffer = engine.lease()?;
            buffer.set_len(piece.len());
            buffer.copy_from_slice(piece);
            engine.queue(0, Op::Write { file, offset, buffer, durable: false });
            offset += piece.len() as u64;
        }
        engine.drain()?;
        engine.close_file(file)?;
    }
    disk.sync();
    Ok(())
}
