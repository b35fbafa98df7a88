//! What a piece of work takes: time, CPU time, memory.

use crate::Done;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use std::time::Instant;

/// Whose work it is (`getrusage(2)`).
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// This process's, with all its threads: also those of the kernel that work for a ring.
    Us,
    /// Its children's that have ended, and theirs.
    Children,
}

/// Runs from its start.
#[derive(Debug)]
pub struct Clock {
    who: Who,
    begin: Instant,
    cpu_before_s: f64,
    rss_before_bytes: u64,
}

/// What a piece of work came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// File bytes written; 0 where nobody counted them.
    pub bytes: u64,
    /// Until they were as safe as asked, in seconds.
    pub elapsed_s: f64,
    /// CPU seconds, user and kernel.
    pub cpu_s: f64,
    /// The most memory that was resident, of any one process.
    pub max_rss_bytes: u64,
    /// The most that had been resident before: the data that is written, and the program.
    pub rss_before_bytes: u64,
}

impl Clock {
    /// Starts it.
    pub fn start(who: Who) -> Done<Clock> {
        let usage = usage(who)?;
        let (cpu_before_s, rss_before_bytes) = (cpu_s(&usage), rss_bytes(&usage));
        Ok(Clock { who, begin: Instant::now(), cpu_before_s, rss_before_bytes })
    }

    /// Stops it when `bytes` are written.
    pub fn stop(self, bytes: u64) -> Done<Outcome> {
        let elapsed_s = self.begin.elapsed().as_secs_f64();
        let usage = usage(self.who)?;
        Ok(Outcome {
            bytes,
            elapsed_s,
            cpu_s: cpu_s(&usage) - self.cpu_before_s,
            max_rss_bytes: rss_bytes(&usage),
            rss_before_bytes: self.rss_before_bytes,
        })
    }
}

impl Outcome {
    /// One line.
    pub fn json(&self) -> String {
        self.value().to_string()
    }

    /// The same before it is text.
    pub fn value(&self) -> Value {
        let Outcome { bytes, elapsed_s, cpu_s, max_rss_bytes, rss_before_bytes } = self;
        serde_json::json!({
            "bytes": bytes,
            "elapsed_s": elapsed_s,
            "cpu_s": cpu_s,
            "max_rss_bytes": max_rss_bytes,
            "rss_before_bytes": rss_before_bytes,
        })
    }
}

fn usage(who: Who) -> Done<Usage> {
    let who = match who {
        Who::Us => UsageWho::RUSAGE_SELF,
        Who::Children => UsageWho::RUSAGE_CHILDREN,
    };
    Ok(getrusage(who)?)
}

fn cpu_s(usage: &Usage) -> f64 {
    let microseconds =
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    microseconds as f64 / 1e6
}

/// Linux counts `ru_maxrss` in KiB.
fn rss_bytes(usage: &Usage) -> u64 {
    u64::try_from(usage.max_rss()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_taken_while_the_clock_runs_is_told_from_what_was_there() {
        let clock = Clock::start(Who::Us).expect("getrusage");
        // More than this process ever had: other tests run in it too.
        let taken_bytes = clock.rss_before_bytes + (32 << 20);
        let taken = vec![1_u8; taken_bytes as usize];
        let outcome = clock.stop(std::hint::black_box(&taken).len() as u64).expect("getrusage");
        assert!(outcome.max_rss_bytes >= taken_bytes, "{outcome:?}");
        assert!(outcome.rss_before_bytes < outcome.max_rss_bytes, "{outcome:?}");
        assert_eq!(outcome.bytes, taken_bytes);
    }

    #[test]
    fn an_outcome_is_one_line_with_units_in_its_keys() {
        let outcome = Outcome {
            bytes: 1000,
            elapsed_s: 0.5,
            cpu_s: 0.25,
            max_rss_bytes: 4096,
            rss_before_bytes: 1024,
        };
        let expected = r#"{"bytes":1000,"cpu_s":0.25,"elapsed_s":0.5,"max_rss_bytes":4096,"rss_before_bytes":1024}"#;
        assert_eq!(outcome.json(), expected);
    }
}
