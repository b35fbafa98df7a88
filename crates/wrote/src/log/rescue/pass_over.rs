//! The search for the next whole record of a damaged batch.

use super::super::record;
use super::super::walk::{OpenBatch, Walk};
use super::seed;
use crate::Error;
use std::collections::HashMap;

/// Bytes after the damage in which a record is searched for, byte by byte.
const SEARCHED_BYTES: u64 = 64 << 10;
/// The most bytes tried as records in that search, because damaged bytes may look like any length.
const TRIED_BYTES_MAX: u64 = 32 << 20;

/// Skips the invalid records at the position of a walk, to the next valid one of the same batch.
/// Usually the first record's length leads there. If the length is damaged too, this searches the
/// next 64 KiB.
///
/// Only the salvage of a damaged log does this. Unless the batch was durable, its write may be torn
/// in the middle, and no caller was promised the records after that.
pub(super) fn pass_over(walk: &mut Walk) -> Result<bool, Error> {
    let Some(open) = walk.open.filter(|open| open.left > 1) else { return Ok(false) };
    let header = walk.input.bytes(walk.place, record::HEADER_BYTES)?;
    let Some(frame_bytes) = record::stated_bytes(header) else { return Ok(false) };
    let follows = walk.place + frame_bytes as u64;
    Ok(walk.jump_inside(follows, 1)? || search(walk, open)?)
}

/// Searches for the first of the next records, wherever it begins.
///
/// Runs each candidate's checksum backwards over its bytes. The result is the checksum of the
/// record's place, so one lookup shows how many records are lost before it.
fn search(walk: &mut Walk, open: OpenBatch) -> Result<bool, Error> {
    let header_bytes = record::HEADER_BYTES as u64;
    let begin = walk.place + header_bytes;
    let all_bytes = open.end.min(walk.input.len_bytes).saturating_sub(begin);
    let len = all_bytes.min(SEARCHED_BYTES) as usize;
    let searched = walk.input.bytes(begin, len)?.to_vec();
    let places = checksums_of_places(walk, open.left, searched.len());
    let mut tried_bytes = 0;
    for (offset, header) in searched.windows(record::HEADER_BYTES).enumerate() {
        let place = begin + offset as u64;
        let Some(len) = record::stated_bytes(header).filter(|_| record::is_kind(header)) else {
            continue;
        };
        let end = place + len as u64;
        if end > begin + all_bytes {
            continue;
        }
        tried_bytes += len as u64;
        if tried_bytes > TRIED_BYTES_MAX {
            return Ok(false);
        }
        let checksum = seed::of_place(walk.input.bytes(place, len)?);
        let Some(&lost) = checksum.and_then(|checksum| places.get(&checksum)) else { continue };
        // The lost records, and the records still to come, have at least their headers.
        let has_room = u64::from(lost) * header_bytes <= place - walk.place
            && u64::from(open.left - lost - 1) * header_bytes <= open.end - end;
        if has_room && walk.jump_inside(place, lost)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns, by the checksum of a record's place in the log, how many records are lost before it.
fn checksums_of_places(walk: &Walk, left: u32, searched_bytes: usize) -> HashMap<u32, u32> {
    let most = (searched_bytes / record::HEADER_BYTES) as u32 + 1;
    let checksum = |lost: u32| {
        let sequence = walk.sequence + u64::from(lost);
        (crc32c::crc32c_append(walk.seed, &sequence.to_le_bytes()), lost)
    };
    (1..left.min(most + 1)).map(checksum).collect()
}
