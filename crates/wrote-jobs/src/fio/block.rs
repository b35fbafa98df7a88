//! Block sizes: `bs`, `bsrange` and `bssplit`.

use super::value::Value;
use crate::spec::{BlockShare, BlockSizes};
use wrote_result::units;

/// The largest block: the most bytes of one registered buffer (io_uring_register(2)).
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// The most sizes of a split, as in fio.
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

/// Parses `bsrange`: the multiples of the least size up to the largest, each equally often.
pub(super) fn range(value: &mut Value<'_>, text: &str) -> Result<BlockSizes, String> {
    let Some((first, second)) = text.split_once(['-', ':']) else {
        return Err("must be a range, as 4k-16k".into());
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

/// Parses `bssplit`: `size/percent:size/percent`; sizes without a percent share the rest evenly.
pub(super) fn split(value: &mut Value<'_>, text: &str) -> Result<BlockSizes, String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts.len() > SHARES_MAX {
        return Err(format!("must be 1 to {SHARES_MAX} sizes, as 4k/60:64k/40"));
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

/// Divides `left` percents evenly between the sizes without any; drops sizes of 0 percent.
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
