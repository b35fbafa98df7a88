//! The values of arguments that are neither plain sizes nor plain times.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::time::Duration;
use wrote_bench::Request;
use wrote_jobs::rate::Amount;
use wrote_report::Format;
use wrote_result::units;

/// Parses the names of formats. `formats` has those of one command, each with its help.
pub(super) fn formats<const N: usize>(
    formats: [(&'static str, &'static str); N],
) -> impl TypedValueParser<Value = Format> {
    let names = formats.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "json" => Format::Json,
        "csv" => Format::Csv,
        "markdown" => Format::Markdown,
        _ => Format::Table,
    })
}

/// The bytes of one write: of one workload, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The first size given, in bytes.
    pub first: u64,
    /// The second, in bytes, where there is one.
    pub second: Option<u64>,
}

/// `STREAM` or `STREAM,SMALL`.
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

/// The bytes of the shortest and the longest message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSizes {
    /// Of the shortest.
    pub min_bytes: u32,
    /// Of the longest.
    pub max_bytes: u32,
}

/// `MIN..MAX`, or one size for all.
pub(super) fn message_sizes(text: &str) -> Result<MessageSizes, String> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let range = Request::MESSAGE_BYTES_MIN..=Request::MESSAGE_BYTES_MAX;
    let bytes = |text: &str| {
        let bytes = units::parse_block_size(text)?;
        u32::try_from(bytes).ok().filter(|bytes| range.contains(bytes)).ok_or_else(|| {
            format!("{text:?}: a message has {} to {} bytes", range.start(), range.end())
        })
    };
    let sizes = MessageSizes { min_bytes: bytes(min)?, max_bytes: bytes(max)? };
    if sizes.min_bytes > sizes.max_bytes {
        return Err(format!("{text:?}: the shortest comes first, as in 300..2000"));
    }
    Ok(sizes)
}

/// Operations (`5000`, `5k`) or bytes (`20MB`, `20MB/s`) a second. Only bytes end in `B`: so that nobody
/// is held to 5000 bytes who thought of 5000 requests.
pub(super) fn rate(text: &str) -> Result<Amount, String> {
    let amount = text.strip_suffix("/s").unwrap_or(text);
    let bad = || format!("{text:?}: must be operations a second, as 5000 or 5k, or bytes, as 20MB");
    if amount.ends_with(['B', 'b']) {
        let bytes = units::parse_size(amount).map_err(|_| bad())?;
        return if bytes == 0 { Err(bad()) } else { Ok(Amount::BytesPerS(bytes)) };
    }
    thousands(amount).map(Amount::OperationsPerS).ok_or_else(bad)
}

/// Every language has a type for numbers up to this.
const MANY_MAX: u32 = 1_000_000_000;

/// How many, a whole number above 0: `1000000`, `100k`, `1M`.
pub(super) fn many(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?}: must be a whole number from 1 to 1000M, as 5000, 100k or 1M");
    thousands(text).filter(|many| *many <= MANY_MAX).map(u64::from).ok_or_else(bad)
}

/// A whole number above 0, of `k` thousands or `M` millions where it says so.
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

/// A time that may be none: `0`, `0s`, `500ms`, `10s`.
pub(super) fn pause(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        _ => units::parse_duration(text),
    }
}

/// A whole number from 1 to `MAX`.
pub(super) fn count<const MAX: u32>(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX).contains(number));
    number.ok_or_else(|| format!("{text:?}: must be a whole number from 1 to {MAX}"))
}

/// A whole number, 0 too.
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
                format!("{bad:?}: must be a whole number from 1 to 1000M, as 5000, 100k or 1M");
            assert_eq!(many(bad), Err(problem));
        }
    }

    #[test]
    fn a_pause_is_a_time_or_none() {
        assert_eq!(pause("0"), Ok(Duration::ZERO));
        assert_eq!(pause("0s"), Ok(Duration::ZERO));
        assert_eq!(pause("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "-1s", "soon", "00"] {
            assert!(pause(bad).is_err(), "{bad}");
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
    fn a_count_is_a_whole_number_from_1_to_its_limit() {
        assert_eq!(count::<8>("8"), Ok(8));
        for bad in ["0", "9", "-1", "1.5", "", "many", "99999999999999999999"] {
            let problem = format!("{bad:?}: must be a whole number from 1 to 8");
            assert_eq!(count::<8>(bad), Err(problem));
        }
    }

    #[test]
    fn messages_have_one_size_or_a_range_of_sizes() {
        let sizes = |min_bytes, max_bytes| Ok(MessageSizes { min_bytes, max_bytes });
        assert_eq!(message_sizes("300..2000"), sizes(300, 2000));
        assert_eq!(message_sizes("64"), sizes(64, 64));
        assert_eq!(message_sizes("1K..4KiB"), sizes(1024, 4096));
        for bad in ["2000..300", "31", "32..1G", "", "..", "300..", "300...2000", "-1..5"] {
            let problem = message_sizes(bad).unwrap_err();
            assert_eq!(problem.lines().count(), 1, "{bad:?}: {problem}");
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
