//! A workload whose rows are ways of saving a small text: every figure of their latencies, and what sync
//! costs.

use super::columns::{Align, Column, Keep};
use crate::figures::{crash_leaves, iterations, latency, survives, sync_cost_lines};
use crate::group::Group;
use crate::paint::Tone;
use crate::text::Text;
use std::io::{self, Write};
use wrote_result::document::{CrashLeaves, Row};

/// Over what a crash may leave.
pub const CRASH_LEAVES: &str = "CRASH LEAVES";

/// What the words under [`CRASH_LEAVES`] mean.
pub const LEGEND: &str = "CRASH LEAVES is what a crash in the middle of a save, or before it is \
    flushed, may leave of the file. old-or-new: all of the one or all of the other. torn: some of both. \
    empty: nothing, or a part of the new. old-and-part: all of the old, and a part of the new behind it. \
    Where the words of a way end in folder, the folder is flushed too, for the file's name.";

/// The columns, in the order of the table that the scenario repeats.
pub fn columns(group: &Group) -> Vec<Column> {
    let column = |title: &'static str, align, keep, cell: &dyn Fn(&Row) -> String| Column {
        title: title.into(),
        align,
        keep,
        cells: group.rows.iter().map(|row| cell(row)).collect(),
    };
    let figures =
        |title, keep, cell: &dyn Fn(&Row) -> String| column(title, Align::Right, keep, cell);
    let words =
        |title, cell: &dyn Fn(&Row) -> String| column(title, Align::Left, Keep::Always, cell);
    vec![
        figures("MIN", Keep::If(4), &|row| latency(row, |of| of.min)),
        figures("P50", Keep::Always, &|row| latency(row, |of| of.p50)),
        figures("P90", Keep::If(3), &|row| latency(row, |of| of.p90)),
        figures("P95", Keep::If(6), &|row| latency(row, |of| of.p95)),
        figures("P99", Keep::Always, &|row| latency(row, |of| of.p99)),
        figures("P99.9", Keep::If(2), &|row| latency(row, |of| of.p99_9)),
        figures("MAX", Keep::If(1), &|row| latency(row, |of| of.max)),
        figures("TOTAL", Keep::If(5), &|row| latency(row, |of| of.total)),
        figures("ITERATIONS", Keep::If(7), &iterations),
        words("SURVIVES", &|row| survives(row)),
        words(CRASH_LEAVES, &|row| crash_leaves(row)),
    ]
}

/// The tone of what a crash may leave.
pub fn tone(leaves: Option<CrashLeaves>) -> Tone {
    match leaves {
        Some(CrashLeaves::OldOrNew) => Tone::Green,
        Some(CrashLeaves::Torn | CrashLeaves::OldAndPart) => Tone::Yellow,
        Some(CrashLeaves::Empty) => Tone::Red,
        None => Tone::Plain,
    }
}

/// What sync costs: a sentence for each way that was measured with it and without.
pub fn write_costs(group: &Group, text: Text, out: &mut dyn Write) -> io::Result<()> {
    for line in sync_cost_lines(group) {
        writeln!(out, "{}", text.wrapped(&line, 0))?;
    }
    Ok(())
}
