//! `cargo xtask fuzz`: feeds a fuzzer's streams to the parsers of the server.

use clap::ValueEnum;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::report::Report;
use lab::tools::repository::{cargo, target};
use lab::tools::run::{Finished, HANG, Show, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub const SECONDS: u32 = 30;
/// The fuzzer's crate.
pub const MANIFEST: &str = "fuzz/Cargo.toml";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The compiler flags that count the passes over each edge, so that the fuzzer recognizes a new
/// path through the code.
const INSTRUMENTS: &str = "-Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table \
     -Zsanitizer=address";
/// The maximum length of an input, in bytes, sufficient for dozens of messages.
const INPUT_BYTES_MAX: usize = 1024;

/// The code that is fuzzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// Streams are cut into messages by lines, counts, NUL and lengths
    Frames,
    /// Sessions of RELP are parsed
    Relp,
    /// Requests of RESP are parsed
    Resp,
}

impl Subject {
    /// Returns the subject's name on the command line, which is also its program's name.
    fn word(self) -> String {
        let value = self.to_possible_value().expect("no subject is hidden");
        value.get_name().to_owned()
    }

    /// Returns the step's name in a report.
    pub fn step(self) -> String {
        format!("fuzzer of {}", self.word())
    }
}

/// Fuzz a parser of the server.
#[derive(clap::Args)]
pub struct Arguments {
    #[arg(value_enum, default_value_t = Subject::Frames)]
    subject: Subject,
    /// Run for this number of seconds.
    #[arg(long, value_name = "N", default_value_t = SECONDS)]
    seconds: u32,
    /// Run one input that an earlier run kept.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
}

/// Builds the fuzzer and runs it.
pub fn fuzz(arguments: &Arguments) -> Result<(), Failure> {
    // The fuzzer links a C++ library.
    packages::install(&["c++"])?;
    let mut report = Report::default();
    let subject = arguments.subject;
    report.step(&subject.step(), || match &arguments.input {
        Some(input) => again(subject, input),
        None => run_for(subject, arguments.seconds),
    })?;
    report.finish()
}

/// Builds the fuzzer and runs it for `seconds`.
///
/// The inputs are kept in `target/fuzz` for the next run.
pub fn run_for(subject: Subject, seconds: u32) -> Result<(), Failure> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Failure::Skipped("the fuzzer was tried on x86_64 alone".to_owned()));
    }
    let program = build(subject)?;
    let corpus = folder(&format!("corpus-{}", subject.word()))?;
    let found = folder(&format!("found-{}", subject.word()))?;
    let mut command = Command::new(program);
    command
        .arg(format!("-max_total_time={seconds}"))
        .args([&format!("-max_len={INPUT_BYTES_MAX}"), "-len_control=0"])
        // A stream is at most 1 KiB long, so an allocation of 64 MiB is a defect.
        .args(["-malloc_limit_mb=64", "-rss_limit_mb=2048", "-timeout=20"])
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args(["-print_final_stats=1", "-use_cmp=0"])
        .arg(&corpus);
    let limit = Duration::from_secs(u64::from(seconds)) + HANG;
    judge(subject, &run(&mut command, limit, Show::Live)?)
}

fn again(subject: Subject, input: &Path) -> Result<(), Failure> {
    let input = std::path::absolute(input).tried(input.display())?;
    let mut command = Command::new(build(subject)?);
    command.arg(input);
    judge(subject, &run(&mut command, HANG, Show::Live)?)
}

/// Builds the fuzzer with the stable compiler, as the tests with AddressSanitizer are built.
fn build(subject: Subject) -> Result<PathBuf, Failure> {
    let arguments = ["build", "--release", "--manifest-path", MANIFEST, "--target", TARGET];
    let mut command = cargo(&arguments);
    let folder = target().join("fuzz");
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", INSTRUMENTS)
        .env("CARGO_TARGET_DIR", &folder);
    run(&mut command, HANG, Show::Live)?.success("the fuzzer's build")?;
    Ok(folder.join(TARGET).join("release").join(subject.word()))
}

fn folder(name: &str) -> Result<PathBuf, Failure> {
    let folder = target().join("fuzz").join(name);
    std::fs::create_dir_all(&folder).tried(folder.display())?;
    Ok(folder)
}

/// Prints the number of inputs that the fuzzer tried. Fails if the fuzzer failed, and names the
/// input if it was kept.
fn judge(subject: Subject, finished: &Finished) -> Result<(), Failure> {
    let after = |what: &str| {
        let lines = finished.stderr.lines().rev();
        lines.filter_map(|line| line.split_once(what)).map(|(_, value)| value.trim()).next()
    };
    if let Some(trouble) = &finished.trouble {
        let kept = after("Test unit written to ").map_or_else(String::new, |path| {
            format!("; the input is kept: cargo xtask fuzz {} --input {path}", subject.word())
        });
        return Err(Failure::Failed(format!("the fuzzer: {trouble}{kept}")));
    }
    if let Some(runs) = after("stat::number_of_executed_units:") {
        eprintln!("xtask: {runs} inputs tried");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(trouble: Option<&str>, stderr: &str) -> Finished {
        Finished {
            trouble: trouble.map(str::to_owned),
            exit_code: None,
            stdout: String::new(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn an_input_that_fails_is_named_with_what_runs_it_again() {
        let said = "artifact_prefix='/t/'; Test unit written to /t/crash-0a\nBase64: AA==\n";
        let failure =
            judge(Subject::Relp, &finished(Some("exit code 77"), said)).expect_err("it failed");
        assert_eq!(
            failure.to_string(),
            "the fuzzer: exit code 77; the input is kept: cargo xtask fuzz relp --input /t/crash-0a"
        );
    }
}
