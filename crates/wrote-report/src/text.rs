//! Text for a screen: sanitized, broken into lines, and laid out as facts and prose.

use crate::Screen;
use crate::paint::{Tone, ascii};
use itertools::Itertools;
use std::io::{self, Write};
use textwrap::{Options, WordSplitter, WrapAlgorithm};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::Program;
use wrote_result::units;

/// Breaks prose that begins in column `indent` into lines. All lines but the first are indented by
/// `indent` columns.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let width = width.saturating_sub(indent).max(1);
    let options = Options::new(width)
        .word_splitter(WordSplitter::NoHyphenation)
        // A path or an option is not broken, even if it is longer than a line, so that a reader can
        // copy it.
        .break_words(false)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let text = bound(&plain(text));
    textwrap::wrap(&text, options).join(&format!("\n{}", " ".repeat(indent))).replace(NO_BREAK, " ")
}

/// The placeholder for a space at which no line may end.
const NO_BREAK: &str = "\u{a0}";
/// The units, without `/s`.
const UNITS: [&str; 18] = [
    "", "%", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "ns", "us", "ms", "s", "min", "h",
    "k", "M",
];

/// Binds each number to its unit, so that no line ends between the two.
pub fn bound(text: &str) -> String {
    let mut words = text.split(' ');
    let mut bound = words.next().unwrap_or_default().to_owned();
    for word in words {
        let unit = word.trim_end_matches([',', '.', ';', ':', ')']).trim_end_matches("/s");
        let is_bound = bound.ends_with(|of: char| of.is_ascii_digit()) && UNITS.contains(&unit);
        bound += if is_bound { NO_BREAK } else { " " };
        bound += word;
    }
    bound
}

/// Breaks a list that begins in column `indent` into lines, with commas between its items. An item
/// stays on one line if it fits on one.
pub fn listed(items: &[String], width: usize, indent: usize) -> String {
    let room = width.saturating_sub(indent).max(1);
    let mut lines: Vec<String> = vec![String::new()];
    for (index, item) in items.iter().enumerate() {
        let comma = if index + 1 < items.len() { "," } else { "" };
        let item = format!("{}{comma}", plain(item));
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            *line = item;
        } else if line.width() + 1 + item.width() <= room {
            *line += &format!(" {item}");
        } else {
            lines.push(item);
        }
    }
    let mut wrapped = lines.iter().map(|line| wrapped(line, width, indent));
    wrapped.join(&format!("\n{}", " ".repeat(indent)))
}

/// Groups the values by their keys, in the order in which the keys first occur.
pub fn gathered<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut all: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match all.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => all.push((key, vec![value])),
        }
    }
    all
}

/// Returns text on one line, without control characters that a terminal would obey. Paths, models
/// and texts of the kernel come from outside.
pub fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// The maximum width of prose. Wider lines are hard to read.
const PROSE_WIDTH_MAX: usize = 100;

#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub screen: Screen,
}

impl Page {
    /// Returns the text in this tone, if the screen has colours.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        tone.paint(text, self.screen)
    }

    /// Breaks prose that begins in column `indent` into lines.
    pub fn prose(self, text: &str, indent: usize) -> String {
        wrapped(text, self.screen.width.min(PROSE_WIDTH_MAX), indent)
    }

    /// Breaks text into lines that are as wide as the screen.
    pub fn wide(self, text: &str, indent: usize) -> String {
        wrapped(text, self.screen.width, indent)
    }

    /// Writes labels with the facts of each. Facts may be as wide as the screen.
    pub fn facts(self, facts: &[(String, Vec<String>)], out: &mut dyn Write) -> io::Result<()> {
        let labels: Vec<String> = facts.iter().map(|(label, _)| plain(label)).collect();
        let indent = labels.iter().map(|label| label.width()).max().unwrap_or(0) + 2;
        for (label, (_, facts)) in labels.iter().zip(facts) {
            let gap = " ".repeat(indent - label.width());
            let facts = ascii(&listed(facts, self.screen.width, indent), self.screen);
            writeln!(out, "{}{gap}{facts}", self.paint(Tone::Strong, label))?;
        }
        Ok(())
    }
}

/// Returns the name and the version of the program: `wrote 0.1.0 (abc)`, `fio-3.33`.
pub fn program(wrote: &Program) -> String {
    let version = match wrote.version.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("wrote {}", wrote.version),
        false => wrote.version.clone(),
    };
    match &wrote.commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    }
}

/// Returns a sentence with the time of a measurement, its duration, and the program.
pub fn made(wrote: &Program, started_at: &str, elapsed_s: f64) -> String {
    let took = units::seconds(elapsed_s);
    format!("Measured in {took} from {started_at} by {}.", program(wrote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_wrapped_text_keeps_to_the_width() {
        let words = "one two three four five six seven eight nine ten".repeat(3);
        let lines = format!("    {}", wrapped(&words, 30, 4));
        assert!(lines.lines().count() > 3, "{lines}");
        for line in lines.lines() {
            assert!(line.width() <= 30 && line.starts_with("    "), "{lines}");
        }
    }

    #[test]
    fn no_line_ends_between_a_number_and_its_unit() {
        let text = wrapped("needs 641 us, or 5 % of 2 k files", 9, 0);
        assert_eq!(text, "needs\n641 us,\nor 5 % of\n2 k files");
    }

    #[test]
    fn a_list_is_broken_between_its_items() {
        let items = ["write back cache", "no FUA", "scheduler none"].map(str::to_owned);
        assert_eq!(listed(&items, 28, 2), "write back cache, no FUA,\n  scheduler none");
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_a_command() {
        assert_eq!(plain("a\u{1b}[31mb\nc\rd"), "a [31mb c d");
    }
}
