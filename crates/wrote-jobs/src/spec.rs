//! Specifications of jobs, in fio's words, with every value decided.
//!
//! The parser of job files and the scenarios `ladder`, `peak`, `rand` and `sustained` make them.
//! [`crate::jobs`] runs them.

use crate::rate::Rate;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;
pub use wrote_result::document::BlockShare;
use wrote_result::document::Process;

/// One job on its files. A section with `numjobs` is that many [`JobSpec`]s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSpec {
    /// The section's name.
    pub name: String,
    /// The job's number among the section's `numjobs`, from 0.
    pub clone: u32,
    /// Jobs of one group run at once; groups run one after the other (`stonewall`, `new_group`).
    pub group: u32,
    /// Reports the jobs of the group as one.
    pub group_reporting: bool,
    /// Reads, writes or both, in order or not.
    pub rw: Rw,
    /// Bytes added to where each operation of a sequential job but the first would begin; where
    /// that leaves the file, it begins again at the start, or backwards at the end.
    pub step_bytes: i64,
    /// Operations of a random job that share one random offset.
    pub streak: Option<Streak>,
    /// Reads of 100 operations of a mix.
    pub rwmixread_percent: u32,
    /// How operations reach the kernel.
    pub ioengine: Ioengine,
    /// Operations in flight at once.
    pub iodepth: u32,
    /// Operations handed to the kernel together; with 0 and 1 the job decides.
    pub iodepth_batch: u32,
    /// Completions that one call waits for. With 0 the job waits for as many as come in 0.1 ms, so
    /// that it needs fewer calls.
    pub iodepth_batch_complete_min: u32,
    /// Bytes of reads.
    pub read_bs: BlockSizes,
    /// Bytes of writes.
    pub write_bs: BlockSizes,
    /// The files, which the operations use in turn.
    pub files: Vec<PathBuf>,
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
    /// Bytes to transfer over all files; `None` is each file's `file_bytes` once.
    pub io_bytes: Option<u64>,
    /// The most operations of each repetition, which ends early with them.
    pub number_ios: Option<u64>,
    /// Times that the job repeats its transfers.
    pub loops: u32,
    /// Bypasses the page cache.
    pub direct: bool,
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
    /// The latest end of the job, from the end of its ramp; a last flush is not counted.
    pub runtime: Option<Duration>,
    /// The job repeats until `runtime` is over.
    pub time_based: bool,
    /// Time at the start that the report leaves out.
    pub ramp_time: Duration,
    /// Delay of the job's start after the group's.
    pub startdelay: Duration,
    /// The name of an earlier job; this one starts when all its clones have ended.
    pub wait_for: Option<String>,
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
    /// Times each operation (not with `gtod_reduce`, `disable_lat` and `disable_clat`).
    pub latencies: bool,
    /// Samples the rates (not with `gtod_reduce`, `disable_bw_measurement`).
    pub samples: bool,
    /// Random offsets may repeat before each was used once.
    pub norandommap: bool,
    /// The blocks that a random job uses more than others.
    pub random_distribution: Distribution,
    /// The percentage of a random job's operations that are at a random offset; the others follow
    /// the previous one. `None` means all of them.
    pub percentage_random: Option<u32>,
    /// Seed of offsets, sizes, mix and Poisson arrivals; one seed gives one order (`randrepeat`).
    pub seed: u64,
    /// Blocks carry a checksum, which reads and `do_verify` check.
    pub verify: Option<Verify>,
    /// The bytes that the job writes.
    pub data: Data,
    /// The state of a new file's blocks when the clock starts.
    pub fallocate: Fallocate,
    /// Before the clock starts, writes all unwritten blocks that the job will overwrite.
    pub overwrite: bool,
    /// Removes the files, which the run made, after the job's group.
    pub unlink: bool,
    /// Drops the files' pages from the page cache first.
    pub invalidate: bool,
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
    /// Percentiles of the report.
    pub percentiles: Vec<f64>,
    /// The keys of the section and of `[global]` as written, in their order, for reports.
    pub options: Vec<(String, String)>,
}

impl JobSpec {
    /// Whether the job only reads, and checks blocks of an earlier one. It may read bytes that were
    /// never written, which hold nothing to check.
    pub fn only_verifies(&self) -> bool {
        self.verify.is_some() && !self.rw.write
    }

    /// Returns a job without files that transfers each block once, one at a time, directly through
    /// io_uring with buffers and files registered.
    pub fn new(name: &str, rw: Rw, bs_bytes: u64) -> JobSpec {
        JobSpec {
            name: name.into(),
            rw,
            rwmixread_percent: 50,
            iodepth: 1,
            read_bs: BlockSizes::one(bs_bytes),
            write_bs: BlockSizes::one(bs_bytes),
            loops: 1,
            direct: true,
            latencies: true,
            samples: true,
            seed: 1,
            invalidate: true,
            fixedbufs: true,
            registerfiles: true,
            ..JobSpec::default()
        }
    }

    /// Returns whether the run writes a file that it makes before the clock starts.
    pub fn is_laid_out(&self) -> bool {
        self.rw.read || self.overwrite
    }

    /// Returns fio's name of the order, with its number: `read`, `randread:8`, `write:4096`.
    pub fn rw_word(&self) -> String {
        let number = (self.step_bytes != 0).then_some(self.step_bytes);
        let number = number.or(self.streak.map(|streak| streak.ios.into()));
        let number = number.map_or(String::new(), |number| format!(":{number}"));
        format!("{}{number}", self.rw.as_str())
    }

    /// Returns the sizes of the job's directions.
    pub(crate) fn used_sizes(&self) -> impl Iterator<Item = &BlockSizes> {
        let read = self.rw.read.then_some(&self.read_bs);
        read.into_iter().chain(self.rw.write.then_some(&self.write_bs))
    }

    /// Returns the one size of all operations, where they have one.
    pub fn one_size(&self) -> Option<u64> {
        let mut sizes = self.used_sizes().map(BlockSizes::only);
        let first = sizes.next()??;
        sizes.all(|other| other == Some(first)).then_some(first)
    }

    /// Returns the bytes of `number_ios` operations, where all have one size.
    pub fn number_ios_bytes(&self) -> Option<u64> {
        Some(self.number_ios?.saturating_mul(self.one_size()?))
    }

    /// Returns the bytes of a file's region that the job touches: in order, no more than it
    /// transfers.
    pub fn touched(&self, region: Range<u64>) -> Range<u64> {
        let is_in_order = !self.rw.random && self.step_bytes == 0;
        let bytes = self.io_bytes.into_iter().chain(self.number_ios_bytes()).min();
        let bytes = bytes.filter(|_| is_in_order).unwrap_or(u64::MAX);
        region.start..region.end.min(region.start.saturating_add(bytes))
    }

    /// Returns the largest block of the job's directions.
    pub fn bs_bytes_max(&self) -> u64 {
        self.used_sizes().map(BlockSizes::most_bytes).max().unwrap_or(0)
    }

    /// Returns a clone of the job for each file. With a rate they share it, and each repeats until
    /// its `runtime` is over.
    pub fn on_each(&self, files: &[PathBuf], rate: Option<Rate>) -> Vec<JobSpec> {
        let count = files.len() as u32;
        let clone = |(number, file): (u32, &PathBuf)| {
            let mut job = JobSpec {
                clone: number,
                files: vec![file.clone()],
                seed: self.seed.wrapping_add(number.into()),
                ..self.clone()
            };
            if let Some(rate) = rate {
                job.hold(rate.share(number, count));
                // At even intervals the jobs take turns instead of all writing at once.
                if rate.process == Process::Linear {
                    job.startdelay = rate.mean_distance(self.bs_bytes_max()) * number;
                }
            }
            job
        };
        (0..).zip(files).map(clone).collect()
    }

    /// Limits the job to a rate, divided between its reads and writes, until its time is over.
    fn hold(&mut self, rate: Rate) {
        let [reads, writes] = match (self.rw.read, self.rw.write) {
            (true, true) => {
                let reads = rate.percent(self.rwmixread_percent);
                [Some(reads), Some(rate.percent(100 - self.rwmixread_percent))]
            }
            (read, write) => [read.then_some(rate), write.then_some(rate)],
        };
        self.read_rate_bytes_per_s = reads.and_then(|rate| rate.bytes_per_s());
        self.write_rate_bytes_per_s = writes.and_then(|rate| rate.bytes_per_s());
        self.read_rate_iops = reads.and_then(|rate| rate.iops());
        self.write_rate_iops = writes.and_then(|rate| rate.iops());
        self.rate_process = rate.process;
        (self.time_based, self.io_bytes) = (true, None);
    }
}

/// The operations and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rw {
    /// There are reads.
    pub read: bool,
    /// There are writes.
    pub write: bool,
    /// The offsets are in no order.
    pub random: bool,
}

impl Rw {
    /// Returns fio's name: `read`, `write`, `rw`, `randread`, `randwrite`, `randrw`.
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

/// Operations that follow each random offset (`rw=randread:8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streak {
    /// Operations of a streak, with the one at its random offset.
    pub ios: u32,
    /// All are at that offset, instead of one after the other (`rw_sequencer=identical`).
    pub identical: bool,
}

/// The distribution of random offsets over the blocks of a file. All but [`Distribution::Uniform`]
/// draw a block again before each was used.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Each block is as likely as another.
    #[default]
    Uniform,
    /// The block of rank k has a probability proportional to 1 / k^theta. The ranks are scattered
    /// over the file.
    Zipf {
        /// 0 or more; with 0 all blocks are equally likely.
        theta: f64,
        /// The place of the first rank in the file, from 0 to 1.
        center: Option<f64>,
    },
    /// A share `h` of the blocks gets the share 1 - `h` of the operations.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// As for `Zipf`.
        center: Option<f64>,
    },
    /// Zones from the start of the file on; within each, blocks are equally likely.
    Zoned(Vec<Zone>),
}

/// One zone of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The percentage of the operations.
    pub ios_percent: u32,
    /// The percentage of the file's bytes.
    pub bytes_percent: u32,
}

impl Distribution {
    /// Returns fio's words for it; `None` for a uniform one.
    pub fn words(&self) -> Option<String> {
        let of = |word: &str, shape: f64, center: Option<f64>| {
            let center = center.map_or(String::new(), |center| format!(":{center}"));
            format!("{word}:{shape}{center}")
        };
        match self {
            Distribution::Uniform => None,
            Distribution::Zipf { theta, center } => Some(of("zipf", *theta, *center)),
            Distribution::Pareto { h, center } => Some(of("pareto", *h, *center)),
            Distribution::Zoned(zones) => {
                let zone = |zone: &Zone| format!("{}/{}", zone.ios_percent, zone.bytes_percent);
                Some(format!("zoned:{}", zones.iter().map(zone).collect::<Vec<_>>().join(":")))
            }
        }
    }
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

/// The sizes of operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// Each with its percentage of the operations; the percentages add up to 100.
    Split(Vec<BlockShare>),
    /// The multiples of the smallest size up to the largest, equally likely (`bsrange`).
    Range {
        /// The smallest size, and the distance between two.
        least_bytes: u64,
        /// The largest size, a multiple of the smallest.
        most_bytes: u64,
    },
}

impl Default for BlockSizes {
    fn default() -> BlockSizes {
        BlockSizes::Split(Vec::new())
    }
}

impl BlockSizes {
    /// Returns one size for all operations.
    pub fn one(bytes: u64) -> BlockSizes {
        BlockSizes::Split(vec![BlockShare { bytes, percent: 100 }])
    }

    /// Returns the one size of all operations, where they have one.
    pub fn only(&self) -> Option<u64> {
        let most = self.most_bytes();
        (most > 0 && self.least_bytes() == most).then_some(most)
    }

    /// Returns the smallest size: offsets are multiples of it.
    pub fn least_bytes(&self) -> u64 {
        match self {
            BlockSizes::Split(shares) => shares.iter().map(|share| share.bytes).min().unwrap_or(0),
            BlockSizes::Range { least_bytes, .. } => *least_bytes,
        }
    }

    /// Returns the largest size, which is the size of a buffer.
    pub fn most_bytes(&self) -> u64 {
        match self {
            BlockSizes::Split(shares) => shares.iter().map(|share| share.bytes).max().unwrap_or(0),
            BlockSizes::Range { most_bytes, .. } => *most_bytes,
        }
    }

    /// Returns the greatest common divisor of the sizes.
    pub fn unit_bytes(&self) -> u64 {
        match self {
            BlockSizes::Split(shares) => {
                shares.iter().fold(0, |unit, share| gcd(unit, share.bytes))
            }
            BlockSizes::Range { least_bytes, .. } => *least_bytes,
        }
    }

    /// Returns the largest size of at most `most`.
    pub fn at_most(&self, most: u64) -> Option<u64> {
        match self {
            BlockSizes::Split(shares) => {
                shares.iter().map(|share| share.bytes).filter(|bytes| *bytes <= most).max()
            }
            BlockSizes::Range { least_bytes, most_bytes } => {
                let most = most.min(*most_bytes);
                Some(most - most % least_bytes).filter(|bytes| *bytes > 0)
            }
        }
    }
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

/// Returns `percent` percent of `bytes`.
pub fn share(bytes: u64, percent: u32) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

/// Returns the greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
