//! fio's document (fio 3, `--output-format=json`), as one of ours.

use super::findings as imported;
use super::options::Options;
use super::rows::{self, Batch};
use super::{neither, refused};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use wrote_result::Error;
use wrote_result::document::{Document, Host, Program, Row, SCHEMA, Scenario, Target};

/// What is read of fio's document.
#[derive(Debug, Deserialize)]
struct Output {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(default)]
    timestamp: i64,
    #[serde(default, rename = "global options")]
    global: BTreeMap<String, Value>,
    jobs: Vec<Job>,
}

/// What is read of a job.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub jobname: String,
    #[serde(default)]
    pub groupid: u32,
    /// An errno, where it failed.
    #[serde(default)]
    pub error: i64,
    #[serde(default, rename = "job options")]
    pub options: BTreeMap<String, Value>,
    pub read: Direction,
    pub write: Direction,
    /// Milliseconds of all the entry's threads, added up.
    #[serde(default)]
    pub job_runtime: f64,
    /// Percent of that.
    #[serde(default)]
    pub usr_cpu: f64,
    #[serde(default)]
    pub sys_cpu: f64,
    #[serde(default)]
    pub ctx: u64,
    /// Percent of the operations at each depth.
    #[serde(default)]
    pub iodepth_level: BTreeMap<String, f64>,
}

/// What is read of a direction.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Direction {
    #[serde(default)]
    pub io_bytes: u64,
    /// There since fio 3; before, rates were in KiB/s alone.
    pub bw_bytes: f64,
    #[serde(default)]
    pub iops: f64,
    /// Milliseconds.
    #[serde(default)]
    pub runtime: f64,
    #[serde(default)]
    pub total_ios: u64,
    #[serde(default)]
    pub clat_ns: Option<Latency>,
    #[serde(default)]
    pub lat_ns: Option<Latency>,
}

/// fio's latencies.
#[derive(Debug, Deserialize)]
pub(super) struct Latency {
    #[serde(default)]
    pub min: u64,
    #[serde(default)]
    pub max: u64,
    #[serde(default)]
    pub mean: f64,
    #[serde(default, rename = "N")]
    pub count: u64,
    #[serde(default)]
    pub percentile: BTreeMap<String, u64>,
}

/// The document: one scenario, a row for each job and direction, its `numjobs` together.
pub(super) fn document(name: &str, value: Value) -> Result<Document, Error> {
    if value.get("jobs").is_none() {
        let what = if value.get("client_stats").is_some() {
            "is fio's result of several machines (client_stats), which is not read"
        } else {
            return Err(neither(name));
        };
        return Err(refused(name, what));
    }
    let output: Output = serde_json::from_value(value)
        .map_err(|error| refused(name, &format!("is not the JSON of fio 3: {error}")))?;
    let mut rows: Vec<Row> = Vec::new();
    let mut unflushed = Vec::new();
    let mut failed = Vec::new();
    for batch in Batch::all_of(&output.jobs) {
        let job = batch.first();
        let options = Options::new(&output.global, &job.options);
        if let Some(failure) = batch.iter().find(|job| job.error != 0) {
            failed.push((job.jobname.clone(), format!("fio: error {}", failure.error)));
            continue;
        }
        for mut row in rows::rows(&batch, &options) {
            row.name = free(&row.name, &rows);
            unflushed.extend(imported::Unflushed::of(&row, options.flag("fsync_on_close")));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(refused(name, "no job in it has read or written anything"));
    }
    let mut findings = imported::find(&unflushed, &failed);
    wrote_result::finding::sort(&mut findings);
    Ok(Document {
        schema: SCHEMA.into(),
        wrote: Program { version: output.version, commit: None, debug_build: false },
        started_at: jiff::Timestamp::from_second(output.timestamp)
            .map(|time| time.to_string())
            .unwrap_or_default(),
        elapsed_s: rows.iter().flat_map(|row| &row.runs).map(|run| run.elapsed_s).sum(),
        command: Vec::new(),
        host: Host::default(),
        target: Target::default(),
        scenarios: vec![Scenario {
            name: "fio".into(),
            question: "What did fio's jobs do?".into(),
            rows,
            knee: None,
        }],
        findings,
        advice: Vec::new(),
    })
}

/// The name, with a number where it is taken.
fn free(wanted: &str, rows: &[Row]) -> String {
    let numbered = (2..).map(|number| format!("{wanted}#{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    let is_free = |name: &String| !rows.iter().any(|row| row.name == *name);
    names.find(is_free).expect("there is no end of numbers")
}
