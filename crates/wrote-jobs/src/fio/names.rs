//! Names that are not accepted: fio's other keys, and unknown ones.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The texts of `keys.toml`, whose comments explain them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Texts {
    pub notes: BTreeMap<String, String>,
    pub only: BTreeMap<String, (Vec<String>, String)>,
    not_taken: BTreeMap<String, String>,
}

pub(super) static TEXTS: LazyLock<Texts> =
    LazyLock::new(|| toml::from_str(include_str!("keys.toml")).expect("keys.toml is valid"));

/// Returns why a fio key is not supported.
pub(super) fn why_not_taken(name: &str) -> Option<&'static str> {
    let mut all = TEXTS.not_taken.iter();
    all.find(|(_, keys)| keys.split(' ').any(|key| key == name)).map(|(why, _)| why.as_str())
}

/// Explains why `name` is not accepted; `taken` are the accepted names.
pub(super) fn unknown(name: &str, taken: impl Iterator<Item = &'static str>) -> String {
    if let Some(why) = why_not_taken(name) {
        return format!("fio knows this key, but it is not taken here: {why}");
    }
    match near(name, taken) {
        Some(near) => format!("there is no such key; did you mean {near}?"),
        None => "there is no such key".into(),
    }
}

#[cfg(test)]
pub(super) fn not_taken() -> impl Iterator<Item = &'static str> {
    TEXTS.not_taken.values().flat_map(|keys| keys.split(' '))
}

/// Returns the most similar name, if at most one letter in four differs.
fn near(name: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    if name.len() > 40 {
        return None;
    }
    let distance = |known: &&str| strsim::osa_distance(&name, known);
    let near = names.min_by_key(distance)?;
    (distance(&near) <= name.len().max(4) / 4).then_some(near)
}
