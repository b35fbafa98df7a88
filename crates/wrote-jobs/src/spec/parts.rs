//! How a job reaches the disk: its engine, files, flushes, and pace.

use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;
use wrote_result::document::Process;

/// How operations reach the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Io {
    /// The system calls that carry the operations.
    pub ioengine: Ioengine,
    /// Operations in flight at once.
    pub iodepth: u32,
    /// Operations handed to the kernel together; 0 and 1 mean at most 4, so that the device has
    /// work while the next are prepared.
    pub iodepth_batch: u32,
    /// Completions that one call waits for, at least; 0 means 1.
    pub iodepth_batch_complete_min: u32,
    /// Bypasses the page cache.
    pub direct: bool,
    /// Drops written and read bytes from the page cache again (`RWF_DONTCACHE`).
    pub dontcache: bool,
    /// Writes each block whole or not at all, also at a power loss (`RWF_ATOMIC`).
    pub atomic: bool,
    /// Polls the device for completions.
    pub hipri: bool,
    /// Registers the buffers with the ring.
    pub fixedbufs: bool,
    /// Registers the files with the ring.
    pub registerfiles: bool,
    /// Lets a kernel thread take operations from the ring.
    pub sqthread_poll: bool,
    /// The CPU of that kernel thread.
    pub sqthread_poll_cpu: Option<u32>,
}

/// The files that a job uses, and their state before the clock starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    /// The files, which the operations use in turn.
    pub paths: Vec<PathBuf>,
    /// First byte of each file that the job uses.
    pub offset_bytes: u64,
    /// Percents of each file's length added to `offset_bytes`
    /// ([`jobs::resolve`](crate::jobs::resolve)).
    pub offset_percent: u32,
    /// Bytes of each file that the job uses, from `offset_bytes` on; `None` for all bytes of an
    /// existing file.
    pub file_bytes: Option<u64>,
    /// Percents of each file's length that the job uses at most, in place of `file_bytes`.
    pub size_percent: Option<u32>,
    /// The existing folder below which folders in the files' names are created; empty for any. With
    /// `None` no folder is created.
    pub makes_folders_in: Option<PathBuf>,
    /// The state of a new file's blocks when the clock starts.
    pub fallocate: Fallocate,
    /// Before the clock starts, writes all unwritten blocks that the job will overwrite.
    pub overwrite: bool,
    /// Removes the files, which the run made, after the job's group.
    pub unlink: bool,
    /// Drops the files' pages from the page cache first.
    pub invalidate: bool,
    /// Makes the files, and runs no operation.
    pub create_only: bool,
}

impl Files {
    /// Returns the end of the bytes that the job uses of each file; `None` for the file's own.
    pub fn end_bytes(&self) -> Option<u64> {
        Some(self.offset_bytes.saturating_add(self.file_bytes?))
    }
}

/// The allocation of a new file's blocks before the clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fallocate {
    /// No blocks: the file grows.
    None,
    /// `fallocate(2)` with mode 0 (`native`), as fio does by default.
    #[default]
    Native,
    /// `fallocate(2)` that leaves the file's size (`keep`).
    Keep,
    /// The size without blocks (`truncate`).
    Truncate,
}

/// The flushes of a job, and the bytes of its writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    /// The flush of each write (`sync`).
    pub sync: SyncEach,
    /// Writes between two calls of `fsync(2)`.
    pub fsync: Option<u32>,
    /// Writes between two calls of `fdatasync(2)`.
    pub fdatasync: Option<u32>,
    /// The latency of a write ends with the `fsync` or `fdatasync` that follows it.
    pub latency_with_flush: bool,
    /// `fsync(2)` after the last write, inside the clock (M1).
    pub end_fsync: bool,
    /// `fdatasync(2)` after the last write, inside the clock (M1).
    pub end_fdatasync: bool,
    /// Blocks carry a checksum, which reads and `do_verify` check.
    pub verify: Option<Verify>,
    /// The bytes that the job writes.
    pub data: Data,
}

/// The flush of each write, before the write is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SyncEach {
    /// None.
    #[default]
    No,
    /// As a file opened with `O_DSYNC`.
    Dsync,
    /// As a file opened with `O_SYNC`.
    Sync,
}

/// The checksum of `verify=crc32c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verify {
    /// Reads and checks all written blocks after the writes (`do_verify`).
    pub after_writes: bool,
}

/// The bytes that a job writes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Data {
    /// Random bytes; no two sectors are equal (M2).
    #[default]
    Random,
    /// Zeros (`zero_buffers`): named in the result.
    Zeros,
    /// Random bytes with this percentage of each block zeros, so that the block compresses by about
    /// that percentage (`buffer_compress_percentage`): named in the result.
    Compressible(u32),
    /// These bytes repeated, from the start of each block (`buffer_pattern`): named in the result.
    Pattern(Vec<u8>),
}

impl Data {
    /// Returns its words in a result; `None` for random bytes.
    pub fn words(&self) -> Option<String> {
        match self {
            Data::Random => None,
            Data::Zeros => Some("zeros".into()),
            Data::Compressible(percent) => Some(format!("compressible {percent} %")),
            Data::Pattern(_) => Some("repeated pattern".into()),
        }
    }
}

/// The start of a job, its rates and pauses, and its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pacing {
    /// Bytes to transfer over all files; `None` is each file's `file_bytes` once.
    pub io_bytes: Option<u64>,
    /// The maximum number of operations of each repetition, which ends early with them.
    pub number_ios: Option<u64>,
    /// Times that the job repeats its transfers.
    pub loops: u32,
    /// The latest end of the job, from the end of its ramp; a last flush is not counted.
    pub runtime: Option<Duration>,
    /// The job repeats until `runtime` is over.
    pub time_based: bool,
    /// Time at the start that the report leaves out.
    pub ramp_time: Duration,
    /// A job that ends before its ramp does counts as a whole, as fio's.
    pub counts_short_ramp: bool,
    /// Delay of the job's start after the group's.
    pub startdelay: Duration,
    /// Limit of reads, in bytes per second.
    pub read_rate_bytes_per_s: Option<u64>,
    /// Limit of writes, in bytes per second.
    pub write_rate_bytes_per_s: Option<u64>,
    /// Limit of reads per second.
    pub read_rate_iops: Option<u32>,
    /// Limit of writes per second.
    pub write_rate_iops: Option<u32>,
    /// When the operations of a job with a rate are due.
    pub rate_process: Process,
    /// Pauses between operations.
    pub think: Option<Think>,
    /// The other jobs of the group end with this one.
    pub exitall: bool,
    /// The job ends when its rate is steady.
    pub steady: Option<Steady>,
}

/// When a rate counts as steady (`steadystate`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The rate counts operations; otherwise it counts bytes.
    pub iops: bool,
    /// The criterion is the slope of the line of least squares, otherwise the largest deviation
    /// from the mean.
    pub slope: bool,
    /// The limit, in percent of the mean or in the rate's unit.
    pub limit: f64,
    /// The limit is in percent.
    pub percent: bool,
    /// The length of the period that decides.
    pub over: Duration,
    /// The time before this period.
    pub ramp: Duration,
}

/// Pauses of a job, which count as its time (`thinktime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// The length of a pause, which begins when all operations in flight have completed.
    pub time: Duration,
    /// The first part of a pause, spent without sleep (`thinktime_spin`).
    pub spin: Duration,
    /// Operations between two pauses (`thinktime_blocks`).
    pub blocks: u32,
}
