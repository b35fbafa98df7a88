//! The ladder's workload on a simulated disk.

use super::*;
use wrote::Engine;
use wrote_jobs::worker::{Done, Progress, Shared, Worker};
use wrote_result::Stop;

use std::path::Path;
use std::sync::atomic::AtomicBool;
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
        rate: None,
    }
}

fn jobs() -> Vec<Job> {
    let flushes = [Flush::None, Flush::FdatasyncAtEnd, Flush::FdatasyncEach, Flush::ODsyncEach];
    let depths = [1, 4];
    let ways = depths.iter().flat_map(|&depth| [(depth, false), (depth, true)]);
    ways.flat_map(|(depth, direct)| flushes.map(|flush| job(depth, direct, flush))).collect()
}

fn path() -> &'static Path {
    Path::new("/sim/job-0.data")
}

/// The sequential workload on a simulated disk.
fn write(sim: &Sim, job: &Job, stop: &Stop) -> Result<Done, Error> {
    let options = Options::new(job.ioengine, job.iodepth, job.bs_bytes as usize);
    let mut engine = Engine::simulated(sim, &options)?;
    let options =
        FileOptions { create_new: true, write: true, direct: job.direct, ..FileOptions::default() };
    let file = engine.open_file(path(), &options)?;
    sim.sync();
    let task = job.task(0, Duration::from_secs(3600), 1)?;
    let (failed, progress) = (AtomicBool::new(false), Progress::default());
    let shared = Shared { stop, failed: &failed, progress: &progress };
    Worker::new(engine, vec![(path().to_owned(), file)], task, shared)?.run()
}

fn operations(job: &Job) -> u64 {
    let sim = Sim::new(0);
    write(&sim, job, &Stop::new()).unwrap();
    sim.operations()
}

/// Runs every job with the fault at every operation.
fn at_every_operation(fault: Fault, check: impl Fn(&Sim, &Job, Result<Done, Error>)) {
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
            assert_eq!(written.writes().bytes, job.size_bytes);
            assert_eq!(written.writes().latency_ns.len(), WRITES);
            assert_eq!(sim.contents(path()).unwrap().len() as u64, job.size_bytes);
        });
    }
}

#[test]
fn a_disk_that_fails_once_or_for_ever_or_is_full_is_an_error_and_no_result() {
    for (errno, words) in [(5, "Input/output error"), (28, "No space left on device")] {
        for fault in [Fault::Once(errno), Fault::Forever(errno)] {
            at_every_operation(fault, |_, _, written| {
                let error = written.expect_err("an error").to_string();
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
        assert!(written.writes().bytes < job.size_bytes, "{job:?}");
        assert_eq!(written.writes().bytes, written.writes().latency_ns.len() * BS_BYTES);
    }
}
