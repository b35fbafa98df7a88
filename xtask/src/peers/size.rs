//! Sizes, as fio's job files write them.

use std::str::FromStr;

/// A size is a multiple of this, so that the streams' operations are whole.
const UNIT_BYTES: u64 = 512 << 10;

/// A size such as `2g`: a number and k, m or g, each 1024 times the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The caller's text.
    pub text: String,
    /// The bytes.
    pub bytes: u64,
}

impl Size {
    /// Makes a size of a number of GiB: "2g".
    pub fn gib(number: u64) -> Size {
        Size { text: format!("{number}g"), bytes: number << 30 }
    }
}

/// Reads the bytes of "4k", "512K", "2g" or "4096".
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let bytes = bytes(text).ok_or("a number and k, m or g: 2g")?;
        if bytes == 0 || !bytes.is_multiple_of(UNIT_BYTES) {
            return Err("a multiple of 512k: 2g".into());
        }
        Ok(Size { text: text.to_owned(), bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_and_a_letter() {
        let bytes = |text: &str| text.parse::<Size>().expect("a size").bytes;
        assert_eq!(bytes("2g"), 2 << 30);
        assert_eq!("2g".parse(), Ok(Size::gib(2)));
        assert_eq!(bytes("64M"), 64 << 20);
        assert_eq!(bytes("512k"), 512 << 10);
        assert_eq!(bytes("1048576"), 1 << 20);
    }

    #[test]
    fn what_is_no_size_or_no_whole_number_of_writes_is_refused() {
        let message = |text: &str| text.parse::<Size>().expect_err("refused");
        for text in ["", "g", "2x", "2gb", "-1g", "99999999999g", "1.5g"] {
            assert_eq!(message(text), "a number and k, m or g: 2g");
        }
        for text in ["0", "4k", "513k"] {
            assert_eq!(message(text), "a multiple of 512k: 2g");
        }
    }
}
