//! The result of a comparison of languages: one JSON document, `wrote.langs/1`.
//!
//! Keys carry their units, and a key that does not apply is left out, never null.

use crate::document::{
    Host, Interval, Latency, Program, Ranks, Spread, Survives, SurvivesWord, Target,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{As, DisplayFromStr, skip_serializing_none};

/// The name and version of this format.
pub const SCHEMA: &str = "wrote.langs/1";

/// The result of one comparison.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// `wrote.langs/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The program that measured.
    pub wrote: Program,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// How long the run took, in seconds.
    pub elapsed_s: f64,
    /// The command line, as given.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// The processes that measured together, where there were several: a run is one program on each
    /// of them.
    pub ranks: Option<Ranks>,
    /// Every requested language, also if it is not installed.
    pub languages: Vec<Language>,
    /// One for each path, in the given order.
    pub places: Vec<Place>,
}

/// A language with one of its programs: a language with two usual ways occurs twice.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Language {
    /// Unique: `cpp`, `cpp-get-put`.
    pub id: String,
    /// The displayed name: `C++ get/put`.
    pub name: String,
    /// How its program writes bytes: `BufWriter, 8 KiB`.
    pub way: String,
    /// How it reads them, unless `way` describes that: `BufReader, 8 KiB`.
    pub reads: Option<String>,
    /// How it appends lines, unless `way` describes that: `BufferedWriter, 8 KiB`.
    pub lines: Option<String>,
    /// Whether it was run.
    pub state: State,
    /// The version line of its compiler or interpreter: `go version go1.26 linux/amd64`.
    pub version: Option<String>,
    /// Why it was not run: the missing programs, or its compiler's message.
    pub because: Option<String>,
    /// How it is installed, where it is missing: `apt install ruby`.
    pub install: Option<String>,
}

/// Whether a language can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its toolchain is installed, and its program was built or needs no build.
    Ready,
    /// Its toolchain is not installed.
    Missing,
    /// Its toolchain is installed, and could not build the program.
    BuildFailed,
}

/// The measurements in one folder.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The disk under the path.
    pub target: Target,
    /// The drive's own rate, measured in the same run; none if there is no direct I/O, no room for
    /// its file, or nothing to measure against it: only texts are saved.
    pub drive: Option<Drive>,
    /// The workloads, in the order they ran. A workload that can't run here is left out: cold reads
    /// where the page cache keeps the file.
    pub workloads: Vec<Workload>,
}

/// The drive's own rate: the fastest cells of the scenario `peak`, by direct I/O.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// The cell that wrote fastest: `peak/write/512k-64-registered`.
    pub write_row: String,
    /// Its writes, in bytes per second.
    pub write_bytes_per_s: Interval,
    /// The cell that read fastest.
    pub read_row: String,
    /// Its reads, in bytes per second.
    pub read_bytes_per_s: Interval,
}

/// One table: the same work by every language.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// `bytes/write`, `bytes/read`, `bytes/read-cold`, `save/500`, `save-sync/500`, `lines`.
    pub name: String,
    /// The work of each program, in words.
    pub words: String,
    /// Bytes of one timing: the file of `bytes` and `lines`, the text of a save. Where each
    /// language moves as much as it can in its time, the longest run's; `runs` has each.
    pub bytes: u64,
    /// The place of the bytes while the clock ran.
    pub cache: Cache,
    /// The level that the bytes survive when the clock stops (M3); reads have none.
    #[serde(default, with = "As::<Option<DisplayFromStr>>")]
    #[schemars(with = "Option<SurvivesWord>")]
    pub survives: Option<Survives>,
    /// One for each language that did it, the fastest first; of saves by the median save.
    pub rows: Vec<Row>,
    /// The languages that failed, with the reason. None of them is in `rows`.
    pub failures: Vec<Failure>,
}

/// The place of a workload's bytes while its clock runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Cache {
    /// Written or read through the page cache: nothing waited for the drive.
    #[serde(rename = "page cache")]
    PageCache,
    /// Read from the page cache as far as it reached, and the rest from the drive.
    #[serde(rename = "partly page cache")]
    PartlyPageCache,
    /// Read from the drive.
    #[serde(rename = "dropped")]
    Dropped,
    /// Flushed to the drive inside the clock.
    #[serde(rename = "synced")]
    Synced,
}

crate::words::word!(Cache);

/// The figures of one language.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its id.
    pub language: String,
    /// Each run, in order, including the dropped ones.
    pub runs: Vec<Run>,
    /// Bytes per second over the runs that are not dropped: the median and its 95 % interval.
    pub throughput_bytes_per_s: Interval,
    /// The bytes of all runs that are not dropped over their time.
    pub throughput_mean_bytes_per_s: f64,
    /// CPU seconds, user and system, of all its processes per gigabyte (10^9 bytes), their start
    /// included: the median of the runs that are not dropped.
    pub cpu_s_per_gb: f64,
    /// The peak of resident memory, in bytes: the largest of all runs.
    pub max_rss_bytes: Option<u64>,
    /// The latency of one save, by the program's own clock, over all runs that are not dropped;
    /// only of saves.
    pub latency_ns: Option<Latency>,
}

impl Row {
    /// Returns the file bytes of a run that is not dropped, over all timings.
    pub fn run_bytes(&self) -> Option<u64> {
        self.runs.iter().filter(|run| !run.dropped).map(|run| run.bytes).next_back()
    }
}

/// One run of one program: one process.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// File bytes, over all timings.
    pub bytes: u64,
    /// Seconds by the program's own clock, from opening the file to closing it; the sum of several
    /// timings.
    pub elapsed_s: f64,
    /// Seconds by our clock, from the start of the process to its end.
    pub process_s: f64,
    /// CPU seconds in user space, of the whole process.
    pub cpu_user_s: f64,
    /// CPU seconds in the kernel for it.
    pub cpu_system_s: f64,
    /// The peak of resident memory, in bytes, where a reading came in time.
    pub max_rss_bytes: Option<u64>,
    /// Bytes that any program wrote to the block device during the run (M7).
    pub device_written_bytes: Option<u64>,
    /// Bytes that any program read from it during the run.
    pub device_read_bytes: Option<u64>,
    /// Whether it is a first run, to warm up, which is in no figure.
    pub dropped: bool,
    /// The spread of the ranks, in runs by several. Operations are timings.
    pub ranks: Option<Spread>,
}

/// A language that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Its id.
    pub language: String,
    /// The failure, one line: `the file's byte 12345 is 7, not 57`, `took longer than 15 min`.
    pub because: String,
}

impl Language {
    /// How it does a workload's work: for `bytes/read`, how it reads.
    pub fn way_of(&self, workload: &str) -> &str {
        let own = match workload {
            "lines" => &self.lines,
            name if name.starts_with("bytes/read") => &self.reads,
            _ => &None,
        };
        own.as_ref().unwrap_or(&self.way)
    }
}

/// The JSON Schema (2020-12) of [`Document`].
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Document).to_value()
}
