//! One piece of work by several contenders in turn: ours and its peers.

use super::super::ratio::{Asked, Figures};
use super::super::trial::{Outcome, Trials};
use super::super::turn::{Run, in_rounds};
use super::Measured;
use super::table::{Line, Unit};
use crate::failure::Failure;
use std::path::Path;

/// Who takes part.
pub struct Contender<'a> {
    /// Its name in the table.
    pub name: String,
    /// The command as one would type it.
    pub command: String,
    /// Does the work once.
    pub run: Box<dyn Fn() -> Result<Outcome, Failure> + 'a>,
}

/// What is asked of ours.
#[derive(Clone, Debug)]
pub enum Asks {
    /// This, against the best of the peers.
    OfBest(Asked),
    /// This, against each peer in their order.
    OfEach(Vec<Asked>),
}

/// One piece of work.
pub struct Contest<'a> {
    /// What it is.
    pub what: String,
    /// What it is counted in.
    pub unit: Unit,
    /// Ours.
    pub ours: Contender<'a>,
    /// The others.
    pub peers: Vec<Contender<'a>>,
    /// What is asked.
    pub asks: Asks,
}

impl<'a> Contender<'a> {
    /// Work of `trial`'s: what it is told comes first.
    pub fn of_trial(
        name: &str,
        words: Vec<String>,
        trials: &'a Trials,
        folder: &'a Path,
    ) -> Contender<'a> {
        let command = format!("trial {}", words.join(" "));
        let run = move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            trials.work(&words, folder)
        };
        Contender { name: name.to_owned(), command, run: Box::new(run) }
    }
}

impl Contest<'_> {
    /// Measures it in so many rounds: one line for each peer.
    pub fn measure(&self, rounds: u32) -> Result<Measured, Failure> {
        let all = || std::iter::once(&self.ours).chain(&self.peers);
        let runs: Vec<Run<Outcome>> =
            all().map(|contender| -> Run<Outcome> { &*contender.run }).collect();
        let mut outcomes: Vec<Vec<Outcome>> = Vec::new();
        in_rounds(rounds, &runs, |round| {
            let each = all().zip(&round);
            let said = each.map(|(c, outcome)| format!("{} {}", c.name, self.unit.rate(outcome)));
            eprintln!("{}: {}", self.what, said.collect::<Vec<_>>().join(", "));
            outcomes.push(round);
        })?;
        Ok(Measured {
            lines: self.lines(&outcomes),
            commands: all().map(|contender| contender.command.clone()).collect(),
            ..Measured::default()
        })
    }

    /// The lines of `outcomes`: of each round ours first, then the peers'.
    fn lines(&self, outcomes: &[Vec<Outcome>]) -> Vec<Line> {
        let best = best(self.unit, outcomes);
        let line = |(peer, contender): (usize, &Contender)| Line {
            what: self.what.clone(),
            unit: self.unit,
            ours: self.ours.name.clone(),
            peer: contender.name.clone(),
            pairs: outcomes.iter().map(|round| (round[0], round[peer + 1])).collect(),
            asked: match &self.asks {
                Asks::OfBest(asked) => (best == Some(peer)).then_some(*asked),
                Asks::OfEach(each) => each.get(peer).copied(),
            },
        };
        self.peers.iter().enumerate().map(line).collect()
    }
}

/// The peer with the best median, counted from the first; `None` without any.
fn best(unit: Unit, outcomes: &[Vec<Outcome>]) -> Option<usize> {
    let peers = outcomes.first()?.len().checked_sub(1)?;
    let median = |peer: usize| {
        let rates = outcomes.iter().map(|round| unit.rate_number(&round[peer + 1]));
        Figures::new(rates).median()
    };
    (0..peers).max_by(|&one, &other| median(one).total_cmp(&median(other)))
}

#[cfg(test)]
mod tests {
    use super::super::super::measured;
    use super::*;
    use std::cell::Cell;

    fn outcome(elapsed_s: f64) -> Outcome {
        let measured = measured::Measured { bytes: 1_000_000_000, elapsed_s, cpu_s: 0.1 };
        Outcome::new(measured, 1 << 20)
    }

    fn contender<'a>(name: &str, elapsed_s: f64) -> Contender<'a> {
        let run = move || Ok(outcome(elapsed_s));
        Contender { name: name.into(), command: format!("do {name}"), run: Box::new(run) }
    }

    fn contest<'a>(asks: Asks) -> Contest<'a> {
        Contest {
            what: "stream".into(),
            unit: Unit::Stream,
            ours: contender("Writer", 0.5),
            peers: vec![contender("slow", 2.0), contender("fast", 1.0), contender("mid", 1.5)],
            asks,
        }
    }

    #[test]
    fn only_against_the_best_peer_something_is_asked() {
        let measured = contest(Asks::OfBest(Asked::AtLeast(1.5))).measure(3).expect("no failure");
        let rows: Vec<String> = measured.lines.iter().map(Line::row).collect();
        assert!(rows[0].contains("| slow | **4.00**") && rows[0].ends_with("| – |"), "{rows:?}");
        assert!(rows[1].contains("| fast | **2.00**"), "{rows:?}");
        assert!(rows[1].ends_with("| ≥ 1.50, met |"), "{rows:?}");
        assert!(rows[2].contains("| mid | **3.00**") && rows[2].ends_with("| – |"), "{rows:?}");
        assert_eq!(measured.commands, ["do Writer", "do slow", "do fast", "do mid"]);
    }

    #[test]
    fn or_against_each_its_own() {
        let asks = [Asked::AtLeast(5.0), Asked::AtLeast(1.0), Asked::Level];
        let measured = contest(Asks::OfEach(asks.to_vec())).measure(1).expect("no failure");
        let rows: Vec<String> = measured.lines.iter().map(Line::row).collect();
        assert!(rows[0].ends_with("| ≥ 5.00, not met |"), "{rows:?}");
        assert!(rows[1].ends_with("| ≥ 1.00, met |"), "{rows:?}");
        assert!(rows[2].ends_with("| ≥ 0.95 and some ≥ 1.00, met |"), "{rows:?}");
    }

    #[test]
    fn all_take_part_in_every_round_and_a_failure_ends_it() {
        let calls = Cell::new(0);
        let mut contest = contest(Asks::OfBest(Asked::Level));
        contest.peers.truncate(1);
        let run = || {
            calls.set(calls.get() + 1);
            if calls.get() < 3 { Ok(outcome(1.0)) } else { Err(Failure::Failed("no room".into())) }
        };
        contest.peers[0].run = Box::new(run);
        let failed = contest.measure(5).expect_err("the third fails").to_string();
        assert_eq!((failed.as_str(), calls.get()), ("no room", 3));
    }
}
