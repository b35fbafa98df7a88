//! Random data: in memory before a clock starts, or as a file to copy. It is a separate file
//! because several kinds of work write it.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;
use crate::place::Place;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// One seed, so that every way writes one content.
const SEED: u64 = 0x77_72_6f_74_65;
const CHUNK_BYTES: usize = 1 << 20;

/// Random bytes in memory, used in pieces. The first piece follows the last.
#[derive(Debug)]
pub struct Ring {
    bytes: Vec<u8>,
}

impl Ring {
    /// Makes `size_bytes` of them.
    pub fn new(size_bytes: usize) -> Ring {
        let mut bytes = vec![0; size_bytes];
        Xoshiro256PlusPlus::seed_from_u64(SEED).fill_bytes(&mut bytes);
        Ring { bytes }
    }

    /// Returns the piece `number` of `piece_bytes` bytes, at most the ring's length.
    pub fn piece(&self, number: u64, piece_bytes: usize) -> &[u8] {
        let pieces = self.bytes.len() / piece_bytes;
        let begin = (number % pieces as u64) as usize * piece_bytes;
        &self.bytes[begin..begin + piece_bytes]
    }
}

/// Makes a file of `bytes` random bytes that do not repeat, and syncs it.
pub fn make(bytes: u64, path: &Path) -> Result<Outcome> {
    // Half a file is useless, so only a complete one stays.
    let place = Place::take(path)?;
    let clock = Clock::start()?;
    fill(bytes, path).map_err(|error| format!("{}: {error}", path.display()))?;
    std::mem::forget(place);
    clock.stop(bytes, 0)
}

fn fill(bytes: u64, path: &Path) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left_bytes = bytes;
    while left_bytes > 0 {
        let length = left_bytes.min(CHUNK_BYTES as u64);
        random.fill_bytes(&mut chunk);
        file.write_all(&chunk[..length as usize])?;
        left_bytes -= length;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_differ_and_come_again_after_the_last() {
        let ring = Ring::new(10_000);
        let pieces: Vec<&[u8]> = (0..4).map(|number| ring.piece(number, 3000)).collect();
        assert!(pieces[0] != pieces[1] && pieces[1] != pieces[2] && pieces[0] != pieces[2]);
        assert_eq!(pieces[3], pieces[0]);
    }

    #[test]
    fn a_file_of_any_length_is_made_and_does_not_repeat() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("source");
        let outcome = make((2 << 20) + 5, &path).expect("room");
        assert_eq!(outcome.bytes, (2 << 20) + 5);
        let bytes = std::fs::read(&path).expect("there");
        assert_eq!(bytes.len(), (2 << 20) + 5);
        assert_ne!(bytes[..CHUNK_BYTES], bytes[CHUNK_BYTES..2 * CHUNK_BYTES]);
        let message = make(5, &path).expect_err("there already").to_string();
        assert_eq!(message, format!("{}: there is something already", path.display()));
    }
}
