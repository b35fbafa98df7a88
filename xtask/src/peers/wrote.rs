//! Runs `wrote bench` and reads its result, `wrote.result/1`.

use super::file::Blocks;
use super::measured::Measured;
use crate::failure::{Failure, Tried};
use crate::run::{Show, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5 * 60);

/// One row of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The row's name.
    pub only: &'static str,
    /// Options that set its size and shape.
    pub settings: &'static [&'static str],
}

/// The command `wrote`.
#[derive(Debug)]
pub struct Wrote {
    /// Its release build.
    pub program: PathBuf,
}

/// What one run said.
#[derive(Debug, PartialEq)]
pub struct WroteRun {
    /// What it came to.
    pub measured: Measured,
    /// What the file's blocks were when the clock started.
    pub blocks: Blocks,
    /// Where it was measured.
    pub place: Place,
}

/// Where it was measured.
#[derive(Debug, PartialEq)]
pub struct Place {
    /// The kernel's release.
    pub kernel: String,
    /// The processor and how many of it.
    pub cpus: String,
    /// The file system's type.
    pub filesystem: String,
    /// The block device.
    pub device: String,
}

/// What is run where only the place is of interest: it is over at once.
const SMALL: Job = Job { only: "stream/cached", settings: &["--size", "16M"] };

impl Wrote {
    /// Where `folder` is.
    pub fn place(&self, folder: &Path) -> Result<Place, Failure> {
        self.run(&SMALL, folder).map(|run| run.place)
    }

    /// Runs `job` once below `folder`.
    pub fn run(&self, job: &Job, folder: &Path) -> Result<WroteRun, Failure> {
        let mut command = Command::new(&self.program);
        command.arg("bench").arg(folder).args(arguments(job));
        let finished = run(&mut command, LIMIT, Show::Quiet)?.success(job.only)?;
        parse(&finished.stdout, job.only)
    }
}

/// The command as one would type it.
pub fn describe(job: &Job) -> String {
    format!("wrote bench DIR {}", arguments(job).join(" "))
}

fn arguments(job: &Job) -> Vec<&'static str> {
    [&["--only", job.only], job.settings, &["--runs", "1", "--format", "json"]].concat()
}

/// Reads the row called `name`; a row that fell back did something else than its peer, which is a
/// failure.
fn parse(stdout: &str, name: &str) -> Result<WroteRun, Failure> {
    let document: Value = serde_json::from_str(stdout).tried("the result of wrote bench")?;
    let lacks = |what: &str| Failure::Failed(format!("{name}: the result has no {what}"));
    let row = rows(&document).find(|row| row["name"] == name).ok_or_else(|| lacks("such row"))?;
    check_effective(row, name)?;
    let run = &row["runs"][0];
    let number = |key: &str| run[key].as_f64().ok_or_else(|| lacks(key));
    let measured = Measured {
        bytes: run["bytes"].as_u64().ok_or_else(|| lacks("bytes"))?,
        elapsed_s: number("elapsed_s")?,
        cpu_s: number("cpu_user_s")? + number("cpu_system_s")?,
    };
    let blocks = row["settings"]["effective"]["blocks"].as_str().and_then(Blocks::parse);
    let blocks = blocks.ok_or_else(|| lacks("settings.effective.blocks"))?;
    Ok(WroteRun { measured, blocks, place: place(&document) })
}

/// Fails where any row of a result, of whichever command, fell back from what it was told to do.
pub fn check_fallbacks(stdout: &str, name: &str) -> Result<(), Failure> {
    let document: Value = serde_json::from_str(stdout).tried(format!("the result of {name}"))?;
    let mut rows = rows(&document).peekable();
    if rows.peek().is_none() {
        return Err(Failure::Failed(format!("{name}: the result has no rows")));
    }
    rows.try_for_each(|row| check_effective(row, name))
}

fn check_effective(row: &Value, name: &str) -> Result<(), Failure> {
    let lacks = || Failure::Failed(format!("{name}: the result has no fallbacks"));
    let fallbacks = row["settings"]["fallbacks"].as_array().ok_or_else(lacks)?;
    fallbacks.first().map_or(Ok(()), |fallback| {
        let (wanted, because) = (&fallback["wanted"], &fallback["because"]);
        Err(Failure::Failed(format!("{name}: {wanted} was not to be had: {because}")))
    })
}

fn rows(document: &Value) -> impl Iterator<Item = &Value> {
    let scenarios = document["scenarios"].as_array().into_iter().flatten();
    scenarios.filter_map(|scenario| scenario["rows"].as_array()).flatten()
}

fn place(document: &Value) -> Place {
    let (host, target) = (&document["host"], &document["target"]);
    let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let device = match target["device"].as_object() {
        Some(device) => match device.get("model").and_then(Value::as_str) {
            Some(model) => format!("{} ({model})", word(&device["name"])),
            None => word(&device["name"]),
        },
        None => "no block device".to_owned(),
    };
    Place {
        kernel: word(&host["kernel"]),
        cpus: format!("{} x {}", host["cpus"], word(&host["cpu_model"])),
        filesystem: word(&target["filesystem"]),
        device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"schema": "wrote.result/1",
      "host": {"kernel": "6.18.0", "cpu_model": "Some CPU", "cpus": 2},
      "target": {"filesystem": "ext4", "device": {"name": "vda1", "model": "Disk"}},
      "scenarios": [{"name": "ladder", "rows": [{"name": "stream/direct-io_uring",
        "settings": {"asked": {}, "effective": {"blocks": "allocated"}, "fallbacks": []},
        "runs": [{"bytes": 1000, "elapsed_s": 0.5, "cpu_user_s": 0.1, "cpu_system_s": 0.2}]}]}]}"#;

    #[test]
    fn the_run_its_blocks_and_its_place_are_read() {
        let run = parse(RESULT, "stream/direct-io_uring").expect("a result");
        assert_eq!(run.measured.bytes, 1000);
        assert_eq!(run.measured.elapsed_s, 0.5);
        assert!((run.measured.cpu_s - 0.3).abs() < 1e-9);
        assert_eq!(run.blocks, Blocks::Allocated);
        assert_eq!(run.place.device, "vda1 (Disk)");
        assert_eq!(run.place.cpus, "2 x Some CPU");
    }

    #[test]
    fn a_row_that_fell_back_is_no_comparison() {
        let fell = RESULT.replace(
            r#""fallbacks": []"#,
            r#""fallbacks": [{"wanted": "io_uring", "got": "threads", "because": "no"}]"#,
        );
        let message = parse(&fell, "stream/direct-io_uring").expect_err("fell back").to_string();
        assert_eq!(message, "stream/direct-io_uring: \"io_uring\" was not to be had: \"no\"");
    }

    #[test]
    fn a_result_without_fallbacks_is_known_from_one_that_has_some_or_says_nothing() {
        check_fallbacks(RESULT, "job.fio").expect("none");
        let fell = RESULT.replace(
            r#""fallbacks": []"#,
            r#""fallbacks": [{"wanted": "polling", "got": "interrupts", "because": "no queues"}]"#,
        );
        let message = |text: &str| check_fallbacks(text, "job.fio").expect_err("no").to_string();
        assert_eq!(message(&fell), "job.fio: \"polling\" was not to be had: \"no queues\"");
        assert_eq!(message("{}"), "job.fio: the result has no rows");
    }

    #[test]
    fn a_row_that_is_not_there_is_named() {
        let message = parse(RESULT, "small/other").expect_err("not there").to_string();
        assert_eq!(message, "small/other: the result has no such row");
    }
}
