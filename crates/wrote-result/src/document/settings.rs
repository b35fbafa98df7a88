//! The settings of a row: requested, in effect, and each step between the two.

use super::{Blocks, Flush, Ioengine, Process, SourceCache};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The settings as requested and in effect, and the reasons for differences.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SettingsPair {
    /// The settings as asked.
    pub asked: Settings,
    /// The settings in effect.
    pub effective: Settings,
    /// Each step from the one to the other.
    pub fallbacks: Vec<Fallback>,
}

/// The settings of one row, in fio's words.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Settings {
    /// `read`, `write` or `rw` (both) in the order of the file; `randread`, `randwrite` or `randrw`
    /// in none. Of files as wholes: `create`, `stat`, `open`, `read`, `rename`, `unlink`. A number
    /// after a colon is fio's: bytes of a step, or operations from each random offset on.
    pub rw: String,
    /// `psync`, `io_uring`, `mmap`, or `threads` (a pool, where io_uring may not be used).
    pub ioengine: Ioengine,
    /// Bytes of one operation; the largest where there are several sizes.
    pub bs_bytes: u64,
    /// File bytes of one run, over all jobs.
    pub size_bytes: u64,
    /// Operations in flight of one job. In `effective`: the most that were reached.
    pub iodepth: u32,
    /// Threads, each with its own file, unless the job names one for all.
    pub numjobs: u32,
    /// Whether the page cache is bypassed.
    pub direct: bool,
    /// When a flush happens: `none`, `fdatasync-at-end`, `fsync-at-end`, `fdatasync-each`,
    /// `fsync-each`, `o_dsync-each`, `o_sync-each`, or `fdatasync-every-N`, `fsync-every-N` of N
    /// writes. Reads have `none`.
    #[schemars(with = "String")]
    pub sync: Flush,
    /// The state of the file's blocks when the clock starts: `new`, `allocated`, `written` (the
    /// same file overwritten, or read), or `unknown` (reads that may be of blocks never written).
    pub blocks: Blocks,
    /// Whether the buffers are registered with the ring.
    pub registered_buffers: Option<bool>,
    /// Whether the file is registered with the ring.
    pub registered_files: Option<bool>,
    /// The ring's set-up flags that the kernel took.
    pub ring_flags: Option<Vec<String>>,
    /// Whether a kernel thread takes operations from the ring.
    pub sqpoll: Option<bool>,
    /// Whether completions are found by polling the device.
    pub iopoll: Option<bool>,
    /// Whether the buffers lie in huge pages that were set aside for such use.
    pub huge_pages: Option<bool>,
    /// The percent of reads among the operations of a mix.
    pub rwmixread_percent: Option<u32>,
    /// The sizes of operations, where there are several.
    pub bssplit: Option<Vec<BlockShare>>,
    /// Bytes of the smallest operation, where the sizes are its multiples up to `bs_bytes`, each as
    /// likely as another.
    pub bs_bytes_min: Option<u64>,
    /// The time after which the job ends, in seconds.
    pub runtime_s: Option<f64>,
    /// Whether the job begins again until its time is over.
    pub time_based: Option<bool>,
    /// The time at the start that is not counted, in seconds.
    pub ramp_time_s: Option<f64>,
    /// The requested bytes per second of each job, the mean over the jobs.
    pub rate_bytes_per_s: Option<f64>,
    /// The requested operations per second of each job, the mean over the jobs.
    pub rate_iops: Option<f64>,
    /// When operations under a rate are due: `linear`, at even intervals, or `poisson`. Absent in a
    /// closed loop, where the next operation begins when one is acknowledged.
    pub rate_process: Option<Process>,
    /// The blocks that a random job uses more than others, in fio's words: `zipf:1.2`,
    /// `zoned:60/10:40/90`.
    pub random_distribution: Option<String>,
    /// The percent of a random job's operations at a random offset; the others follow the last one.
    /// Absent if all are.
    pub percentage_random: Option<u32>,
    /// Seconds of each pause between operations, where the job pauses (fio's `thinktime`).
    pub thinktime_s: Option<f64>,
    /// Operations between two pauses.
    pub thinktime_blocks: Option<u32>,
    /// In the scenario `load`: the rate as a share of the closed loop's.
    pub load_share: Option<f64>,
    /// Whether operations were only counted, not timed (`gtod_reduce`).
    pub untimed: Option<bool>,
    /// Files of one job, where it has several.
    pub nrfiles: Option<u32>,
    /// Repetitions of the whole, where there are several.
    pub loops: Option<u32>,
    /// The data, where it is not random: `zeros`; `constant`, the same block again and
    /// again; or `compressible` with the percentage of each block that is zeros.
    pub data: Option<String>,
    /// Whether the page cache held the source of a copy, or the file that a language reads, when
    /// the clock started: `warm` or `dropped`.
    pub source_cache: Option<SourceCache>,
    /// The checksum that blocks carry: `crc32c`.
    pub verify: Option<String>,
    /// Bytes of the shortest message, where messages are appended: `bs_bytes` is the longest one's.
    pub message_bytes_min: Option<u64>,
    /// Messages of one run.
    pub messages: Option<u64>,
    /// Concurrent producers. Each submits one message after the other; absent if every message has
    /// its own task.
    pub producers: Option<u32>,
    /// The kind of the producers: `one task`, `threads`, `tasks`, `a task a message`.
    pub producers_are: Option<String>,
}

/// A size of operations, and its share of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BlockShare {
    /// Bytes of one operation.
    pub bytes: u64,
    /// The percent of operations of this size.
    pub percent: u32,
}

/// A step from a requested setting to one that works.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Fallback {
    /// The wanted setting: `io_uring`.
    pub wanted: String,
    /// The setting in effect instead: `threads`.
    pub got: String,
    /// The kernel's reason: `io_uring_setup: Operation not permitted (os error 1)`.
    pub because: String,
}

impl SettingsPair {
    /// Applies `change` to the requested settings and to those in effect.
    pub fn each(self, change: impl Fn(Settings) -> Settings) -> SettingsPair {
        let SettingsPair { asked, effective, fallbacks } = self;
        SettingsPair { asked: change(asked), effective: change(effective), fallbacks }
    }
}

impl Settings {
    /// Merges the settings of a later run: the deepest queue and the weakest of the rest, since a
    /// fallback may happen in any run.
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
