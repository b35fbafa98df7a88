//! A TOML table read key by key. Every fault is kept with its line, and unknown keys are reported.

use std::fmt::Display;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wrote_result::units;

/// The minimum similarity for suggesting a known key.
const SIMILARITY_MIN: f64 = 0.6;

/// The faults of a file, with their lines.
#[derive(Debug)]
pub(super) struct Faults<'t> {
    text: &'t str,
    found: Vec<(usize, String)>,
}

impl<'t> Faults<'t> {
    pub(super) fn of(text: &'t str) -> Faults<'t> {
        Faults { text, found: Vec::new() }
    }

    /// Adds a fault at byte `offset`.
    pub(super) fn add(&mut self, offset: usize, fault: impl Display) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        // Messages of the parser may span several lines.
        let words: Vec<_> = fault.to_string().split_whitespace().map(str::to_owned).collect();
        self.found.push((line, words.join(" ")));
    }

    /// Returns the faults sorted by line; `None` if there are none.
    pub(super) fn lines(&mut self) -> Option<Vec<String>> {
        self.found.sort();
        self.found.dedup();
        let lines = self.found.iter().map(|(line, fault)| format!("line {line}: {fault}"));
        Some(lines.collect()).filter(|lines: &Vec<_>| !lines.is_empty())
    }
}

/// A table whose keys are removed one by one as they are read.
pub(super) struct Table<'t> {
    /// `[limits]`, or a description of a table without a name.
    name: String,
    /// The offset of the table's start.
    pub offset: usize,
    entries: DeTable<'t>,
    known: Vec<&'static str>,
}

impl<'t> Table<'t> {
    pub(super) fn new(name: String, offset: usize, entries: DeTable<'t>) -> Table<'t> {
        Table { name, offset, entries, known: Vec::new() }
    }

    /// Adds a fault if a key is missing.
    pub(super) fn must_have(&self, key: &str, faults: &mut Faults<'_>) {
        if !self.entries.contains_key(key) {
            faults.add(self.offset, format_args!("{} has no {key}", self.name));
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a key that has not been taken has this text.
    pub(super) fn has(&self, key: &str, text: &str) -> bool {
        let value = self.entries.get(key).map(Spanned::get_ref);
        matches!(value, Some(DeValue::String(found)) if found == text)
    }

    /// Takes a value parsed by `read`, with its offset.
    pub(super) fn take_at<T>(
        &mut self,
        key: &'static str,
        faults: &mut Faults<'_>,
        read: impl FnOnce(DeValue<'t>) -> Result<T, String>,
    ) -> Option<(usize, T)> {
        self.known.push(key);
        let value = self.entries.remove(key)?;
        let offset = value.span().start;
        match read(value.into_inner()) {
            Ok(value) => Some((offset, value)),
            Err(fault) => {
                faults.add(offset, format_args!("{key} in {}: {fault}", self.name));
                None
            }
        }
    }

    /// Takes a value parsed by `read`.
    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        faults: &mut Faults<'_>,
        read: impl FnOnce(DeValue<'t>) -> Result<T, String>,
    ) -> Option<T> {
        self.take_at(key, faults, read).map(|(_, value)| value)
    }

    pub(super) fn take_table(
        &mut self,
        key: &'static str,
        faults: &mut Faults<'_>,
    ) -> Option<Table<'t>> {
        let (offset, entries) = self.take_at(key, faults, table)?;
        Some(Table::new(format!("[{key}]"), offset, entries))
    }

    /// Takes all entries, with any key.
    pub(super) fn take_all(
        &mut self,
    ) -> impl Iterator<Item = (Spanned<String>, Spanned<DeValue<'t>>)> {
        let entries = std::mem::take(&mut self.entries).into_iter();
        entries.map(|(key, value)| (Spanned::new(key.span(), key.into_inner().into_owned()), value))
    }

    /// Reports the keys that were not taken.
    pub(super) fn finish(self, faults: &mut Faults<'_>) {
        for key in self.entries.keys() {
            let name = key.get_ref().as_ref();
            let alike = |known: &&str| strsim::normalized_damerau_levenshtein(name, known);
            let near = self.known.iter().copied();
            let near = near.max_by(|one, other| alike(one).total_cmp(&alike(other)));
            let near = near.filter(|near| alike(near) >= SIMILARITY_MIN);
            let longer = || self.known.iter().copied().find(|known| known.starts_with(name));
            let hint = match near.or_else(longer) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("it takes {}", self.known.join(", ")),
            };
            let start = key.span().start;
            faults.add(start, format_args!("unknown key '{name}' in {}; {hint}", self.name));
        }
    }
}

pub(super) fn table(value: DeValue<'_>) -> Result<DeTable<'_>, String> {
    match value {
        DeValue::Table(table) => Ok(table),
        _ => Err("is not a table".into()),
    }
}

pub(super) fn string(value: DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) if text.is_empty() => Err("is empty".into()),
        DeValue::String(text) => Ok(text.into_owned()),
        _ => Err("must be in quotes".into()),
    }
}

pub(super) fn boolean(value: DeValue<'_>) -> Result<bool, String> {
    match value {
        DeValue::Boolean(value) => Ok(value),
        _ => Err("is none of true, false".into()),
    }
}

/// Reads a size: a number of bytes, or a string with a unit.
pub(super) fn bytes<T: TryFrom<u64>>(value: DeValue<'_>) -> Result<T, String> {
    let bytes = match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        DeValue::String(text) => Some(units::parse_size(&text)?),
        _ => None,
    };
    let bytes = bytes.ok_or("sizes look like 65536, \"64KiB\" or \"10GB\"")?;
    bytes.try_into().map_err(|_| "is more than this machine can address".into())
}

pub(super) fn duration(value: DeValue<'_>) -> Result<Duration, String> {
    match value {
        DeValue::String(text) => units::parse_duration(&text),
        _ => Err("times look like \"30s\", \"500ms\" or \"2m\"".into()),
    }
}

/// Reads a count of at least 1.
pub(super) fn count<T: TryFrom<u64>>(value: DeValue<'_>) -> Result<T, String> {
    let number = whole(&value).filter(|&number| number > 0).and_then(|n| n.try_into().ok());
    number.ok_or_else(|| "must be a whole number, 1 or more".into())
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}
