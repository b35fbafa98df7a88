//! One piece of work, done by several contenders in turn, and the table that compares them.

use super::figures::{Condition, Figures, three_digits};
use super::job::Job;
use super::outcome::{MIB, Outcome, Unit};
use super::site::Site;
use lab::tools::failure::Failure;
use lab::tools::run::check_interrupted;
use serde::Deserialize;
use std::thread;
use std::time::Duration;

/// The pause before each run, in which the device finishes earlier work.
const SETTLE: Duration = Duration::from_millis(300);

/// One run of a contender's command.
pub type Run = Box<dyn Fn(&Site, &str) -> Result<Outcome, Failure>>;

/// A program that does the work, by a method.
pub struct Contender {
    /// The program's name in the table.
    pub name: String,
    /// The shell line that does the work.
    pub command: String,
    /// The shell line that runs before each run, while its clock is not running; may be empty.
    pub prepare: String,
    /// The job file that the command runs, if any.
    pub job: Option<Job>,
    /// Does the work once.
    pub run: Run,
}

/// A figure compared in each round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    /// wrote's rate divided by the peer's.
    #[default]
    Rate,
    /// wrote's CPU time divided by the peer's.
    Cpu,
    /// The 99th percentile of wrote's latency, divided by the peer's.
    P99,
    /// The contender's own rate.
    Own,
    /// The number of bytes that the contender wrote to the device per byte of the work.
    Device,
}

/// A comparison, and the condition on it.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// The compared figure.
    pub of: Comparison,
    /// The condition.
    pub asked: Condition,
    /// The index of the contender to compare with; `None` for the peer with the best median rate.
    pub contender: Option<usize>,
}

/// One piece of work.
pub struct Contest {
    /// A description of the work.
    pub what: String,
    /// The unit of the rates.
    pub unit: Unit,
    /// wrote's contender, followed by its peers.
    pub contenders: Vec<Contender>,
    /// The conditions that the figures must meet.
    pub requirements: Vec<Requirement>,
}

/// The results of a contest.
#[derive(Debug)]
pub struct ContestResult {
    /// The table in Markdown.
    pub table: String,
    /// The contenders' commands.
    pub commands: Vec<String>,
    /// The job files that some of the commands run.
    pub jobs: Vec<Job>,
}

impl Contender {
    /// Creates a contender without a job file.
    pub fn new(
        name: &str,
        command: String,
        run: impl Fn(&Site, &str) -> Result<Outcome, Failure> + 'static,
    ) -> Contender {
        let (name, prepare) = (name.to_owned(), String::new());
        Contender { name, command, prepare, job: None, run: Box::new(run) }
    }

    /// Does the work once.
    pub fn run(&self, site: &Site) -> Result<Outcome, Failure> {
        if !self.prepare.is_empty() {
            site.run(&self.prepare)?;
        }
        (self.run)(site, &self.command)
    }
}

impl Contest {
    /// Runs every contender once in each round. Every second round runs in reverse order, because a
    /// later run finds the device in a different state.
    pub fn measure(&self, site: &Site) -> Result<ContestResult, Failure> {
        let mut runs = vec![Vec::new(); self.contenders.len()];
        for round in 0..site.rounds {
            let mut order: Vec<usize> = (0..runs.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                rustix::fs::sync();
                thread::sleep(SETTLE);
                check_interrupted()?;
                runs[index].push(self.contenders[index].run(site)?);
            }
            let rates = self.contenders.iter().zip(&runs).filter_map(|(contender, runs)| {
                let rate = three_digits(self.unit.rate(runs.last()?));
                Some(format!("{} {rate} {}", contender.name, self.unit.heads()[0]))
            });
            eprintln!("{}: {}", self.what, rates.collect::<Vec<_>>().join(", "));
        }
        Ok(ContestResult {
            table: self.table(&runs),
            commands: self.contenders.iter().map(|one| one.command.clone()).collect(),
            jobs: self.contenders.iter().filter_map(|one| one.job.clone()).collect(),
        })
    }

    /// Returns a table with a line for each contender, with medians and ranges of its `runs`. Omits
    /// columns without figures.
    fn table(&self, runs: &[Vec<Outcome>]) -> String {
        let column = |head: &str, cell: &dyn Fn(usize) -> String| -> Vec<String> {
            std::iter::once(head.to_owned()).chain((0..runs.len()).map(cell)).collect()
        };
        let medians = |head: &str, figure: &dyn Fn(&Outcome) -> Option<f64>| {
            column(head, &|index| {
                let figures = Figures::new(runs[index].iter().filter_map(figure));
                if figures.is_empty() { String::new() } else { three_digits(figures.median()) }
            })
        };
        let compared = |head: &str, of| {
            column(head, &|index| match self.compare(of, index, runs) {
                figures if index == 0 || figures.is_empty() => String::new(),
                figures => figures.to_string(),
            })
        };
        let asks = |of| self.requirements.iter().any(|one| one.of == of);
        let micros = |ns: u64| ns as f64 / 1e3;
        let [rate, cpu] = self.unit.heads();
        let columns = [
            column(&self.what, &|index| self.contenders[index].name.clone()),
            column(rate, &|index| {
                let figures = self.compare(Comparison::Own, index, runs);
                let [low, high] = figures.range().map(three_digits);
                format!("{} ({low}–{high})", three_digits(figures.median()))
            }),
            medians(cpu, &|run| self.unit.cpu(run)),
            medians("memory, MiB", &|run| run.memory_bytes.map(|bytes| bytes as f64 / MIB)),
            medians("P50, µs", &|run| Some(micros(run.latency_ns?.p50))),
            medians("P99, µs", &|run| Some(micros(run.latency_ns?.p99))),
            compared("wrote's / peer (range)", Comparison::Rate),
            compared("CPU, wrote's / peer (range)", Comparison::Cpu),
            match asks(Comparison::P99) {
                true => compared("P99, wrote's / peer (range)", Comparison::P99),
                false => Vec::new(),
            },
            match asks(Comparison::Device) {
                true => column("device bytes / byte (range)", &|index| {
                    self.compare(Comparison::Device, index, runs).to_string()
                }),
                false => Vec::new(),
            },
            column("asked", &|index| self.verdict(index, runs)),
        ];
        let has_cells = |column: &Vec<String>| column.iter().skip(1).any(|cell| !cell.is_empty());
        let columns: Vec<Vec<String>> = columns.into_iter().filter(has_cells).collect();
        let line = |number: usize| {
            let cells: Vec<&str> = columns.iter().map(|column| column[number].as_str()).collect();
            format!("| {} |", cells.join(" | "))
        };
        let rule = format!("|---|{}", "---:|".repeat(columns.len() - 1));
        let lines = (1..=runs.len()).map(line);
        [line(0), rule].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    }

    /// Compares a contender with wrote's contender, in each round in which both have the figures.
    fn compare(&self, of: Comparison, contender: usize, runs: &[Vec<Outcome>]) -> Figures {
        let unit = self.unit;
        let compare = |(ours, peer): (&Outcome, &Outcome)| match of {
            Comparison::Rate => Some(unit.rate(ours) / unit.rate(peer)),
            Comparison::Cpu => Some(unit.cpu(ours)? / unit.cpu(peer)?),
            Comparison::P99 => Some(ours.latency_ns?.p99 as f64 / peer.latency_ns?.p99 as f64),
            Comparison::Own => Some(unit.rate(peer)),
            Comparison::Device => Some(peer.device_bytes? as f64 / peer.bytes as f64),
        };
        Figures::new(runs[0].iter().zip(&runs[contender]).filter_map(compare))
    }

    /// Returns a text such as "≥ 1.50, met" for each condition on the contender.
    fn verdict(&self, contender: usize, runs: &[Vec<Outcome>]) -> String {
        let verdict = |one: &Requirement| {
            let verdict = one.asked.verdict(&self.compare(one.of, contender, runs));
            format!("{}{verdict}", self.figure(one.of))
        };
        let verdicts = self.requirements_of(contender, runs).map(verdict);
        verdicts.collect::<Vec<_>>().join("; ")
    }

    /// Returns the requirements on the contender, including those on the best peer if the contender
    /// is the best peer.
    fn requirements_of(
        &self,
        contender: usize,
        runs: &[Vec<Outcome>],
    ) -> impl Iterator<Item = &Requirement> {
        let rate = |peer: usize| self.compare(Comparison::Own, peer, runs).median();
        let best = (1..runs.len()).max_by(|&one, &other| rate(one).total_cmp(&rate(other)));
        self.requirements.iter().filter(move |one| one.contender.or(best) == Some(contender))
    }

    /// Returns the name of the compared figure.
    fn figure(&self, of: Comparison) -> String {
        match of {
            Comparison::Rate => String::new(),
            Comparison::Cpu => "CPU ".to_owned(),
            Comparison::P99 => "P99 ".to_owned(),
            Comparison::Own => format!("{} ", self.unit.heads()[0]),
            Comparison::Device => "device bytes ".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contests::outcome::Percentiles;
    use crate::contests::site::fake;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    impl Requirement {
        /// Returns a requirement: the condition `asked` on the rate, compared with the best peer.
        fn of_best(asked: Condition) -> Vec<Requirement> {
            vec![Requirement { of: Comparison::Rate, asked, contender: None }]
        }

        /// Returns requirements on a comparison, one condition for each peer, in their order.
        fn of_each(of: Comparison, asked: &[Condition]) -> Vec<Requirement> {
            let require = |(peer, &asked)| Requirement { of, asked, contender: Some(peer) };
            (1..).zip(asked).map(require).collect()
        }
    }

    fn run(megabytes_per_s: f64, cpu_s: f64) -> Outcome {
        let (bytes, elapsed_s) = (1_000_000_000, 1000.0 / megabytes_per_s);
        Outcome { bytes, elapsed_s, cpu_s, ..Outcome::default() }
    }

    fn contender(name: &str, run: Run) -> Contender {
        let (command, prepare) = (format!("do {name}"), String::new());
        Contender { name: name.into(), command, prepare, job: None, run }
    }

    fn contest(what: &str, names: &[&str], requirements: Vec<Requirement>) -> Contest {
        let contenders =
            names.iter().map(|name| contender(name, Box::new(|_, _| Ok(run(1.0, 1.0)))));
        let (what, contenders) = (what.to_owned(), contenders.collect());
        Contest { what, unit: Unit::Stream, contenders, requirements }
    }

    /// Returns the table of two contenders.
    fn table(
        unit: Unit,
        requirements: Vec<Requirement>,
        ours: Vec<Outcome>,
        peer: Vec<Outcome>,
    ) -> String {
        Contest { unit, ..contest("work", &["ours", "peer"], requirements) }.table(&[ours, peer])
    }

    /// Returns the result of a contest of four contenders with fixed times, in 3 rounds.
    fn of_four(requirements: Vec<Requirement>) -> ContestResult {
        let elapsed = [("Writer", 0.5), ("slow", 2.0), ("fast", 1.0), ("mid", 1.5)];
        let contenders = elapsed.map(|(name, elapsed_s)| {
            contender(name, Box::new(move |_, _| Ok(run(1000.0 / elapsed_s, 0.1))))
        });
        let contest =
            Contest { contenders: contenders.into(), ..contest("stream", &[], requirements) };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = Site { rounds: 3, ..fake::site(folder.path(), 1, 4096) };
        contest.measure(&site).expect("no failure")
    }

    #[test]
    fn only_against_the_best_peer_something_is_asked() {
        let measured = of_four(Requirement::of_best(Condition::AtLeast(1.5)));
        let lines: Vec<&str> = measured.table.lines().collect();
        assert!(lines[3].starts_with("| slow |") && lines[3].contains("**4.00**"), "{lines:?}");
        assert!(lines[4].starts_with("| fast |") && lines[4].contains("**2.00**"), "{lines:?}");
        assert!(lines[4].ends_with("| ≥ 1.50, met |"), "{lines:?}");
        assert!(lines[5].starts_with("| mid |") && lines[5].contains("**3.00**"), "{lines:?}");
        assert!([2, 3, 5].iter().all(|&other: &usize| lines[other].ends_with("|  |")), "{lines:?}");
        assert_eq!(measured.commands, ["do Writer", "do slow", "do fast", "do mid"]);
    }

    #[test]
    fn or_against_each_its_own() {
        let asked = [Condition::AtLeast(5.0), Condition::AtLeast(1.0), Condition::AtMost(9.0)];
        let measured = of_four(Requirement::of_each(Comparison::Rate, &asked));
        let lines: Vec<&str> = measured.table.lines().collect();
        assert!(lines[3].ends_with("| ≥ 5.00, not met |"), "{lines:?}");
        assert!(lines[4].ends_with("| ≥ 1.00, met |"), "{lines:?}");
        assert!(lines[5].ends_with("| ≤ 9.00, met |"), "{lines:?}");
    }

    /// Returns the order in which the contenders ran, and their table.
    fn order(names: &'static [&'static str], rounds: u32) -> (Vec<&'static str>, String) {
        let order = Rc::new(RefCell::new(Vec::new()));
        let contenders = names.iter().zip([1.0, 2.0, 4.0]).map(|(name, elapsed_s)| {
            let order = Rc::clone(&order);
            contender(
                name,
                Box::new(move |_, _| {
                    order.borrow_mut().push(*name);
                    Ok(run(1000.0 / elapsed_s, 0.1))
                }),
            )
        });
        let contenders = contenders.collect();
        let contest = Contest { contenders, ..contest("stream", &[], vec![]) };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = Site { rounds, ..fake::site(folder.path(), 1, 4096) };
        let measured = contest.measure(&site).expect("no failure");
        let order = order.take();
        (order, measured.table)
    }

    #[test]
    fn every_second_pair_begins_with_the_other() {
        let (order, table) = order(&["ours", "theirs"], 3);
        assert_eq!(order, ["ours", "theirs", "theirs", "ours", "ours", "theirs"]);
        assert!(table.ends_with("| **2.00** (2.00–2.00) | **1.00** (1.00–1.00) |"), "{table}");
    }

    #[test]
    fn of_several_every_second_round_runs_backwards_and_gives_them_in_their_order() {
        let (order, table) = order(&["a", "b", "c"], 2);
        assert_eq!(order.concat(), "abccba");
        let rates = ["| a | 1000 (1000–1000)", "| b | 500 (500–500)", "| c | 250 (250–250)"];
        assert!(table.lines().skip(2).zip(rates).all(|(line, rate)| line.starts_with(rate)));
    }

    #[test]
    fn all_take_part_in_every_round_and_a_failure_ends_it() {
        let calls = Rc::new(Cell::new(0));
        let mut contest = contest("work", &["ours", "peer"], vec![]);
        let counted = Rc::clone(&calls);
        contest.contenders[1].run = Box::new(move |_, _| {
            counted.set(counted.get() + 1);
            if counted.get() < 3 {
                Ok(run(1.0, 1.0))
            } else {
                Err(Failure::Failed("no room".into()))
            }
        });
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = Site { rounds: 5, ..fake::site(folder.path(), 1, 4096) };
        let failed = contest.measure(&site).expect_err("the third");
        assert_eq!((failed.to_string().as_str(), calls.get()), ("no room", 3));
    }

    #[test]
    fn a_run_that_fails_ends_it() {
        let mut contest = contest("work", &["ours", "peer"], vec![]);
        contest.contenders[0].run = Box::new(|_, _| Err(Failure::Failed("no room".into())));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let failed = contest.measure(&fake::site(folder.path(), 1, 4096)).expect_err("failed");
        assert_eq!(failed.to_string(), "no room");
    }

    #[test]
    fn a_line_holds_the_medians_and_ranges_of_the_pairs_ratios_and_all_medians() {
        let ours = vec![run(2000.0, 0.1), run(1200.0, 0.2), run(900.0, 0.4)];
        let peer = vec![run(2000.0, 0.2), run(1000.0, 0.5), run(1000.0, 0.5)];
        assert_eq!(
            table(Unit::Stream, vec![], ours, peer),
            "| work | MB/s | CPU s/GB | wrote's / peer (range) | CPU, wrote's / peer (range) |\n\
             |---|---:|---:|---:|---:|\n\
             | ours | 1200 (900–2000) | 0.20 |  |  |\n\
             | peer | 1000 (1000–2000) | 0.50 | **1.00** (0.90–1.20) | **0.50** (0.40–0.80) |"
        );
    }

    #[test]
    fn a_line_holds_the_ratios_and_the_medians_of_rate_cpu_and_memory() {
        let of = |elapsed_s: f64, cpu_s, mib: u64| Outcome {
            memory_bytes: Some(mib << 20),
            ..run(1000.0 / elapsed_s, cpu_s)
        };
        let ours = vec![of(0.5, 0.1, 4), of(0.5, 0.1, 6), of(0.5, 0.1, 5)];
        let peer = vec![of(1.0, 0.3, 1), of(0.8, 0.3, 1), of(0.6, 0.3, 1)];
        let table = table(Unit::Stream, Requirement::of_best(Condition::AtLeast(1.5)), ours, peer);
        assert!(table.starts_with("| work | MB/s | CPU s/GB | memory, MiB | "), "{table}");
        assert!(table.contains("\n| ours | 2000 (2000–2000) | 0.10 | 5.00 | "), "{table}");
        assert!(
            table.contains("\n| peer | 1250 (1000–1667) | 0.30 | 1.00 | **1.60** (1.20–2.00) | ")
        );
        assert!(table.ends_with("| ≥ 1.50, met |"), "{table}");
    }

    #[test]
    fn slow_writes_keep_a_digit_more() {
        let ours = vec![run(5.0, 2.0), run(5.5, 2.0)];
        let table = table(Unit::Stream, vec![], ours, vec![run(4.0, 4.0); 2]);
        assert!(table.contains("\n| ours | 5.25 (5.00–5.50) | 2.00 | "), "{table}");
        assert!(table.contains("\n| peer | 4.00 (4.00–4.00) | 4.00 | **1.31** (1.25–1.38) | "));
    }

    #[test]
    fn goals_of_both_ratios_are_shown_with_whether_they_are_met() {
        let mut requirements = Requirement::of_best(Condition::AtLeast(1.0));
        requirements.extend(Requirement::of_each(Comparison::Cpu, &[Condition::AtMost(0.7)]));
        let table =
            table(Unit::Stream, requirements, vec![run(1100.0, 0.3)], vec![run(1000.0, 0.4)]);
        assert!(table.ends_with("| ≥ 1.00, met; CPU ≤ 0.70, not met |"), "{table}");
    }

    #[test]
    fn reads_are_counted_in_thousands_and_cost_microseconds() {
        let of = |elapsed_s, cpu_s| Outcome {
            operations: 600_000,
            elapsed_s,
            cpu_s,
            ..Outcome::default()
        };
        let table = table(Unit::Reads, vec![], vec![of(1.0, 0.9)], vec![of(2.0, 1.8)]);
        assert!(table.contains("\n| ours | 600 (600–600) | 1.50 | "), "{table}");
        let expected =
            "\n| peer | 300 (300–300) | 3.00 | **2.00** (2.00–2.00) | **0.50** (0.50–0.50) |";
        assert!(table.ends_with(expected), "{table}");
    }

    #[test]
    fn saves_are_counted_and_cost_microseconds_each() {
        let of =
            |elapsed_s, cpu_s| Outcome { operations: 500, elapsed_s, cpu_s, ..Outcome::default() };
        let table = table(Unit::Saves, vec![], vec![of(1.0, 0.1)], vec![of(2.0, 0.2)]);
        assert!(table.starts_with("| work | saves/s | CPU µs/save | "), "{table}");
        assert!(table.contains("\n| ours | 500 (500–500) | 200 | "), "{table}");
        assert!(table.contains("\n| peer | 250 (250–250) | 400 | **2.00** (2.00–2.00) | "));
    }

    #[test]
    fn messages_are_counted_by_thousands_and_cost_microseconds_each() {
        let of = |operations, elapsed_s| Outcome {
            operations,
            elapsed_s,
            cpu_s: 0.1,
            ..Outcome::default()
        };
        let table = table(Unit::Messages, vec![], vec![of(400_000, 0.5)], vec![of(10_000, 0.1)]);
        assert!(table.starts_with("| work | k/s | CPU µs/message | "), "{table}");
        assert!(table.contains("\n| ours | 800 (800–800) | 0.25 | "), "{table}");
        assert!(table.contains("\n| peer | 100 (100–100) | 10.0 | **8.00** (8.00–8.00) | "));
    }

    #[test]
    fn a_line_holds_millions_a_second() {
        let outcome =
            Outcome { operations: 12_000_000, elapsed_s: 2.0, cpu_s: 3.0, ..Outcome::default() };
        let requirements = vec![Requirement {
            of: Comparison::Own,
            asked: Condition::AtLeast(5000.0),
            contender: Some(0),
        }];
        let contest =
            Contest { unit: Unit::Messages, ..contest("short", &["`Log`"], requirements) };
        assert_eq!(
            contest.table(&[vec![outcome]]),
            "| short | k/s | CPU µs/message | asked |\n|---|---:|---:|---:|\n\
             | `Log` | 6000 (6000–6000) | 0.25 | k/s ≥ 5000.00, met |"
        );
    }

    #[test]
    fn nothing_is_asked_where_the_peer_is_not_the_best() {
        let latency_ns = Some(Percentiles { p50: 1000, p99: 1000 });
        let of = |rate| Outcome { operations: 10, latency_ns, ..run(rate, 1.0) };
        let requirements = Requirement::of_best(Condition::AtLeast(2.0));
        let contest = Contest {
            unit: Unit::Messages,
            ..contest("work", &["ours", "slow", "fast"], requirements)
        };
        let table = contest.table(&[vec![of(8.0)], vec![of(1.0)], vec![of(2.0)]]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[3].ends_with("|  |") && lines[4].ends_with("| ≥ 2.00, met |"), "{table}");
    }

    #[test]
    fn the_head_has_as_many_columns_as_a_line() {
        let table = table(Unit::Stream, vec![], vec![run(1.0, 1.0)], vec![run(1.0, 1.0)]);
        let columns: Vec<usize> = table.lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(columns, [6; 4], "{table}");
    }
}
