//! Runs `trial` and C's `putc`, which do one piece of work one way and say what it came to.

use super::measured::Measured;
use crate::failure::{Failure, Tried};
use crate::repository::{release, root, target};
use crate::run::{Show, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20 * 60);
const CC_LIMIT: Duration = Duration::from_secs(60);

/// What one piece of work came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Bytes, time and CPU time.
    pub measured: Measured,
    /// Resident memory at its peak, in bytes, less what was there before the clock started: of a
    /// program of our own that is the data that it writes, of a command nothing.
    pub memory_bytes: u64,
    /// How many messages; 0 where it was no matter of messages.
    pub messages: u64,
    /// From a message handed over until it was durable, where each was waited for.
    pub latency: Option<Latency>,
    /// One flush, where each was timed by itself.
    pub flush: Option<Latency>,
}

/// How long something took that was done many times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// And 99 % of them.
    pub p99_ns: u64,
}

#[cfg(test)]
impl Outcome {
    /// Of what was no matter of messages.
    pub fn new(measured: Measured, memory_bytes: u64) -> Outcome {
        Outcome { measured, memory_bytes, messages: 0, latency: None, flush: None }
    }
}

/// The programs.
#[derive(Debug)]
pub struct Trials {
    /// `trial`, where it is whatever the current folder.
    pub trial: PathBuf,
    /// C's, likewise.
    pub putc: PathBuf,
}

impl Trials {
    /// Builds both: `trial` in release, C's with `cc -O2`.
    pub fn build() -> Result<Trials, Failure> {
        let trial = release("trial", "trial")?;
        let trial = std::path::absolute(&trial).tried(trial.display())?;
        let putc = target().join("release/putc");
        let putc = std::path::absolute(&putc).tried(putc.display())?;
        compile(&root().join("xtask/trial/putc.c"), &putc)?;
        Ok(Trials { trial, putc })
    }

    /// A piece of work of `trial`'s with the current folder `folder`.
    pub fn work(&self, words: &[&str], folder: &Path) -> Result<Outcome, Failure> {
        outcome_of(Command::new(&self.trial).args(words).current_dir(folder), words)
    }

    /// C's: `bytes` bytes one by one into `file` below `folder`.
    pub fn putc(&self, file: &str, bytes: u64, folder: &Path) -> Result<Outcome, Failure> {
        let words = [file, &bytes.to_string()];
        outcome_of(Command::new(&self.putc).args(words).current_dir(folder), &["putc"])
    }

    /// A whole command, which moves `bytes`, with the current folder `folder`.
    pub fn command(&self, words: &[&str], bytes: u64, folder: &Path) -> Result<Outcome, Failure> {
        let all = [&["run", "--"], words].concat();
        let mut command = Command::new(&self.trial);
        let mut outcome = outcome_of(command.args(all).current_dir(folder), words)?;
        outcome.measured.bytes = bytes;
        Ok(outcome)
    }

    /// The words that have another program run by `trial`, which adds its line to the output.
    pub fn under(&self) -> Vec<String> {
        vec![self.trial.to_string_lossy().into_owned(), "run".into(), "--".into()]
    }
}

fn compile(source: &Path, program: &Path) -> Result<(), Failure> {
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(program).arg(source);
    run(&mut command, CC_LIMIT, Show::Live)?.success("cc -O2 xtask/trial/putc.c").map(|_| ())
}

/// Runs `command` and reads what it printed; `words` name it in errors.
pub fn outcome_of(command: &mut Command, words: &[&str]) -> Result<Outcome, Failure> {
    let what = words.join(" ");
    let finished = run(command, LIMIT, Show::Quiet)?.success(&what)?;
    parse(&finished.stdout, &what)
}

/// Reads the last line of what was printed.
pub fn parse(stdout: &str, what: &str) -> Result<Outcome, Failure> {
    let line = stdout.trim_end().lines().last().unwrap_or_default();
    let value: Value = serde_json::from_str(line).tried(format!("the outcome of {what}"))?;
    let lacks = |key: &str| Failure::Failed(format!("the outcome of {what} has no {key}"));
    let whole = |key: &str| value[key].as_u64().ok_or_else(|| lacks(key));
    let number = |key: &str| value[key].as_f64().ok_or_else(|| lacks(key));
    let measured = Measured {
        bytes: whole("bytes")?,
        elapsed_s: number("elapsed_s")?,
        cpu_s: number("cpu_s")?,
    };
    let memory_bytes = whole("max_rss_bytes")?.saturating_sub(whole("rss_before_bytes")?);
    Ok(Outcome {
        measured,
        memory_bytes,
        messages: value["messages"].as_u64().unwrap_or(0),
        latency: Latency::of(&value["latency_ns"]),
        flush: Latency::of(&value["flush_ns"]),
    })
}

impl Latency {
    fn of(value: &Value) -> Option<Latency> {
        Some(Latency { p50_ns: value["p50"].as_u64()?, p99_ns: value["p99"].as_u64()? })
    }
}

/// A script in the place of both programs, for the tests of what calls them.
#[cfg(test)]
pub mod fake {
    use super::Trials;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Each call adds its arguments to the file `calls` in the current folder and takes `elapsed_s`,
    /// or half of it where wrote is called; a file of `bytes` zeros is there where the work leaves
    /// one. A job file is run.
    pub fn trials(folder: &Path, bytes: u64, elapsed_s: f64) -> Trials {
        let path = folder.join("trial");
        let text = format!(
            "#!/bin/sh\necho \"$*\" >> calls\nelapsed_s={elapsed_s}\n\
             case \"$*\" in *' writer '*|*' wrote '*|*/wrote*|*'--by log'*) elapsed_s={};; esac\n\
             case \"$*\" in *.fio*) shift 2; \"$@\";; run*) truncate -s {bytes} copy;; \
             make*) for last; do :; done; truncate -s $3 \"$last\";; esac\n\
             echo '{{\"bytes\":{bytes},\"cpu_s\":0.5,\"elapsed_s\":'$elapsed_s',\
             \"max_rss_bytes\":3145728,\"rss_before_bytes\":1048576,\"messages\":1000,\
             \"latency_ns\":{{\"p50\":1000000,\"p99\":3000000}},\
             \"flush_ns\":{{\"p50\":2000000,\"p99\":3000000}}}}'\n",
            elapsed_s / 2.0
        );
        std::fs::write(&path, text).expect("room");
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, permissions).expect("our own file");
        Trials { trial: path.clone(), putc: path }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"bytes":1000,"cpu_s":0.25,"elapsed_s":0.5,"max_rss_bytes":5000,"rss_before_bytes":1000}"#;

    #[test]
    fn the_outcome_is_the_last_line_and_memory_is_what_came_on_top() {
        let outcome = parse(&format!("{{\"jobs\": []}}\nnote\n{LINE}\n"), "copy").expect("one");
        let measured = Measured { bytes: 1000, elapsed_s: 0.5, cpu_s: 0.25 };
        assert_eq!(outcome, Outcome::new(measured, 4000));
    }

    #[test]
    fn messages_are_counted_and_timed_where_the_line_says_so() {
        let keys = r#","messages":20,"latency_ns":{"p50":5,"p99":9},"flush_ns":{"p50":4,"p99":8}}"#;
        let outcome = parse(&LINE.replace('}', keys), "append").expect("one");
        assert_eq!(outcome.messages, 20);
        assert_eq!(outcome.latency, Some(Latency { p50_ns: 5, p99_ns: 9 }));
        assert_eq!(outcome.flush, Some(Latency { p50_ns: 4, p99_ns: 8 }));
    }

    #[test]
    fn what_is_no_outcome_says_whose_it_is() {
        let message = parse("{}", "cp").expect_err("empty").to_string();
        assert_eq!(message, "the outcome of cp has no bytes");
        let message = parse("", "cp").expect_err("nothing").to_string();
        assert!(message.starts_with("the outcome of cp: "), "{message}");
    }

    #[test]
    fn the_c_program_writes_every_byte_and_removes_its_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let putc = folder.path().join("putc");
        compile(&root().join("xtask/trial/putc.c"), &putc).expect("cc");
        let trials = Trials { trial: PathBuf::from("trial"), putc };
        let outcome = trials.putc("file", 100_000, folder.path()).expect("room");
        assert_eq!(outcome.measured.bytes, 100_000);
        assert!(!folder.path().join("file").exists());
        let missing = trials.putc("no/file", 1, folder.path()).expect_err("no folder");
        assert_eq!(
            missing.to_string(),
            "putc: exit code 1: putc: no/file: No such file or directory"
        );
    }
}
