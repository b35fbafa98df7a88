//! Where a batch goes on behind records that are not as they were written.

use super::super::record;
use super::{Inside, Walk};
use crate::log::input::Input;
use crate::{Engine, Error};
use std::collections::HashMap;

/// How far behind the damage a record is looked for, byte by byte.
const LOOKED_AT_BYTES: u64 = 64 << 10;
/// How many bytes are taken for records on the way, at most: what looks like lengths may be anything.
const TRIED_BYTES: u64 = 32 << 20;

impl Walk {
    /// Passes over a record that is not valid, and over those behind it that are not, up to the next one
    /// that is in the same batch. Mostly that is where the record's length says; where it is not, the
    /// length may be what is damaged, and the next 64 KiB are looked through.
    ///
    /// Only for what saves a damaged log: where nothing proves that the batch was durable, the write of
    /// it may have been torn in the middle, and what stands behind was never promised to anybody.
    pub(in crate::log) fn pass_over(
        &mut self,
        engine: &mut Engine,
        input: &mut Input,
    ) -> Result<bool, Error> {
        let Some(inside) = self.inside.filter(|inside| inside.left > 1) else { return Ok(false) };
        let header = input.bytes(engine, self.place, record::HEADER_BYTES)?;
        let Some(length) = header.first_chunk::<4>() else { return Ok(false) };
        let own = u32::from_le_bytes(*length) as usize & record::LEN_MAX;
        let follows = self.place + record::frame_bytes(own) as u64;
        Ok(self.goes_on_at(engine, input, inside, follows, 1)?
            || self.look_for_next(engine, input, inside)?)
    }

    /// Goes on at `place` with the record that many after the one that is wanted, if it is there.
    fn goes_on_at(
        &mut self,
        engine: &mut Engine,
        input: &mut Input,
        inside: Inside,
        place: u64,
        lost: u32,
    ) -> Result<bool, Error> {
        let next = Walk { place, sequence: self.sequence + u64::from(lost), ..self.clone() };
        let is_there = next.valid_frame(engine, input, inside)?.is_some();
        if is_there {
            *self = next;
            self.inside = Some(Inside { left: inside.left - lost, ..inside });
        }
        Ok(is_there)
    }

    /// Goes on with the first of the next records that is found, wherever it begins.
    ///
    /// The bytes of each place that may be one are taken out of its checksum: what is left is that of the
    /// sequence, which one look tells, however many records were lost.
    fn look_for_next(
        &mut self,
        engine: &mut Engine,
        input: &mut Input,
        inside: Inside,
    ) -> Result<bool, Error> {
        let begin = self.place + record::HEADER_BYTES as u64;
        let all_bytes = inside.end.min(input.len_bytes).saturating_sub(begin);
        let len = all_bytes.min(LOOKED_AT_BYTES) as usize;
        let looked_at = input.bytes(engine, begin, len)?.to_vec();
        let places = self.checksums_of_places(inside.left, looked_at.len());
        let mut tried_bytes = 0;
        for (offset, header) in looked_at.windows(record::HEADER_BYTES).enumerate() {
            let Some(own) = record::length(header) else { continue };
            let place = begin + offset as u64;
            let len = record::frame_bytes(own);
            let end = place + len as u64;
            if end > begin + all_bytes {
                continue;
            }
            tried_bytes += len as u64;
            if tried_bytes > TRIED_BYTES {
                return Ok(false);
            }
            let frame = input.bytes(engine, place, len)?;
            let found = record::place_checksum(frame).and_then(|checksum| places.get(&checksum));
            let Some(&lost) = found else { continue };
            let frame_bytes = record::HEADER_BYTES as u64;
            // The records that are lost, and those still to come, have headers at least.
            let has_room = u64::from(lost) * frame_bytes <= place - self.place
                && u64::from(inside.left - lost - 1) * frame_bytes <= inside.end - end;
            if has_room && self.goes_on_at(engine, input, inside, place, lost)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// By the checksum with which a record's place in the log begins: how many are lost before it.
    fn checksums_of_places(&self, left: u32, looked_at: usize) -> HashMap<u32, u32> {
        let most = (looked_at / record::HEADER_BYTES) as u32 + 1;
        let places = 1..left.min(most + 1);
        let checksum = |lost: u32| {
            let sequence = self.sequence + u64::from(lost);
            (crc32c::crc32c_append(self.seed, &sequence.to_le_bytes()), lost)
        };
        places.map(checksum).collect()
    }
}
