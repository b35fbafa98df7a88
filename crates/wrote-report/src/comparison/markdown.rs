//! A comparison to paste in an issue.

use super::{blocks, differences, not_compared, other_latencies, side, warnings};
use crate::markdown::{inline, write_head, write_list, write_table};
use std::io::{self, Write};
use wrote_result::compare::Comparison;

pub fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let (old, new) = (&comparison.old, &comparison.new);
    let title = format!("{} against {}", new.name, old.name);
    write_head(&title, &[("OLD", side(old)), ("NEW", side(new))], out)?;
    for block in blocks(comparison) {
        writeln!(out, "\n### {}\n", inline(&block.title))?;
        write_table(&block.table(), out)?;
    }
    if let Some(text) = other_latencies(comparison) {
        writeln!(out, "\n{}.", inline(&text))?;
    }
    write_list("What differs: OLD | NEW", &differences(comparison), out)?;
    write_list("Not compared", &not_compared(comparison), out)?;
    write_list("Warnings", &warnings(comparison), out)?;
    write_list("Notes", &comparison.notes, out)
}
