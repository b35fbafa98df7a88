//! What is said about a job file: the error that ends the parsing, and notes that do not.

use std::fmt;

/// Something that is done otherwise than the file says, or than fio would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line of the file, from 1; `None` where it is about an override.
    pub line: Option<usize>,
    /// One line of text.
    pub text: String,
}

/// Why a job file was not understood: `line 7: iodepht=64: there is no such key; did you mean
/// iodepth?`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line of the file, from 1; `None` where it is about an override, or the whole file.
    pub line: Option<usize>,
    /// One line of text.
    pub text: String,
}

impl ParseError {
    pub(super) fn new(line: Option<usize>, text: impl Into<String>) -> ParseError {
        ParseError { line, text: one_line(&text.into()) }
    }

    pub(super) fn whole(text: &str) -> ParseError {
        ParseError::new(None, text)
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        told(f, self.line, &self.text)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        told(f, self.line, &self.text)
    }
}

fn told(f: &mut fmt::Formatter<'_>, line: Option<usize>, text: &str) -> fmt::Result {
    match line {
        Some(line) => write!(f, "line {line}: {text}"),
        None => f.write_str(text),
    }
}

/// The notes so far. The same note of the same line is kept once: a key of `[global]` is looked at
/// again with each job.
#[derive(Default)]
pub(super) struct Notes(Vec<Note>);

impl Notes {
    pub fn add(&mut self, line: Option<usize>, text: impl Into<String>) {
        let note = Note { line, text: one_line(&text.into()) };
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    pub fn into_vec(mut self) -> Vec<Note> {
        self.0.sort_by_key(|note| note.line.unwrap_or(usize::MAX));
        self.0
    }
}

/// A key with its value, as it is quoted in what is said: short, and without line breaks.
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

/// Line breaks and other control characters are escaped: what is said is one line.
fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if breaks(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}
