//! The settings of a row: as requested, in effect, and each fallback between the two.

use super::{Blocks, Flush, Ioengine, Process, SourceCache};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The settings as requested and in effect, and the reasons for the differences.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SettingsPair {
    /// The settings as requested.
    pub asked: Settings,
    /// The settings in effect.
    pub effective: Settings,
    /// The fallbacks from the requested settings to those in effect.
    pub fallbacks: Vec<Fallback>,
}

/// The settings of one row, in fio's words.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Settings {
    /// `read`, `write` or `rw` (both) in the order of the file; `randread`, `randwrite` or `randrw`
    /// at random offsets. For whole files: `create`, `stat`, `open`, `read`, `rename`, `unlink`. A
    /// number after a colon has the meaning that fio gives it: the bytes of a step, or the number
    /// of operations from each random offset.
    pub rw: String,
    /// `psync`, `io_uring`, `mmap`, or `threads` (a pool, if io_uring may not be used).
    pub ioengine: Ioengine,
    /// The size of an operation, in bytes; the maximum if there are several sizes.
    pub bs_bytes: u64,
    /// The number of file bytes in one run, over all jobs.
    pub size_bytes: u64,
    /// The number of operations in flight in one job. In `effective`, the maximum that was reached.
    pub iodepth: u32,
    /// The number of threads. Each has a separate file, unless the job names one file for all
    /// threads.
    pub numjobs: u32,
    /// Whether the page cache is bypassed.
    pub direct: bool,
    /// When flushes happen: `none`, `fdatasync-at-end`, `fsync-at-end`, `fdatasync-each`,
    /// `fsync-each`, `o_dsync-each`, `o_sync-each`, or `fdatasync-every-N`, `fsync-every-N` after
    /// each N writes. `none` for reads.
    #[schemars(with = "String")]
    pub sync: Flush,
    /// The state of the file's blocks when the clock starts: `new`, `allocated`, `written` (the
    /// same file is overwritten or read), or `unknown` (the blocks to read may never have been
    /// written).
    pub blocks: Blocks,
    /// Whether the buffers are registered with the ring.
    pub registered_buffers: Option<bool>,
    /// Whether the file is registered with the ring.
    pub registered_files: Option<bool>,
    /// The set-up flags of the ring that the kernel accepted.
    pub ring_flags: Option<Vec<String>>,
    /// Whether a kernel thread fetches operations from the ring.
    pub sqpoll: Option<bool>,
    /// Whether completions are found by polling the device.
    pub iopoll: Option<bool>,
    /// Whether the buffers are in huge pages that were reserved for such use.
    pub huge_pages: Option<bool>,
    /// The percentage of reads among the operations of a mix.
    pub rwmixread_percent: Option<u32>,
    /// The sizes of the operations, if there are several.
    pub bssplit: Option<Vec<BlockShare>>,
    /// The size of the smallest operation, in bytes, if the sizes are its multiples up to
    /// `bs_bytes`. All sizes are equally likely.
    pub bs_bytes_min: Option<u64>,
    /// The time after which the job stops, in seconds.
    pub runtime_s: Option<f64>,
    /// Whether the job is repeated until its time has passed.
    pub time_based: Option<bool>,
    /// The time at the start that is not measured, in seconds.
    pub ramp_time_s: Option<f64>,
    /// The requested bytes per second of each job; the mean, if the jobs differ.
    pub rate_bytes_per_s: Option<f64>,
    /// The requested operations per second of each job; the mean, if the jobs differ.
    pub rate_iops: Option<f64>,
    /// When operations at a rate are due: `linear`, at even intervals, or `poisson`. Absent in a
    /// closed loop, in which each operation begins when the previous one is acknowledged.
    pub rate_process: Option<Process>,
    /// The blocks that a random job uses more often than others, in fio's words: `zipf:1.2`,
    /// `zoned:60/10:40/90`.
    pub random_distribution: Option<String>,
    /// The percentage of a random job's operations that are at a random offset. The others follow
    /// the previous operation. Absent if all operations are at random offsets.
    pub percentage_random: Option<u32>,
    /// The length of each pause between operations, in seconds, if the job pauses (fio's
    /// `thinktime`).
    pub thinktime_s: Option<f64>,
    /// The number of operations between two pauses.
    pub thinktime_blocks: Option<u32>,
    /// In the scenario `load`, the rate as a share of the closed loop's rate.
    pub load_share: Option<f64>,
    /// Whether operations were counted but not timed (`gtod_reduce`).
    pub untimed: Option<bool>,
    /// The number of files of one job, if it has several.
    pub nrfiles: Option<u32>,
    /// The number of repetitions of the whole job, if there are several.
    pub loops: Option<u32>,
    /// The data, if it is not random: `zeros`; `constant`, which repeats the same block; or
    /// `compressible`, with the percentage of each block that is zeros.
    pub data: Option<String>,
    /// Whether the page cache held the source of a copy, or the file that a language reads, when
    /// the clock started: `warm` or `dropped`.
    pub source_cache: Option<SourceCache>,
    /// The checksum that blocks contain: `crc32c`.
    pub verify: Option<String>,
    /// The size of the shortest message, in bytes, if messages are appended. The longest has
    /// `bs_bytes`.
    pub message_bytes_min: Option<u64>,
    /// The number of messages in one run.
    pub messages: Option<u64>,
    /// The number of concurrent producers, each of which submits one message after another. Absent
    /// if each message has a task.
    pub producers: Option<u32>,
    /// The kind of the producers: `one task`, `threads`, `tasks`, `a task a message`.
    pub producers_are: Option<String>,
}

/// A size of operations, and its share of all operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BlockShare {
    /// The size of the operations, in bytes.
    pub bytes: u64,
    /// The percentage of operations that have this size.
    pub percent: u32,
}

/// A replacement of a requested setting by one that works.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Fallback {
    /// The requested setting: `io_uring`.
    pub wanted: String,
    /// The setting that is in effect instead: `threads`.
    pub got: String,
    /// The kernel's reason: `io_uring_setup: Operation not permitted (os error 1)`.
    pub because: String,
}

impl SettingsPair {
    /// Applies `change` to the requested settings and to the settings in effect.
    pub fn each(self, change: impl Fn(Settings) -> Settings) -> SettingsPair {
        let SettingsPair { asked, effective, fallbacks } = self;
        SettingsPair { asked: change(asked), effective: change(effective), fallbacks }
    }
}

impl Settings {
    /// Merges in the settings of a later run: keeps the deeper queue, and the weaker value of each
    /// other setting, because a fallback may occur in any run.
    pub fn weaken(&mut self, later: &Settings) {
        self.iodepth = self.iodepth.max(later.iodepth);
        self.direct &= later.direct;
        self.source_cache = self.source_cache.max(later.source_cache);
        for (ours, theirs) in [
            (&mut self.registered_buffers, later.registered_buffers),
            (&mut self.registered_files, later.registered_files),
            (&mut self.sqpoll, later.sqpoll),
            (&mut self.iopoll, later.iopoll),
            (&mut self.huge_pages, later.huge_pages),
        ] {
            *ours = (*ours).min(theirs);
        }
    }
}
