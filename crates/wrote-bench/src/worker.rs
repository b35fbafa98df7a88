//! One thread's part of a run: it writes a file from start to end, and times each write.

use crate::data::Data;
use crate::job::{Flush, Job};
use crate::{Error, Stop};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};
use wrote::{Completion, Engine, FileId, Op};

/// The longest write that is told from longer ones: 10 minutes.
const LATENCY_MAX_NS: u64 = 600_000_000_000;

/// Writes that are handed on together while the queue is filled.
const SUBMIT_BATCH: usize = 16;

/// What one thread wrote.
pub(crate) struct Written {
    /// File bytes that were acknowledged.
    pub bytes: u64,
    /// Just before the first write.
    pub began: Instant,
    /// Just after the last acknowledgement, that of the flush included (M1).
    pub ended: Instant,
    /// From the submission of each write to its acknowledgement, with its own flush where each has
    /// one.
    pub latencies: Histogram<u64>,
}

/// A histogram of latencies: three significant digits up to 10 minutes.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are sound")
}

/// A file to be written, and everything that is ready before the clock starts (M2, M10).
pub(crate) struct Worker<'a> {
    pub engine: Engine,
    pub file: FileId,
    job: &'a Job,
    data: Data,
    latencies: Histogram<u64>,
    /// When each write in flight was submitted.
    submitted: Vec<Instant>,
    /// Places in `submitted` that no write in flight uses.
    free: Vec<usize>,
    completions: Vec<Completion>,
    acknowledged_bytes: u64,
    time: Duration,
    deadline: Instant,
    stop: &'a Stop,
    /// The time is over, or someone asked to stop.
    late: bool,
}

impl<'a> Worker<'a> {
    /// Makes data for every buffer of the engine's pool. The writing will end after `time`, or when
    /// someone asks for it, if the file is not whole before.
    pub(crate) fn new(
        mut engine: Engine,
        file: FileId,
        job: &'a Job,
        seed: u64,
        time: Duration,
        stop: &'a Stop,
    ) -> Result<Self, Error> {
        let mut data = Data::new(0, seed);
        let mut buffers = Vec::new();
        while engine.pool().free() > 0 {
            let mut buffer = engine.lease()?;
            data.fill(&mut buffer);
            buffers.push(buffer);
        }
        drop(buffers);
        let depth = engine.effective().iodepth as usize;
        Ok(Worker {
            engine,
            file,
            job,
            data,
            latencies: histogram(),
            submitted: vec![Instant::now(); depth],
            free: (0..depth).collect(),
            completions: Vec::with_capacity(depth),
            acknowledged_bytes: 0,
            time,
            deadline: Instant::now(),
            stop,
            late: false,
        })
    }

    /// Writes until the file is whole, or its time is over, or someone asks to stop.
    pub(crate) fn write(&mut self) -> Result<Written, Error> {
        let began = Instant::now();
        self.deadline = began + self.time;
        if self.job.flush == Flush::FdatasyncEach || self.submitted.len() == 1 {
            self.one_by_one()?;
        } else {
            self.many_at_once()?;
        }
        if self.job.flush == Flush::FdatasyncAtEnd {
            self.engine.flush(self.file)?;
        }
        let ended = Instant::now();
        let latencies = std::mem::replace(&mut self.latencies, histogram());
        Ok(Written { bytes: self.acknowledged_bytes, began, ended, latencies })
    }

    fn writes(&self) -> u64 {
        self.job.file_bytes() / self.job.bs_bytes
    }

    /// Queues a write; it is numbered by its place in `submitted`.
    fn queue(&mut self, write: u64, place: usize) -> Result<(), Error> {
        let mut buffer = self.engine.lease()?;
        self.data.stamp(&mut buffer);
        let offset = write * self.job.bs_bytes;
        let durable = self.job.flush == Flush::DsyncEach;
        self.submitted[place] = Instant::now();
        self.engine.queue(place as u64, Op::Write { file: self.file, offset, buffer, durable });
        Ok(())
    }

    /// Counts what was reaped, and makes its places free again.
    fn acknowledge(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        for completion in self.completions.drain(..) {
            let place = completion.user_data as usize;
            self.acknowledged_bytes += completion.result? as u64;
            let latency = now.duration_since(self.submitted[place]).as_nanos() as u64;
            self.latencies.saturating_record(latency);
            self.free.push(place);
        }
        self.late = now >= self.deadline || self.stop.is_requested();
        Ok(())
    }

    /// Each write ends, with its own flush, before the next begins.
    fn one_by_one(&mut self) -> Result<(), Error> {
        for write in 0..self.writes() {
            let place = self.free.pop().expect("nothing is in flight");
            self.queue(write, place)?;
            self.engine.reap(1, &mut self.completions)?;
            if self.job.flush == Flush::FdatasyncEach {
                self.engine.flush(self.file)?;
            }
            self.acknowledge()?;
            if self.late {
                break;
            }
        }
        Ok(())
    }

    /// Keeps `iodepth` writes in flight.
    fn many_at_once(&mut self) -> Result<(), Error> {
        let mut writes = 0..self.writes();
        while !self.late {
            while !self.free.is_empty()
                && let Some(write) = writes.next()
            {
                let place = self.free.pop().expect("not empty");
                self.queue(write, place)?;
                // The device has work while the rest of the queue is filled.
                if self.free.len().is_multiple_of(SUBMIT_BATCH) {
                    self.engine.submit()?;
                }
            }
            if self.engine.outstanding() == 0 {
                return Ok(());
            }
            self.engine.reap(1, &mut self.completions)?;
            self.acknowledge()?;
        }
        self.engine.reap(usize::MAX, &mut self.completions)?;
        self.acknowledge()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Blocks;
    use std::path::Path;
    use wrote::{Fault, FileOptions, Ioengine, Options, Sim};

    const BS_BYTES: u64 = 4096;
    const WRITES: u64 = 10;

    fn job(iodepth: u32, direct: bool, flush: Flush) -> Job {
        Job {
            ioengine: if iodepth == 1 { Ioengine::Psync } else { Ioengine::IoUring },
            direct,
            bs_bytes: BS_BYTES,
            size_bytes: BS_BYTES * WRITES,
            iodepth,
            numjobs: 1,
            flush,
            blocks: Blocks::New,
        }
    }

    fn jobs() -> Vec<Job> {
        let flushes = [Flush::None, Flush::FdatasyncAtEnd, Flush::FdatasyncEach, Flush::DsyncEach];
        let depths = [1, 4];
        let ways = depths.iter().flat_map(|&depth| [(depth, false), (depth, true)]);
        ways.flat_map(|(depth, direct)| flushes.map(|flush| job(depth, direct, flush))).collect()
    }

    fn path() -> &'static Path {
        Path::new("/sim/job-0.data")
    }

    /// The sequential workload on a simulated disk.
    fn write(sim: &Sim, job: &Job, stop: &Stop) -> Result<Written, Error> {
        let options = Options::new(job.ioengine, job.iodepth, job.bs_bytes as usize);
        let mut engine = Engine::simulated(sim, &options)?;
        let options = FileOptions {
            create_new: true,
            write: true,
            direct: job.direct,
            ..FileOptions::default()
        };
        let file = engine.open_file(path(), &options)?;
        Worker::new(engine, file, job, 1, Duration::from_secs(3600), stop)?.write()
    }

    fn operations(job: &Job) -> u64 {
        let sim = Sim::new(0);
        write(&sim, job, &Stop::new()).unwrap();
        sim.operations()
    }

    /// Runs every job with the fault at every operation.
    fn at_every_operation(fault: Fault, check: impl Fn(&Sim, &Job, Result<Written, Error>)) {
        for job in jobs() {
            for operation in 0..operations(&job) {
                let sim = Sim::new(operation);
                sim.fault(operation, fault);
                check(&sim, &job, write(&sim, &job, &Stop::new()));
            }
        }
    }

    #[test]
    fn a_disk_that_takes_less_than_asked_or_is_interrupted_gets_every_byte_all_the_same() {
        // W4
        const EINTR: i32 = 4;
        for fault in [Fault::Short(0), Fault::Short(513), Fault::Short(4095), Fault::Once(EINTR)] {
            at_every_operation(fault, |sim, job, written| {
                let written = written.unwrap();
                assert_eq!(written.bytes, job.size_bytes);
                assert_eq!(written.latencies.len(), WRITES);
                assert_eq!(sim.contents(path()).unwrap().len() as u64, job.size_bytes);
            });
        }
    }

    #[test]
    fn a_disk_that_fails_once_or_for_ever_or_is_full_is_an_error_and_no_result() {
        for (errno, words) in [(5, "Input/output error"), (28, "No space left on device")] {
            for fault in [Fault::Once(errno), Fault::Forever(errno)] {
                at_every_operation(fault, |_, _, written| {
                    let error = written.err().expect("an error").to_string();
                    assert!(error.contains(words), "{error}");
                });
            }
        }
    }

    #[test]
    fn a_disk_that_loses_its_power_is_an_error_and_no_result() {
        at_every_operation(Fault::PowerLoss, |_, _, written| assert!(written.is_err()));
    }

    #[test]
    fn a_run_that_flushed_left_every_byte_on_stable_storage() {
        // M1
        for job in jobs().iter().filter(|job| job.flush != Flush::None) {
            let sim = Sim::new(3);
            write(&sim, job, &Stop::new()).unwrap();
            let written = sim.contents(path()).unwrap();
            assert_eq!(sim.after_power_loss(path()).unwrap(), written);
        }
    }

    #[test]
    fn no_two_sectors_that_are_written_are_equal() {
        // M2
        for job in jobs() {
            let sim = Sim::new(3);
            write(&sim, &job, &Stop::new()).unwrap();
            let contents = sim.contents(path()).unwrap();
            let sectors: std::collections::HashSet<&[u8]> = contents.chunks(512).collect();
            assert_eq!(sectors.len(), contents.len() / 512);
        }
    }

    #[test]
    fn a_run_that_is_stopped_or_late_ends_early_with_what_it_wrote() {
        for job in jobs() {
            let stop = Stop::new();
            stop.request();
            let written = write(&Sim::new(1), &job, &stop).unwrap();
            assert!(written.bytes < job.size_bytes, "{job:?}");
            assert_eq!(written.bytes, written.latencies.len() * BS_BYTES);
        }
    }
}
