//! Two results held against each other: what changed, by how much, and how sure that is.

mod differ;
mod gate;
mod pair;
mod ratio;
mod rows;
#[cfg(test)]
mod tests;

pub use gate::fail_if_slower;
pub use pair::{allowable, is_allowable};

use crate::Error;
use crate::document::{Document, Finding, Program, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name and version of the comparison's own document.
pub const SCHEMA: &str = "wrote.compare/1";

/// A result held against an older one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// `wrote.compare/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The older result.
    pub old: Side,
    /// The newer one.
    pub new: Side,
    /// What differs between the programs, the machines and what lies under the paths.
    pub differences: Vec<Difference>,
    /// The rows that did the same work on both sides.
    pub rows: Vec<RowComparison>,
    /// The rows that were not compared, with the reason.
    pub not_compared: Vec<NotCompared>,
    /// What else must be known to read the ratios.
    pub notes: Vec<String>,
    /// The two results themselves, old and new, where both were measured for this comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Document>,
}

/// One of the two results.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The file's name, or the settings by which this side differs from the other.
    pub name: String,
    /// The command line that measured it; empty where it is not known.
    pub command: Vec<String>,
    /// When its run began, RFC 3339 in UTC; empty where it is not known.
    pub started_at: String,
    /// The program that measured it.
    pub wrote: Program,
    /// Its findings that say that numbers mean less than they seem to.
    pub warnings: Vec<Finding>,
}

/// Something that is not the same on both sides. A value that a side does not have is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The key, as in `wrote.result/1`: `host.kernel`, `asked.iodepth`.
    pub key: String,
    /// What it is in the old result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<serde_json::Value>,
    /// What it is in the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<serde_json::Value>,
}

/// What can be said of a difference.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The new side is faster.
    Faster,
    /// The new side is slower.
    Slower,
    /// What differs may be chance.
    NoDetectableDifference,
    /// A side has a single run, so that nothing is known of chance.
    OneRun,
}

/// What a row's verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The throughput.
    Throughput,
    /// The 99th percentile of the latency: of rows that are held to a rate, whose throughput is that
    /// rate.
    P99LatencyNs,
}

/// One row, on both sides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowComparison {
    /// Its name: of the old side.
    pub name: String,
    /// Its name on the new side, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// The scenario.
    pub scenario: String,
    /// The group in which it is compared with others.
    pub workload: String,
    /// Bytes of one operation, where all are of one size, the same on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bs_bytes: Option<u64>,
    /// Whether it became faster.
    pub verdict: Verdict,
    /// What the verdict rests on.
    pub by: Measure,
    /// File bytes per second.
    pub throughput_bytes_per_s: Change,
    /// The 99th percentile of the latency of one operation, in nanoseconds: where each run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_latency_ns: Option<Change>,
    /// What differs between the two all the same, because it was allowed, or in what was in effect.
    pub differences: Vec<Difference>,
}

/// How a figure changed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The median over the old side's runs.
    pub old: f64,
    /// The median over the new side's runs.
    pub new: f64,
    /// `new / old`.
    pub ratio: f64,
    /// The lower end of the ratio's 95 % interval; none where a side has a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95_low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95_high: Option<f64>,
    /// How likely a difference as great is where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// How many runs the old side has.
    pub old_runs: u32,
    /// How many runs the new side has.
    pub new_runs: u32,
    /// What can be said of it, in view of how many rows are compared.
    pub verdict: Verdict,
}

/// A row that was not compared.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotCompared {
    /// Its name.
    pub name: String,
    /// Why not.
    pub because: Because,
    /// What makes it other work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

/// Why a row was not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// The two are not the same work.
    OtherWork,
    /// The new result has no such row.
    OnlyInOld,
    /// The old result has no such row.
    OnlyInNew,
    /// In a run nothing was transferred, so there is no ratio.
    NothingMoved,
}

/// Which settings may differ in rows that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// These keys of the settings, as in `wrote.result/1` or without their unit: `iodepth`, `bs`.
    Only(Vec<String>),
    /// All: what differs was varied on purpose.
    Everything,
}

/// Holds `new` against `old`, row by row; no setting may differ.
///
/// # Errors
///
/// [`Error::Failed`] where the two have no row in common that did the same work: it names what differs.
pub fn compare(old: &Document, new: &Document) -> Result<Comparison, Error> {
    compare_allowing(old, new, &Allowed::Only(Vec::new()))
}

/// Holds `new` against `old`, row by row, where some settings may differ.
///
/// Rows are paired by their names; where something is allowed to differ also by their places, in a
/// workload in which no name is on both sides and each has as many rows.
///
/// # Errors
///
/// As [`compare`].
pub fn compare_allowing(
    old: &Document,
    new: &Document,
    allowed: &Allowed,
) -> Result<Comparison, Error> {
    let paired = pair::rows(old, new, allowed);
    let compared = rows::compared(&paired);
    if compared.rows.is_empty() {
        return Err(nothing_in_common(&compared.not_compared));
    }
    Ok(Comparison {
        schema: SCHEMA.into(),
        old: side("OLD", old),
        new: side("NEW", new),
        differences: differ::documents(old, new),
        notes: rows::notes(&paired, &compared.rows),
        rows: compared.rows,
        not_compared: compared.not_compared,
        results: Vec::new(),
    })
}

fn side(name: &str, document: &Document) -> Side {
    let warns = |finding: &&Finding| finding.severity == Severity::Warning;
    Side {
        name: name.into(),
        command: document.command.clone(),
        started_at: document.started_at.clone(),
        wrote: document.wrote.clone(),
        warnings: document.findings.iter().filter(warns).cloned().collect(),
    }
}

/// Why there is nothing to compare: the first row that is on both sides, else rows of each.
fn nothing_in_common(not_compared: &[NotCompared]) -> Error {
    if let Some(row) = not_compared.iter().find(|row| !row.differences.is_empty()) {
        let differences: Vec<String> = row.differences.iter().map(Difference::to_string).collect();
        let (name, differences) = (&row.name, differences.join("; "));
        return Error::Failed(format!(
            "no row did the same work in OLD and NEW; {name}: {differences} (--allow KEY compares them \
             all the same)"
        ));
    }
    if let Some(row) = not_compared.iter().find(|row| row.because == Because::NothingMoved) {
        return Error::Failed(format!("nothing to compare: a run of {} moved nothing", row.name));
    }
    let one = |because: Because| {
        let row = not_compared.iter().find(|row| row.because == because);
        row.map_or("nothing", |row| row.name.as_str())
    };
    Error::Failed(format!(
        "OLD and NEW have no row in common: OLD has {}, NEW has {}",
        one(Because::OnlyInOld),
        one(Because::OnlyInNew)
    ))
}

impl std::fmt::Display for Difference {
    /// `asked.iodepth is 4 in OLD and 64 in NEW`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (old, new) = (shown(self.old.as_ref()), shown(self.new.as_ref()));
        write!(formatter, "{} is {old} in OLD and {new} in NEW", self.key)
    }
}

/// A value of a result in one line: text without quotes, `none` of what is not there.
pub fn shown(value: Option<&serde_json::Value>) -> String {
    match value {
        None => "none".into(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(serde_json::Value::Array(values)) => {
            values.iter().map(|value| shown(Some(value))).collect::<Vec<_>>().join(",")
        }
        // 9 rather than 9.0.
        Some(serde_json::Value::Number(number)) if number.is_f64() => {
            number.as_f64().unwrap_or_default().to_string()
        }
        Some(other) => other.to_string(),
    }
}

/// The JSON Schema of [`Comparison`].
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Comparison).into()
}
