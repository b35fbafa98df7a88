//! A report for a person at a screen.

use crate::Screen;
use crate::paint::{Tone, ascii};
use crate::sustained;
use crate::table::{self, On};
use crate::text::{Page, plain};
use crate::tree::{Block, Card, Notes, Remark, Remarks, Role, Section, Style, Weight};
use itertools::Itertools;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::doctor::State;
use wrote_result::document::Severity;
use wrote_result::recipes::RUST;

/// The column in which the labels of a check begin, and the width of the labels.
const LABEL_INDENT: usize = 4;
const LABEL_WIDTH: usize = 9;

/// Writes sections in their order.
pub fn write(sections: &[Section], screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let mut report = Report { page: Page { screen }, out };
    sections.iter().try_for_each(|section| report.section(section))
}

struct Report<'a> {
    page: Page,
    out: &'a mut dyn Write,
}

impl Report<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        match section.role {
            Role::Page => return Ok(()),
            Role::Headline | Role::Facts | Role::Answer | Role::Foot => {}
            Role::Scenario => {
                let question = self.page.prose(&section.lede, 0);
                writeln!(self.out, "\n{}", self.page.paint(Tone::Strong, &question))?;
            }
            Role::Part | Role::Findings | Role::Advice => {
                self.heading(&section.title, &section.lede)?;
            }
        }
        section.blocks.iter().try_for_each(|block| self.block(block))
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        match block {
            Block::Facts(facts) => self.page.facts(facts, self.out),
            Block::Heading(title, rest) => self.heading(title, rest),
            Block::Banner(left, right) => self.banner(left, right),
            Block::Table(table) if table.on == On::Pages => Ok(()),
            Block::Table(table) => table::write(table, self.page, self.out),
            Block::Drawing(samples) => sustained::write_drawing(samples, self.page, self.out),
            Block::Notes(notes) => self.notes(notes),
            Block::Remarks(remarks) => self.remarks(remarks),
            Block::Cards(cards) => self.cards(cards),
            Block::Figures(_) | Block::Chapter(..) => Ok(()),
        }
    }

    /// Writes a heading, and further words on the same line.
    fn heading(&mut self, title: &str, rest: &str) -> io::Result<()> {
        let colon = if rest.is_empty() { "" } else { ": " };
        let line = self.page.wide(&format!("{title}{colon}{rest}"), 2);
        let title = plain(title);
        let (title, rest) = match line.strip_prefix(&title) {
            Some(rest) => (title.as_str(), rest),
            None => (line.as_str(), ""),
        };
        writeln!(self.out, "\n{}{rest}", self.page.paint(Tone::Strong, title))
    }

    fn banner(&mut self, left: &str, right: &str) -> io::Result<()> {
        let taken = left.width() + right.width();
        let gap = " ".repeat(self.page.screen.width.saturating_sub(taken).max(2));
        let left = self.page.paint(Tone::Strong, &plain(left));
        writeln!(self.out, "\n{left}{gap}{right}")
    }

    fn notes(&mut self, Notes { notes, style }: &Notes) -> io::Result<()> {
        let mut notes = notes.iter().filter(|note| note.on != On::Pages).peekable();
        if matches!(style, Style::Apart | Style::Foot) && notes.peek().is_some() {
            writeln!(self.out)?;
        }
        let page = self.page;
        for note in notes {
            let text = ascii(&note.text, page.screen);
            let (mark, tone) = (note.mark.map(|mark| mark.on(page.screen)), note.tone);
            match (style, mark) {
                (Style::List, _) => writeln!(self.out, "  {}", page.prose(&text, 4))?,
                (Style::Lead, _) => {
                    writeln!(self.out, "{}\n", page.paint(Tone::Strong, &page.prose(&text, 0)))?;
                }
                (Style::Foot, mark) => {
                    let mark = mark.map(|mark| format!("{mark} ")).unwrap_or_default();
                    for line in page.prose(&(mark + &text), 0).lines() {
                        writeln!(self.out, "{}", page.paint(Tone::Faint, line))?;
                    }
                }
                (_, Some(mark)) if tone == Tone::Strong => {
                    writeln!(self.out, "{mark} {}", page.paint(tone, &page.prose(&text, 2)))?;
                }
                (_, Some(mark)) => {
                    writeln!(self.out, "{} {}", page.paint(tone, mark), page.prose(&text, 2))?;
                }
                (_, None) => writeln!(self.out, "{}", page.paint(tone, &page.prose(&text, 2)))?,
            }
        }
        Ok(())
    }

    fn remarks(&mut self, Remarks { remarks, is_brief }: &Remarks) -> io::Result<()> {
        if *is_brief {
            let names = remarks.iter().map(|remark| &remark.id).join(", ");
            let names = format!("{names} (--all has the details)");
            return writeln!(self.out, "  {}", self.page.prose(&names, 2));
        }
        for (number, remark) in remarks.iter().enumerate() {
            match remark.weight {
                Weight::Finding(_) => {
                    self.remark(remark, &format!("{} [{}]", remark.text, remark.id))?;
                }
                Weight::Check(_) => {
                    if number > 0 {
                        writeln!(self.out)?;
                    }
                    self.check(remark)?;
                }
            }
        }
        Ok(())
    }

    fn remark(&mut self, remark: &Remark, text: &str) -> io::Result<()> {
        let (tone, mark) = match remark.weight {
            Weight::Finding(Severity::Critical) => (Tone::Red, "X"),
            Weight::Finding(Severity::Warning) => (Tone::Yellow, "!"),
            Weight::Finding(Severity::Info) => (Tone::Cyan, "i"),
            Weight::Check(State::Risk) => (Tone::Red, "!"),
            Weight::Check(State::Advice) => (Tone::Yellow, "-"),
            Weight::Check(State::Unknown) => (Tone::Cyan, "?"),
            Weight::Check(State::Fine) => (Tone::Green, "+"),
        };
        let mark = self.page.paint(tone, mark);
        writeln!(self.out, "  {mark} {}", self.page.prose(text, LABEL_INDENT))
    }

    fn check(&mut self, check: &Remark) -> io::Result<()> {
        self.remark(check, &format!("{}: {}", check.id, check.text))?;
        self.labelled(&check.facts)?;
        self.labelled(&check.before)?;
        for (number, command) in check.commands.iter().enumerate() {
            // The command is not wrapped, because a reader copies it.
            let label = if number == 0 { "command" } else { "" };
            writeln!(self.out, "    {label:<LABEL_WIDTH$}{}", plain(command))?;
        }
        self.labelled(&check.after)
    }

    fn labelled(&mut self, facts: &[(String, String)]) -> io::Result<()> {
        facts.iter().try_for_each(|(label, text)| {
            let text = self.page.prose(text, LABEL_INDENT + LABEL_WIDTH);
            writeln!(self.out, "    {label:<LABEL_WIDTH$}{text}")
        })
    }

    fn cards(&mut self, cards: &[Card]) -> io::Result<()> {
        for (index, card) in cards.iter().enumerate() {
            if index > 0 {
                writeln!(self.out)?;
            }
            let purpose = format!("For {}", plain(&card.purpose));
            writeln!(self.out, "  {}", self.page.paint(Tone::Strong, &purpose))?;
            writeln!(self.out, "  do       {}", self.page.prose(&card.action, 11))?;
            writeln!(self.out, "  because  {}", self.page.prose(&card.because, 11))?;
            // Of a card in Rust, only the first piece of code is shown, so that the screen stays
            // short. Other formats show all of it.
            let is_rust = card.codes.iter().all(|code| code.language == RUST);
            let shown = if is_rust { 1 } else { card.codes.len() };
            for code in card.codes.iter().take(shown) {
                // The code is not wrapped, because a reader copies it.
                for (number, line) in code.text.lines().enumerate() {
                    let label = if number == 0 { code.label } else { "" };
                    let line = format!("  {label:<7}  {}", plain(line));
                    writeln!(self.out, "{}", line.trim_end())?;
                }
            }
        }
        Ok(())
    }
}
