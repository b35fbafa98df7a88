//! Readers of the results of `wrote bench` and `wrote run`, `wrote.result/1`.

pub use lab::runs::result_rows as rows;

use super::outcome::{Outcome, Percentiles};
use lab::tools::failure::{Failure, Tried};
use serde::Deserialize;
use serde_json::Value;

/// Reads the first run of the row `name`, and the state of its blocks when the clock started. Fails
/// if the row fell back, because it then did other work than its peer.
pub fn run(stdout: &str, name: &str) -> Result<(Outcome, String), Failure> {
    let document = parse(stdout)?;
    let row = rows(&document).find(|row| row["name"] == name);
    let row = row.ok_or_else(|| lacks(name, "such row"))?;
    check_effective(row, name)?;
    let blocks = row["settings"]["effective"]["blocks"].as_str();
    let blocks = blocks.ok_or_else(|| lacks(name, "settings.effective.blocks"))?;
    Ok((outcome(row, name)?, blocks.to_owned()))
}

/// Reads the first run of a row; `name` stands in the failure.
fn outcome(row: &Value, name: &str) -> Result<Outcome, Failure> {
    let run = &row["runs"][0];
    let number = |key: &str| run[key].as_f64().ok_or_else(|| lacks(name, key));
    Ok(Outcome {
        bytes: run["bytes"].as_u64().ok_or_else(|| lacks(name, "bytes"))?,
        elapsed_s: number("elapsed_s")?,
        cpu_s: number("cpu_user_s")? + number("cpu_system_s")?,
        ..Outcome::default()
    })
}

/// Reads the only row of a result, with its latency and the memory of the whole process; `name`
/// stands in the failure.
pub fn only_row(stdout: &str, name: &str) -> Result<Outcome, Failure> {
    check_fallbacks(stdout, name)?;
    let document = parse(stdout)?;
    let row = rows(&document).next().ok_or_else(|| lacks(name, "row"))?;
    let outcome = outcome(row, name)?;
    let run = &row["runs"][0];
    Ok(Outcome {
        operations: (run["iops"].as_f64().unwrap_or(0.0) * outcome.elapsed_s).round() as u64,
        memory_bytes: run["max_rss_bytes"].as_u64(),
        latency_ns: Percentiles::deserialize(&run["latency_ns"]).ok(),
        ..outcome
    })
}

/// Makes the failure of a result that lacks something.
fn lacks(name: &str, what: &str) -> Failure {
    Failure::Failed(format!("{name}: the result has no {what}"))
}

/// Fails if any row of a result fell back from its settings.
pub fn check_fallbacks(stdout: &str, name: &str) -> Result<(), Failure> {
    let document = parse(stdout)?;
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

/// Finds the row with the best median among those named `prefix…`; returns the rest of its name.
pub fn best(stdout: &str, prefix: &str) -> Result<String, Failure> {
    let document = parse(stdout)?;
    let cells = rows(&document).filter_map(|row| {
        let median = row["throughput_bytes_per_s"]["median"].as_f64()?;
        Some((median, row["name"].as_str()?.strip_prefix(prefix)?.to_owned()))
    });
    let best = cells.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map(|(_, cell)| cell)
        .ok_or_else(|| Failure::Failed(format!("the result of wrote bench has no {prefix}…")))
}

/// Reads a result of the command `wrote`.
pub fn parse(stdout: &str) -> Result<Value, Failure> {
    serde_json::from_str(stdout).tried("the result of wrote")
}

/// Reads where a result was measured: "Linux 6.18.0, 2 x Some CPU, ext4 on vda1 (Disk)".
pub fn place(stdout: &str) -> Result<String, Failure> {
    let document = parse(stdout)?;
    let (host, target) = (&document["host"], &document["target"]);
    let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let device = &target["device"];
    let device = match (device.is_object(), device["model"].as_str()) {
        (false, _) => "no block device".to_owned(),
        (true, Some(model)) => format!("{} ({model})", word(&device["name"])),
        (true, None) => word(&device["name"]),
    };
    let words = [&host["kernel"], &host["cpu_model"], &target["filesystem"]].map(word);
    let ([kernel, model, filesystem], cpus) = (words, &host["cpus"]);
    Ok(format!("Linux {kernel}, {cpus} x {model}, {filesystem} on {device}"))
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
        let (outcome, blocks) = run(RESULT, "stream/direct-io_uring").expect("a result");
        assert_eq!(outcome.bytes, 1000);
        assert_eq!(outcome.elapsed_s, 0.5);
        assert!((outcome.cpu_s - 0.3).abs() < 1e-9);
        assert_eq!(blocks, "allocated");
        let place = place(RESULT).expect("a result");
        assert_eq!(place, "Linux 6.18.0, 2 x Some CPU, ext4 on vda1 (Disk)");
    }

    #[test]
    fn a_row_that_fell_back_is_no_comparison() {
        let fell = RESULT.replace(
            r#""fallbacks": []"#,
            r#""fallbacks": [{"wanted": "io_uring", "got": "threads", "because": "no"}]"#,
        );
        let message = run(&fell, "stream/direct-io_uring").expect_err("fell back").to_string();
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
        let message = run(RESULT, "small/other").expect_err("not there").to_string();
        assert_eq!(message, "small/other: the result has no such row");
    }

    #[test]
    fn the_best_is_the_one_with_the_best_median() {
        let row = |name: &str, median: u64| {
            format!(r#"{{"name": "{name}", "throughput_bytes_per_s": {{"median": {median}}}}}"#)
        };
        let rows = [
            row("peak/write/128k-8-plain", 100),
            row("peak/write/2m-64-sqpoll", 300),
            row("peak/write/512k-8-registered", 200),
            row("peak/read/512k-8-registered", 900),
        ];
        let result = format!(r#"{{"scenarios": [{{"rows": [{}]}}]}}"#, rows.join(","));
        assert_eq!(best(&result, "peak/write/").expect("a best"), "2m-64-sqpoll");
        let message = best("{}", "peak/write/").expect_err("no rows").to_string();
        assert_eq!(message, "the result of wrote bench has no peak/write/…");
    }
}
