//! fio's document (fio 3, `--output-format=json`), as far as it is read.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
pub(super) struct Output {
    #[serde(rename = "fio version")]
    pub version: String,
    #[serde(default)]
    pub timestamp: i64,
    #[serde(default, rename = "global options")]
    pub global: BTreeMap<String, Value>,
    pub jobs: Vec<OutputJob>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputJob {
    pub jobname: String,
    #[serde(default)]
    pub groupid: u32,
    /// An errno, if it failed.
    #[serde(default)]
    pub error: i64,
    #[serde(default, rename = "job options")]
    pub options: BTreeMap<String, Value>,
    pub read: OutputPart,
    pub write: OutputPart,
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

#[derive(Debug, Default, Deserialize)]
pub(super) struct OutputPart {
    #[serde(default)]
    pub io_bytes: u64,
    /// Since fio 3; earlier versions have rates in KiB/s alone.
    pub bw_bytes: f64,
    #[serde(default)]
    pub iops: f64,
    /// Milliseconds.
    #[serde(default)]
    pub runtime: f64,
    #[serde(default)]
    pub total_ios: u64,
    #[serde(default)]
    pub clat_ns: Option<OutputLatency>,
    #[serde(default)]
    pub lat_ns: Option<OutputLatency>,
}

/// Latencies in nanoseconds.
#[derive(Debug, Deserialize)]
pub(super) struct OutputLatency {
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
