//! Values with a special syntax: block sizes, `random_distribution`, and `buffer_pattern`.

use super::value::Value;
use crate::spec::{BlockShare, BlockSizes, Distribution, Zone};
use wrote_result::units;

/// The maximum block size, which is the maximum size of a registered buffer (io_uring_register(2)).
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// The maximum number of sizes in a split, as in fio.
const SHARES_MAX: usize = 64;

const PERCENTS: u64 = 100;

/// Parses `bs`: one size.
pub(super) fn one(value: &mut Value<'_>, text: &str) -> Result<BlockSizes, String> {
    if text.contains('-') {
        return Err("is a range; use bsrange for that, and bssplit for shares".into());
    }
    if text.contains(['/', ':']) {
        return Err("is a split; use bssplit for that".into());
    }
    Ok(BlockSizes::one(size(value, text)?))
}

/// Parses `bsrange`: all multiples of the smallest size up to the largest, each equally often.
pub(super) fn range(value: &mut Value<'_>, text: &str) -> Result<BlockSizes, String> {
    let Some((first, second)) = text.split_once(['-', ':']) else {
        return Err("must be a range, such as 4k-16k".into());
    };
    let (first, second) = (size(value, first.trim())?, size(value, second.trim())?);
    let (least, most) = (first.min(second), first.max(second));
    let whole = most - most % least;
    if whole < most {
        let [whole, most, least] = [whole, most, least].map(units::block_size);
        let text = value.text()?.to_owned();
        value.note(format!(
            "bsrange={text}: sizes are multiples of {least}, so the largest is {whole}, not {most}"
        ));
    }
    let count = whole / least;
    if count > PERCENTS || !PERCENTS.is_multiple_of(count) {
        return Ok(BlockSizes::Range { least_bytes: least, most_bytes: whole });
    }
    let percent = (PERCENTS / count) as u32;
    let shares = (1..=count).map(|times| BlockShare { bytes: least * times, percent });
    Ok(BlockSizes::Split(shares.collect()))
}

/// Parses `bssplit`: `size/percent:size/percent`. Sizes without a percentage share the rest evenly.
pub(super) fn split(value: &mut Value<'_>, text: &str) -> Result<BlockSizes, String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts.len() > SHARES_MAX {
        return Err(format!("must be 1 to {SHARES_MAX} sizes, such as 4k/60:64k/40"));
    }
    let mut shares: Vec<(u64, Option<u32>)> = Vec::new();
    for part in parts {
        let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
        shares.push((size(value, bytes.trim())?, percent_of(percent.trim())?));
    }
    let given: u32 = shares.iter().filter_map(|(_, percent)| *percent).sum();
    let open = shares.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    if given > 100 || (open == 0 && given != 100) {
        return Err(format!("the percents add up to {given}, not 100"));
    }
    Ok(BlockSizes::Split(filled(&shares, 100 - given, open)))
}

/// Divides the remaining `left` percent evenly among the sizes without a percentage, and drops
/// sizes of 0 percent.
fn filled(shares: &[(u64, Option<u32>)], left: u32, open: u32) -> Vec<BlockShare> {
    let mut seen = 0;
    let share = |&(bytes, percent): &(u64, Option<u32>)| {
        let percent = percent.unwrap_or_else(|| {
            let share = left * (seen + 1) / open - left * seen / open;
            seen += 1;
            share
        });
        BlockShare { bytes, percent }
    };
    shares.iter().map(share).filter(|share| share.percent > 0).collect()
}

fn percent_of(text: &str) -> Result<Option<u32>, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    if number.is_empty() {
        return Ok(None);
    }
    let percent = number.parse().ok().filter(|percent| *percent <= 100);
    percent.map(Some).ok_or_else(|| format!("{text} is not a percent from 0 to 100"))
}

fn size(value: &mut Value<'_>, text: &str) -> Result<u64, String> {
    match value.number_of(text)? {
        0 => Err("a block is at least 1 byte".into()),
        bytes if bytes > BLOCK_BYTES_MAX => Err("a block is at most 1 GiB".into()),
        bytes => Ok(bytes),
    }
}

/// The maximum number of zones, as in fio.
const ZONES_MAX: usize = 256;

/// Parses `random`, `zipf:1.2`, `pareto:0.2` or `zoned:60/10:40/90`.
pub(super) fn distribution(value: &Value<'_>) -> Result<Distribution, String> {
    let text = value.text()?;
    let (word, numbers) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
    match word {
        "random" => Ok(Distribution::Uniform),
        "zipf" => {
            let theta = shape(numbers, 1.1)?;
            if !(0.0..=100.0).contains(&theta) {
                return Err("the theta of zipf is from 0 to 100".into());
            }
            Ok(Distribution::Zipf { theta })
        }
        "pareto" => {
            let h = shape(numbers, 0.2)?;
            if h <= 0.0 || h >= 1.0 {
                return Err("the power of pareto is between 0 and 1".into());
            }
            Ok(Distribution::Pareto { h })
        }
        "zoned" => zones(numbers.unwrap_or("")).map(Distribution::Zoned),
        "zoned_abs" => Err("zones are shares of a file here; write zoned:60/10:40/90".into()),
        "normal" => Err("fio's own normal is not the one of its manual; use zipf or zoned".into()),
        _ => Err("must be random, zipf, pareto or zoned".into()),
    }
}

/// Parses the shape of a distribution: `1.2`.
fn shape(text: Option<&str>, default: f64) -> Result<f64, String> {
    let Some(text) = text else { return Ok(default) };
    if text.contains(':') {
        return Err("the most used blocks are scattered here: leave out the centre".into());
    }
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{text} is not a number"))
}

/// Parses `60/10:40/90`. Each zone is a percentage of the operations and a percentage of the file.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    if text.contains(',') {
        return Err("reads and writes share the zones here: write them once".into());
    }
    let mut rest: u32 = 100;
    let zone = |text: &str| {
        let percent = |text: &str| text.trim().parse().ok().filter(|percent| *percent <= 100);
        let zone = text.split_once('/').and_then(|(ios, bytes)| {
            // A zone without a percentage is the rest of the file.
            let bytes = if bytes.trim().is_empty() { rest } else { percent(bytes)? };
            rest = rest.saturating_sub(bytes);
            Some(Zone { ios_percent: percent(ios)?, bytes_percent: bytes })
        });
        zone.ok_or_else(|| format!("{text} is not a zone; 60/10 is 60 % of operations in 10 %"))
    };
    let zones = text.split(':').map(zone).collect::<Result<Vec<_>, _>>()?;
    let ios: u32 = zones.iter().map(|zone| zone.ios_percent).sum();
    let bytes: u32 = zones.iter().map(|zone| zone.bytes_percent).sum();
    match () {
        () if zones.len() > ZONES_MAX => Err(format!("there are at most {ZONES_MAX} zones")),
        () if ios != 100 => Err(format!("the percents of operations add up to {ios}, not 100")),
        () if bytes > 100 => Err(format!("the percents of the file add up to {bytes}")),
        () => Ok(zones),
    }
}

/// The maximum length of a pattern, as in fio.
const BYTES_MAX: usize = 512;

/// Parses a pattern: `"abcd"`, or `0xdeadface`. If the number of hexadecimal digits is odd, the
/// first digit alone is a byte.
pub(super) fn pattern(text: &str) -> Result<Vec<u8>, String> {
    let word = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits: Option<Vec<u32>> =
        digits.and_then(|digits| digits.chars().map(|c| c.to_digit(16)).collect());
    let byte = |pair: &[u32]| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
    let bytes: Vec<u8> = match (word, digits) {
        (Some(word), _) => word.into(),
        (None, Some(digits)) => digits.rchunks(2).rev().map(byte).collect(),
        (None, None) => return Err("must be a text or a number: \"abcd\" or 0xdeadface".into()),
    };
    match bytes.len() {
        0 => Err("is a pattern of no bytes".into()),
        1..=BYTES_MAX => Ok(bytes),
        more => Err(format!("is a pattern of {more} bytes; there are at most {BYTES_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::pattern;
    use proptest::prelude::*;

    #[test]
    fn patterns_have_the_bytes_of_fios_own_examples() {
        for (text, bytes) in
            [(r#""abcd""#, &b"abcd"[..]), ("0XFFeeCC", b"\xff\xee\xcc"), ("0xabc", b"\x0a\xbc")]
        {
            assert_eq!(pattern(text).as_deref(), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        for (text, told) in [
            (r#""""#, "no bytes"),
            (r#""abc"#, "a text or a number"),
            ("'file'", "a text or a number"),
            ("-12", "a text or a number"),
            ("0x", "no bytes"),
            ("0xfg", "a text or a number"),
            (&format!("\"{}\"", "a".repeat(513)), "at most 512"),
        ] {
            assert!(pattern(text).is_err_and(|error| error.contains(told)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "[-+0-9xXa-f\"é]{0,12}") {
            let _ = pattern(&text);
        }
    }
}
