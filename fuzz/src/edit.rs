//! The edits that damage the files of a log.

use crate::layout::{BatchHeader, LOG_ID, Log, name, reseal_segment_header, seed};
use lab::damage::Files;
use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// A place in a log: near a beginning, or anywhere.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Place {
    /// A number of bytes after the beginning of a batch.
    Batch { batch: u8, behind: u8 },
    /// A number of bytes after the beginning of a file.
    File { file: u8, offset: u16 },
}

/// One edit.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Edit {
    Flip {
        at: Place,
        bit: u8,
    },
    Write {
        at: Place,
        bytes: [u8; 4],
    },
    Zero {
        at: Place,
        len: u16,
    },
    Truncate {
        at: Place,
    },
    Extend {
        file: u8,
        blocks: u8,
        with: u8,
    },
    CopyBlock {
        from: Place,
        to: Place,
    },
    SwapBlocks {
        one: Place,
        other: Place,
    },
    CopyBytes {
        from: Place,
        to: Place,
        len: u8,
    },
    SwapFiles {
        one: u8,
        other: u8,
    },
    RemoveFile {
        file: u8,
    },
    RenameFile {
        file: u8,
        number: u8,
    },
    /// A field of a batch's header gets another value, with a valid checksum.
    ForgeBatch {
        batch: u8,
        field: u8,
        value: u64,
    },
    /// A field of a segment's header gets another value, with a valid checksum.
    ForgeSegment {
        file: u8,
        field: u8,
        value: u64,
    },
    /// The length of a batch's first record gets another value, and its checksum covers no bytes.
    ForgeRecord {
        batch: u8,
        length: u32,
    },
}

/// Applies all edits, and returns whether a checksum was recomputed.
pub fn apply(files: &mut Files, log: &Log, edits: &[Edit]) -> bool {
    let mut is_forged = false;
    for edit in edits.iter().take(16) {
        is_forged |= matches!(
            edit,
            Edit::ForgeBatch { .. } | Edit::ForgeSegment { .. } | Edit::ForgeRecord { .. }
        );
        one(files, log, *edit);
    }
    is_forged
}

fn one(files: &mut Files, log: &Log, edit: Edit) {
    match edit {
        Edit::Flip { at, bit } => on(files, log, at, 1, |bytes| bytes[0] ^= 1 << (bit % 8)),
        Edit::Write { at, bytes: new } => {
            on(files, log, at, 4, |bytes| bytes.copy_from_slice(&new[..bytes.len()]));
        }
        Edit::Zero { at, len } => on(files, log, at, usize::from(len), |bytes| bytes.fill(0)),
        Edit::Truncate { at } => {
            if let Some((file, offset)) = find(files, log, at) {
                files.entry(file).and_modify(|bytes| bytes.truncate(offset));
            }
        }
        Edit::Extend { file, blocks, with } => {
            if let Some(bytes) = nth(files, file).and_then(|file| files.get_mut(&file)) {
                bytes.resize(bytes.len() + usize::from(blocks % 8) * log.block_bytes, with);
            }
        }
        Edit::CopyBlock { from, to } => copy(files, log, from, to, log.block_bytes, true),
        Edit::CopyBytes { from, to, len } => copy(files, log, from, to, usize::from(len), false),
        Edit::SwapBlocks { one, other } => {
            let before = get(files, log, other, log.block_bytes, true);
            copy(files, log, one, other, log.block_bytes, true);
            put(files, log, one, &before, true);
        }
        Edit::SwapFiles { one, other } => {
            if let (Some(one), Some(other)) = (nth(files, one), nth(files, other)) {
                let (first, second) = (files[&one].clone(), files[&other].clone());
                files.insert(one, second);
                files.insert(other, first);
            }
        }
        Edit::RemoveFile { file } => {
            if let Some(file) = nth(files, file) {
                files.remove(&file);
            }
        }
        Edit::RenameFile { file, number } => {
            if let Some(bytes) = nth(files, file).and_then(|file| files.remove(&file)) {
                files.insert(name(1 + u64::from(number % 8)), bytes);
            }
        }
        Edit::ForgeBatch { batch, field, value } => forge_batch(files, log, batch, field, value),
        Edit::ForgeSegment { file, field, value } => forge_segment(files, file, field, value),
        Edit::ForgeRecord { batch, length } => forge_record(files, log, batch, length),
    }
}

fn nth(files: &Files, index: u8) -> Option<String> {
    files.keys().nth(usize::from(index) % files.len().max(1)).cloned()
}

/// Finds the file and the offset of a place, which may be after the file's end.
fn find(files: &Files, log: &Log, place: Place) -> Option<(String, usize)> {
    match place {
        Place::Batch { batch, behind } => {
            let batch = &log.batches[usize::from(batch) % log.batches.len()];
            Some((batch.file.clone(), batch.offset + usize::from(behind)))
        }
        Place::File { file, offset } => {
            let file = nth(files, file)?;
            let len = files[&file].len().max(1);
            Some((file, usize::from(offset) % len))
        }
    }
}

/// Returns the range of `len` bytes at a place, as far as the file has them.
fn range<'a>(
    files: &'a mut Files,
    log: &Log,
    place: Place,
    len: usize,
    is_block: bool,
) -> Option<&'a mut [u8]> {
    let (file, offset) = find(files, log, place)?;
    let offset = if is_block { offset / log.block_bytes * log.block_bytes } else { offset };
    let bytes = files.get_mut(&file)?;
    let end = bytes.len().min(offset + len);
    bytes.get_mut(offset..end).filter(|bytes| !bytes.is_empty())
}

fn on(files: &mut Files, log: &Log, at: Place, len: usize, action: impl FnOnce(&mut [u8])) {
    if let Some(bytes) = range(files, log, at, len, false) {
        action(bytes);
    }
}

fn get(files: &mut Files, log: &Log, from: Place, len: usize, is_block: bool) -> Vec<u8> {
    range(files, log, from, len, is_block).map(|bytes| bytes.to_vec()).unwrap_or_default()
}

fn put(files: &mut Files, log: &Log, to: Place, bytes: &[u8], is_block: bool) {
    if let Some(there) = range(files, log, to, bytes.len(), is_block) {
        there.copy_from_slice(&bytes[..there.len()]);
    }
}

fn copy(files: &mut Files, log: &Log, from: Place, to: Place, len: usize, is_block: bool) {
    let bytes = get(files, log, from, len, is_block);
    put(files, log, to, &bytes, is_block);
}

/// Returns the header of a batch with the bytes after it, and the seed of its segment's checksums.
fn batch<'a>(files: &'a mut Files, log: &Log, index: u8) -> Option<(&'a mut [u8], u32)> {
    let batch = &log.batches[usize::from(index) % log.batches.len()];
    let number = batch.file.split('.').next()?.parse().ok()?;
    let bytes = files.get_mut(&batch.file)?.get_mut(batch.offset..)?;
    (bytes.len() >= 56).then_some((bytes, seed(LOG_ID, number)))
}

fn forge_batch(files: &mut Files, log: &Log, index: u8, field: u8, value: u64) {
    let Some((bytes, seed)) = batch(files, log, index) else { return };
    let mut header = BatchHeader::get(bytes);
    match field % 5 {
        0 => header.bytes = value as u32,
        1 => header.count = value as u32,
        2 => header.first_sequence = value,
        3 => header.durable_sequence = value,
        _ => header.flags = value as u32,
    }
    header.put(bytes, seed);
}

fn forge_segment(files: &mut Files, file: u8, field: u8, value: u64) {
    let Some(bytes) = nth(files, file).and_then(|file| files.get_mut(&file)) else { return };
    if bytes.len() < 64 {
        return;
    }
    let (at, len) =
        [(8, 4), (16, 8), (24, 8), (32, 8), (40, 8), (48, 4), (52, 4)][usize::from(field % 7)];
    bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    reseal_segment_header(bytes);
}

fn forge_record(files: &mut Files, log: &Log, index: u8, length: u32) {
    let Some((bytes, seed)) = batch(files, log, index) else { return };
    let sequence = BatchHeader::get(bytes).first_sequence;
    let length = length.to_le_bytes();
    let place = crc32c::crc32c_append(seed, &sequence.to_le_bytes());
    let checksum = crc32c::crc32c_append(place, &length);
    bytes[48..52].copy_from_slice(&length);
    bytes[52..56].copy_from_slice(&checksum.to_le_bytes());
}
