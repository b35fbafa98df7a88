//! The size of the streams, as fio's job files write it.

use super::job::PEAK_BYTES;
use std::fmt::{self, Display};
use std::str::FromStr;

/// A size such as `2g`: a number and k, m or g, each 1024 times the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// As it was given.
    pub text: String,
    /// The same in bytes.
    pub bytes: u64,
}

impl Size {
    /// So many GiB: "2g".
    pub fn gib(number: u64) -> Size {
        Size { text: format!("{number}g"), bytes: number << 30 }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" => Some(0),
            "k" => Some(10),
            "m" => Some(20),
            "g" => Some(30),
            _ => None,
        };
        let number = digits.parse::<u64>().ok().zip(shift);
        let bytes = number.and_then(|(number, shift)| number.checked_mul(1 << shift));
        let bytes = bytes.ok_or("a number and k, m or g: 2g")?;
        if bytes == 0 || !bytes.is_multiple_of(PEAK_BYTES) {
            return Err("a multiple of 512k: 2g".into());
        }
        Ok(Size { text: text.to_owned(), bytes })
    }
}

impl Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
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
