//! The edits that damage a log's files: bits, bytes, sectors, blocks and whole files.

use super::Files;
use super::original::{Original, name, number, seal_batch, seal_segment, seed};
use arbitrary::Arbitrary;
use lab::log_reader::long;

const SECTOR_BYTES: usize = 512;
/// The fields of the headers, each as its offset and its length.
const SEGMENT_FIELDS: [(usize, usize); 7] =
    [(8, 4), (16, 8), (24, 8), (32, 8), (40, 8), (48, 4), (52, 4)];
const BATCH_FIELDS: [(usize, usize); 5] = [(8, 4), (12, 4), (16, 8), (24, 8), (40, 4)];

/// A position in a log, either near a beginning or anywhere. Indices of files and batches are taken
/// modulo the actual count, and offsets modulo the file's length.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Place {
    /// A number of bytes after the beginning of a batch.
    Batch(u8, u8),
    /// A number of bytes after the beginning of a file.
    File(u8, u16),
}

/// A number of bytes at a position. Sectors begin at a multiple of their length.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Piece {
    Bytes(u16),
    /// One, three or eight sectors.
    Sectors(u8),
}

/// An edit. Indices of files and batches are taken modulo the actual count.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Edit {
    /// Flips a bit, whose index is taken modulo eight, of the byte at a position.
    Flip(Place, u8),
    Write(Place, [u8; 4]),
    Zero(Place, Piece),
    Truncate(Place),
    /// Appends equal bytes to a file.
    Extend(u8, Piece, u8),
    /// Copies bytes from the first position to the second.
    Copy(Place, Place, Piece),
    Swap(Place, Place, Piece),
    SwapFiles(u8, u8),
    RemoveFile(u8),
    EmptyFile(u8),
    ZeroFile(u8),
    /// Gives a file the name of a segment near the first one.
    RenameFile(u8, u8),
    CopyFile(u8, u8),
    /// Replaces a file with a file of another log.
    Foreign(u8),
    /// Replaces a file with its earlier state, which contains half of the records.
    Older(u8),
    /// Replaces all files except one with their earlier state.
    AllOlderBut(u8),
    /// Changes a field in a batch's header, and makes the checksum valid.
    ForgeBatch(u8, u8, u64),
    /// Changes a field in a segment's header, and makes the checksum valid.
    ForgeSegment(u8, u8, u64),
    /// Changes the length of a batch's first record, with a checksum that covers no bytes.
    ForgeRecord(u8, u32),
}

impl Piece {
    fn len(self) -> usize {
        match self {
            Piece::Bytes(len) => usize::from(len),
            Piece::Sectors(number) => SECTOR_BYTES * [1, 3, 8][usize::from(number) % 3],
        }
    }
}

impl Edit {
    /// Returns whether the edit recomputes a checksum, which makes wrong bytes appear valid.
    pub fn is_forged(&self) -> bool {
        use Edit::{ForgeBatch, ForgeRecord, ForgeSegment};
        matches!(self, ForgeBatch(..) | ForgeSegment(..) | ForgeRecord(..))
    }

    /// Applies the edit to `files`, which were the files of `log`. If the edit's file or position
    /// does not exist, nothing is changed.
    pub fn apply(self, files: &mut Files, log: &Original) {
        let _ = self.try_apply(files, log);
    }

    fn try_apply(self, files: &mut Files, log: &Original) -> Option<()> {
        match self {
            Edit::Flip(at, bit) => range(files, log, at, Piece::Bytes(1))?[0] ^= 1 << (bit % 8),
            Edit::Write(at, bytes) => put(files, log, at, Piece::Bytes(4), &bytes)?,
            Edit::Zero(at, piece) => range(files, log, at, piece)?.fill(0),
            Edit::Truncate(at) => {
                let (file, offset) = find(files, log, at)?;
                files.get_mut(&file)?.truncate(offset);
            }
            Edit::Extend(file, piece, with) => {
                let bytes = files.get_mut(&nth(files, file)?)?;
                bytes.resize(bytes.len() + piece.len(), with);
            }
            Edit::Copy(from, to, piece) => {
                let bytes = range(files, log, from, piece)?.to_vec();
                put(files, log, to, piece, &bytes)?;
            }
            Edit::Swap(one, other, piece) => {
                let first = range(files, log, one, piece)?.to_vec();
                let second = range(files, log, other, piece)?.to_vec();
                put(files, log, one, piece, &second)?;
                put(files, log, other, piece, &first)?;
            }
            Edit::SwapFiles(one, other) => {
                let (one, other) = (nth(files, one)?, nth(files, other)?);
                let (first, second) = (files[&one].clone(), files[&other].clone());
                files.insert(one, second);
                files.insert(other, first);
            }
            Edit::RemoveFile(file) => drop(files.remove(&nth(files, file)?)),
            Edit::EmptyFile(file) => files.get_mut(&nth(files, file)?)?.clear(),
            Edit::ZeroFile(file) => files.get_mut(&nth(files, file)?)?.fill(0),
            Edit::RenameFile(file, to) => {
                let to = near(files, to)?;
                let bytes = files.remove(&nth(files, file)?)?;
                files.insert(to, bytes);
            }
            Edit::CopyFile(file, to) => {
                let (to, bytes) = (near(files, to)?, files[&nth(files, file)?].clone());
                files.insert(to, bytes);
            }
            Edit::Foreign(file) => {
                let name = nth(files, file)?;
                let bytes = log.other.0.get(&name).or_else(|| log.other.0.values().next())?;
                files.insert(name, bytes.clone());
            }
            Edit::Older(file) => {
                let name = nth(files, file)?;
                let bytes = log.earlier.get(&name)?.clone();
                files.insert(name, bytes);
            }
            Edit::AllOlderBut(file) => {
                let kept = nth(files, file)?;
                let older = log.earlier.iter().filter(|(name, _)| **name != kept);
                files.extend(older.map(|(name, bytes)| (name.clone(), bytes.clone())));
            }
            Edit::ForgeBatch(batch, field, value) => {
                let (bytes, seed) = self::batch(files, log, batch)?;
                forge(bytes, &BATCH_FIELDS, field, value);
                seal_batch(bytes, seed);
            }
            Edit::ForgeSegment(file, field, value) => {
                let bytes = files.get_mut(&nth(files, file)?)?.get_mut(..64)?;
                forge(bytes, &SEGMENT_FIELDS, field, value);
                seal_segment(bytes);
            }
            Edit::ForgeRecord(batch, length) => {
                let (bytes, seed) = self::batch(files, log, batch)?;
                let sequence = long(bytes, 16).to_le_bytes();
                let length = length.to_le_bytes();
                let place = crc32c::crc32c_append(seed, &sequence);
                let checksum = crc32c::crc32c_append(place, &length);
                bytes[48..52].copy_from_slice(&length);
                bytes[52..56].copy_from_slice(&checksum.to_le_bytes());
            }
        }
        Some(())
    }
}

fn forge(header: &mut [u8], fields: &[(usize, usize)], field: u8, value: u64) {
    let (at, len) = fields[usize::from(field) % fields.len()];
    header[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
}

fn nth(files: &Files, index: u8) -> Option<String> {
    files.keys().nth(usize::from(index) % files.len().max(1)).cloned()
}

/// Returns the name of a segment. The number of the first candidate is one less than the first
/// file's.
fn near(files: &Files, to: u8) -> Option<String> {
    Some(name(number(files.keys().next()?).saturating_sub(1) + u64::from(to % 12)))
}

/// Returns the file and the offset of a position, which may be beyond the file's end; `None` if
/// there is no such file.
fn find(files: &Files, log: &Original, place: Place) -> Option<(String, usize)> {
    match place {
        Place::Batch(batch, behind) => {
            let batch = log.batches.get(usize::from(batch) % log.batches.len().max(1))?;
            Some((batch.file.clone(), batch.offset + usize::from(behind)))
        }
        Place::File(file, offset) => {
            let file = nth(files, file)?;
            let len = files[&file].len().max(1);
            Some((file, usize::from(offset) % len))
        }
    }
}

/// Returns the bytes of a piece at a position, as far as the file contains them; `None` if it
/// contains none.
fn range<'a>(
    files: &'a mut Files,
    log: &Original,
    place: Place,
    piece: Piece,
) -> Option<&'a mut [u8]> {
    let (file, offset) = find(files, log, place)?;
    let offset = match piece {
        Piece::Bytes(_) => offset,
        sectors => offset / sectors.len() * sectors.len(),
    };
    let bytes = files.get_mut(&file)?;
    let end = bytes.len().min(offset + piece.len());
    bytes.get_mut(offset..end).filter(|bytes| !bytes.is_empty())
}

fn put(files: &mut Files, log: &Original, to: Place, piece: Piece, bytes: &[u8]) -> Option<()> {
    let there = range(files, log, to, piece)?;
    let len = there.len().min(bytes.len());
    there[..len].copy_from_slice(&bytes[..len]);
    Some(())
}

/// Returns the header of a batch with all bytes after it, and the seed of its segment's checksums.
fn batch<'a>(files: &'a mut Files, log: &Original, index: u8) -> Option<(&'a mut [u8], u32)> {
    let batch = log.batches.get(usize::from(index) % log.batches.len().max(1))?;
    let segment = log.segments.iter().find(|segment| segment.file == batch.file)?;
    let bytes = files.get_mut(&batch.file)?.get_mut(batch.offset..)?;
    let seed = seed(long(&segment.header, 16), number(&batch.file));
    (bytes.len() >= 56).then_some((bytes, seed))
}
