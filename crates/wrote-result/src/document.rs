//! The result: one JSON document, `wrote.result/1`, which `docs/results.md` describes.
//!
//! Keys contain their units. A key that does not apply is left out; it is never null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

mod fit;
mod language;
mod row;
mod settings;
mod sustained;
mod words;

pub use crate::stats::{Interval, Latency};
pub use fit::{Beside, Fit, FitRule, FitVerdict};
pub use language::{Language, State};
pub use row::{Cell, CpuBusy, Reached, Records, Row, Run, View, fastest};
pub use settings::{BlockShare, Fallback, Settings, SettingsPair};
pub use sustained::{CHANGED_SHARE_MAX, Change, SAMPLES_MIN, Sample, SteadyState, Sustained};
pub(crate) use words::SurvivesWord;
pub use words::{Blocks, CrashLeaves, Direction, Flush, Ioengine, Process, SourceCache, Torn};
pub use wrote::Survives;

/// The name and version of this format.
pub const SCHEMA: &str = "wrote.result/1";

/// The result of one run of `wrote`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Document {
    /// `wrote.result/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The program that made the measurement.
    pub wrote: Program,
    /// The time at which the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// The duration of the run, in seconds.
    pub elapsed_s: f64,
    /// The source of the result; absent in results that are older than this key.
    pub source: Option<Source>,
    /// The command line, as given.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// The disk under the path; with several ranks, under rank 0's path.
    pub target: Target,
    /// The processes that measured together, if there were several.
    pub ranks: Option<Ranks>,
    /// The scenarios that were measured.
    pub scenarios: Vec<Scenario>,
    /// The main figures, each with the simplest method that reaches it; absent if the scenarios
    /// answer no such question.
    pub answers: Option<Vec<Answer>>,
    /// Whether the disk suits programs, if requested (`wrote fit`).
    pub fit: Option<Vec<Fit>>,
    /// Every requested language, even if it is not installed (`wrote langs`).
    pub languages: Option<Vec<Language>>,
    /// The findings on the run, in addition to the figures.
    pub findings: Vec<Finding>,
    /// Advice on how to write to this disk.
    pub advice: Vec<Advice>,
}

/// The source of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `wrote bench`.
    Bench,
    /// `wrote fit`.
    Fit,
    /// `wrote langs`.
    Langs,
    /// `wrote run`.
    Run,
    /// A result in fio's format, which lacks some of our keys: from fio, or from
    /// `wrote run --format fio-json`.
    Fio,
}

/// The program that made the measurement.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Program {
    /// The version of the program.
    pub version: String,
    /// The commit that the program was built from, if it is known.
    pub commit: Option<String>,
    /// Whether the program was built with debug assertions, which makes the CPU figures worthless.
    pub debug_build: bool,
}

/// The machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Host {
    /// The host's name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The name of the processor, as the processor states it.
    pub cpu_model: String,
    /// The number of CPUs that the process may use.
    pub cpus: u32,
    /// The size of the main memory, in bytes.
    pub memory_bytes: u64,
    /// The hypervisor or the container; `none` if none is visible.
    pub virtualization: String,
    /// Whether the process may use io_uring: `yes`, or the kernel's reason why not.
    pub io_uring: String,
    /// The kernel's clock source: `tsc`.
    pub clocksource: Option<String>,
    /// The time that one reading of the clock takes, in nanoseconds.
    pub clock_read_ns: Option<f64>,
}

/// The disk under the path.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Target {
    /// The folder that was measured.
    pub path: String,
    /// The type of the file system.
    pub filesystem: String,
    /// The mount options of the file system.
    pub mount_options: Vec<String>,
    /// The size of the file system, in bytes.
    pub capacity_bytes: u64,
    /// The number of bytes that were available to an ordinary user before the run.
    pub free_bytes: u64,
    /// The unit of the offset and the length of a direct transfer.
    pub dio_offset_align_bytes: Option<u32>,
    /// The unit of the memory address of a direct transfer.
    pub dio_memory_align_bytes: Option<u32>,
    /// The minimum size of a write that a power loss leaves either complete or undone
    /// (`RWF_ATOMIC`), in bytes.
    pub atomic_write_bytes_min: Option<u32>,
    /// The maximum size of such a write, in bytes.
    pub atomic_write_bytes_max: Option<u32>,
    /// The maximum size of such a write that the device itself keeps intact, in bytes. The file
    /// system writes longer ones to new blocks.
    pub atomic_write_device_bytes_max: Option<u32>,
    /// Whether ext4 keeps a journal on this disk, if the kernel reports it.
    pub has_journal: Option<bool>,
    /// The block device, if there is one.
    pub device: Option<Device>,
    /// The reason why there is no block device, if there is none.
    pub no_device_because: Option<String>,
    /// The limits that the control groups of this process set on the device and the CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
}

/// A block device and its queue, as the kernel describes them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Device {
    /// The kernel's name for the device that holds the file system: `sda1`, `dm-0`.
    pub name: String,
    /// The whole disks below the device, if it is a partition or a mapped device: `sda`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<String>,
    /// The model, as the device states it.
    pub model: Option<String>,
    /// The size of the device, in bytes.
    pub capacity_bytes: u64,
    /// Whether the kernel treats the device as a rotational disk.
    pub rotational: bool,
    /// The I/O scheduler in use.
    pub scheduler: String,
    /// The smallest unit that the device addresses, in bytes.
    pub logical_block_bytes: u32,
    /// The smallest unit that the device writes without reading first, in bytes.
    pub physical_block_bytes: u32,
    /// The size of transfers that the device prefers for streams, in bytes, if it reports one: the
    /// stripe of a RAID.
    pub optimal_io_bytes: Option<u32>,
    /// `write back` (a volatile cache: flushes matter) or `write through`.
    pub write_cache: String,
    /// Whether the device accepts writes with Force Unit Access.
    pub fua: bool,
    /// Whether the device has poll queues.
    pub io_poll: bool,
    /// The depth of the queue.
    pub nr_requests: u32,
}

/// A limit that a control group of this process sets (cgroups(7)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Limit {
    /// The limited quantity: `write_bytes_per_s`, `read_bytes_per_s`, `write_iops`, `read_iops`,
    /// `cpus`.
    pub of: String,
    /// The limit, in the unit that `of` names.
    pub most: f64,
    /// The file that states the limit: `/sys/fs/cgroup/blkio/jail/blkio.throttle.write_bps_device`.
    pub from: String,
}

/// A question and the rows that answer it.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Scenario {
    /// The name of the scenario: `ladder`.
    pub name: String,
    /// The question that the scenario answers.
    pub question: String,
    /// A row for each method that was measured.
    pub rows: Vec<Row>,
    /// The last row before the latency rises, if the rows are the same work at rising rates.
    pub knee: Option<Knee>,
}

/// The knee of a curve: the load at which the latency begins to rise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Knee {
    /// The name of the row at the knee.
    pub row: String,
    /// The operations per second at the knee.
    pub iops: f64,
    /// The 99th percentile of the latency at the knee, in nanoseconds.
    pub p99_ns: u64,
}

/// The severity of a finding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// The figures mean less than they seem to.
    Warning,
    /// Data was lost, so no figure is valid.
    Critical,
}

/// A fact that the evidence of the run adds to the figures.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Finding {
    /// A stable name, such as `ram-not-disk`. Each name is explained in `docs/findings.md`.
    pub id: String,
    /// The severity.
    pub severity: Severity,
    /// The finding in plain words.
    pub text: String,
    /// The figures on which the finding is based.
    pub evidence: BTreeMap<String, serde_json::Value>,
}

/// Advice on how to write to this disk for one purpose.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Advice {
    /// The purpose: `streaming`, `small durable records`, `data that may be lost`.
    #[serde(rename = "for")]
    pub purpose: String,
    /// The recommended action.
    #[serde(rename = "do")]
    pub action: String,
    /// The measured reason.
    pub because: String,
    /// The code that uses the library `wrote`; in Rust, a complete file that compiles as it is.
    /// Absent if `code` already uses the library, or if the language has no package.
    pub with_wrote: Option<String>,
    /// The code; it uses the standard library if `with_wrote` is present. Empty if there is no
    /// code.
    pub code: String,
    /// The language of the code; Rust if absent.
    pub language: Option<String>,
    /// The chapter of `docs/safe-writes.md` with the code in all languages.
    pub recipe: Option<String>,
}

/// One of the main figures of a result.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Answer {
    /// The question in a few words: `Stream, durable`.
    pub question: String,
    /// The name of the row with the figure, which is the row of the simplest method.
    pub row: String,
    /// The method in a few words: `write(), one fdatasync`.
    pub how: String,
    /// The rate to show instead of the rate of the row: the sustained rate, if the disk has a burst
    /// or a limit.
    pub bytes_per_s: Option<f64>,
    /// The comparison of the figure with other figures, in words.
    pub note: Option<String>,
    /// A method that is measurably faster, but takes more care to program.
    pub faster: Option<Faster>,
    /// The comparison of the figure with the typical figures of classes of disks.
    pub yardstick: Option<Standing>,
}

/// The comparison of a figure with typical figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Standing {
    /// The comparison in words.
    pub text: String,
    /// The classes that are possible on this machine.
    pub classes: Vec<Class>,
    /// The month in which the figures were collected: `2026-11`.
    pub collected: String,
}

/// Typical figures of a class of disks, in operations or megabytes per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Class {
    /// The name of the class: `enterprise SSDs`.
    pub name: String,
    /// The minimum of the published figures.
    pub low: f64,
    /// The maximum of the published figures.
    pub high: f64,
    /// The publications of the figures.
    pub sources: Vec<String>,
}

/// A method that is faster than the simplest one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Faster {
    /// The name of the method's row.
    pub row: String,
    /// The method in a few words.
    pub how: String,
    /// The ratio of the medians.
    pub times: f64,
}

impl Program {
    /// Returns this program, built from `commit`.
    pub fn this(commit: Option<String>) -> Program {
        Program {
            version: env!("CARGO_PKG_VERSION").into(),
            commit,
            debug_build: cfg!(debug_assertions),
        }
    }
}

impl Document {
    /// Returns whether the document comes from another tool, and therefore lacks some of our keys.
    pub fn is_imported(&self) -> bool {
        self.source == Some(Source::Fio)
    }

    /// Returns the rows of all scenarios.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.scenarios.iter().flat_map(|scenario| &scenario.rows)
    }

    /// Returns the row with this name; `None` if there is none.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows().find(|row| row.name == name)
    }
}

/// The operations of [`View::Metadata`], as they occur in `rw` in addition to fio's words.
const METADATA: [&str; 6] = ["create", "stat", "open", "read", "rename", "unlink"];
/// The workloads whose rows form a grid: the beginning of the rows' names, and the title of the
/// lines.
const GRIDS: [(&str, &str); 2] = [("peak/", "BS x IODEPTH"), ("ways/chunk", "CHUNK")];

/// Completes a document that was read: adds its source if absent, and the view and the cell of each
/// row without a view.
pub fn complete(document: &mut Document) {
    document.source = document.source.or_else(|| Some(source(document)));
    for row in document.scenarios.iter_mut().flat_map(|scenario| &mut scenario.rows) {
        if row.view.is_none() {
            (row.view, row.cell) = (Some(view(row)), cell(row));
        }
    }
}

/// Returns the source of a document without that key. The versions of other tools, and of
/// `wrote run --format fio-json`, begin with a word.
fn source(document: &Document) -> Source {
    let is_ours = document.wrote.version.starts_with(|first: char| first.is_ascii_digit());
    match document.command.get(1).map(String::as_str) {
        _ if !is_ours => Source::Fio,
        Some("run") => Source::Run,
        _ => Source::Bench,
    }
}

fn view(row: &Row) -> View {
    let asked = &row.settings.asked;
    let is_of_names = METADATA.contains(&asked.rw.as_str()) && asked.nrfiles.is_some();
    if row.crash_leaves.is_some() {
        View::Saves
    } else if asked.messages.is_some() {
        View::Messages
    } else if asked.load_share.is_some() {
        View::Curve
    } else if is_of_names && row.workload.starts_with("meta/") {
        View::Metadata
    } else if row.sustained.is_some() {
        View::Long
    } else if row.latency_ns.is_none() && row.settings.effective.untimed != Some(true) {
        View::Files
    } else {
        View::Operations
    }
}

fn cell(row: &Row) -> Option<Cell> {
    let (_, title) = GRIDS.iter().find(|(begin, _)| row.workload.starts_with(begin))?;
    let (side, head) = row.way.rsplit_once(", ")?;
    Some(Cell { title: (*title).into(), side: side.into(), head: head.into() })
}

/// The processes that measured together, each of them a rank (MPI).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ranks {
    /// The number of ranks.
    pub ranks: u32,
    /// The maximum number of ranks on one node.
    pub ranks_per_node: u32,
    /// Whether each rank had separate files, or a region of a shared file.
    pub files: RankFiles,
    /// The nodes, in the order of their first ranks.
    pub nodes: Vec<Node>,
}

/// The division of files among ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankFiles {
    /// Each rank has separate files.
    #[default]
    PerRank,
    /// The ranks share one file, in which their regions follow each other.
    Segments,
}

crate::words::word!(RankFiles, Severity);

/// A node and its clock.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Node {
    /// The name of the host.
    pub name: String,
    /// The ranks on the node.
    pub ranks: Vec<u32>,
    /// The lead of the node's clock over rank 0's clock, in seconds.
    pub clock_offset_s: f64,
    /// The shortest time in which all ranks met, in seconds. It is the uncertainty of the offset.
    pub round_trip_s: Option<f64>,
}

/// The differences between the ranks of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Spread {
    /// The rank with the fewest operations per second.
    pub slowest: RankRun,
    /// The rank with the most operations per second.
    pub fastest: RankRun,
    /// The median of all ranks' operations per second.
    pub median_iops: f64,
    /// The time from the start of the first rank to the start of the last, in seconds.
    pub started_within_s: f64,
    /// The file bytes per second until the first rank had finished (stonewalled), as if the bytes
    /// of each rank were spread evenly over its time.
    pub stonewalled_bytes_per_s: f64,
}

/// The run of one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RankRun {
    /// The rank.
    pub rank: u32,
    /// The name of the rank's node.
    pub node: String,
    /// The number of file bytes that the rank wrote or read.
    pub bytes: u64,
    /// The time from the rank's first operation to its last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// The operations per second of the rank.
    pub iops: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{CrashLeaves, Latency, Sustained};
    use crate::sample;

    /// Returns a document with this row as an older version wrote it, completed.
    fn completed(row: Row) -> Document {
        let mut document = sample::document(vec![Row { view: None, cell: None, ..row }]);
        document.source = None;
        complete(&mut document);
        document
    }

    fn older(name: &str, change: impl FnOnce(&mut Row)) -> Option<View> {
        let mut row = sample::row(name, "power-loss", &[1e9]);
        change(&mut row);
        completed(row).scenarios[0].rows[0].view
    }

    #[test]
    fn rows_of_an_older_result_get_the_view_that_their_keys_show() {
        for (expected, found) in [
            (View::Operations, older("small/cached", |_| {})),
            (
                View::Operations,
                older("group 0/a", |row| {
                    (row.latency_ns, row.settings.effective.untimed) = (None, Some(true));
                }),
            ),
            (View::Files, older("ways/file", |row| row.latency_ns = None)),
            (View::Messages, older("append/loop", |row| row.settings.asked.messages = Some(9))),
            (View::Saves, older("latency/new", |row| row.crash_leaves = Some(CrashLeaves::Torn))),
            (View::Curve, older("load/a", |row| row.settings.asked.load_share = Some(0.7))),
            (
                View::Long,
                older("sustained/write", |row| row.sustained = Some(Sustained::default())),
            ),
            (
                View::Metadata,
                older("meta/own", |row| {
                    row.workload = "meta/own".into();
                    row.latency_ns = Some(Latency::default());
                    (row.settings.asked.rw, row.settings.asked.nrfiles) = ("stat".into(), Some(50));
                }),
            ),
        ] {
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn a_cell_of_an_older_result_is_what_its_words_show_and_a_stated_view_stays() {
        let mut row = sample::row("peak/read", "power-loss", &[1e9]);
        (row.workload, row.way) = ("peak/read".into(), "2 MiB x 8, plain".into());
        let document = completed(row.clone());
        let cell = document.scenarios[0].rows[0].cell.as_ref().unwrap();
        assert_eq!(
            (&*cell.title, &*cell.side, &*cell.head),
            ("BS x IODEPTH", "2 MiB x 8", "plain")
        );
        let mut document = sample::document(vec![Row { view: Some(View::Long), ..row }]);
        complete(&mut document);
        let stated = &document.scenarios[0].rows[0];
        assert_eq!((stated.view, &stated.cell), (Some(View::Long), &None));
    }

    #[test]
    fn an_older_result_is_of_the_command_that_it_names_or_of_fio() {
        for (version, verb, expected) in [
            ("0.1.0", "bench", Source::Bench),
            ("0.1.0", "run", Source::Run),
            ("fio-3.33", "run", Source::Fio),
            ("wrote-0.1.0", "run", Source::Fio),
        ] {
            let mut document = sample::document(Vec::new());
            (document.source, document.wrote.version) = (None, version.into());
            document.command = vec!["wrote".into(), verb.into()];
            complete(&mut document);
            assert_eq!(document.source, Some(expected), "{version} {verb}");
        }
    }
}
