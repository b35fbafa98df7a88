//! A clock for a piece of work: its time, CPU time and memory.

use crate::Result;
use crate::outcome::Outcome;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::ffi::OsString;
use std::process::Command;
use std::time::Instant;

/// A clock that measures resource usage (`getrusage(2)`) from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    whose: UsageWho,
    begin: Instant,
    cpu_before_s: f64,
    rss_before_bytes: u64,
    device_before_bytes: u64,
}

impl Clock {
    /// Starts a clock for this process with all its threads, including the kernel's threads of a
    /// ring.
    pub fn start() -> Result<Clock> {
        let before = getrusage(UsageWho::RUSAGE_SELF)?;
        Clock::new(UsageWho::RUSAGE_SELF, rss_bytes(&before))
    }

    /// Starts a clock for the child processes that exit while it runs, and for their children.
    /// Their memory is counted from zero.
    pub fn of_children() -> Result<Clock> {
        Clock::new(UsageWho::RUSAGE_CHILDREN, 0)
    }

    fn new(whose: UsageWho, rss_before_bytes: u64) -> Result<Clock> {
        let before = getrusage(whose)?;
        let (cpu_before_s, device_before_bytes) = (cpu_s(&before), device_bytes(&before));
        let begin = Instant::now();
        Ok(Clock { whose, begin, cpu_before_s, rss_before_bytes, device_before_bytes })
    }

    /// Stops the clock, and returns the figures for `bytes` written in `operations`.
    pub fn stop(self, bytes: u64, operations: u64) -> Result<Outcome> {
        let elapsed_s = self.begin.elapsed().as_secs_f64();
        let after = getrusage(self.whose)?;
        Ok(Outcome {
            bytes,
            operations,
            elapsed_s,
            cpu_s: cpu_s(&after) - self.cpu_before_s,
            memory_bytes: rss_bytes(&after).saturating_sub(self.rss_before_bytes),
            device_bytes: device_bytes(&after) - self.device_before_bytes,
            latency_ns: None,
        })
    }
}

/// Returns the number of bytes written to the device, which Linux counts in sectors of 512 bytes.
fn device_bytes(usage: &Usage) -> u64 {
    u64::try_from(usage.block_writes()).unwrap_or(0) << 9
}

fn cpu_s(usage: &Usage) -> f64 {
    let microseconds =
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    microseconds as f64 / 1e6
}

/// Returns the peak resident memory, in bytes. Linux reports `ru_maxrss` in KiB.
fn rss_bytes(usage: &Usage) -> u64 {
    u64::try_from(usage.max_rss()).unwrap_or(0) << 10
}

/// Measures `command` and all its children, from start to end. Fails if the command fails.
pub fn run(command: &[OsString]) -> Result<Outcome> {
    let (program, rest) = command.split_first().ok_or("no command")?;
    let name = program.display();
    let clock = Clock::of_children()?;
    let status = Command::new(program).args(rest).status().map_err(|e| format!("{name}: {e}"))?;
    let outcome = clock.stop(0, 0)?;
    if status.success() { Ok(outcome) } else { Err(format!("{name}: {status}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_taken_while_the_clock_runs_is_told_from_what_was_there() {
        let clock = Clock::start().expect("getrusage");
        // This is more memory than the process has ever used, even in other tests.
        let taken = vec![1_u8; clock.rss_before_bytes as usize + (32 << 20)];
        let outcome = clock.stop(std::hint::black_box(&taken).len() as u64, 0).expect("getrusage");
        assert!(outcome.memory_bytes >= 32 << 20, "{outcome:?}");
        assert_eq!(outcome.bytes, taken.len() as u64);
    }

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn time_and_memory_of_a_command_are_those_of_its_children() {
        let outcome = run(&words(&["sh", "-c", "head -c 1000000 /dev/zero | wc -c >&2"]));
        let outcome = outcome.expect("a shell");
        assert!(outcome.elapsed_s > 0.0 && outcome.memory_bytes > 0, "{outcome:?}");
    }

    #[test]
    fn a_child_that_has_ended_is_counted() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
        let outcome = run(&words(&["sh", "-c", script])).expect("a shell");
        assert!(outcome.cpu_s > 0.0, "{outcome:?}");
    }

    #[test]
    fn a_command_that_fails_or_is_not_there_is_named() {
        let message = run(&words(&["sh", "-c", "exit 3"])).expect_err("failed").to_string();
        assert_eq!(message, "sh: exit status: 3");
        let message = run(&words(&["no-such-program"])).expect_err("not there").to_string();
        assert_eq!(message, "no-such-program: No such file or directory (os error 2)");
    }
}
