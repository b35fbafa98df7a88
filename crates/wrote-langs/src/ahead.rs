//! The runs ahead, and an estimate of their time from the runs that are over.

use super::workload::{Table, Task};
use std::collections::BTreeMap;
use std::time::Duration;

/// The estimate for one byte, one save, one flush and one line before the first run: the time of a
/// language in the middle of the field.
const USUAL_BYTE_NS: u64 = 15;
const USUAL_SAVE_NS: u64 = 100_000;
const USUAL_FLUSH_NS: u64 = 2_500_000;
const USUAL_LINE_NS: u64 = 500;
/// The time to start a program, to prepare its file and to check it.
const BESIDE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub place: usize,
    pub table: usize,
    pub program: usize,
}

#[derive(Clone, Debug)]
pub(super) struct RunsAhead {
    tables: Vec<Table>,
    runs_left: BTreeMap<Cell, u32>,
    /// The time of the last run of a program for a table, in any place.
    took: BTreeMap<(usize, usize), Duration>,
}

impl RunsAhead {
    /// Counts the runs in `places` places, where `does` tells which programs do which task.
    pub(super) fn new(
        places: usize,
        tables: &[Table],
        programs: usize,
        does: impl Fn(usize, Task) -> bool,
    ) -> RunsAhead {
        let mut runs_left = BTreeMap::new();
        for place in 0..places {
            for (table, of) in tables.iter().enumerate() {
                for program in (0..programs).filter(|program| does(*program, of.task)) {
                    runs_left.insert(Cell { place, table, program }, of.runs);
                }
            }
        }
        RunsAhead { tables: tables.to_vec(), runs_left, took: BTreeMap::new() }
    }

    pub(super) fn runs_left(&self) -> u32 {
        self.runs_left.values().sum()
    }

    pub(super) fn time_left(&self) -> Duration {
        let of = |(cell, runs): (&Cell, &u32)| {
            let known = self.took.get(&(cell.table, cell.program)).copied();
            known.unwrap_or_else(|| usual(&self.tables[cell.table])) * *runs
        };
        self.runs_left.iter().map(of).sum()
    }

    /// Counts one run as over, which took `took`.
    pub(super) fn is_over(&mut self, cell: Cell, took: Duration) {
        if let Some(runs) = self.runs_left.get_mut(&cell) {
            *runs = runs.saturating_sub(1);
        }
        self.took.insert((cell.table, cell.program), took);
    }

    /// Removes the runs for which `is_left_out` is true; returns their number.
    pub(super) fn leave_out(&mut self, is_left_out: impl Fn(&Cell) -> bool) -> u32 {
        let before = self.runs_left();
        self.runs_left.retain(|cell, _| !is_left_out(cell));
        before - self.runs_left()
    }
}

/// Estimates a run before the first of its kind.
fn usual(table: &Table) -> Duration {
    let each_ns = match table.task {
        Task::BytesWrite | Task::BytesRead => table.size.saturating_mul(USUAL_BYTE_NS),
        Task::Save => USUAL_SAVE_NS,
        Task::SaveSync => USUAL_SAVE_NS + USUAL_FLUSH_NS,
        Task::Lines => USUAL_LINE_NS,
    };
    BESIDE + Duration::from_nanos(each_ns.saturating_mul(table.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(task: Task, size: u64, count: u64, runs: u32) -> Table {
        Table { task, size, count, runs, cold: false }
    }

    /// Two places; the second program saves nothing.
    fn ahead() -> RunsAhead {
        let tables = [table(Task::Lines, 64, 1000, 6), table(Task::Save, 500, 1000, 1)];
        RunsAhead::new(2, &tables, 2, |program, task| program == 0 || task == Task::Lines)
    }

    #[test]
    fn only_what_a_program_does_is_ahead_of_it() {
        assert_eq!(ahead().runs_left(), 2 * (6 + 6 + 1));
    }

    #[test]
    fn what_was_seen_takes_the_place_of_what_was_guessed_in_every_place() {
        let mut ahead = ahead();
        let (lines, saves) = (usual(&ahead.tables[0]), usual(&ahead.tables[1]));
        assert_eq!(ahead.time_left(), lines * 24 + saves * 2);
        let took = Duration::from_secs(10);
        ahead.is_over(Cell { place: 0, table: 0, program: 1 }, took);
        assert_eq!(ahead.runs_left(), 25);
        assert_eq!(ahead.time_left(), lines * 12 + took * 11 + saves * 2);
    }

    #[test]
    fn what_is_given_up_is_ahead_no_more() {
        let mut ahead = ahead();
        let cell = Cell { place: 0, table: 0, program: 0 };
        ahead.is_over(cell, Duration::ZERO);
        assert_eq!(ahead.leave_out(|of| *of == cell), 5);
        assert_eq!(ahead.leave_out(|of| of.program == 1), 12);
        assert_eq!(ahead.leave_out(|_| true), 6 + 2);
        assert_eq!((ahead.runs_left(), ahead.time_left()), (0, Duration::ZERO));
    }

    #[test]
    fn the_time_of_the_largest_that_may_be_asked_for_is_some_time() {
        let large = table(Task::BytesWrite, u64::MAX, 1, 1);
        assert!(usual(&large) > usual(&table(Task::BytesWrite, 1000, 1, 1)));
        let sync = table(Task::SaveSync, 500, 1000, 1);
        assert!(usual(&sync) > usual(&table(Task::Save, 500, 1000, 1)));
    }
}
