//! Values: numbers with fio's units, times, switches, and lists with a value for each direction.

use super::Notes;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The meaning of the unit letters of a size (`kb_base`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KbBase {
    /// `k` is 1024 and `KiB` is 1000. This is fio's default, the reverse of the usual meaning.
    #[default]
    Reversed,
    /// `k` is 1000 and `KiB` is 1024.
    Si,
}

/// The text of a value, and the notes to which its parser adds.
pub(super) struct Value<'a> {
    /// The text; `None` for a bare key.
    pub text: Option<&'a str>,
    pub line: Option<usize>,
    pub kb_base: KbBase,
    pub notes: &'a mut Notes,
}

/// A number of bytes, or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Bytes(u64),
    Percent(u32),
}

impl Default for Size {
    fn default() -> Size {
        Size::Bytes(0)
    }
}

/// The maximum offset: the kernel's file offsets are signed (`off_t`).
pub(super) const BYTES_MAX: u64 = i64::MAX as u64;

/// The maximum time: ten years.
const SECONDS_MAX: u64 = 3650 * 86_400;

impl Value<'_> {
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.add(self.line, text);
    }

    /// Returns the text; an error if there is none.
    pub fn text(&self) -> Result<&str, String> {
        self.text.filter(|text| !text.is_empty()).ok_or_else(|| "has no value".into())
    }

    /// Parses `0`, `1`, or no value, which means 1.
    pub fn flag(&self) -> Result<bool, String> {
        match self.text {
            None | Some("1") => Ok(true),
            Some("0") => Ok(false),
            Some("") => Err("has no value".into()),
            Some(_) => Err("must be 0 or 1".into()),
        }
    }

    pub fn number(&mut self) -> Result<u64, String> {
        let text = self.text()?.to_string();
        self.number_of(&text)
    }

    pub fn within(&mut self, range: RangeInclusive<u32>) -> Result<u32, String> {
        let number = self.number()?;
        let (least, most) = (range.start(), range.end());
        let inside = u32::try_from(number).ok().filter(|number| range.contains(number));
        inside.ok_or_else(|| format!("must be a whole number from {least} to {most}"))
    }

    pub fn size(&mut self) -> Result<Size, String> {
        let text = self.text()?.to_string();
        let Some(percent) = text.strip_suffix('%') else {
            return Ok(Size::Bytes(self.number_of(&text)?));
        };
        match percent.parse() {
            Ok(0) => Ok(Size::Bytes(0)),
            Ok(percent @ 1..=100) => Ok(Size::Percent(percent)),
            _ => Err("percents are from 0% to 100%".into()),
        }
    }

    pub fn numbers(&mut self) -> Result<[Option<u64>; 2], String> {
        self.directions(|value, part| value.number_of(part))
    }

    /// Parses a value for each direction: `READS,WRITES`, `READS,` or `,WRITES`. An empty part is
    /// `None`, and a single part without a comma applies to both directions. A third part, for
    /// trims, is ignored.
    pub fn directions<T: Clone>(
        &mut self,
        mut part: impl FnMut(&mut Self, &str) -> Result<T, String>,
    ) -> Result<[Option<T>; 2], String> {
        let text = self.text()?.to_string();
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts.len() > 3 {
            return Err("there are at most three values: of reads, writes and trims".into());
        }
        let mut values = Vec::new();
        for text in &parts {
            values.push(if text.is_empty() { None } else { Some(part(self, text)?) });
        }
        match values.as_slice() {
            [both] => Ok([both.clone(), both.clone()]),
            all if all.iter().all(Option::is_none) => Err("has no value".into()),
            [reads, writes, ..] => Ok([reads.clone(), writes.clone()]),
            [] => Err("has no value".into()),
        }
    }

    /// Parses a whole number from `text`, which is the value or a part of it.
    pub fn number_of(&mut self, text: &str) -> Result<u64, String> {
        let (number, unit) = split(text)?;
        let unit = unit.to_ascii_lowercase();
        let (multiple, reversed) = multiple(&unit, self.kb_base)?;
        let product = number.checked_mul(multiple).filter(|&bytes| bytes <= BYTES_MAX);
        let product = product.ok_or("is more than 2^63 - 1")?;
        if reversed {
            self.note(format!(
                "{text}: is {product} bytes, as in fio: with kb_base=1024, its default, the \
                 units are reversed: k is 1024 and KiB 1000"
            ));
        }
        Ok(product)
    }

    /// Parses a time. Without a unit, it is in seconds.
    pub fn time(&self) -> Result<Duration, String> {
        self.time_in(1_000_000)
    }

    /// Parses a time. Without a unit, it is in units of `plain_us` microseconds.
    pub fn time_in(&self, plain_us: u64) -> Result<Duration, String> {
        let text = self.text()?;
        let (number, unit) = split(text)?;
        let unit_us: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "us" | "usec" => 1,
            "ms" | "msec" => 1000,
            "" => plain_us,
            "s" | "sec" => 1_000_000,
            "m" | "min" => 60_000_000,
            "h" | "hour" => 3_600_000_000,
            "d" | "day" => 86_400_000_000,
            other => {
                return Err(format!(
                    "{other} is not a unit of time; the units are us, ms, s, m, h and d"
                ));
            }
        };
        let time = number.checked_mul(unit_us).map(Duration::from_micros);
        time.filter(|time| time.as_secs() <= SECONDS_MAX).ok_or("is more than ten years".into())
    }
}

/// Returns the multiplier of a unit, and whether it is fio's reversed meaning.
fn multiple(unit: &str, kb_base: KbBase) -> Result<(u64, bool), String> {
    let letter = unit.chars().next().unwrap_or('b');
    let power = match letter {
        'b' => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        'z' => return Err("zones of zoned devices are not supported: write bytes".into()),
        _ => return Err(unknown(unit)),
    };
    let rest = unit.get(1..).unwrap_or("");
    match (rest, kb_base) {
        ("", _) if power == 0 => Ok((1, false)),
        // fio 3.33 reads 4ki as 4k, contrary to its manual.
        ("" | "b" | "i", KbBase::Reversed) if power > 0 => Ok((1024_u64.pow(power), false)),
        ("ib", KbBase::Reversed) if power > 0 => Ok((1000_u64.pow(power), true)),
        ("" | "b", KbBase::Si) if power > 0 => Ok((1000_u64.pow(power), false)),
        ("ib", KbBase::Si) if power > 0 => Ok((1024_u64.pow(power), false)),
        ("i", KbBase::Si) if power > 0 => Err(format!(
            "{unit} is 1024 in fio's manual and 1000 in fio with kb_base=1000; write {letter} or \
             {letter}iB"
        )),
        _ => Err(unknown(unit)),
    }
}

fn unknown(unit: &str) -> String {
    format!("{unit} is not a unit; the units are k, m, g, t and p, each also with b or iB")
}

fn split(text: &str) -> Result<(u64, &str), String> {
    if text.starts_with('(') {
        return Err("arithmetic is not supported: write the number".into());
    }
    if text.starts_with('-') {
        return Err("can't be negative".into());
    }
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((text, 10), |digits| (digits, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    if number.is_empty() {
        return Err("does not begin with a number".into());
    }
    let fraction = unit.strip_prefix('.').map(|rest| rest.trim_start_matches('0'));
    if let Some("") = fraction {
        return Ok((whole(number, radix)?, ""));
    }
    if fraction.is_some() {
        return Err("has a fraction, which fio would drop; write a whole number".into());
    }
    if unit.starts_with(['-', ':', '/']) {
        return Err("takes one value, and these are several".into());
    }
    Ok((whole(number, radix)?, unit))
}

fn whole(number: &str, radix: u32) -> Result<u64, String> {
    u64::from_str_radix(number, radix).map_err(|_| "is more than 2^63 - 1".into())
}
