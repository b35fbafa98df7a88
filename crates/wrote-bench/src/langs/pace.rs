//! Determines the amounts that programs process in their shares of the time.

use super::workload::{Table, Task};
use std::time::Duration;

/// The first trial amount: takes seconds for the slowest program.
const FIRST_BYTES: u64 = 1_000_000;
const FIRST_SAVES: u64 = 5;
const FIRST_LINES: u64 = 10_000;
/// A trial shorter than this fraction of a share is not representative; a second one follows.
const LOOK_PART: f64 = 0.25;
/// A second trial processes at least this many times the bytes of the first.
const LOOK_GROWTH_MIN: u64 = 4;
/// The minimum fraction of a share for the work itself, if a program is slow to start.
const WORK_PART_MIN: f64 = 0.2;
/// A share may be exceeded by this fraction, so that the amount is a round number.
const EXCESS: f64 = 0.1;
/// The minimum time of a run, even if little is left.
const SHARE_MIN: Duration = Duration::from_millis(100);

/// Returns the time of `tables[0]`, given the time left for all `tables`. Each table comes with its
/// number of programs.
pub(super) fn share_of_table(left: Duration, tables: &[(Table, usize)]) -> Duration {
    let weight = |(table, programs): &(Table, usize)| {
        let of_run = match table.task {
            Task::BytesWrite | Task::BytesRead => 2.0,
            Task::Save | Task::SaveSync | Task::Lines | Task::Log => 1.0,
        };
        if table.in_time { of_run * f64::from(table.runs) * *programs as f64 } else { 0.0 }
    };
    let all: f64 = tables.iter().map(weight).sum();
    let part = tables.first().map_or(0.0, weight) / all.max(1.0);
    left.mul_f64(part)
}

/// Returns the time of one run, given the time of its table.
pub(super) fn share_of_run(of_table: Duration, table: &Table, programs: usize) -> Duration {
    (of_table / (table.runs.max(1) * programs.max(1) as u32)).max(SHARE_MIN)
}

/// A program's speed: fixed time per run, and time per unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    fixed_s: f64,
    unit_s: f64,
}

/// A trial run: amount, total time, and time by the program's own clock.
#[derive(Clone, Copy, Debug)]
struct Look {
    amount: u64,
    took_s: f64,
    elapsed_s: f64,
}

/// Determines one program's amount in one table.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    table: Table,
    share: Duration,
    looks: Vec<Look>,
    rate: Option<Rate>,
}

impl Pace {
    /// Creates a pace for runs that take `share` each. The rate may be known from an earlier table.
    pub fn new(table: Table, share: Duration, rate: Option<Rate>) -> Pace {
        Pace { table, share, looks: Vec::new(), rate }
    }

    /// Returns the table of the next trial, or `None` if the rate is known well enough.
    pub fn next_look(&self) -> Option<Table> {
        let most = self.table.amount();
        if !self.table.in_time || (self.looks.is_empty() && self.rate.is_some()) {
            return None;
        }
        let part_s = self.share.as_secs_f64() * LOOK_PART;
        let amount = match self.looks[..] {
            [] => first(self.table.task).min(most),
            [one] if one.took_s < part_s => {
                let more = step(part_s / (one.elapsed_s / one.amount as f64)).min(most);
                if more < one.amount * LOOK_GROWTH_MIN {
                    return None;
                }
                more
            }
            _ => return None,
        };
        Some(self.table.of(amount))
    }

    /// Records a run of `amount` that took `took`, and `elapsed_s` by the program's own clock.
    pub fn is_over(&mut self, amount: u64, took: Duration, elapsed_s: f64) {
        let look = Look { amount, took_s: took.as_secs_f64(), elapsed_s: elapsed_s.max(1e-9) };
        let own_s = look.elapsed_s / amount as f64;
        let unit_s = match self.looks.last() {
            Some(last) if last.amount < amount => {
                // The time to prepare and check the file grows with it too.
                own_s.max((look.took_s - last.took_s) / (amount - last.amount) as f64)
            }
            _ => own_s,
        };
        let fixed_s = (look.took_s - unit_s * amount as f64).max(0.0);
        self.rate = Some(Rate { fixed_s, unit_s });
        self.looks.push(look);
    }

    /// Returns the table of a run that fills the share, with a round amount.
    pub fn table(&self) -> Table {
        let Some(Rate { fixed_s, unit_s }) = self.rate.filter(|_| self.table.in_time) else {
            return self.table;
        };
        let share_s = self.share.as_secs_f64();
        let work_s = (share_s - fixed_s).max(share_s * WORK_PART_MIN);
        self.table.of(step(work_s / unit_s).min(self.table.amount()))
    }

    /// Returns the rate, once it is known.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

fn first(task: Task) -> u64 {
    match task {
        Task::BytesWrite | Task::BytesRead => FIRST_BYTES,
        Task::Save | Task::SaveSync => FIRST_SAVES,
        Task::Lines | Task::Log => FIRST_LINES,
    }
}

/// Returns 1, 2 or 5 times a power of ten: the greatest that exceeds `amount` by at most
/// [`EXCESS`], and at least 1.
fn step(amount: f64) -> u64 {
    let most = (amount * (1.0 + EXCESS)).clamp(1.0, 1e18);
    let power = 10_f64.powf(most.log10().floor());
    let digit = [5.0, 2.0, 1.0].into_iter().find(|digit| digit * power <= most).unwrap_or(1.0);
    (digit * power).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(task: Task, amount: u64, runs: u32) -> Table {
        let table = Table { task, size: 500, count: 1, runs, cold: false, in_time: true };
        table.of(amount)
    }

    #[test]
    fn an_amount_is_a_round_number_near_what_is_wanted() {
        for (wanted, amount) in
            [(0.0, 1), (1.7, 1), (1.9, 2), (4.6, 5), (3.9, 2), (99e6, 100_000_000), (199.0, 200)]
        {
            assert_eq!(step(wanted), amount, "{wanted}");
        }
    }

    #[test]
    fn a_fixed_amount_is_never_looked_at_and_never_changed() {
        let fixed = Table { in_time: false, ..table(Task::Lines, 77, 6) };
        let mut pace = Pace::new(fixed, Duration::from_secs(1), None);
        assert_eq!(pace.next_look(), None);
        pace.is_over(77, Duration::from_secs(9), 9.0);
        assert_eq!(pace.table(), fixed);
    }

    #[test]
    fn a_rate_that_is_known_from_another_table_needs_no_look() {
        let known = Rate { fixed_s: 0.1, unit_s: 0.001 };
        let pace = Pace::new(table(Task::Save, 1000, 1), Duration::from_millis(1200), Some(known));
        assert_eq!((pace.next_look(), pace.table().count), (None, 1000));
        let pace = Pace::new(table(Task::Save, 1000, 1), Duration::from_millis(300), Some(known));
        assert_eq!(pace.table().count, 200);
    }

    /// A program's times: to start, per megabyte, and per megabyte while cold.
    #[derive(Clone, Copy, Debug)]
    struct Program {
        start_s: f64,
        mb_s: f64,
        save_s: f64,
    }

    impl Program {
        /// Returns the total time of a run, and the program's own.
        fn run(self, of: &Table) -> (f64, f64) {
            let own_s = match of.task {
                Task::BytesWrite | Task::BytesRead => of.size as f64 / 1e6 * self.mb_s,
                Task::Lines | Task::Log => (of.size * of.count) as f64 / 1e6 * self.mb_s / 50.0,
                Task::Save | Task::SaveSync => of.count as f64 * self.save_s,
            };
            // The file is checked at 2 GB/s.
            (self.start_s + own_s + of.run_bytes() as f64 / 2e9, own_s)
        }
    }

    /// Returns the time of a whole comparison, and each amount.
    fn compared(tables: &[Table], programs: &[Program], within_s: f64) -> (f64, Vec<u64>) {
        let (mut now_s, mut amounts) = (0.0, Vec::new());
        for number in 0..tables.len() {
            let ahead: Vec<(Table, usize)> =
                tables[number..].iter().map(|table| (*table, programs.len())).collect();
            let table = tables[number];
            let left_s = (within_s - now_s).max(0.0);
            let of_table = share_of_table(Duration::from_secs_f64(left_s), &ahead);
            let until_s = now_s + of_table.as_secs_f64();
            let share = share_of_run(of_table, &table, programs.len());
            let mut round_s = 0.0;
            for program in programs {
                let mut pace = Pace::new(table, share, None);
                while let Some(of) = pace.next_look() {
                    let (took_s, own_s) = program.run(&of);
                    pace.is_over(of.amount(), Duration::from_secs_f64(took_s), own_s);
                    now_s += took_s;
                }
                let of = pace.table();
                round_s += program.run(&of).0;
                amounts.push(of.amount());
            }
            for round in 1..table.runs.max(2) {
                if round < 4 || now_s + round_s <= until_s {
                    now_s += round_s;
                }
            }
        }
        (now_s, amounts)
    }

    #[test]
    fn a_comparison_of_fast_and_slow_programs_ends_in_its_time() {
        // From the fastest of eleven languages to the slowest, some with a virtual machine.
        let program = |start_s, mb_s, save_s| Program { start_s, mb_s, save_s };
        let programs = [
            program(0.05, 0.001, 2e-4),
            program(0.1, 0.003, 2e-4),
            program(0.5, 0.007, 3e-4),
            program(0.3, 0.1, 2e-4),
            program(0.2, 0.25, 3e-4),
        ];
        for save_s in [1.0, 30.0, 300.0] {
            let slower = programs.map(|of| Program { save_s: of.save_s * save_s, ..of });
            let tables = [
                table(Task::BytesWrite, 256_000_000, 6),
                table(Task::BytesRead, 256_000_000, 6),
                table(Task::Save, 1000, 1),
                table(Task::SaveSync, 1000, 1),
                table(Task::Lines, 1_000_000, 6),
            ];
            let (took_s, amounts) = compared(&tables, &slower, 100.0);
            assert!(took_s < 100.0, "{took_s}: {amounts:?}");
            assert_eq!(amounts[0], 256_000_000, "the fastest moves all");
            assert!(amounts[4] < 10_000_000 && amounts[4] >= 1_000_000, "{amounts:?}");
        }
    }
}
