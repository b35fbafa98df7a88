//! The kinds of rows: each has figures and columns of its own.

use super::Row;

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Operations, timed one by one or at least counted.
    Operations,
    /// Whole files, of which no single operation was timed.
    Files,
    /// Messages that were appended.
    Messages,
    /// A small text that was saved again and again.
    Saves,
    /// Operations at rising shares of the load that a closed loop reaches.
    Curve,
    /// One long stream.
    Long,
}

impl View {
    /// Returns the view of a row. No document names it, so that older and imported documents have
    /// views too; no other code guesses a row's kind.
    pub fn of(row: &Row) -> View {
        if row.crash_leaves.is_some() {
            View::Saves
        } else if row.settings.asked.messages.is_some() {
            View::Messages
        } else if row.settings.asked.load_share.is_some() {
            View::Curve
        } else if row.sustained.is_some() {
            View::Long
        } else if row.latency_ns.is_none() && row.settings.effective.untimed != Some(true) {
            View::Files
        } else {
            View::Operations
        }
    }
}

/// Workloads whose rows form a grid: the beginning of their names, and the title over the sides.
const GRIDS: [(&str, &str); 2] = [("peak/", "BS x IODEPTH"), ("ways/chunk", "CHUNK")];

/// The place of a row in a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// The title over all sides: `BS x IODEPTH`.
    pub title: &'static str,
    /// The line: `512 KiB x 64`.
    pub side: &'a str,
    /// The column: `registered`.
    pub head: &'a str,
}

impl Cell<'_> {
    /// Returns the place of a row; `None` where its workload forms no grid.
    pub fn of(row: &Row) -> Option<Cell<'_>> {
        let (_, title) = GRIDS.iter().find(|(begin, _)| row.workload.starts_with(begin))?;
        let (side, head) = row.way.rsplit_once(", ")?;
        Some(Cell { title, side, head })
    }
}
