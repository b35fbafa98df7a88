//! What appending came to.

use crate::clock::Outcome;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// How long something took that was done many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// How often.
    pub count: u64,
    /// Half of them took no longer, in nanoseconds.
    pub p50_ns: u64,
    /// And 99 % of them.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What appending came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Appended {
    /// Bytes of the messages alone, time, CPU time, memory.
    pub outcome: Outcome,
    /// How many messages.
    pub messages: u64,
    /// From a message handed over until it was durable, where each was waited for.
    pub latency: Option<Latency>,
    /// One flush, where each was made by itself.
    pub flush: Option<Latency>,
}

impl Latency {
    /// Of what was timed; `None` where nothing was.
    pub fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        (!histogram.is_empty()).then(|| Latency {
            count: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        })
    }

    fn json(&self) -> Value {
        let Latency { count, p50_ns, p99_ns, max_ns } = self;
        json!({ "count": count, "p50": p50_ns, "p99": p99_ns, "max": max_ns })
    }
}

impl Appended {
    /// One line: that of the outcome, with more keys.
    pub fn json(&self) -> String {
        let mut value = self.outcome.value();
        value["messages"] = self.messages.into();
        for (key, latency) in [("latency_ns", self.latency), ("flush_ns", self.flush)] {
            if let Some(latency) = latency {
                value[key] = latency.json();
            }
        }
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_holds_all_and_leaves_out_what_was_not_timed() {
        let outcome = Outcome {
            bytes: 1000,
            elapsed_s: 0.5,
            cpu_s: 0.25,
            max_rss_bytes: 4096,
            rss_before_bytes: 1024,
        };
        let latency = Some(Latency { count: 3, p50_ns: 1, p99_ns: 2, max_ns: 4 });
        let appended = Appended { outcome, messages: 3, latency, flush: None };
        let value: Value = serde_json::from_str(&appended.json()).expect("JSON");
        assert_eq!(value["messages"], 3);
        assert_eq!(value["elapsed_s"], 0.5);
        assert_eq!(value["latency_ns"], json!({ "count": 3, "p50": 1, "p99": 2, "max": 4 }));
        assert!(value.get("flush_ns").is_none());
    }

    #[test]
    fn nothing_timed_has_no_latency() {
        let mut histogram = Histogram::new(3).expect("three digits");
        assert_eq!(Latency::of(&histogram), None);
        (1..=100).for_each(|ns| histogram.record(ns).expect("it grows"));
        let latency = Latency { count: 100, p50_ns: 50, p99_ns: 99, max_ns: 100 };
        assert_eq!(Latency::of(&histogram), Some(latency));
    }
}
