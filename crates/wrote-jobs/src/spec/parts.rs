//! How a job reaches the disk: its engine, files, flushes and pace.

use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;
use wrote_result::document::Process;

/// How operations reach the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Io {
    /// The engine, which determines the system calls.
    pub ioengine: Ioengine,
    /// The maximum number of operations in flight.
    pub iodepth: u32,
    /// The number of operations submitted to the kernel together. 0 and 1 mean at most 4, so that
    /// the device has work while the next operations are prepared.
    pub iodepth_batch: u32,
    /// The minimum number of completions that a call waits for; 0 means 1.
    pub iodepth_batch_complete_min: u32,
    /// Whether I/O bypasses the page cache.
    pub direct: bool,
    /// Whether written and read bytes are dropped from the page cache afterwards (`RWF_DONTCACHE`).
    pub dontcache: bool,
    /// Whether each block is written either completely or not at all, even if power is lost
    /// (`RWF_ATOMIC`).
    pub atomic: bool,
    /// Whether the device is polled for completions.
    pub hipri: bool,
    /// Whether the buffers are registered with the ring.
    pub fixedbufs: bool,
    /// Whether the files are registered with the ring.
    pub registerfiles: bool,
    /// Whether a kernel thread takes operations from the ring.
    pub sqthread_poll: bool,
    /// The CPU of that kernel thread.
    pub sqthread_poll_cpu: Option<u32>,
}

/// The files that a job uses, and their state when the clock starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    /// The files, which the operations use in turn.
    pub paths: Vec<PathBuf>,
    /// The offset of the first byte that the job uses in each file.
    pub offset_bytes: u64,
    /// The percentage of each file's length that is added to `offset_bytes` (by
    /// [`jobs::resolve`](crate::jobs::resolve)).
    pub offset_percent: u32,
    /// The number of bytes that the job uses in each file, from `offset_bytes` on; `None` for all
    /// bytes of an existing file.
    pub file_bytes: Option<u64>,
    /// The maximum percentage of each file's length that the job uses, which replaces `file_bytes`.
    pub size_percent: Option<u32>,
    /// The existing folder below which missing folders of the files' paths are created; empty if it
    /// may be any folder. With `None`, no folder is created.
    pub makes_folders_in: Option<PathBuf>,
    /// The state of a new file's blocks when the clock starts.
    pub fallocate: Fallocate,
    /// Whether all unwritten blocks that the job will overwrite are written before the clock
    /// starts.
    pub overwrite: bool,
    /// Whether the files that the run created are removed after the job's group.
    pub unlink: bool,
    /// Whether the files' pages are dropped from the page cache before the clock starts.
    pub invalidate: bool,
    /// Whether the files are only created, without any operation.
    pub create_only: bool,
}

impl Files {
    /// Returns the end of the bytes that the job uses in each file; `None` if it uses each file to
    /// its end.
    pub fn end_bytes(&self) -> Option<u64> {
        Some(self.offset_bytes.saturating_add(self.file_bytes?))
    }
}

/// The allocation of a new file's blocks before the clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fallocate {
    /// No blocks are allocated: the file grows as it is written.
    None,
    /// `fallocate(2)` with mode 0 (`native`), as fio does by default.
    #[default]
    Native,
    /// `fallocate(2)` that leaves the file's size unchanged (`keep`).
    Keep,
    /// The size is set, without any blocks (`truncate`).
    Truncate,
}

/// The flushes of a job, and the data that it writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    /// How each write is flushed (`sync`).
    pub sync: SyncEach,
    /// The number of writes between calls of `fsync(2)`.
    pub fsync: Option<u32>,
    /// The number of writes between calls of `fdatasync(2)`.
    pub fdatasync: Option<u32>,
    /// Whether the latency of a write includes the `fsync` or `fdatasync` that follows it.
    pub latency_with_flush: bool,
    /// Whether there is an `fsync(2)` after the last write, before the clock stops (M1).
    pub end_fsync: bool,
    /// Whether there is an `fdatasync(2)` after the last write, before the clock stops (M1).
    pub end_fdatasync: bool,
    /// The checksums of blocks, which reads and `do_verify` check; `None` without them.
    pub verify: Option<Verify>,
    /// The data that the job writes.
    pub data: Data,
}

/// The flush that is part of each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SyncEach {
    /// Writes are not flushed.
    #[default]
    No,
    /// Writes are flushed as with `O_DSYNC`.
    Dsync,
    /// Writes are flushed as with `O_SYNC`.
    Sync,
}

/// The checksum that `verify=crc32c` requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verify {
    /// Whether all written blocks are read and checked after the writes (`do_verify`).
    pub after_writes: bool,
}

/// The data that a job writes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Data {
    /// Random bytes. No two sectors are equal (M2).
    #[default]
    Random,
    /// Zeros (`zero_buffers`). The result mentions them.
    Zeros,
    /// Random bytes, except that this percentage of each block is zeros, so that the block
    /// compresses by about that percentage (`buffer_compress_percentage`). The result mentions the
    /// percentage.
    Compressible(u32),
    /// These bytes, repeated from the start of each block (`buffer_pattern`). The result mentions
    /// them.
    Pattern(Vec<u8>),
}

impl Data {
    /// Returns a description of the data for the result; `None` for random bytes.
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
    /// The number of bytes to transfer in all files together; `None` to transfer the `file_bytes`
    /// of each file once.
    pub io_bytes: Option<u64>,
    /// The maximum number of operations in each repetition.
    pub number_ios: Option<u64>,
    /// The number of times that the job repeats its transfers.
    pub loops: u32,
    /// The maximum duration of the job after its ramp, not counting a last flush.
    pub runtime: Option<Duration>,
    /// Whether the job repeats until `runtime` has elapsed.
    pub time_based: bool,
    /// The time at the start that the report leaves out.
    pub ramp_time: Duration,
    /// Whether the whole run of a job that ends during its ramp is reported, as in fio.
    pub counts_short_ramp: bool,
    /// The delay between the start of the group and the start of the job.
    pub startdelay: Duration,
    /// The maximum rate of reads, in bytes per second.
    pub read_rate_bytes_per_s: Option<u64>,
    /// The maximum rate of writes, in bytes per second.
    pub write_rate_bytes_per_s: Option<u64>,
    /// The maximum number of reads per second.
    pub read_rate_iops: Option<u32>,
    /// The maximum number of writes per second.
    pub write_rate_iops: Option<u32>,
    /// The distribution of the times at which the operations of a job with a rate are due.
    pub rate_process: Process,
    /// The pauses between operations.
    pub think: Option<Think>,
    /// Whether the other jobs of the group end when this job ends.
    pub exitall: bool,
    /// The condition under which the job ends because its rate is steady.
    pub steady: Option<Steady>,
}

/// The condition under which a rate is steady (`steadystate`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Whether the rate counts operations, rather than bytes.
    pub iops: bool,
    /// Whether the criterion is the slope of the least-squares line, rather than the maximum
    /// deviation from the mean.
    pub slope: bool,
    /// The limit, as a percentage of the mean or in the unit of the rate.
    pub limit: f64,
    /// Whether the limit is a percentage.
    pub percent: bool,
    /// The length of the period that is examined.
    pub over: Duration,
    /// The time before the period begins.
    pub ramp: Duration,
}

/// The pauses of a job, which are part of its time (`thinktime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// The length of a pause. A pause begins when all operations in flight have completed.
    pub time: Duration,
    /// The first part of a pause, during which the thread spins instead of sleeping
    /// (`thinktime_spin`).
    pub spin: Duration,
    /// The number of operations between pauses (`thinktime_blocks`).
    pub blocks: u32,
}
