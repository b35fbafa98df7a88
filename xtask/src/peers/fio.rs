//! Runs fio and reads its JSON (`fio --output-format=json`, fio's HOWTO).

use super::file::PeerFile;
use super::measured::Measured;
use crate::failure::{Failure, Tried};
use crate::run::{Show, run as run_command};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5 * 60);
/// What every job has. fio makes no file for itself: its state is ours to choose.
const COMMON: [&str; 5] =
    ["--name=peer", "--rw=write", "--fallocate=none", "--eta=never", "--output-format=json"];

/// Writes `file` once with fio.
pub fn run(arguments: &[&str], file: &PeerFile) -> Result<Measured, Failure> {
    let mut command = Command::new("fio");
    command.args(COMMON).args(arguments).arg(format!("--size={}", file.size_bytes()));
    command.arg(format!("--filename={}", file.path().display()));
    parse(&run_command(&mut command, LIMIT, Show::Quiet)?.success("fio")?.stdout)
}

/// The command as one would type it.
pub fn describe(arguments: &[&str], file: &PeerFile) -> String {
    let size = file.size_bytes();
    format!("fio {} {} --size={size} --filename=FILE", COMMON.join(" "), arguments.join(" "))
}

/// `fio-3.33`.
pub fn version() -> Result<String, Failure> {
    let finished = run_command(Command::new("fio").arg("--version"), LIMIT, Show::Quiet)?;
    Ok(finished.success("fio --version")?.stdout.trim().to_owned())
}

/// Reads the one job of a result. fio gives its clock in milliseconds and CPU time as percentages
/// of it.
fn parse(stdout: &str) -> Result<Measured, Failure> {
    // Notes may stand before the document.
    let json = stdout.find('{').map_or(stdout, |begin| &stdout[begin..]);
    let document: Value = serde_json::from_str(json).tried("fio's result")?;
    let job = &document["jobs"][0];
    let write = &job["write"];
    let number = |value: &Value, key: &str| {
        value[key].as_f64().ok_or_else(|| Failure::Failed(format!("fio's result has no {key}")))
    };
    if number(job, "error")? != 0.0 {
        return Err(Failure::Failed(format!("fio: error {}", job["error"])));
    }
    let elapsed_s = number(write, "runtime")? / 1e3;
    let cpu_share = (number(job, "usr_cpu")? + number(job, "sys_cpu")?) / 100.0;
    let bytes = number(write, "io_bytes")? as u64;
    if bytes == 0 || elapsed_s <= 0.0 {
        return Err(Failure::Failed("fio wrote nothing".into()));
    }
    Ok(Measured { bytes, elapsed_s, cpu_s: cpu_share * number(job, "job_runtime")? / 1e3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"fio version": "fio-3.33", "jobs": [{"jobname": "peer", "error": 0, "job_runtime": 800,
  "usr_cpu": 10.0, "sys_cpu": 15.0,
  "write": {"io_bytes": 1073741824, "runtime": 800, "bw_bytes": 1342177280}}]}"#;

    #[test]
    fn bytes_time_and_cpu_time_are_read() {
        let measured = parse(RESULT).expect("a result");
        assert_eq!(measured.bytes, 1 << 30);
        assert_eq!(measured.elapsed_s, 0.8);
        assert!((measured.cpu_s - 0.2).abs() < 1e-9);
    }

    #[test]
    fn an_error_of_the_job_is_an_error() {
        let failed = RESULT.replace(r#""error": 0"#, r#""error": 28"#);
        assert_eq!(parse(&failed).expect_err("failed").to_string(), "fio: error 28");
    }

    #[test]
    fn a_result_that_lacks_something_says_what() {
        let message = parse("{}").expect_err("empty").to_string();
        assert_eq!(message, "fio's result has no error");
    }
}
