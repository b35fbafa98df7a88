//! Many producers and one log: `wrote::Log` in turn with what a program would append by otherwise.

mod alone;
mod durable;
mod end;
mod latency;
mod rivals;

pub use alone::{Alone, HEAD as ALONE_HEAD};
pub use latency::{HEAD as LATENCY_HEAD, LatencyLine};
pub use rivals::Rivals;

use super::job::Job;
use super::programs::Programs;
use super::rows::Row;
use super::trial::Trials;
use super::ways::Line;
use super::ways::contest::Contender;
use crate::failure::Failure;
use std::path::Path;

/// The head of the table of rates.
pub const HEAD: &str = "\
| messages | wrote's | peer | wrote's / peer (range) | wrote's | peer | wrote's CPU | peer's CPU | wrote's memory | peer's memory | asked |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|";

/// What is written to, below the folder.
const PLACE: &str = "appended";

/// What all of them use.
#[derive(Clone, Copy, Debug)]
pub struct Appends<'a> {
    /// The program with `wrote::Log` and with files by hand.
    pub trials: &'a Trials,
    /// The program with the crates of others.
    pub rivals: &'a Rivals,
    /// wrote and fio.
    pub programs: &'a Programs,
    /// The folder to write in.
    pub folder: &'a Path,
    /// How many rounds.
    pub rounds: u32,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Lines of the table of rates.
    pub lines: Vec<Line>,
    /// Those of what is measured alone.
    pub alone: Vec<Alone>,
    /// Those of the table of latencies.
    pub latencies: Vec<LatencyLine>,
    /// The commands as one would type them.
    pub commands: Vec<String>,
    /// The job files that some of them run.
    pub jobs: Vec<Job>,
}

/// What is appended, and by how many.
#[derive(Clone, Copy, Debug)]
struct Work {
    messages: u64,
    producers: u32,
    shortest: u32,
    longest: u32,
}

/// Whether a row is one of these.
pub fn is_append(row: Row) -> bool {
    matches!(
        row,
        Row::AppendNo4
            | Row::AppendNo64
            | Row::AppendNoDevice
            | Row::AppendSmall
            | Row::AppendDurable64
            | Row::AppendDurablePeers
            | Row::AppendDurable1
    )
}

impl<'a> Appends<'a> {
    /// Measures a row; one that is another's gives nothing.
    pub fn measure(&self, row: Row) -> Result<Measured, Failure> {
        match row {
            Row::AppendNo4 => end::strategies(self, 4),
            Row::AppendNo64 => end::strategies(self, 64),
            Row::AppendNoDevice => end::device(self),
            Row::AppendSmall => alone::small(self),
            Row::AppendDurable64 => durable::one_flush_at_a_time(self),
            Row::AppendDurablePeers => durable::logs(self),
            Row::AppendDurable1 => durable::one_producer(self),
            _ => Ok(Measured::default()),
        }
    }

    /// `trial append`, one way.
    fn by_trial(&self, by: &str, name: &str, work: Work) -> Contender<'a> {
        let words = [vec!["append".to_owned()], work.words(by)].concat();
        Contender::of_trial(name, words, self.trials, self.folder)
    }

    /// `rivals`, one way.
    fn by_rivals(&self, by: &str, name: &str, work: Work) -> Contender<'a> {
        self.rivals.contender(name, work.words(by), self.folder)
    }
}

impl Work {
    /// Messages of 300 to 2000 bytes.
    fn usual(messages: u64, producers: u32) -> Work {
        Work { messages, producers, shortest: 300, longest: 2000 }
    }

    fn words(&self, by: &str) -> Vec<String> {
        let Work { messages, producers, shortest, longest } = self;
        let line = format!("--by {by} --messages {messages} --producers {producers}");
        let line = match (shortest, longest) {
            (300, 2000) => line,
            _ => format!("{line} --shortest {shortest} --longest {longest}"),
        };
        line.split(' ').chain([PLACE]).map(str::to_owned).collect()
    }
}

impl From<super::ways::Measured> for Measured {
    fn from(measured: super::ways::Measured) -> Measured {
        let super::ways::Measured { lines, commands, jobs, .. } = measured;
        Measured { lines, commands, jobs, ..Measured::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::fake;
    use super::*;
    use clap::ValueEnum;

    fn calls(row: Row) -> (Measured, Vec<String>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let trials = fake::trials(folder.path(), 1_000_000, 1.0);
        let rivals = Rivals { program: trials.trial.clone() };
        let programs = Programs { wrote: "wrote".into(), fio: "fio".into() };
        let folder = folder.path();
        let (trials, rivals, programs) = (&trials, &rivals, &programs);
        let appends = Appends { trials, rivals, programs, folder, rounds: 1 };
        let measured = appends.measure(row).expect("scripts");
        let calls = std::fs::read_to_string(folder.join("calls")).expect("called");
        (measured, calls.lines().map(str::to_owned).collect())
    }

    #[test]
    fn ours_comes_first_and_the_best_of_the_strategies_is_what_is_asked_against() {
        let (measured, calls) = calls(Row::AppendNo64);
        let ours = "append --by log --messages 1000000 --producers 64 appended";
        assert_eq!(calls[0], ours);
        assert_eq!(calls.len(), 7);
        assert_eq!(calls[4], "--by flume --messages 500000 --producers 64 appended");
        let asked: Vec<_> = measured.lines.iter().filter_map(|line| line.asked).collect();
        assert_eq!(asked.len(), 1);
    }

    #[test]
    fn short_messages_are_measured_alone() {
        let (measured, calls) = calls(Row::AppendSmall);
        let expected =
            "append --by log --messages 10000000 --producers 4 --shortest 64 --longest 64 appended";
        assert_eq!(calls, [expected]);
        assert!(measured.lines.is_empty());
        assert_eq!(measured.alone.len(), 1);
    }

    #[test]
    fn durable_messages_have_a_line_of_latency_for_each_peer() {
        for (row, peers) in
            [(Row::AppendDurable64, 2), (Row::AppendDurablePeers, 7), (Row::AppendDurable1, 2)]
        {
            let (measured, calls) = calls(row);
            assert_eq!(calls.len(), peers + 1, "{row:?}");
            assert_eq!((measured.lines.len(), measured.latencies.len()), (peers, peers));
            assert!(calls[0].starts_with("append --by log-durable "), "{calls:?}");
        }
    }

    #[test]
    fn rows_of_others_are_none_of_these() {
        let all = Row::value_variants().iter();
        assert_eq!(all.filter(|&&row| is_append(row)).count(), 7);
        assert!(!is_append(Row::Save));
    }
}
