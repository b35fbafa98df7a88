//! The result: one JSON document, `wrote.result/1`, described for people in `docs/results.md`.
//!
//! Keys carry their units, and a key that does not apply is left out, never null.

mod reached;
mod settings;
mod sustained;
mod words;

pub use reached::{Process, Reached};
pub use settings::{BlockShare, Fallback, Settings, SettingsPair};
pub use sustained::{CHANGED_SHARE_MAX, Change, SAMPLES_MIN, Sample, SteadyState, Sustained};
pub use words::{Blocks, CrashLeaves, Flush, Ioengine, SourceCache, Survives};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of this format.
pub const SCHEMA: &str = "wrote.result/1";

/// Everything that one run of `wrote` found out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// `wrote.result/1`.
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
    /// What lies under the path.
    pub target: Target,
    /// What was measured.
    pub scenarios: Vec<Scenario>,
    /// What the evidence of the run says, beside the numbers.
    pub findings: Vec<Finding>,
    /// How to write here.
    pub advice: Vec<Advice>,
}

/// The program that measured.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// The commit that it was built from, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether it was built with debug assertions, which makes its CPU figures worthless.
    pub debug_build: bool,
}

/// The machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The host's name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor, as it names itself.
    pub cpu_model: String,
    /// CPUs that the process may use.
    pub cpus: u32,
    /// Main memory, in bytes.
    pub memory_bytes: u64,
    /// The hypervisor or container, `none` where there is none that can be seen.
    pub virtualization: String,
    /// Whether io_uring may be used here: `yes`, or the kernel's reason why not.
    pub io_uring: String,
    /// The clock that the kernel tells time by: `tsc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    /// What one look at the clock costs, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_read_ns: Option<f64>,
}

/// What lies under the path.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The folder that was written to.
    pub path: String,
    /// The file system's type.
    pub filesystem: String,
    /// Its mount options.
    pub mount_options: Vec<String>,
    /// Its size, in bytes.
    pub capacity_bytes: u64,
    /// What an ordinary user may still use, in bytes, before the run.
    pub free_bytes: u64,
    /// What the offset and length of a direct transfer must be multiples of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dio_offset_align_bytes: Option<u32>,
    /// What the memory address of a direct transfer must be a multiple of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dio_memory_align_bytes: Option<u32>,
    /// The block device, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// Why there is no block device, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_device_because: Option<String>,
    /// What the control groups of this process let the device do, and the CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
}

/// A block device and its queue, as the kernel describes them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The kernel's name of the device that the file system is on: `sda1`, `dm-0`.
    pub name: String,
    /// The whole disks below it, where it is a partition or a mapped device: `sda`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<String>,
    /// The model, as the device names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its size, in bytes.
    pub capacity_bytes: u64,
    /// Whether the kernel takes it for a disk that turns.
    pub rotational: bool,
    /// The I/O scheduler in use.
    pub scheduler: String,
    /// The smallest unit that it addresses, in bytes.
    pub logical_block_bytes: u32,
    /// The smallest unit that it writes without reading first, in bytes.
    pub physical_block_bytes: u32,
    /// `write back` (a volatile cache: flushes matter) or `write through`.
    pub write_cache: String,
    /// Whether it takes writes with Force Unit Access.
    pub fua: bool,
    /// Whether it has poll queues.
    pub io_poll: bool,
    /// The queue's depth.
    pub nr_requests: u32,
}

/// Something that a control group of this process is held to (cgroups(7)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// `write_bytes_per_s`, `read_bytes_per_s`, `write_iops`, `read_iops`, `cpus`.
    pub of: String,
    /// How much, in the unit that `of` names.
    pub most: f64,
    /// The file that says so: `/sys/fs/cgroup/blkio/jail/blkio.throttle.write_bps_device`.
    pub from: String,
}

/// A question and the rows that answer it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name: `ladder`.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// One row for each way that was measured.
    pub rows: Vec<Row>,
    /// Where rows are the same work at rising rates: the last row before the latency bends upwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
}

/// The bend of a curve of latency against load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// The row at the bend.
    pub row: String,
    /// Operations per second there.
    pub iops: f64,
    /// The 99th percentile of the latency there, in nanoseconds.
    pub p99_ns: u64,
}

/// One way of writing, measured several times.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name, unique in the result: `stream/direct-io_uring`.
    pub name: String,
    /// The group in which it is compared: `stream` or `small`; of jobs, those that ran at once:
    /// `group 0`.
    pub workload: String,
    /// The way of writing or reading, in words.
    pub way: String,
    /// Whether the row's figures are of writes or of reads. Documents of before there were reads
    /// have writes alone, and no such key.
    #[serde(default)]
    pub direction: Direction,
    /// What a write survives once it is acknowledged: `nothing`, `process-crash`, `os-crash`,
    /// `power-loss`. Reads have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives: Option<Survives>,
    /// File bytes transferred by each run (the median, where runs are bounded by time).
    pub bytes_per_run: u64,
    /// What of the file may be there after a crash in the middle of the write, where whole files are
    /// saved: `old-or-new`, `torn` (some of both), `empty` (or a part of the new), `old-and-part`
    /// (all of the old, and a part of what was appended).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_leaves: Option<CrashLeaves>,
    /// What was asked, what was in effect, and why they differ.
    pub settings: SettingsPair,
    /// Each run, in the order in which they were made.
    pub runs: Vec<Run>,
    /// File bytes per second, over the runs.
    pub throughput_bytes_per_s: Interval,
    /// The latency of one write or read, over all runs; none where whole files were timed and no
    /// single operation was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latency>,
    /// How the throughput went, where the device was written for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Sustained>,
}

/// Which way bytes went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the file.
    Read,
    /// To the file.
    #[default]
    Write,
}

/// One run of one row.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// File bytes written or read.
    pub bytes: u64,
    /// From the first operation to the last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// `bytes / elapsed_s`.
    pub throughput_bytes_per_s: f64,
    /// Operations per second.
    pub iops: f64,
    /// CPU seconds in user space: of the whole process, or of a job's threads. What a job that both
    /// reads and writes has used is divided between its two rows by their operations.
    pub cpu_user_s: f64,
    /// CPU seconds in the kernel, of the same.
    pub cpu_system_s: f64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Bytes that the block device was written in the run, by anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_written_bytes: Option<u64>,
    /// Bytes that were read from the block device in the run, by anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_read_bytes: Option<u64>,
    /// Peak resident memory, in bytes: of a whole file's way that of the run alone, else that of the
    /// process until then. None where the kernel does not let the peak of a run be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss_bytes: Option<u64>,
    /// The largest number of operations in flight that was seen.
    pub iodepth_reached: u32,
    /// What became of the messages that were appended: the file is read back after the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Records>,
    /// The latency of one write or read of this run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latency>,
    /// Of a run that is held to a rate: by how much later than it was due, or than there was room for
    /// it, an operation was handed on. That is the measuring program's own part of the latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_delay_ns: Option<Latency>,
    /// The CPU that had the most to do, whoever gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_busiest: Option<CpuBusy>,
    /// CPU seconds that threads of this process were ready to run and had no CPU: others had it, or a
    /// control group did not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_waited_s: Option<f64>,
    /// Bytes of the run's files that the page cache held at its end and need not have held from
    /// before, of runs that go past it: 0 or little where they really do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_bytes: Option<u64>,
    /// Bytes of what the run is to read that were never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten_bytes: Option<u64>,
}

/// How busy a CPU was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuBusy {
    /// Its number.
    pub cpu: u32,
    /// The part of the time in which it was not idle, nor waiting for I/O, from 0 to 1.
    pub busy_share: f64,
}

/// What was found of the messages that were appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// Messages that were handed over.
    pub sent: u64,
    /// Messages that are there, whole.
    pub whole: u64,
    /// Messages that are not.
    pub lost: u64,
    /// Places in the file with bytes that are no whole message.
    pub torn: u64,
    /// Whole messages that are there once more.
    pub doubled: u64,
    /// Messages behind one that was handed over later by the same producer. Where every message has a
    /// task of its own, what makes the tasks is the producer.
    pub out_of_order: u64,
}

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The median over the runs.
    pub median: f64,
    /// The interval's lower end.
    pub ci95_low: f64,
    /// The interval's upper end.
    pub ci95_high: f64,
}

/// Latencies of one operation, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// Half were at most this.
    pub p50: u64,
    /// 90 % were at most this.
    pub p90: u64,
    /// 95 % were at most this.
    pub p95: u64,
    /// 99 % were at most this.
    pub p99: u64,
    /// 99.9 % were at most this.
    pub p99_9: u64,
    /// The greatest.
    pub max: u64,
    /// All together.
    #[serde(default)]
    pub total: u64,
    /// How many operations.
    pub count: u64,
}

/// How much a finding weighs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// The numbers mean less than they seem to.
    Warning,
}

/// Something that the evidence of the run says, beside the numbers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// A stable name: `ram-not-disk`. Each is explained in `docs/findings.md`.
    pub id: String,
    /// How much it weighs.
    pub severity: Severity,
    /// The finding in plain words.
    pub text: String,
    /// The figures that it rests on.
    pub evidence: BTreeMap<String, serde_json::Value>,
}

/// How to write here, for one purpose.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The purpose: `streaming`, `small durable records`, `data that may be lost`.
    #[serde(rename = "for")]
    pub purpose: String,
    /// What to do.
    #[serde(rename = "do")]
    pub action: String,
    /// The measured reason.
    pub because: String,
    /// How, in Rust.
    pub code: String,
}

impl Program {
    /// This program, built from `commit`.
    pub fn this(commit: Option<String>) -> Program {
        Program {
            version: env!("CARGO_PKG_VERSION").into(),
            commit,
            debug_build: cfg!(debug_assertions),
        }
    }
}

impl Records {
    /// Whether every message is there once and nothing else is, in whatever order.
    pub fn are_whole(&self) -> bool {
        self.whole == self.sent && self.torn == 0 && self.doubled == 0
    }
}

impl Row {
    /// Whether the row is of messages that were appended.
    pub fn is_of_messages(&self) -> bool {
        self.settings.asked.messages.is_some()
    }

    /// Whether the row is of a file that was saved whole again and again.
    pub fn is_of_saves(&self) -> bool {
        self.crash_leaves.is_some()
    }

    /// Whether in every run each message that was appended is there once and nothing else is, as far
    /// as that was looked at.
    pub fn has_all_records(&self) -> bool {
        self.runs.iter().filter_map(|run| run.records).all(|records| records.are_whole())
    }

    /// Whether its operations came at a rate of their own, and not each when one was acknowledged:
    /// latencies then count from when each was due (M5).
    pub fn is_open_loop(&self) -> bool {
        let asked = &self.settings.asked;
        asked.rate_iops.is_some() || asked.rate_bytes_per_s.is_some()
    }

    /// Whether whole files were timed, and no single operation.
    pub fn is_of_whole_files(&self) -> bool {
        self.latency_ns.is_none() && self.settings.effective.untimed != Some(true)
    }

    /// CPU seconds, user and kernel, that a gigabyte (10^9 bytes) costs: the median over the runs.
    pub fn cpu_s_per_gb(&self) -> f64 {
        let costs: Vec<f64> = self
            .runs
            .iter()
            .filter(|run| run.bytes > 0)
            .map(|run| (run.cpu_user_s + run.cpu_system_s) / (run.bytes as f64 / 1e9))
            .collect();
        crate::stats::median(&costs)
    }

    /// CPU seconds, user and kernel, that an operation costs: the median over the runs.
    pub fn cpu_s_per_operation(&self) -> f64 {
        let costs: Vec<f64> = self
            .runs
            .iter()
            .filter(|run| run.iops > 0.0)
            .map(|run| (run.cpu_user_s + run.cpu_system_s) / (run.iops * run.elapsed_s))
            .collect();
        crate::stats::median(&costs)
    }
}

/// Whether a document is of a tool that does not know all that ours says: of fio, or of `wrote run
/// --format fio-json`.
pub fn is_imported(document: &Document) -> bool {
    !document.wrote.version.starts_with(|first: char| first.is_ascii_digit())
}

/// The JSON Schema of [`Document`].
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Document).into()
}
