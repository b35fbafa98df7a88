//! A comparison to paste in an issue.

use super::{blocks, differences, interval, not_compared, other_latencies, ratio, side, verdict};
use crate::markdown::inline;
use std::io::{self, Write};
use wrote_result::compare::Comparison;

/// Markdown with the tables of GitHub Flavored Markdown.
pub fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let (old, new) = (&comparison.old, &comparison.new);
    writeln!(out, "## {} against {}\n", inline(&new.name), inline(&old.name))?;
    writeln!(out, "- **OLD**: {}", inline(&side(old).join(", ")))?;
    writeln!(out, "- **NEW**: {}", inline(&side(new).join(", ")))?;
    for block in blocks(comparison) {
        writeln!(out, "\n### {}\n", inline(&block.title))?;
        writeln!(out, "| row | OLD | NEW | ratio | 95 % | verdict |")?;
        writeln!(out, "| --- | ---: | ---: | ---: | ---: | --- |")?;
        for line in &block.lines {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                inline(&line.name),
                line.old,
                line.new,
                ratio(line.change.ratio),
                interval(line.change),
                verdict(line.change.verdict)
            )?;
        }
    }
    if let Some(text) = other_latencies(comparison) {
        writeln!(out, "\n{}.", inline(&text))?;
    }
    list("What differs: OLD | NEW", &differences(comparison), out)?;
    list("Not compared", &not_compared(comparison), out)?;
    list("Warnings", &super::warnings(comparison), out)?;
    list("Notes", &comparison.notes, out)
}

fn list(title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    if !lines.is_empty() {
        writeln!(out, "\n### {}\n", inline(title))?;
    }
    lines.iter().try_for_each(|line| writeln!(out, "- {}", inline(line)))
}
