//! Groups of records computed from their number, so that a check knows every byte.

use crate::verbs::power_cut::content::{content, length};
use crate::verbs::power_cut::found::describe;
use std::ops::RangeInclusive;

const SIZES: RangeInclusive<usize> = 1..=12;
/// The records of an occasional long group, which nearly fills a buffer.
const LONG: u64 = 40;
const LONG_EVERY: u64 = 29;
const LENGTHS: RangeInclusive<usize> = 1..=2500;

/// A record's place: its group, and its place in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub group: u64,
    pub index: u64,
}

/// Returns the number of records of a group.
pub fn size(group: u64) -> u64 {
    if group % LONG_EVERY == LONG_EVERY / 2 { LONG } else { length(group, SIZES) as u64 }
}

/// Returns the records of a group.
pub fn group(group: u64) -> Vec<Vec<u8>> {
    (0..size(group)).map(|index| record(Place { group, index })).collect()
}

/// Returns one record: the group, its index and the group's size, and then bytes.
fn record(Place { group, index }: Place) -> Vec<u8> {
    let mut bytes = format!("{group} {index} {} ", size(group)).into_bytes();
    bytes.extend(content(group << 8 | index, LENGTHS));
    bytes
}

/// Reads the place of a record; the error explains why no group has it.
pub fn of_group(bytes: &[u8]) -> Result<Place, String> {
    let unknown = || format!("{} bytes that are of no group", bytes.len());
    let mut words = bytes.splitn(4, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
    let (group, index) = (word().ok_or_else(unknown)?, word().ok_or_else(unknown)?);
    let place = Place { group, index };
    if index >= size(group) {
        return Err(format!("{place:?}, where the group has {} records", size(group)));
    }
    let expected = record(place);
    if bytes == expected {
        Ok(place)
    } else {
        Err(format!("{place:?}: {}", describe(bytes, &expected)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_its_place_and_one_with_a_wrong_byte_has_none() {
        for number in [0, 7, LONG_EVERY / 2, 1_000_000] {
            for (index, mut bytes) in (0..).zip(group(number)) {
                assert_eq!(of_group(&bytes), Ok(Place { group: number, index }));
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                assert!(of_group(&bytes).is_err());
            }
        }
        assert_eq!(of_group(&[0; 7]), Err("7 bytes that are of no group".into()));
    }

    #[test]
    fn every_group_fits_into_a_buffer() {
        for number in 0..200 {
            let bytes: usize = group(number).iter().map(|record| record.len() + 8).sum();
            assert!(bytes < super::super::BUFFER_BYTES - 4096, "{number}: {bytes} bytes");
        }
    }
}
