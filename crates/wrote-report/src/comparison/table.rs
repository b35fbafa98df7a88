//! A comparison for a person: a table for each workload, what differs, what was not compared, notes.

use super::{
    Block, Line, blocks, differences, interval, not_compared, other_latencies, ratio, side,
    verdict, warnings,
};
use crate::Screen;
use crate::paint::{Paint, Tone};
use crate::table::PROSE_WIDTH_MAX;
use crate::text::{Text, plain};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::compare::{Comparison, Verdict};

/// What stands between two columns.
const GAP: &str = "  ";
/// For screens that have no room for more.
const UNDECIDED_SHORT: &str = "can't tell";
/// The titles of the columns after the row's name and before the verdict.
const TITLES: [&str; 4] = ["OLD", "NEW", "RATIO", "95 %"];

/// Writes the comparison for `screen`.
pub fn write(comparison: &Comparison, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let layout = Layout { screen, paint: Paint::new(screen.colour) };
    for (name, of) in [("OLD", &comparison.old), ("NEW", &comparison.new)] {
        let label = layout.paint.paint(Tone::Strong, name);
        writeln!(out, "{label}  {}", Text { width: screen.width }.listed(&side(of), 5))?;
    }
    let blocks = blocks(comparison);
    let short = blocks.iter().any(|block| !layout.has_room(block));
    for block in &blocks {
        layout.block(block, short, out)?;
    }
    if let Some(text) = other_latencies(comparison) {
        writeln!(out, "\n{}", layout.prose(&text, 0))?;
    }
    layout.list("What differs (OLD | NEW)", &differences(comparison), out)?;
    layout.list("Not compared", &not_compared(comparison), out)?;
    layout.list("Warnings", &warnings(comparison), out)?;
    layout.list("Notes", &comparison.notes, out)?;
    writeln!(out, "\n{}", layout.prose(&legend(short), 0))
}

fn legend(short: bool) -> String {
    let undecided = if short {
        format!("{UNDECIDED_SHORT}: no detectable difference. ")
    } else {
        String::new()
    };
    format!(
        "RATIO is NEW / OLD of the medians; 95 % is its bootstrap interval. {undecided}faster and slower \
         are said in view of how many rows there are (Holm, at 5 %)."
    )
}

/// How a comparison is laid out.
struct Layout {
    screen: Screen,
    paint: Paint,
}

impl Layout {
    fn prose(&self, text: &str, indent: usize) -> String {
        Text { width: self.screen.width.min(PROSE_WIDTH_MAX) }.wrapped(text, indent)
    }

    /// Whether every verdict can be said in full.
    fn has_room(&self, block: &Block) -> bool {
        let verdicts = block.lines.iter().map(|line| verdict(line.change.verdict).len());
        let figures: usize = widths(block).iter().map(|width| width + GAP.len()).sum();
        let needed = name_width(block) + figures + GAP.len() + verdicts.max().unwrap_or(0);
        needed <= self.screen.width
    }

    fn block(&self, block: &Block, short: bool, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{}", self.paint.paint(Tone::Strong, &plain(&block.title)))?;
        let widths = widths(block);
        let figures: usize = widths.iter().map(|width| width + GAP.len()).sum();
        let left = self.screen.width.saturating_sub(figures + GAP.len() + UNDECIDED_SHORT.len());
        let name_width = name_width(block).min(left);
        let titles = right(TITLES.map(str::to_owned), widths);
        let titles = format!("{:name_width$}{titles}{GAP}VERDICT", "ROW");
        writeln!(out, "{}", self.paint.paint(Tone::Faint, &titles))?;
        for line in &block.lines {
            let name = plain(&line.name);
            if name.width() > name_width {
                // It keeps a line of its own rather than lose its end, by which it is known.
                writeln!(out, "{name}")?;
                write!(out, "{:name_width$}", "")?;
            } else {
                write!(out, "{name}{}", " ".repeat(name_width - name.width()))?;
            }
            let verdict = self.verdict(line.change.verdict, short);
            writeln!(out, "{}{GAP}{verdict}", right(figures_of(line), widths))?;
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
        self.paint.paint(tone, text)
    }

    fn list(&self, title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", self.paint.paint(Tone::Strong, title))?;
        lines.iter().try_for_each(|line| writeln!(out, "  {}", self.prose(line, 2)))
    }
}

fn name_width(block: &Block) -> usize {
    block.lines.iter().map(|line| plain(&line.name).width()).max().unwrap_or(0).max(3)
}

fn figures_of(line: &Line) -> [String; 4] {
    [line.old.clone(), line.new.clone(), ratio(line.change.ratio), interval(line.change)]
}

fn widths(block: &Block) -> [usize; 4] {
    let mut widths = TITLES.map(str::len);
    for line in &block.lines {
        for (width, figure) in widths.iter_mut().zip(figures_of(line)) {
            *width = (*width).max(figure.width());
        }
    }
    widths
}

/// Cells that end at the right of their columns.
fn right(cells: [String; 4], widths: [usize; 4]) -> String {
    cells.iter().zip(widths).map(|(cell, width)| format!("{GAP}{cell:>width$}")).collect()
}
