//! A comparison for a person: a table for each workload, then differences, rows that were left out,
//! notes.

use super::{
    Block, blocks, columns, differences, not_compared, other_latencies, side, verdict, warnings,
};
use crate::Screen;
use crate::page::Page;
use crate::paint::Tone;
use crate::table::{GAP, Texts, padded};
use crate::text::plain;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::compare::{Comparison, Verdict};

/// The short form of "no detectable difference", for narrow screens.
const UNDECIDED_SHORT: &str = "can't tell";

pub fn write(comparison: &Comparison, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let page = Page { screen };
    let (old, new) = (&comparison.old, &comparison.new);
    page.facts(&[("OLD", side(old)), ("NEW", side(new))], out)?;
    let blocks = blocks(comparison);
    let tables: Vec<BlockTable> = blocks.iter().map(|block| BlockTable::of(block, page)).collect();
    let short = tables.iter().any(|table| !table.has_room());
    tables.iter().try_for_each(|table| table.write(short, out))?;
    if let Some(text) = other_latencies(comparison) {
        writeln!(out, "\n{}", page.prose(&text, 0))?;
    }
    page.list("What differs (OLD | NEW)", &differences(comparison), 2, out)?;
    page.list("Not compared", &not_compared(comparison), 2, out)?;
    page.list("Warnings", &warnings(comparison), 2, out)?;
    page.list("Notes", &comparison.notes, 2, out)?;
    writeln!(out, "\n{}", page.prose(&legend(short), 0))
}

fn legend(short: bool) -> String {
    let undecided = if short {
        format!("{UNDECIDED_SHORT}: no detectable difference. ")
    } else {
        String::new()
    };
    format!(
        "RATIO is NEW / OLD of the medians; 95 % is its bootstrap interval. {undecided}Verdicts \
         are corrected for multiple comparisons (Holm, at 5 %)."
    )
}

struct BlockTable<'a> {
    page: Page,
    block: &'a Block<'a>,
    names: Vec<String>,
    /// The columns between the name and the verdict.
    figures: Vec<Texts>,
    headings: String,
}

impl<'a> BlockTable<'a> {
    fn of(block: &'a Block<'a>, page: Page) -> BlockTable<'a> {
        let lines: Vec<_> = block.lines.iter().collect();
        let columns = columns();
        let [_, figures @ .., _] = &columns[..] else { unreachable!("a name and a verdict") };
        let figures: Vec<Texts> =
            figures.iter().map(|column| Texts::of(column, &lines, page.screen)).collect();
        BlockTable {
            page,
            block,
            names: lines.iter().map(|line| plain(&line.name)).collect(),
            headings: figures.iter().map(|column| format!("{GAP}{}", column.heading())).collect(),
            figures,
        }
    }

    fn name_width(&self) -> usize {
        self.names.iter().map(|name| name.width()).max().unwrap_or(0).max("ROW".len())
    }

    /// Returns whether the screen has room for every verdict in full.
    fn has_room(&self) -> bool {
        let verdicts = self.block.lines.iter().map(|line| verdict(line.change.verdict).len());
        let verdict_width = verdicts.max().unwrap_or(0);
        let needed = self.name_width() + self.headings.width() + GAP.len() + verdict_width;
        needed <= self.page.screen.width
    }

    fn write(&self, short: bool, out: &mut dyn Write) -> io::Result<()> {
        self.page.heading(&self.block.title, "", out)?;
        let taken = self.headings.width() + GAP.len() + UNDECIDED_SHORT.len();
        let name_width = self.name_width().min(self.page.screen.width.saturating_sub(taken));
        let headings = format!("{}{}{GAP}VERDICT", padded("ROW", name_width), self.headings);
        writeln!(out, "{}", self.page.paint(Tone::Faint, &headings))?;
        for (index, (line, name)) in self.block.lines.iter().zip(&self.names).enumerate() {
            if name.width() > name_width {
                // A long name has a line of its own: its end, which tells it apart, stays.
                writeln!(out, "{name}")?;
            }
            let name = if name.width() > name_width { "" } else { name };
            let figures = self.figures.iter();
            let figures: String =
                figures.map(|column| GAP.to_owned() + &column.cell(index, self.page)).collect();
            let verdict = self.verdict(line.change.verdict, short);
            writeln!(out, "{}{figures}{GAP}{verdict}", padded(name, name_width))?;
        }
        Ok(())
    }

    fn verdict(&self, of: Verdict, short: bool) -> String {
        let (tone, text) = match of {
            Verdict::Faster => (Tone::Green, verdict(of)),
            Verdict::Slower => (Tone::Red, verdict(of)),
            Verdict::NoDetectableDifference if short => (Tone::Faint, UNDECIDED_SHORT),
            Verdict::NoDetectableDifference | Verdict::OneRun => (Tone::Faint, verdict(of)),
        };
        self.page.paint(tone, text)
    }
}
