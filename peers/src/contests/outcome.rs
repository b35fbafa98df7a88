//! The figures of one run of a program, the parsers of its output, and the units of figures.

use lab::tools::failure::{Failure, Tried};
use serde::Deserialize;

/// The figures of one run of a program. `trial`, `putc` and `rivals` print them as a line of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Outcome {
    /// The number of bytes of the files or messages.
    pub bytes: u64,
    /// The number of reads, writes, saves or messages; 0 if the program does not count them.
    #[serde(default)]
    pub operations: u64,
    /// The time from the first operation to the last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// The CPU time, user and kernel, in seconds.
    pub cpu_s: f64,
    /// The peak resident memory, minus the memory before the clock started, in bytes.
    pub memory_bytes: Option<u64>,
    /// The number of bytes that the kernel counted as written to the device.
    pub device_bytes: Option<u64>,
    /// The time from the start of an append until its message was durable, in nanoseconds.
    pub latency_ns: Option<Percentiles>,
}

/// The median and the 99th percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// A result in fio's JSON layout (`fio --output-format=json`, fio's HOWTO).
#[derive(Deserialize)]
struct FioResult {
    jobs: [FioJob; 1],
}

/// A job in fio's layout, with the time in milliseconds, and the CPU time as a percentage of it.
#[derive(Deserialize)]
struct FioJob {
    error: i32,
    job_runtime: f64,
    usr_cpu: f64,
    sys_cpu: f64,
    read: Option<FioDirection>,
    write: Option<FioDirection>,
}

#[derive(Deserialize)]
struct FioDirection {
    io_bytes: u64,
    total_ios: u64,
    runtime: f64,
}

impl Outcome {
    /// Parses the last line of `stdout`; `what` names the program in errors.
    pub fn of_line(stdout: &str, what: &str) -> Result<Outcome, Failure> {
        let line = stdout.trim_end().lines().last().unwrap_or_default();
        serde_json::from_str(line).tried(format!("the outcome of {what}"))
    }

    /// Parses the only job of a result in fio's layout, printed by `program`. The CPU time covers
    /// only the job's own thread.
    pub fn of_fio(stdout: &str, program: &str) -> Result<Outcome, Failure> {
        // Messages may precede the document, and the line of JSON that `trial` prints may follow
        // it.
        let json = stdout.find('{').map_or(stdout, |begin| &stdout[begin..]);
        let mut documents = serde_json::Deserializer::from_str(json).into_iter::<FioResult>();
        let nothing = || Failure::Failed(format!("{program} printed no result"));
        let document = documents.next().ok_or_else(nothing)?;
        let FioResult { jobs: [job] } = document.tried(format!("{program}'s result"))?;
        if job.error != 0 {
            return Err(Failure::Failed(format!("{program}: error {}", job.error)));
        }
        let mut outcome = Outcome {
            cpu_s: (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime / 1e3,
            ..Outcome::default()
        };
        for direction in [job.read, job.write].into_iter().flatten() {
            outcome.bytes += direction.io_bytes;
            outcome.operations += direction.total_ios;
            outcome.elapsed_s = outcome.elapsed_s.max(direction.runtime / 1e3);
        }
        if outcome.bytes == 0 || outcome.elapsed_s <= 0.0 {
            return Err(Failure::Failed(format!("{program} read and wrote nothing")));
        }
        Ok(outcome)
    }
}

/// A unit of rates, together with the unit of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// MB/s, and CPU seconds per GB.
    Stream,
    /// Thousands of reads per second, and CPU microseconds per read.
    Reads,
    /// Saves per second, and CPU microseconds per save.
    Saves,
    /// Files per second, and CPU microseconds per file.
    Files,
    /// Thousands of messages per second, and CPU microseconds per message.
    Messages,
    /// Milliseconds per opening or search.
    Time,
}

/// The number of bytes in a MiB.
pub const MIB: f64 = (1 << 20) as f64;

impl Unit {
    /// Returns the titles of the columns for the rate and the CPU time.
    pub fn heads(self) -> [&'static str; 2] {
        match self {
            Unit::Stream => ["MB/s", "CPU s/GB"],
            Unit::Reads => ["kIOPS", "CPU µs/read"],
            Unit::Saves => ["saves/s", "CPU µs/save"],
            Unit::Files => ["files/s", "CPU µs/file"],
            Unit::Messages => ["k/s", "CPU µs/message"],
            Unit::Time => ["ms", ""],
        }
    }

    /// Returns the rate of a run.
    pub fn rate(self, run: &Outcome) -> f64 {
        match self {
            Unit::Stream => run.bytes as f64 / run.elapsed_s / 1e6,
            Unit::Reads | Unit::Messages => run.operations as f64 / run.elapsed_s / 1e3,
            Unit::Saves | Unit::Files => run.operations as f64 / run.elapsed_s,
            Unit::Time => run.elapsed_s * 1e3 / run.operations as f64,
        }
    }

    /// Returns the CPU time of a run; `None` if the unit has no CPU time.
    pub fn cpu(self, run: &Outcome) -> Option<f64> {
        match self {
            Unit::Stream => Some(run.cpu_s / (run.bytes as f64 / 1e9)),
            Unit::Reads | Unit::Saves | Unit::Files | Unit::Messages => {
                Some(run.cpu_s * 1e6 / run.operations as f64)
            }
            Unit::Time => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"bytes":1000,"cpu_s":0.25,"elapsed_s":0.5,"memory_bytes":4000}"#;
    const RESULT: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
  {"fio version": "fio-3.33", "jobs": [{"jobname": "peer", "error": 0, "job_runtime": 800,
  "usr_cpu": 10.0, "sys_cpu": 15.0,
  "read": {"io_bytes": 0, "runtime": 0, "bw_bytes": 0, "total_ios": 0},
  "write": {"io_bytes": 1073741824, "runtime": 800, "bw_bytes": 1342177280, "total_ios": 2048}}]}"#;

    #[test]
    fn the_outcome_is_the_last_line_and_memory_is_what_came_on_top() {
        let text = format!("{{\"jobs\": []}}\nnote\n{LINE}\n");
        let expected = Outcome {
            bytes: 1000,
            elapsed_s: 0.5,
            cpu_s: 0.25,
            memory_bytes: Some(4000),
            ..Outcome::default()
        };
        assert_eq!(Outcome::of_line(&text, "copy").expect("one"), expected);
    }

    #[test]
    fn messages_are_counted_and_timed_where_the_line_says_so() {
        let keys = r#","operations":20,"latency_ns":{"p50":5,"p99":9,"max":9}}"#;
        let outcome = Outcome::of_line(&LINE.replace('}', keys), "append").expect("one");
        assert_eq!(outcome.operations, 20);
        assert_eq!(outcome.latency_ns, Some(Percentiles { p50: 5, p99: 9 }));
    }

    #[test]
    fn a_line_without_an_outcome_names_its_program() {
        let message = Outcome::of_line("{}", "cp").expect_err("empty").to_string();
        assert!(message.starts_with("the outcome of cp: missing field `bytes`"), "{message}");
        let message = Outcome::of_line("", "cp").expect_err("nothing").to_string();
        assert!(message.starts_with("the outcome of cp: "), "{message}");
    }

    #[test]
    fn bytes_operations_time_and_cpu_time_are_read() {
        let outcome = Outcome::of_fio(RESULT, "fio").expect("a result");
        assert_eq!((outcome.bytes, outcome.operations), (1 << 30, 2048));
        assert_eq!(outcome.elapsed_s, 0.8);
        assert!((outcome.cpu_s - 0.2).abs() < 1e-9);
    }

    #[test]
    fn reads_count_as_writes_do() {
        let swapped = RESULT.replace("read", "other").replace("write", "read");
        let outcome = Outcome::of_fio(&swapped, "wrote").expect("a result");
        assert_eq!((outcome.bytes, outcome.operations, outcome.elapsed_s), (1 << 30, 2048, 0.8));
    }

    #[test]
    fn lines_after_the_result_are_not_part_of_it() {
        let outcome = Outcome::of_fio(&format!("{RESULT}\n{LINE}\n"), "wrote").expect("a result");
        assert_eq!(outcome, Outcome::of_fio(RESULT, "wrote").expect("a result"));
        let message = Outcome::of_fio("", "wrote").expect_err("empty").to_string();
        assert_eq!(message, "wrote printed no result");
    }

    #[test]
    fn an_error_of_the_job_is_an_error() {
        let failed = RESULT.replace(r#""error": 0"#, r#""error": 28"#);
        assert_eq!(
            Outcome::of_fio(&failed, "fio").expect_err("failed").to_string(),
            "fio: error 28"
        );
    }

    #[test]
    fn a_result_that_lacks_something_says_what_and_whose_it_is() {
        let message = Outcome::of_fio("{}", "wrote").expect_err("empty").to_string();
        assert!(message.starts_with("wrote's result: missing field `jobs`"), "{message}");
        let without = RESULT.replace("total_ios", "ios");
        let message = Outcome::of_fio(&without, "fio").expect_err("no figures").to_string();
        assert!(message.starts_with("fio's result: missing field `total_ios`"), "{message}");
    }

    #[test]
    fn a_job_that_did_nothing_is_no_result() {
        let message = Outcome::of_fio(&RESULT.replace("1073741824", "0"), "fio").expect_err("none");
        assert_eq!(message.to_string(), "fio read and wrote nothing");
    }
}
