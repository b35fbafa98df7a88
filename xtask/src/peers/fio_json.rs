//! fio's JSON layout (`fio --output-format=json`, fio's HOWTO), which `wrote run` prints too.

use crate::failure::{Failure, Tried};
use serde_json::Value;

/// What the one job of a result came to, by the program's own account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output {
    /// File bytes read and written.
    pub bytes: u64,
    /// Reads and writes.
    pub operations: u64,
    /// From the first to the last of them, in seconds.
    pub elapsed_s: f64,
    /// CPU seconds, user and kernel, of the job's own thread.
    pub cpu_s: f64,
}

/// Reads the one job of what `program` printed. The layout gives the clock in milliseconds and CPU
/// time as percentages of it.
pub fn parse(stdout: &str, program: &str) -> Result<Output, Failure> {
    // Notes may stand before the document, and what another program says of the run after it.
    let json = stdout.find('{').map_or(stdout, |begin| &stdout[begin..]);
    let mut documents = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let document = documents.next().transpose().tried(format!("{program}'s result"))?;
    let document = document.unwrap_or_default();
    let job = &document["jobs"][0];
    let number = |value: &Value, key: &str| {
        let lacks = || Failure::Failed(format!("{program}'s result has no {key}"));
        value[key].as_f64().ok_or_else(lacks)
    };
    if number(job, "error")? != 0.0 {
        return Err(Failure::Failed(format!("{program}: error {}", job["error"])));
    }
    let mut output = Output { bytes: 0, operations: 0, elapsed_s: 0.0, cpu_s: 0.0 };
    for direction in ["read", "write"].map(|name| &job[name]).into_iter().filter(|d| !d.is_null()) {
        output.bytes += number(direction, "io_bytes")? as u64;
        output.operations += number(direction, "total_ios")? as u64;
        output.elapsed_s = output.elapsed_s.max(number(direction, "runtime")? / 1e3);
    }
    if output.bytes == 0 || output.elapsed_s <= 0.0 {
        return Err(Failure::Failed(format!("{program} read and wrote nothing")));
    }
    let cpu_share = (number(job, "usr_cpu")? + number(job, "sys_cpu")?) / 100.0;
    output.cpu_s = cpu_share * number(job, "job_runtime")? / 1e3;
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"fio version": "fio-3.33", "jobs": [{"jobname": "peer", "error": 0, "job_runtime": 800,
  "usr_cpu": 10.0, "sys_cpu": 15.0,
  "read": {"io_bytes": 0, "runtime": 0, "bw_bytes": 0, "total_ios": 0},
  "write": {"io_bytes": 1073741824, "runtime": 800, "bw_bytes": 1342177280, "total_ios": 2048}}]}"#;

    #[test]
    fn bytes_operations_time_and_cpu_time_are_read() {
        let output = parse(RESULT, "fio").expect("a result");
        assert_eq!((output.bytes, output.operations), (1 << 30, 2048));
        assert_eq!(output.elapsed_s, 0.8);
        assert!((output.cpu_s - 0.2).abs() < 1e-9);
    }

    #[test]
    fn reads_count_as_writes_do() {
        let swapped = RESULT.replace("read", "other").replace("write", "read");
        let output = parse(&swapped, "wrote").expect("a result");
        assert_eq!((output.bytes, output.operations, output.elapsed_s), (1 << 30, 2048, 0.8));
    }

    #[test]
    fn what_comes_after_the_result_is_not_part_of_it() {
        let output = parse(&format!("{RESULT}\n{{\"bytes\":0}}\n"), "wrote").expect("a result");
        assert_eq!(output, parse(RESULT, "wrote").expect("a result"));
        let message = parse("", "wrote").expect_err("empty").to_string();
        assert_eq!(message, "wrote's result has no error");
    }

    #[test]
    fn an_error_of_the_job_is_an_error() {
        let failed = RESULT.replace(r#""error": 0"#, r#""error": 28"#);
        assert_eq!(parse(&failed, "fio").expect_err("failed").to_string(), "fio: error 28");
    }

    #[test]
    fn a_result_that_lacks_something_says_what_and_whose_it_is() {
        let message = parse("{}", "wrote").expect_err("empty").to_string();
        assert_eq!(message, "wrote's result has no error");
        let message = parse(&RESULT.replace("total_ios", "ios"), "fio").expect_err("no figures");
        assert_eq!(message.to_string(), "fio's result has no total_ios");
    }

    #[test]
    fn a_job_that_did_nothing_is_no_result() {
        let message = parse(&RESULT.replace("1073741824", "0"), "fio").expect_err("nothing");
        assert_eq!(message.to_string(), "fio read and wrote nothing");
    }
}
