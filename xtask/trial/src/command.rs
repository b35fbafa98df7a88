//! A command with all its children, from its start to its end.

use crate::Result;
use crate::clock::{Clock, Who};
use crate::outcome::Outcome;
use std::ffi::OsString;
use std::process::Command;

/// Runs `command`, and fails if it does.
pub fn run(command: &[OsString]) -> Result<Outcome> {
    let (program, rest) = command.split_first().ok_or("no command")?;
    let name = program.display();
    let clock = Clock::start(Who::Children)?;
    let status = Command::new(program).args(rest).status().map_err(|e| format!("{name}: {e}"))?;
    let outcome = clock.stop(0, 0)?;
    if status.success() { Ok(outcome) } else { Err(format!("{name}: {status}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
