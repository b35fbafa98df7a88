//! Records computed from their producer and a number, so that a check knows every byte.

use crate::verbs::power_cut::content::content;
use crate::verbs::power_cut::found::describe;
use std::ops::RangeInclusive;

const LENGTHS: RangeInclusive<usize> = 1..=4000;
/// The length of an occasional long record.
const LONG: usize = 100_000;
const LONG_EVERY: u64 = 97;

/// Returns a producer's record of this number: the producer and the number, and then bytes, or
/// letters for a `text`.
pub fn record(text: bool, producer: u32, number: u64) -> Vec<u8> {
    let seed = u64::from(producer) << 40 | number;
    let is_long = number % LONG_EVERY == LONG_EVERY / 2;
    let body = content(seed, if is_long { LONG..=LONG } else { LENGTHS });
    let letter = |byte: u8| if text { b'!' + byte % 90 } else { byte };
    let mut bytes = format!("{producer} {number} ").into_bytes();
    bytes.extend(body.into_iter().map(letter));
    bytes
}

/// Reads the producer and the number of a record; an error in words if no producer sent it.
pub fn of_producer(text: bool, bytes: &[u8]) -> Result<(u32, u64), String> {
    let unknown = || format!("{} bytes that no producer sent", bytes.len());
    let mut words = bytes.splitn(3, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let producer = word().and_then(|word| word.parse().ok()).ok_or_else(unknown)?;
    let number = word().and_then(|word| word.parse().ok()).ok_or_else(unknown)?;
    let expected = record(text, producer, number);
    if bytes == expected {
        Ok((producer, number))
    } else {
        Err(format!("number {number} of producer {producer}: {}", describe(bytes, &expected)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_whose_it_is_and_one_with_a_wrong_byte_is_nobodys() {
        for text in [false, true] {
            for (producer, number) in [(0, 0), (3, LONG_EVERY / 2), (4, 1_000_000)] {
                let mut bytes = record(text, producer, number);
                assert_eq!(of_producer(text, &bytes), Ok((producer, number)));
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                assert!(of_producer(text, &bytes).is_err());
                bytes.pop();
                assert!(of_producer(text, &bytes).is_err());
            }
        }
        assert_eq!(of_producer(false, &[0; 7]), Err("7 bytes that no producer sent".into()));
    }

    #[test]
    fn a_text_has_no_line_feed_and_no_nul() {
        let bytes = record(true, 1, LONG_EVERY / 2);
        assert!(bytes.len() > LONG && !bytes.iter().any(|byte| [b'\n', 0].contains(byte)));
    }
}
