//! What one job of `wrote run` does, in fio's words, with every value decided.
//!
//! The parser of job files makes these, the scenarios `peak` and `rand` make them too, and
//! [`crate::jobs`] runs them.

use crate::rate::Process;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;

/// What a job does to its files. A job that appears `numjobs` times is that many [`JobSpec`]s.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// The section's name.
    pub name: String,
    /// Which of the section's `numjobs` this is, from 0.
    pub clone: u32,
    /// Jobs of one group run at once; groups run one after the other (`stonewall`, `new_group`).
    pub group: u32,
    /// The jobs of the group are reported as one.
    pub group_reporting: bool,
    /// Reads, writes or both, in order or not.
    pub rw: Rw,
    /// Of 100 operations of a mix, how many are reads.
    pub rwmixread_percent: u32,
    /// How operations reach the kernel.
    pub ioengine: Ioengine,
    /// Operations in flight at once.
    pub iodepth: u32,
    /// How many operations are handed on together; 0 is as many as there are.
    pub iodepth_batch: u32,
    /// How many are waited for before those that came are looked at; 0 and 1 leave it to the job: as
    /// many as come in a moment, so that each costs no call of its own.
    pub iodepth_batch_complete_min: u32,
    /// Bytes of reads.
    pub read_bs: BlockSizes,
    /// Bytes of writes.
    pub write_bs: BlockSizes,
    /// The files; the operations go to them in turn.
    pub files: Vec<PathBuf>,
    /// First byte of each file that is used.
    pub offset_bytes: u64,
    /// Bytes of each file that are used, from `offset_bytes` on; `None` is all that there are of a
    /// file that exists.
    pub file_bytes: Option<u64>,
    /// Bytes that are transferred in all, over all files; `None` is each file's `file_bytes` once.
    pub io_bytes: Option<u64>,
    /// How often the whole is done.
    pub loops: u32,
    /// Bypass the page cache.
    pub direct: bool,
    /// Whether each write is flushed (`sync`).
    pub sync: SyncEach,
    /// `fsync(2)` after so many writes.
    pub fsync: Option<u32>,
    /// `fdatasync(2)` after so many writes.
    pub fdatasync: Option<u32>,
    /// `fsync(2)` after the last write; inside the clock (M1).
    pub end_fsync: bool,
    /// The job ends after this time, if it did not before.
    pub runtime: Option<Duration>,
    /// The job begins again until `runtime` is over.
    pub time_based: bool,
    /// What is done in the first so much time is not counted.
    pub ramp_time: Duration,
    /// The job begins so much later than its group.
    pub startdelay: Duration,
    /// Bytes per second that reads are held to.
    pub read_rate_bytes_per_s: Option<u64>,
    /// Bytes per second that writes are held to.
    pub write_rate_bytes_per_s: Option<u64>,
    /// Reads per second that the job is held to.
    pub read_rate_iops: Option<u32>,
    /// Writes per second that the job is held to.
    pub write_rate_iops: Option<u32>,
    /// When the operations of a job that is held to a rate are due.
    pub rate_process: Process,
    /// Whether the latency of each operation is taken (not with `gtod_reduce`, `disable_lat` and
    /// `disable_clat`).
    pub latencies: bool,
    /// Whether the rates are sampled (not with `gtod_reduce`, `disable_bw_measurement`).
    pub samples: bool,
    /// Random offsets may come again before all were used once.
    pub norandommap: bool,
    /// Seed of offsets, sizes and mix; the same seed gives the same order (`randrepeat`).
    pub seed: u64,
    /// Blocks carry a checksum, and reads and `do_verify` hold them against it.
    pub verify: Option<Verify>,
    /// What is written.
    pub data: Data,
    /// How blocks are made before the clock starts.
    pub fallocate: Fallocate,
    /// Drop what the page cache holds of the files first.
    pub invalidate: bool,
    /// Poll the device for completions.
    pub hipri: bool,
    /// Register the buffers with the ring.
    pub fixedbufs: bool,
    /// Register the files with the ring.
    pub registerfiles: bool,
    /// Have a thread of the kernel's take operations from the ring.
    pub sqthread_poll: bool,
    /// The CPU that that thread is bound to.
    pub sqthread_poll_cpu: Option<u32>,
    /// Percentiles of the report.
    pub percentiles: Vec<f64>,
    /// The keys of the section and of `[global]` as they were written, in their order, for reports.
    pub options: Vec<(String, String)>,
}

impl JobSpec {
    /// A job that moves each block of its files once, one at a time, directly through io_uring with
    /// buffers and files registered. It has no files yet.
    pub fn new(name: &str, rw: Rw, bs_bytes: u64) -> JobSpec {
        JobSpec {
            name: name.into(),
            clone: 0,
            group: 0,
            group_reporting: false,
            rw,
            rwmixread_percent: 50,
            ioengine: Ioengine::IoUring,
            iodepth: 1,
            iodepth_batch: 0,
            iodepth_batch_complete_min: 0,
            read_bs: BlockSizes::one(bs_bytes),
            write_bs: BlockSizes::one(bs_bytes),
            files: Vec::new(),
            offset_bytes: 0,
            file_bytes: None,
            io_bytes: None,
            loops: 1,
            direct: true,
            sync: SyncEach::No,
            fsync: None,
            fdatasync: None,
            end_fsync: false,
            runtime: None,
            time_based: false,
            ramp_time: Duration::ZERO,
            startdelay: Duration::ZERO,
            read_rate_bytes_per_s: None,
            write_rate_bytes_per_s: None,
            read_rate_iops: None,
            write_rate_iops: None,
            rate_process: Process::Linear,
            latencies: true,
            samples: true,
            norandommap: false,
            seed: 1,
            verify: None,
            data: Data::Random,
            fallocate: Fallocate::Native,
            invalidate: true,
            hipri: false,
            fixedbufs: true,
            registerfiles: true,
            sqthread_poll: false,
            sqthread_poll_cpu: None,
            percentiles: Vec::new(),
            options: Vec::new(),
        }
    }
}

/// Which operations, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// There are reads.
    pub read: bool,
    /// There are writes.
    pub write: bool,
    /// The offsets are in no order.
    pub random: bool,
}

impl Rw {
    /// fio's name: `read`, `write`, `rw`, `randread`, `randwrite`, `randrw`.
    pub fn as_str(self) -> &'static str {
        match (self.random, self.read, self.write) {
            (false, true, false) => "read",
            (false, false, true) => "write",
            (false, _, _) => "rw",
            (true, true, false) => "randread",
            (true, false, true) => "randwrite",
            (true, _, _) => "randrw",
        }
    }
}

/// Block sizes and how many percent of the operations have each; the percents add up to 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes(pub Vec<BlockShare>);

/// One size of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShare {
    /// Bytes of one operation.
    pub bytes: u64,
    /// Of 100 operations, how many have this size.
    pub percent: u32,
}

impl BlockSizes {
    /// One size for all.
    pub fn one(bytes: u64) -> BlockSizes {
        BlockSizes(vec![BlockShare { bytes, percent: 100 }])
    }

    /// The smallest: offsets are multiples of it.
    pub fn least_bytes(&self) -> u64 {
        self.0.iter().map(|share| share.bytes).min().unwrap_or(0)
    }

    /// The largest: what a buffer has room for.
    pub fn most_bytes(&self) -> u64 {
        self.0.iter().map(|share| share.bytes).max().unwrap_or(0)
    }
}

/// Whether each write is flushed before it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SyncEach {
    /// No.
    #[default]
    No,
    /// As a file opened with `O_DSYNC` does.
    Dsync,
    /// As a file opened with `O_SYNC` does.
    Sync,
}

/// The checksum of `verify=crc32c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verify {
    /// After the writes, everything that was written is read and checked (`do_verify`).
    pub after_writes: bool,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Data {
    /// Random, and no two sectors the same (M2).
    #[default]
    Random,
    /// Zeros (`zero_buffers`): named in the result.
    Zeros,
    /// Random with so many percent of each block zeros, so that it compresses by about as much
    /// (`buffer_compress_percentage`): named in the result.
    Compressible(u32),
}

/// How a file's blocks are made before the clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fallocate {
    /// Not at all: the file grows.
    None,
    /// `fallocate(2)` with mode 0 (`native`), as fio does by default.
    #[default]
    Native,
    /// `fallocate(2)` that keeps the file's size (`keep`).
    Keep,
    /// The size is set, without blocks (`truncate`).
    Truncate,
}
