//! Parses sizes, counts, durations and points in time as users write them.

use jiff::civil::DateTime;
use jiff::{Span, Timestamp, Zoned};
use std::time::Duration;

const SIZE_EXAMPLES: &str = "sizes look like 512M, 4GiB or 1.5G";
const BLOCK_SIZE_EXAMPLES: &str = "block sizes look like 4k, 512K or 1M";
const DURATION_EXAMPLES: &str = "times look like 30s, 500ms or 2m";

/// Parses a size into bytes: `64M`, `1GiB`, `512K`, `4096`, `1.5G`.
///
/// Units are decimal (`k`, `M`, `G`, `T`, with or without `B`, are powers of 1000), except `Ki`,
/// `Mi`, `Gi`, `Ti`, with or without `B` (powers of 1024). Case does not matter. Zero, a negative
/// size, a fraction of a byte and more than `u64::MAX` bytes are errors.
pub fn parse_size(text: &str) -> Result<u64, String> {
    parse_bytes(text, 1000).map_err(|problem| line(text, &problem, SIZE_EXAMPLES))
}

/// Parses a block size into bytes, with binary units by tradition: `4k` is 4096 bytes.
///
/// `k`, `M`, `G`, `T`, with or without `B`, are powers of 1024, as in fio (whose option `kb_base`
/// is 1024 by default), so `4k`, `4K`, `4KB` and `4KiB` are all 4096. There is one difference: with
/// that default, fio reads `KiB` as 1000 bytes, but this function always reads it as 1024. Errors
/// are as for [`parse_size`].
pub fn parse_block_size(text: &str) -> Result<u64, String> {
    parse_bytes(text, 1024).map_err(|problem| line(text, &problem, BLOCK_SIZE_EXAMPLES))
}

/// Parses a time: `30s`, `500ms`, `2m`, `1.5s`.
///
/// Units are `ns`, `us`, `ms`, `s`, `m` (or `min`) and `h`. A time without a unit is in seconds, as
/// in fio's `runtime`. Zero, a negative time and a fraction of a nanosecond are errors.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse_nanoseconds(text)
        .map(Duration::from_nanos)
        .map_err(|problem| line(text, &problem, DURATION_EXAMPLES))
}

fn line(text: &str, problem: &str, examples: &str) -> String {
    // The text is escaped, so that a line break in it does not break the message into two lines.
    format!("{text:?}: {problem}; {examples}")
}

fn parse_bytes(text: &str, base: u128) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let lower = unit.to_ascii_lowercase();
    let multiple = match lower.strip_suffix('b').unwrap_or(&lower) {
        "" => 1,
        "k" => base,
        "m" => base.pow(2),
        "g" => base.pow(3),
        "t" => base.pow(4),
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return Err(format!("unknown unit {unit:?}")),
    };
    number.times(multiple, "is not a whole number of bytes", "is more than 2^64 bytes")
}

fn parse_nanoseconds(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let multiple = match unit.to_ascii_lowercase().as_str() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(format!("unknown unit {unit:?}")),
    };
    number.times(multiple, "is finer than a nanosecond", "is too long")
}

/// A decimal number, without rounding: `digits / 10^decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// Returns the exact product of the number and `multiple`. The error states what is wrong with
    /// the number.
    fn times(&self, multiple: u128, fraction: &str, too_large: &str) -> Result<u64, String> {
        let product = self.digits.checked_mul(multiple).ok_or(too_large)?;
        let divisor = 10_u128.pow(self.decimals);
        match u64::try_from(product / divisor) {
            Err(_) => Err(too_large.into()),
            Ok(_) if !product.is_multiple_of(divisor) => Err(fraction.into()),
            Ok(0) => Err("must be more than 0".into()),
            Ok(whole) => Ok(whole),
        }
    }
}

/// Splits `text` into its leading number and its unit.
fn split(text: &str) -> Result<(Decimal, &str), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("is empty".into());
    }
    if text.starts_with(['-', '\u{2212}']) {
        return Err("can't be negative".into());
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() {
        return Err("does not begin with a number".into());
    }
    Ok((decimal(number)?, unit.trim_start()))
}

fn decimal(number: &str) -> Result<Decimal, String> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) | Some(("", _)) => return Err(format!("{number:?} is not a number")),
        Some((_, fraction)) if fraction.contains('.') => {
            return Err(format!("{number:?} is not a number"));
        }
        Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
        None => (number, ""),
    };
    // 2^64 has 20 digits, and 128 bits can hold 38.
    if whole.trim_start_matches('0').len() > 20 {
        return Err("is too large".into());
    }
    if fraction.len() > 15 {
        return Err("has too many decimals".into());
    }
    let digits = format!("{whole}{fraction}").parse();
    let digits = digits.map_err(|_| format!("{number:?} is not a number"))?;
    Ok(Decimal { digits, decimals: fraction.len() as u32 })
}

/// Parses a time that may be zero: `0`, `0s`, `500ms`, `10s`.
pub fn parse_pause(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        _ => parse_duration(text),
    }
}

/// Parses a whole number from 1 to `MAX`.
pub fn parse_count<const MAX: u32>(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX).contains(number));
    number.ok_or_else(|| format!("{text:?}: must be a whole number from 1 to {MAX}"))
}

/// Parses a point in time: a timestamp (`2026-11-24T07:00Z`), a date and time in the local time
/// zone (`2026-11-24T07:00`), or an age (`10m`). The error is a line that names all three forms.
pub fn parse_moment(text: &str) -> Result<Timestamp, String> {
    moment_at(text, &Zoned::now()).ok_or_else(|| {
        format!(
            "{text:?}: must be a time, as 2026-11-24T07:00Z or 2026-11-24T07:00, or an age, as 10m"
        )
    })
}

/// Parses a point in time or an age, as of `now`; `None` if the text is neither. Dates and days are
/// in the time zone of `now`.
fn moment_at(text: &str, now: &Zoned) -> Option<Timestamp> {
    // The text contains the name of a time zone in brackets. Without this check, the time would be
    // treated as local.
    if text.contains('[') {
        return text.parse::<Zoned>().ok().map(|zoned| zoned.timestamp());
    }
    if let Ok(timestamp) = text.parse() {
        return Some(timestamp);
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        return now.time_zone().to_timestamp(civil).ok();
    }
    // With a sign, it would be ambiguous whether an age or a point in time is meant.
    let age: Span = text.parse().ok().filter(|_| !text.starts_with(['-', '+']))?;
    now.checked_sub(age.abs()).ok().map(|then| then.timestamp())
}

#[cfg(test)]
mod parse_tests {
    use super::*;
    use crate::units::{block_size, exact};
    use proptest::prelude::*;

    #[test]
    fn sizes_are_decimal_unless_they_say_otherwise() {
        for (text, size_bytes) in [
            ("4096", 4096),
            ("4096B", 4096),
            ("512K", 512_000),
            ("64M", 64_000_000),
            ("1.5G", 1_500_000_000),
            ("1 GB", 1_000_000_000),
            ("1KiB", 1 << 10),
            ("3Mi", 3 << 20),
            ("0.5TiB", 1 << 39),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(size_bytes), "{text}");
        }
    }

    #[test]
    fn block_sizes_are_binary() {
        for (text, size_bytes) in [
            ("4k", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("1M", 1 << 20),
            ("1.5k", 1536),
            ("512", 512),
        ] {
            assert_eq!(parse_block_size(text), Ok(size_bytes), "{text}");
        }
    }

    #[test]
    fn a_bad_size_is_told_in_one_line_that_says_what_is_right() {
        let right = "sizes look like 512M, 4GiB or 1.5G";
        for (text, problem) in [
            ("10Q", "\"10Q\": unknown unit \"Q\""),
            ("", "\"\": is empty"),
            ("  ", "\"  \": is empty"),
            ("0", "\"0\": must be more than 0"),
            ("-5M", "\"-5M\": can't be negative"),
            ("G", "\"G\": does not begin with a number"),
            ("1.5", "\"1.5\": is not a whole number of bytes"),
            ("1.0001k", "\"1.0001k\": is not a whole number of bytes"),
            ("1.2.3", "\"1.2.3\": \"1.2.3\" is not a number"),
            ("18446744073709551616", "\"18446744073709551616\": is more than 2^64 bytes"),
            ("1\n2", "\"1\\n2\": unknown unit \"2\""),
        ] {
            assert_eq!(parse_size(text), Err(format!("{problem}; {right}")));
        }
        assert!(parse_size(&"9".repeat(60)).unwrap_err().contains("is too large"));
        assert!(parse_size(&format!("1.{}1G", "0".repeat(60))).unwrap_err().contains("decimals"));
        assert!(parse_block_size("10Q").unwrap_err().contains("block sizes look like 4k"));
    }

    #[test]
    fn times_have_units_and_are_seconds_without() {
        for (text, elapsed) in [
            ("30s", Duration::from_secs(30)),
            ("30", Duration::from_secs(30)),
            ("500ms", Duration::from_millis(500)),
            ("2m", Duration::from_secs(120)),
            ("1.5s", Duration::from_millis(1500)),
            ("250us", Duration::from_micros(250)),
            ("7ns", Duration::from_nanos(7)),
        ] {
            assert_eq!(parse_duration(text), Ok(elapsed), "{text}");
        }
    }

    #[test]
    fn a_bad_time_is_told_in_one_line_that_says_what_is_right() {
        let right = "times look like 30s, 500ms or 2m";
        for (text, problem) in [
            ("30x", "\"30x\": unknown unit \"x\""),
            ("0s", "\"0s\": must be more than 0"),
            ("-1s", "\"-1s\": can't be negative"),
            ("1.5ns", "\"1.5ns\": is finer than a nanosecond"),
            ("9999999999h", "\"9999999999h\": is too long"),
            ("", "\"\": is empty"),
        ] {
            assert_eq!(parse_duration(text), Err(format!("{problem}; {right}")));
        }
    }

    proptest! {
        #[test]
        fn an_exact_size_is_read_back(size_bytes in 1..=u64::MAX, zeros in 0..15_u32) {
            let round = (size_bytes / 10_u64.pow(zeros)).max(1) * 10_u64.pow(zeros);
            prop_assert_eq!(parse_size(&exact(round)), Ok(round));
            prop_assert_eq!(parse_size(&exact(size_bytes)), Ok(size_bytes));
        }

        #[test]
        fn an_exact_block_size_is_read_back(size_bytes in 1..=u64::MAX, shift in 0..50_u32) {
            let round = (size_bytes >> shift).max(1) << shift;
            prop_assert_eq!(parse_block_size(&block_size(round)), Ok(round));
            prop_assert_eq!(parse_size(&block_size(round)), Ok(round));
        }

        #[test]
        fn no_text_breaks_the_parser(text in any::<String>()) {
            for error in [parse_size(&text).err(), parse_block_size(&text).err()] {
                prop_assert!(error.is_none_or(|line| line.lines().count() == 1));
            }
            prop_assert!(parse_duration(&text).is_err_and(|e| !e.contains('\n'))
                || parse_duration(&text).is_ok());
        }
    }

    #[test]
    fn a_pause_is_a_time_or_none() {
        assert_eq!(parse_pause("0"), Ok(Duration::ZERO));
        assert_eq!(parse_pause("0s"), Ok(Duration::ZERO));
        assert_eq!(parse_pause("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "-1s", "soon", "00"] {
            assert!(parse_pause(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_count_is_a_whole_number_from_1_to_its_limit() {
        assert_eq!(parse_count::<8>("8"), Ok(8));
        for bad in ["0", "9", "-1", "1.5", "", "many", "99999999999999999999"] {
            let problem = format!("{bad:?}: must be a whole number from 1 to 8");
            assert_eq!(parse_count::<8>(bad), Err(problem));
        }
    }
}

#[cfg(test)]
mod moment_tests {
    use super::*;

    #[test]
    fn a_time_is_a_timestamp_a_date_of_the_local_zone_or_an_age() {
        let now: Zoned = "2026-11-24T09:30[Europe/Berlin]".parse().expect("a time");
        let at = |text: &str| moment_at(text, &now).map(|at| at.to_string());
        for (text, expected) in [
            ("2026-11-24T07:00Z", "2026-11-24T07:00:00Z"),
            ("2026-11-24T07:00:01.5-05:00", "2026-11-24T12:00:01.5Z"),
            ("2026-11-24T07:00", "2026-11-24T06:00:00Z"),
            ("2026-11-24 07:00:05", "2026-11-24T06:00:05Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-11-24T07:00[Asia/Tokyo]", "2026-11-23T22:00:00Z"),
            ("10m", "2026-11-24T08:20:00Z"),
            ("1h30m", "2026-11-24T07:00:00Z"),
            ("500ms", "2026-11-24T08:29:59.5Z"),
            ("10m ago", "2026-11-24T08:20:00Z"),
            ("31d", "2026-10-24T07:30:00Z"),
        ] {
            assert_eq!(at(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "10", "-10m", "+10m", "yesterday", "2026-13-01", "07:00", "9999999y", "[]"]
        {
            assert_eq!(at(text), None, "{text:?}");
        }
    }
}
