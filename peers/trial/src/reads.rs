//! Random reads of 4 KiB by a bare engine: lease, queue, reap.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::path::Path;
use wrote::engine::{Completion, Engine, FileId, Op, Options};
use wrote::{FileOptions, Ioengine};

const READ_BYTES: usize = 4096;
const IODEPTH: u32 = 128;
/// Reads submitted together, and awaited together.
const TOGETHER: usize = 32;

/// Reads `reads` random blocks of the file or device at `path`, directly, 128 at once.
pub fn reads(reads: u64, path: &Path) -> Result<Outcome> {
    let mut engine = Engine::open(&Options::new(Ioengine::IoUring, IODEPTH, READ_BYTES))?;
    let file = engine.open_file(path, &FileOptions::new().direct(true))?;
    let blocks = length_bytes(path)? / READ_BYTES as u64;
    if blocks == 0 {
        return Err(format!("{}: less than {READ_BYTES} bytes", path.display()).into());
    }
    if let Some(step) = engine.effective().fallbacks.first() {
        return Err(format!("{} instead of {}: {}", step.got, step.wanted, step.because).into());
    }
    let clock = Clock::start()?;
    let bytes = read_all(&mut engine, file, reads, blocks)?;
    clock.stop(bytes, reads)
}

/// Returns the length of a file, or of a device, which has none in its metadata.
fn length_bytes(path: &Path) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    Ok(std::fs::File::open(path)?.seek(SeekFrom::End(0))?)
}

fn read_all(engine: &mut Engine, file: FileId, reads: u64, blocks: u64) -> Result<u64> {
    let mut chance = SplitMix64::seed_from_u64(1);
    let depth = engine.effective().iodepth as usize;
    let (mut queued, mut bytes, mut first_error) = (0, 0, None);
    while queued < reads || engine.outstanding() > 0 {
        let room = depth - engine.outstanding();
        let together = (room.min(TOGETHER) as u64).min(reads - queued);
        for number in queued..queued + together {
            let buffer = engine.lease()?;
            let block = ((u128::from(chance.next_u64()) * u128::from(blocks)) >> 64) as u64;
            let offset = block * READ_BYTES as u64;
            engine.queue(number, Op::Read { file, offset, buffer });
        }
        queued += together;
        if engine.is_full() || queued == reads {
            engine.reap_each(TOGETHER, |Completion { result, .. }| match result {
                Ok(read) => bytes += read as u64,
                Err(error) => _ = first_error.get_or_insert(error),
            })?;
        } else {
            engine.submit()?;
        }
        if let Some(error) = first_error {
            return Err(error.into());
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, bytes: usize) -> std::path::PathBuf {
        let path = folder.join("file");
        std::fs::write(&path, vec![1; bytes]).expect("room");
        path
    }

    #[test]
    fn every_read_is_of_a_whole_block_and_counted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = file(folder.path(), 5 * READ_BYTES + 100);
        for ioengine in [Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync] {
            let mut engine =
                Engine::open(&Options::new(ioengine, IODEPTH, READ_BYTES)).expect("it");
            let file = engine.open_file(&path, &FileOptions::default()).expect("there");
            let bytes = read_all(&mut engine, file, 1001, 5).expect("readable");
            assert_eq!(bytes, 1001 * READ_BYTES as u64);
        }
    }

    #[test]
    fn a_file_without_a_whole_block_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = file(folder.path(), READ_BYTES - 1);
        let message = reads(1, &path).expect_err("too short").to_string();
        assert!(message.ends_with("file: less than 4096 bytes"), "{message}");
    }
}
