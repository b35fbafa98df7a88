//! `random_distribution`: the blocks that a random job uses more than others.

use super::value::Value;
use crate::spec::{Distribution, Zone};

/// The most zones, as in fio.
const ZONES_MAX: usize = 256;

/// Parses `random`, `zipf:1.2`, `pareto:0.2:0.5` or `zoned:60/10:40/90`.
pub(super) fn parse(value: &Value<'_>) -> Result<Distribution, String> {
    let text = value.text()?;
    let (word, numbers) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
    match word {
        "random" => Ok(Distribution::Uniform),
        "zipf" => {
            let (theta, center) = shape(numbers, 1.1)?;
            if !(0.0..=100.0).contains(&theta) {
                return Err("the theta of zipf is from 0 to 100".into());
            }
            Ok(Distribution::Zipf { theta, center })
        }
        "pareto" => {
            let (h, center) = shape(numbers, 0.2)?;
            if h <= 0.0 || h >= 1.0 {
                return Err("the power of pareto is between 0 and 1".into());
            }
            Ok(Distribution::Pareto { h, center })
        }
        "zoned" => zones(numbers.unwrap_or("")).map(Distribution::Zoned),
        "zoned_abs" => Err("zones are shares of a file here; write zoned:60/10:40/90".into()),
        "normal" => Err("fio's own normal is not the one of its manual; use zipf or zoned".into()),
        _ => Err("must be random, zipf, pareto or zoned".into()),
    }
}

/// Parses `1.2` or `1.2:0.5`: the shape, and the place of the most used block.
fn shape(numbers: Option<&str>, default: f64) -> Result<(f64, Option<f64>), String> {
    let Some(numbers) = numbers else { return Ok((default, None)) };
    let number = |text: &str| {
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("{text} is not a number"))
    };
    let (shape, center) = numbers.split_once(':').map_or((numbers, None), |(a, b)| (a, Some(b)));
    let center = center.map(number).transpose()?;
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err("the centre is from 0 to 1".into());
    }
    Ok((number(shape)?, center))
}

/// Parses `60/10:40/90`: percents of the operations, each with its percent of the file.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    if text.contains(',') {
        return Err("reads and writes have the same zones; write them once".into());
    }
    let zone = |text: &str| {
        let percent = |text: &str| text.trim().parse().ok().filter(|percent| *percent <= 100);
        let zone = text.split_once('/').and_then(|(ios, bytes)| {
            Some(Zone { ios_percent: percent(ios)?, bytes_percent: percent(bytes)? })
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
