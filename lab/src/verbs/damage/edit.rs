//! The damage: whole files, sectors, blocks and bits.

use crate::damage::Files;
use crate::verbs::damage::written::Written;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SECTOR_BYTES: usize = 512;

/// One edit. Numbers of files and places are taken modulo the actual number.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    /// Exchanges the names of two files.
    Swap(usize, usize),
    /// Replaces a file by one of another log.
    Foreign(usize),
    Missing(usize),
    /// A copy under the name of another file, or under the next free one.
    Double(usize, usize),
    Empty(usize),
    Zero(usize),
    /// Replaces a file by its state with half of the records.
    Older(usize),
    /// Does that with all files but one.
    AllOlderBut(usize),
    Truncate(usize, usize),
    /// Zeros or other bytes after the end.
    Extend(usize, u8, usize),
    ZeroPieces(usize, usize, usize),
    /// Exchanges pieces of this many sectors, also between files.
    SwapPieces(usize, (usize, usize), (usize, usize)),
    CopyPiece(usize, (usize, usize), (usize, usize)),
    Flip(usize, usize, u8),
}

/// Draws the log of a seed, and its damage.
pub fn draw(seed: u64, logs: usize) -> (usize, Vec<Edit>) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let log = random.random_range(0..logs);
    let count = random.random_range(1..4);
    (log, (0..count).map(|_| one(&mut random)).collect())
}

fn one(random: &mut Xoshiro256PlusPlus) -> Edit {
    let kind = random.random_range(0..14);
    let mut any = || random.random_range(0..usize::MAX);
    let sectors = [1, 1, 8, 8, 3][any() % 5];
    match kind {
        0 => Edit::Swap(any(), any()),
        1 => Edit::Foreign(any()),
        2 => Edit::Missing(any()),
        3 => Edit::Double(any(), any()),
        4 => Edit::Empty(any()),
        5 => Edit::Zero(any()),
        6 => Edit::Older(any()),
        7 => Edit::AllOlderBut(any()),
        8 => Edit::Truncate(any(), any()),
        9 => Edit::Extend(any(), [0, b'x', b'\n'][any() % 3], any() % 9000),
        10 => Edit::ZeroPieces(sectors, any(), any()),
        11 => Edit::SwapPieces(sectors, (any(), any()), (any(), any())),
        12 => Edit::CopyPiece(sectors, (any(), any()), (any(), any())),
        _ => Edit::Flip(any(), any(), 1 << (any() % 8)),
    }
}

fn nth(files: &Files, number: usize) -> Option<String> {
    files.keys().nth(number % files.len().max(1)).cloned()
}

/// Returns the place of a piece of `len` bytes, at a multiple of its length.
fn piece(bytes: &[u8], number: usize, len: usize) -> Option<usize> {
    let pieces = bytes.len() / len;
    (pieces > 0).then(|| number % pieces * len)
}

impl Edit {
    /// Changes `files` of the log; `other` is an unrelated log.
    pub fn apply(self, files: &mut Files, log: &Written, other: &Written) {
        // A log without files cannot be edited.
        let _ = self.try_apply(files, log, other);
    }

    fn try_apply(self, files: &mut Files, log: &Written, other: &Written) -> Option<()> {
        match self {
            Edit::Swap(one, two) => {
                let (one, two) = (nth(files, one)?, nth(files, two)?);
                let (first, second) = (files[&one].clone(), files[&two].clone());
                files.insert(one, second);
                files.insert(two, first);
            }
            Edit::Foreign(file) => {
                let name = nth(files, file)?;
                let bytes = other.files.get(&name).or_else(|| other.files.values().next())?;
                files.insert(name, bytes.clone());
            }
            Edit::Missing(file) => drop(files.remove(&nth(files, file)?)),
            Edit::Double(file, to) => {
                let bytes = files[&nth(files, file)?].clone();
                let ending = if log.format == wrote::Format::Lines { "log" } else { "segment" };
                let to = match to % 3 {
                    0 => format!("{:020}.{ending}", 1 + files.len()),
                    _ => nth(files, to)?,
                };
                files.insert(to, bytes);
            }
            Edit::Empty(file) => files.get_mut(&nth(files, file)?)?.clear(),
            Edit::Zero(file) => files.get_mut(&nth(files, file)?)?.fill(0),
            Edit::Older(file) => {
                let name = nth(files, file)?;
                let older = log.earlier.get(&name)?.clone();
                files.insert(name, older);
            }
            Edit::AllOlderBut(file) => {
                let name = nth(files, file)?;
                for (other, bytes) in &log.earlier {
                    if *other != name {
                        files.insert(other.clone(), bytes.clone());
                    }
                }
            }
            Edit::Truncate(file, at) => {
                let bytes = files.get_mut(&nth(files, file)?)?;
                bytes.truncate(at % (bytes.len() + 1));
            }
            Edit::Extend(file, with, len) => {
                let bytes = files.get_mut(&nth(files, file)?)?;
                bytes.resize(bytes.len() + len, with);
            }
            Edit::ZeroPieces(sectors, file, at) => {
                let (bytes, len) = (files.get_mut(&nth(files, file)?)?, sectors * SECTOR_BYTES);
                let at = piece(bytes, at, len)?;
                bytes[at..at + len].fill(0);
            }
            Edit::SwapPieces(sectors, one, two) => {
                let first = Self::get(files, sectors, one)?;
                let second = Self::get(files, sectors, two)?;
                Self::put(files, one, &second)?;
                Self::put(files, two, &first)?;
            }
            Edit::CopyPiece(sectors, from, to) => {
                let bytes = Self::get(files, sectors, from)?;
                Self::put(files, to, &bytes)?;
            }
            Edit::Flip(file, at, bit) => {
                let bytes = files.get_mut(&nth(files, file)?)?;
                let at = piece(bytes, at, 1)?;
                bytes[at] ^= bit;
            }
        }
        Some(())
    }

    fn get(files: &Files, sectors: usize, (file, at): (usize, usize)) -> Option<Vec<u8>> {
        let (bytes, len) = (&files[&nth(files, file)?], sectors * SECTOR_BYTES);
        let at = piece(bytes, at, len)?;
        Some(bytes[at..at + len].to_vec())
    }

    fn put(files: &mut Files, (file, at): (usize, usize), piece_bytes: &[u8]) -> Option<()> {
        let bytes = files.get_mut(&nth(files, file)?)?;
        let at = piece(bytes, at, piece_bytes.len())?;
        bytes[at..at + piece_bytes.len()].copy_from_slice(piece_bytes);
        Some(())
    }
}
