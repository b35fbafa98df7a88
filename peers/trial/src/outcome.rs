//! The figures of a piece of work, and their line of JSON. It is a separate file because every kind
//! of work returns such figures.

use crate::Result;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::process::ExitCode;

/// The figures of a piece of work. A key that does not apply is omitted from the line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The number of bytes of the file or the messages; 0 if the program does not count them.
    pub bytes: u64,
    /// The number of saves or messages; 0 if the work has neither.
    pub operations: u64,
    /// The time until the bytes were as safe as requested, in seconds.
    pub elapsed_s: f64,
    /// The CPU time, user and kernel, in seconds.
    pub cpu_s: f64,
    /// The peak resident memory of the largest process, minus the peak before the clock started
    /// (the program and the data to write), in bytes.
    pub memory_bytes: u64,
    /// The number of bytes that the kernel counted as written to the device while the clock ran
    /// (`getrusage(2)`, ru_oublock). A write through the page cache is counted when it makes pages
    /// dirty.
    pub device_bytes: u64,
    /// The time from the start of an append until its message was durable, if producers wait for
    /// their messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Percentiles>,
}

/// Percentiles of durations, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// The number of durations.
    pub count: u64,
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
}

impl Outcome {
    /// Returns the figures as a line of JSON.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

/// Prints the line of a piece of work, or the error of `program`.
pub fn print(program: &str, outcome: Result<Outcome>) -> ExitCode {
    match outcome.and_then(|outcome| outcome.json()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Percentiles {
    /// Returns the percentiles of a histogram; `None` if it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Option<Percentiles> {
        (!histogram.is_empty()).then(|| Percentiles {
            count: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTCOME: Outcome = Outcome {
        bytes: 1000,
        operations: 0,
        elapsed_s: 0.5,
        cpu_s: 0.25,
        memory_bytes: 4096,
        device_bytes: 512,
        latency_ns: None,
    };

    #[test]
    fn an_outcome_is_one_line_with_units_in_its_keys() {
        let expected = "{\"bytes\":1000,\"operations\":0,\"elapsed_s\":0.5,\"cpu_s\":0.25,\
                        \"memory_bytes\":4096,\"device_bytes\":512}";
        assert_eq!(OUTCOME.json().expect("JSON"), expected);
    }

    #[test]
    fn one_line_holds_all_and_leaves_out_what_was_not_timed() {
        let latency_ns = Some(Percentiles { count: 3, p50: 1, p99: 2 });
        let line = Outcome { operations: 3, latency_ns, ..OUTCOME }.json().expect("JSON");
        assert!(line.contains(r#""operations":3,"elapsed_s":0.5,"#), "{line}");
        let latency = r#","latency_ns":{"count":3,"p50":1,"p99":2}}"#;
        assert!(line.ends_with(latency), "{line}");
    }

    #[test]
    fn nothing_timed_has_no_latency() {
        let mut histogram = Histogram::new(3).expect("three digits");
        assert_eq!(Percentiles::of(&histogram), None);
        (1..=100).for_each(|ns| histogram.record(ns).expect("it grows"));
        let expected = Percentiles { count: 100, p50: 50, p99: 99 };
        assert_eq!(Percentiles::of(&histogram), Some(expected));
    }
}
