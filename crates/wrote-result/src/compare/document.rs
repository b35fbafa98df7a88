//! The document of a comparison.

use crate::document::{Document, Finding, Program};
use itertools::Itertools;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// The name and version of the document of a comparison.
pub const SCHEMA: &str = "wrote.compare/1";

/// The comparison of a result with an older one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// `wrote.compare/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The older result.
    pub old: Side,
    /// The newer result.
    pub new: Side,
    /// The differences between the programs, the machines and the targets.
    pub differences: Vec<Difference>,
    /// The rows that did the same work on both sides.
    pub rows: Vec<RowComparison>,
    /// The rows that were not compared, with the reasons.
    pub not_compared: Vec<NotCompared>,
    /// Facts that a reader of the ratios needs to know.
    pub notes: Vec<String>,
    /// The two results, the old one first, if both were measured for this comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Document>,
}

/// One of the two results.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The name of the result's file, or the settings that differ on this side.
    pub name: String,
    /// The command line that measured the result; empty if it is unknown.
    pub command: Vec<String>,
    /// The start of the run, RFC 3339 in UTC; empty if it is unknown.
    pub started_at: String,
    /// The program that measured the result.
    pub wrote: Program,
    /// The findings of severity `warning`.
    pub warnings: Vec<Finding>,
}

/// A value that differs between the two sides. The value of a side that lacks it is left out.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The key, as in `wrote.result/1`: `host.kernel`, `asked.iodepth`.
    pub key: String,
    /// The value in the old result.
    pub old: Option<Value>,
    /// The value in the new result.
    pub new: Option<Value>,
}

/// The conclusion from a difference.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The new side is faster.
    Faster,
    /// The new side is slower.
    Slower,
    /// The difference may be due to chance.
    NoDetectableDifference,
    /// A side has a single run, so that the influence of chance is unknown.
    OneRun,
}

/// The figure that decides a row's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The throughput.
    Throughput,
    /// The 99th percentile of the latency. It decides for rows at a rate, whose throughput is that
    /// rate.
    P99LatencyNs,
}

/// A row on both sides.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowComparison {
    /// The name of the row on the old side.
    pub name: String,
    /// The name of the row on the new side, if it differs.
    pub new_name: Option<String>,
    /// The scenario.
    pub scenario: String,
    /// The group of rows that the row is compared with.
    pub workload: String,
    /// The bytes per operation, if all operations on both sides have the same size.
    pub bs_bytes: Option<u64>,
    /// The conclusion.
    pub verdict: Verdict,
    /// The figure that decides the verdict.
    pub by: Measure,
    /// File bytes per second.
    pub throughput_bytes_per_s: Change,
    /// The 99th percentile of the latency of one operation, in nanoseconds, if every run has one.
    pub p99_latency_ns: Option<Change>,
    /// The differences that were allowed, or that are in the effective settings.
    pub differences: Vec<Difference>,
}

/// The change of a figure.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The median over the old side's runs.
    pub old: f64,
    /// The median over the new side's runs.
    pub new: f64,
    /// `new / old`.
    pub ratio: f64,
    /// The lower end of the ratio's 95 % interval; absent if a side has a single run.
    pub ci95_low: Option<f64>,
    /// The upper end of the ratio's 95 % interval.
    pub ci95_high: Option<f64>,
    /// The probability of such a difference by chance.
    pub p_value: Option<f64>,
    /// The number of runs of the old side.
    pub old_runs: u32,
    /// The number of runs of the new side.
    pub new_runs: u32,
    /// The conclusion, which depends on the number of compared rows, too.
    pub verdict: Verdict,
}

/// A row that was not compared.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotCompared {
    /// The name of the row.
    pub name: String,
    /// The reason.
    pub because: Because,
    /// The differences in the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

/// The reason for not comparing a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// The two rows did different work.
    OtherWork,
    /// The new result has no such row.
    OnlyInOld,
    /// The old result has no such row.
    OnlyInNew,
    /// A run transferred no bytes, so there is no ratio.
    NothingMoved,
}

impl std::fmt::Display for Difference {
    /// Writes `asked.iodepth is 4 in OLD and 64 in NEW`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (old, new) = (shown(self.old.as_ref()), shown(self.new.as_ref()));
        write!(formatter, "{} is {old} in OLD and {new} in NEW", self.key)
    }
}

/// Returns a value of a result on one line: text without quotes, and `none` for a missing value.
pub fn shown(value: Option<&Value>) -> String {
    match value {
        None => "none".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) => values.iter().map(|value| shown(Some(value))).join(","),
        // This prints 9 instead of 9.0.
        Some(Value::Number(number)) if number.is_f64() => {
            number.as_f64().unwrap_or_default().to_string()
        }
        Some(other) => other.to_string(),
    }
}
