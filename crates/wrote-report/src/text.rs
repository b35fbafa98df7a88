//! Prose and lists, broken into lines of the screen's width.

use textwrap::{Options, WordSplitter, WrapAlgorithm};
use unicode_width::UnicodeWidthStr;

/// Breaks text into lines of a width.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Columns in a line.
    pub width: usize,
}

impl Text {
    /// Prose that begins in column `indent`: every line but the first is indented by as much.
    pub fn wrapped(self, text: &str, indent: usize) -> String {
        let text = plain(text);
        let width = self.width.saturating_sub(indent).max(1);
        let options = Options::new(width)
            .word_splitter(WordSplitter::NoHyphenation)
            // A path or an option is longer than a line seldom, and then it is to be copied whole.
            .break_words(false)
            .wrap_algorithm(WrapAlgorithm::FirstFit);
        textwrap::wrap(&text, options).join(&format!("\n{}", " ".repeat(indent)))
    }

    /// A list that begins in column `indent`, with commas between: an item stays on one line where
    /// it fits on one.
    pub fn listed(self, items: &[String], indent: usize) -> String {
        let width = self.width.saturating_sub(indent).max(1);
        let mut lines: Vec<String> = vec![String::new()];
        for (index, item) in items.iter().enumerate() {
            let comma = if index + 1 < items.len() { "," } else { "" };
            let item = format!("{}{comma}", plain(item));
            let line = lines.last_mut().expect("there is a first line");
            if line.is_empty() {
                *line = item;
            } else if line.width() + 1 + item.width() <= width {
                *line += &format!(" {item}");
            } else {
                lines.push(item);
            }
        }
        let wrapped = lines.iter().map(|line| self.wrapped(line, indent));
        wrapped.collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(indent)))
    }
}

/// Text on one line, with nothing in it that a terminal would obey: paths, models and the kernel's
/// words come from outside.
pub fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_wrapped_text_keeps_to_the_width() {
        let words = "one two three four five six seven eight nine ten".repeat(3);
        let wrapped = format!("    {}", Text { width: 30 }.wrapped(&words, 4));
        assert!(wrapped.lines().count() > 3, "{wrapped}");
        for line in wrapped.lines() {
            assert!(line.width() <= 30 && line.starts_with("    "), "{wrapped}");
        }
    }

    #[test]
    fn a_list_is_broken_between_its_items() {
        let items = ["write back cache", "no FUA", "scheduler none"].map(str::to_owned);
        assert_eq!(
            Text { width: 28 }.listed(&items, 2),
            "write back cache, no FUA,\n  scheduler none"
        );
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_a_command() {
        assert_eq!(plain("a\u{1b}[31mb\nc\rd"), "a [31mb c d");
    }
}
