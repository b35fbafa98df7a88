//! The values of arguments that are neither plain sizes nor plain times.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use wrote_jobs::rate::Amount;
use wrote_report::Format;
use wrote_result::units;

/// Returns a parser that accepts one of these words. Each word has a help text, which may be empty,
/// and a meaning.
pub(super) fn words<T: Copy + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = words.map(|(name, help, _)| match help {
        "" => PossibleValue::new(name),
        help => PossibleValue::new(name).help(help),
    });
    PossibleValuesParser::new(names).map(move |name| {
        let known = words.iter().find(|(known, ..)| *known == name);
        known.expect("no other word is accepted").2
    })
}

/// Returns a parser of the format of a result. The parameters are the help texts of three formats.
pub(super) fn formats(
    table: &'static str,
    json: &'static str,
    csv: &'static str,
) -> impl TypedValueParser<Value = Format> {
    words([
        ("table", table, Format::Table),
        ("json", json, Format::Json),
        ("csv", csv, Format::Csv),
        ("markdown", "To paste into an issue", Format::Markdown),
    ])
}

/// The bytes of one write, for one workload or for two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The first size, in bytes.
    pub first: u64,
    /// The second size, in bytes, if there is one.
    pub second: Option<u64>,
}

/// Parses `STREAM` or `STREAM,SMALL`.
pub(super) fn block_sizes(text: &str) -> Result<BlockSizes, String> {
    match text.split_once(',') {
        None => Ok(BlockSizes { first: units::parse_block_size(text)?, second: None }),
        Some((_, rest)) if rest.contains(',') => {
            Err(format!("{text:?}: at most two sizes, as in 256K,4K"))
        }
        Some((first, second)) => Ok(BlockSizes {
            first: units::parse_block_size(first)?,
            second: Some(units::parse_block_size(second)?),
        }),
    }
}

/// Parses operations (`5000`, `5k`) or bytes (`20MB`, `20MB/s`) per second. Bytes must end with
/// `B`, so that a request for 5000 operations is never taken as one for 5000 bytes.
pub(super) fn rate(text: &str) -> Result<Amount, String> {
    let amount = text.strip_suffix("/s").unwrap_or(text);
    let bad = || format!("{text:?}: must be operations (5000, 5k) or bytes (20MB) per second");
    if amount.ends_with(['B', 'b']) {
        let bytes = units::parse_size(amount).map_err(|_| bad())?;
        return if bytes == 0 { Err(bad()) } else { Ok(Amount::BytesPerS(bytes)) };
    }
    thousands(amount).map(Amount::OperationsPerS).ok_or_else(bad)
}

/// The maximum count. Every language has a type for numbers up to this one.
const MANY_MAX: u32 = 1_000_000_000;

/// Parses a count, which is a whole number above 0: `1000000`, `100k`, `1M`.
pub(super) fn many(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?}: must be a whole number from 1 to 1000M: 5000, 100k, 1M");
    thousands(text).filter(|many| *many <= MANY_MAX).map(u64::from).ok_or_else(bad)
}

/// Parses a whole number above 0, which may be in thousands (`k`) or millions (`M`).
fn thousands(text: &str) -> Option<u32> {
    let (digits, times) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => (text.strip_suffix(['m', 'M']).unwrap_or(text), 1_000_000),
    };
    let times = if digits.len() == text.len() { 1 } else { times };
    let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u32>().ok().filter(|number| only_digits && *number > 0);
    number.and_then(|number| number.checked_mul(times))
}

/// Parses a whole number, which may be 0.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| only_digits);
    number.ok_or_else(|| format!("{text:?}: must be a whole number, 0 or more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_operations_unless_it_is_of_bytes() {
        assert_eq!(rate("5000"), Ok(Amount::OperationsPerS(5000)));
        assert_eq!(rate("5k/s"), Ok(Amount::OperationsPerS(5000)));
        assert_eq!(rate("2M"), Ok(Amount::OperationsPerS(2_000_000)));
        assert_eq!(rate("20MB"), Ok(Amount::BytesPerS(20_000_000)));
        assert_eq!(rate("4KiB/s"), Ok(Amount::BytesPerS(4096)));
        for bad in ["", "0", "0B", "-5", "fast", "5000M", "1.5", "k", "B", "+7"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn many_may_be_said_in_thousands_and_millions() {
        assert_eq!(many("20"), Ok(20));
        assert_eq!(many("100k"), Ok(100_000));
        assert_eq!(many("1M"), Ok(1_000_000));
        for bad in ["", "0", "-1", "1.5M", "k", "+7", "1MB", "1001M", "9000000M"] {
            let problem =
                format!("{bad:?}: must be a whole number from 1 to 1000M: 5000, 100k, 1M");
            assert_eq!(many(bad), Err(problem));
        }
    }

    #[test]
    fn a_number_is_digits_and_not_too_many() {
        assert_eq!(number("0"), Ok(0));
        assert_eq!(number("18446744073709551615"), Ok(u64::MAX));
        for bad in ["-1", "+1", "1.5", "", "many", "18446744073709551616"] {
            assert_eq!(number(bad), Err(format!("{bad:?}: must be a whole number, 0 or more")));
        }
    }

    #[test]
    fn there_are_at_most_two_block_sizes() {
        let both = BlockSizes { first: 1 << 20, second: Some(4 << 10) };
        assert_eq!(block_sizes("1M,4K"), Ok(both));
        for bad in ["1M,4K,4K", "1M,", ",4K", "0", "4K,0", ""] {
            assert!(block_sizes(bad).is_err(), "{bad:?}");
        }
    }
}
