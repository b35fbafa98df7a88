//! Messages about a job file: the error that ends parsing, and notes.

use std::fmt;

/// A difference from the file's words, or from fio's behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line of the file, from 1; `None` for an override.
    pub line: Option<usize>,
    /// One line of text.
    pub text: String,
}

/// The error of a job file: `line 7: iodepht=64: there is no such key; did you mean iodepth?`
/// Without a line it concerns an override, or the whole file.
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

/// The notes so far, each once per line, because every job applies a key of `[global]` again.
#[derive(Default)]
pub(super) struct Notes(Vec<Note>);

impl Notes {
    pub fn add(&mut self, line: Option<usize>, text: impl Into<String>) {
        let note = Note::new(line, text);
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    pub fn into_vec(mut self) -> Vec<Note> {
        self.0.sort_by_key(|note| note.line.unwrap_or(usize::MAX));
        self.0
    }
}

/// Quotes a key with its value for a message: short, and without line breaks.
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

/// Escapes control characters, so that a message is one line.
fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if breaks(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}
