//! Parsers of the results of `wrote bench` and `wrote run`, `wrote.result/1`. It is a separate file
//! because the peers print other formats.

pub use lab::runs::result_rows as rows;

use super::outcome::{Outcome, Percentiles};
use lab::tools::failure::{Failure, Tried};
use serde::Deserialize;
use serde_json::Value;

/// Parses the only row of a result, with its latency and the memory of the whole process. `name`
/// identifies the row in errors.
pub fn only_row(stdout: &str, name: &str) -> Result<Outcome, Failure> {
    check_fallbacks(stdout, name)?;
    let document = parse(stdout)?;
    let run = &rows(&document).next().expect("it was checked")["runs"][0];
    let lacks = |key: &str| Failure::Failed(format!("{name}: the result has no {key}"));
    let number = |key: &str| run[key].as_f64().ok_or_else(|| lacks(key));
    let elapsed_s = number("elapsed_s")?;
    Ok(Outcome {
        bytes: run["bytes"].as_u64().ok_or_else(|| lacks("bytes"))?,
        elapsed_s,
        cpu_s: number("cpu_user_s")? + number("cpu_system_s")?,
        operations: (run["iops"].as_f64().unwrap_or(0.0) * elapsed_s).round() as u64,
        memory_bytes: run["max_rss_bytes"].as_u64(),
        latency_ns: Percentiles::deserialize(&run["latency_ns"]).ok(),
        ..Outcome::default()
    })
}

/// Fails if any row of a result fell back from its settings, because it would then have done
/// different work from its peer.
pub fn check_fallbacks(stdout: &str, name: &str) -> Result<(), Failure> {
    let document = parse(stdout)?;
    let mut rows = rows(&document).peekable();
    if rows.peek().is_none() {
        return Err(Failure::Failed(format!("{name}: the result has no rows")));
    }
    rows.try_for_each(|row| {
        let lacks = || Failure::Failed(format!("{name}: the result has no fallbacks"));
        let fallbacks = row["settings"]["fallbacks"].as_array().ok_or_else(lacks)?;
        fallbacks.first().map_or(Ok(()), |fallback| {
            let (wanted, because) = (&fallback["wanted"], &fallback["because"]);
            Err(Failure::Failed(format!("{name}: {wanted} was not to be had: {because}")))
        })
    })
}

/// Parses a result of the command `wrote`.
fn parse(stdout: &str) -> Result<Value, Failure> {
    serde_json::from_str(stdout).tried("the result of wrote")
}

/// Returns a description of where a result was measured: "Linux 6.18.0, 2 x Some CPU, ext4 on vda1
/// (Disk)".
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
        "settings": {"asked": {}, "effective": {}, "fallbacks": []},
        "runs": [{"bytes": 1000, "elapsed_s": 0.5, "cpu_user_s": 0.1, "cpu_system_s": 0.2}]}]}]}"#;

    #[test]
    fn the_run_and_its_place_are_read() {
        let outcome = only_row(RESULT, "job.fio").expect("a result");
        assert_eq!(outcome.bytes, 1000);
        assert_eq!(outcome.elapsed_s, 0.5);
        assert!((outcome.cpu_s - 0.3).abs() < 1e-9);
        let place = place(RESULT).expect("a result");
        assert_eq!(place, "Linux 6.18.0, 2 x Some CPU, ext4 on vda1 (Disk)");
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
}
