//! One way of writing: what is asked of a run, in fio's words.

use std::time::Duration;
use wrote::Ioengine;
use wrote_jobs::rate::{Process, Rate};
use wrote_jobs::spec::{BlockSizes, Data, Rw};
use wrote_jobs::worker::Task;
use wrote_jobs::worker::pace::Pace;
use wrote_jobs::worker::sequence::{Outline, Sequence};
use wrote_result::Error;
use wrote_result::document::{Blocks, Flush, Settings};

/// What is asked of a run. Each of its `numjobs` threads writes a file of its own, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// How operations reach the kernel.
    pub ioengine: Ioengine,
    /// Bypass the page cache.
    pub direct: bool,
    /// Bytes of one write.
    pub bs_bytes: u64,
    /// Bytes of the whole run: a multiple of `bs_bytes * numjobs`.
    pub size_bytes: u64,
    /// Writes in flight at once, of one thread.
    pub iodepth: u32,
    /// Threads.
    pub numjobs: u32,
    /// When it flushes.
    pub flush: Flush,
    /// What it writes to.
    pub blocks: Blocks,
    /// What all threads together are held to. Each then writes its file again and again until its time
    /// is over; without a rate once.
    pub rate: Option<Rate>,
}

impl Job {
    /// Bytes that one thread writes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.size_bytes / u64::from(self.numjobs)
    }

    /// What is asked, for the result.
    pub(crate) fn asked(&self) -> Settings {
        let ring = |wanted: bool| (self.ioengine == Ioengine::IoUring).then_some(wanted);
        Settings {
            rw: "write".into(),
            ioengine: self.ioengine.into(),
            bs_bytes: self.bs_bytes,
            size_bytes: self.size_bytes,
            iodepth: self.iodepth,
            numjobs: self.numjobs,
            direct: self.direct,
            sync: self.flush,
            blocks: self.blocks,
            registered_buffers: ring(true),
            registered_files: ring(true),
            rate_bytes_per_s: self.rate.and_then(|rate| rate.bytes_per_s_of(self.numjobs)),
            rate_iops: self.rate.and_then(|rate| rate.iops_of(self.numjobs)),
            rate_process: self.rate.map(|rate| rate.process),
            ..Settings::default()
        }
    }

    /// What the thread of this number does: its file from start to end, under a rate again and again.
    /// It is cut off after `time`, a last flush not counted.
    pub(crate) fn task(&self, number: u32, time: Duration, data_seed: u64) -> Result<Task, Error> {
        let sequence = Sequence::new(Outline {
            rw: Rw { read: false, write: true, random: false },
            rwmixread_percent: 0,
            read_bs: BlockSizes::one(self.bs_bytes),
            write_bs: BlockSizes::one(self.bs_bytes),
            regions: std::iter::once(0..self.file_bytes()).collect(),
            io_bytes: None,
            loops: self.rate.is_none().then_some(1),
            norandommap: false,
            seed: 0,
        });
        let too_small = || Error::Failed("a file has no room for a single write".into());
        let each = self.flush == Flush::FdatasyncEach;
        Ok(Task {
            sequence: sequence.ok_or_else(too_small)?,
            comes_again: self.rate.is_some(),
            data: Data::Random,
            data_seed,
            verify: false,
            check_reads: false,
            durable: self.flush == Flush::ODsyncEach,
            fsync_after: None,
            fdatasync_after: each.then_some(1),
            latency_with_flush: each,
            end_fsync: false,
            end_fdatasync: self.flush == Flush::FdatasyncAtEnd,
            submit_together: None,
            wait_for: Some(1),
            latencies: true,
            samples: true,
            pace: [Pace::default(), self.pace(number, data_seed)],
            startdelay: self.startdelay(number),
            ramp: Duration::ZERO,
            time: Some(time),
        })
    }

    fn pace(&self, number: u32, seed: u64) -> Pace {
        self.rate.map_or_else(Pace::default, |rate| Pace::share(rate, number, self.numjobs, seed))
    }

    /// At even distances threads come in turn, and not all at once.
    fn startdelay(&self, number: u32) -> Duration {
        let linear = self.rate.filter(|rate| rate.process == Process::Linear);
        linear.map_or(Duration::ZERO, |rate| rate.mean_distance(self.bs_bytes) * number)
    }
}

#[cfg(test)]
mod tests;
