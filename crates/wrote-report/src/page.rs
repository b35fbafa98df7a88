//! Lays out facts and prose for a screen, broken into lines.

use crate::Screen;
use crate::paint::{Tone, ascii};
use crate::text::{listed, plain, wrapped};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::Program;
use wrote_result::units;

/// Wider lines of prose are hard to read.
const PROSE_WIDTH_MAX: usize = 100;

#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub screen: Screen,
}

impl Page {
    /// Colours text.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        tone.paint(text, self.screen)
    }

    /// Breaks prose that begins in column `indent`.
    pub fn prose(self, text: &str, indent: usize) -> String {
        wrapped(text, self.screen.width.min(PROSE_WIDTH_MAX), indent)
    }

    /// Breaks text into lines as wide as the screen.
    pub fn wide(self, text: &str, indent: usize) -> String {
        wrapped(text, self.screen.width, indent)
    }

    /// Writes labels and the facts of each. Facts may be as wide as the screen.
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

/// Returns the program: `wrote 0.1.0 (abc)`, `fio-3.33`.
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

/// The time of a measurement, its length, and its program.
pub fn made(wrote: &Program, started_at: &str, elapsed_s: f64) -> String {
    let took = units::seconds(elapsed_s);
    format!("Measured in {took} from {started_at} by {}.", program(wrote))
}
