//! Messages about a job file: errors, notes, and the reasons why keys are not accepted.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// A difference from what the file says, or from what fio does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line number in the file, starting at 1; `None` for an override.
    pub line: Option<usize>,
    /// The text, on one line.
    pub text: String,
}

/// An error in a job file: `line 7: iodepht=64: there is no such key; did you mean iodepth?` An
/// error without a line concerns an override, or the whole file.
pub type ParseError = Note;

impl Note {
    pub(super) fn new(line: Option<usize>, text: impl Into<String>) -> Note {
        Note { line, text: one_line(&text.into()) }
    }
}

impl std::error::Error for Note {}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// The notes so far, each at the first line it applies to, because jobs often repeat keys.
#[derive(Default)]
pub(super) struct Notes(Vec<Note>);

impl Notes {
    pub fn add(&mut self, line: Option<usize>, text: impl Into<String>) {
        let note = Note::new(line, text);
        if !self.0.iter().any(|known| known.text == note.text) {
            self.0.push(note);
        }
    }

    pub fn into_vec(mut self) -> Vec<Note> {
        self.0.sort_by_key(|note| note.line.unwrap_or(usize::MAX));
        self.0
    }
}

/// Quotes a key and its value for a message, shortened and without line breaks.
pub(super) fn quoted(key: &str, value: Option<&str>) -> String {
    let short = |text: &str| {
        const MOST: usize = 60;
        match text.char_indices().nth(MOST) {
            Some((end, _)) => format!("{}..", &text[..end]),
            None => text.to_string(),
        }
    };
    match value {
        Some(value) => format!("{}={}", short(key), short(value)),
        None => short(key),
    }
}

/// Escapes control characters, so that a message stays on one line.
fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if breaks(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// The texts in `keys.toml`, which explains them in its comments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Texts {
    pub notes: BTreeMap<String, String>,
    pub only: BTreeMap<String, (Vec<String>, String)>,
    not_taken: BTreeMap<String, String>,
    as_fio: String,
    command_line: String,
    pub without_effect: String,
}

pub(super) static TEXTS: LazyLock<Texts> =
    LazyLock::new(|| toml::from_str(include_str!("keys.toml")).expect("keys.toml is valid"));

/// Returns why a fio key is not supported; `None` if `name` is not such a key.
pub(super) fn why_not_taken(name: &str) -> Option<&'static str> {
    let mut all = TEXTS.not_taken.iter();
    all.find(|(_, keys)| keys.split(' ').any(|key| key == name)).map(|(why, _)| why.as_str())
}

/// Returns the key with this name; `None` unless it is accepted without a note when the program is
/// called as fio.
pub(super) fn taken_silently(name: &str) -> Option<&'static str> {
    TEXTS.as_fio.split(' ').find(|key| *key == name)
}

/// Explains why `name` is not accepted. `taken` lists the accepted names.
pub(super) fn unknown(name: &str, taken: impl Iterator<Item = &'static str>) -> String {
    if let Some(why) = why_not_taken(name) {
        return format!("fio has this key, but it is not supported here: {why}");
    }
    if TEXTS.command_line.split(' ').any(|option| option == name) {
        return "is an option of fio's command line, not a key for a job".into();
    }
    format!("no such key{}", hint(name, taken))
}

/// Returns the end of an error message, which suggests the most similar name; empty if none is
/// similar.
pub(super) fn hint<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    near(name, names).map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

#[cfg(test)]
pub(super) fn not_taken() -> impl Iterator<Item = &'static str> {
    TEXTS.not_taken.values().flat_map(|keys| keys.split(' '))
}

/// Returns the most similar name; `None` if it differs in more than one letter out of four, or if
/// `name` is very long.
fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    if name.len() > 40 {
        return None;
    }
    let distance = |known: &&str| strsim::osa_distance(&name, known);
    // A name of one letter would be similar to any letter.
    let near = names.filter(|known| known.len() > 1).min_by_key(distance)?;
    (distance(&near) <= name.len().max(4) / 4).then_some(near)
}
