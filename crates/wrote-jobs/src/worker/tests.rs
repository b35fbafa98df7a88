//! A sequential writer on a simulated disk, with every kind of flush.

use super::{Done, room};
use crate::jobs::tests::{BLOCKS, BS_BYTES, path, run, spec, writes};
use crate::spec::{JobSpec, Rw, SyncEach, Think};
use std::collections::HashSet;
use std::time::Duration;
use wrote::engine::Fault;
use wrote::{Ioengine, Sim};
use wrote_result::{Error, Stop};

fn job(iodepth: u32, direct: bool) -> JobSpec {
    JobSpec {
        ioengine: if iodepth == 1 { Ioengine::Psync } else { Ioengine::IoUring },
        direct,
        iodepth,
        iodepth_batch_complete_min: 1,
        ..spec("job", Rw { read: false, write: true, random: false })
    }
}

fn is_flushed(job: &JobSpec) -> bool {
    job.end_fdatasync || job.fdatasync.is_some() || job.sync != SyncEach::No
}

fn jobs() -> Vec<JobSpec> {
    let ways = [(1, false), (1, true), (4, false), (4, true)];
    let with_each_flush = |(iodepth, direct)| {
        let job = job(iodepth, direct);
        [
            JobSpec { end_fdatasync: true, ..job.clone() },
            JobSpec { fdatasync: Some(1), latency_with_flush: true, ..job.clone() },
            JobSpec { sync: SyncEach::Dsync, ..job.clone() },
            job,
        ]
    };
    ways.into_iter().flat_map(with_each_flush).collect()
}

fn operations(job: &JobSpec) -> u64 {
    let sim = Sim::new(0);
    run(&sim, job, &Stop::new()).unwrap();
    sim.operations()
}

/// Runs every job with the fault at every operation.
fn at_every_operation(fault: Fault, check: impl Fn(&Sim, &JobSpec, Result<Done, Error>)) {
    for job in jobs() {
        for operation in 0..operations(&job) {
            let sim = Sim::new(operation);
            sim.fault(operation, fault);
            check(&sim, &job, run(&sim, &job, &Stop::new()));
        }
    }
}

#[test]
fn a_pause_of_a_job_with_a_rate_is_in_no_latency() {
    // M5: the operations after a pause were due in it.
    let time = Duration::from_millis(300);
    let think = Some(Think { time, spin: Duration::ZERO, blocks: 1 });
    let job = JobSpec { think, write_rate_iops: Some(1000), number_ios: Some(3), ..job(1, false) };
    let done = run(&Sim::new(0), &job, &Stop::new()).unwrap();
    let latencies = &writes(&done).latency_ns;
    assert_eq!(latencies.len(), 3);
    let second = latencies.value_at_quantile(0.6);
    assert!(u128::from(second) < time.as_nanos() - 50_000_000, "{second}");
}

#[test]
fn a_disk_that_takes_less_than_asked_or_is_interrupted_gets_every_byte_all_the_same() {
    // W4
    const EINTR: i32 = 4;
    for fault in [Fault::Short(0), Fault::Short(513), Fault::Short(4095), Fault::Once(EINTR)] {
        at_every_operation(fault, |sim, _, written| {
            let written = written.unwrap();
            assert_eq!(writes(&written).bytes, BLOCKS * BS_BYTES);
            assert_eq!(writes(&written).latency_ns.len(), BLOCKS);
            assert_eq!(sim.contents(path()).unwrap().len() as u64, BLOCKS * BS_BYTES);
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
    for job in jobs().iter().filter(|job| is_flushed(job)) {
        let sim = Sim::new(3);
        run(&sim, job, &Stop::new()).unwrap();
        let written = sim.contents(path()).unwrap();
        assert_eq!(sim.after_power_loss(path()).unwrap(), written);
    }
}

#[test]
fn no_two_sectors_that_are_written_are_equal() {
    // M2
    for job in jobs() {
        let sim = Sim::new(3);
        run(&sim, &job, &Stop::new()).unwrap();
        let contents = sim.contents(path()).unwrap();
        let sectors: HashSet<&[u8]> = contents.chunks(512).collect();
        assert_eq!(sectors.len(), contents.len() / 512);
    }
}

#[test]
fn a_run_that_is_stopped_or_late_ends_early_with_what_it_wrote() {
    for job in jobs() {
        let stop = Stop::new();
        stop.request();
        let written = run(&Sim::new(1), &job, &stop).unwrap();
        assert!(writes(&written).bytes < BLOCKS * BS_BYTES, "{job:?}");
        assert_eq!(writes(&written).bytes, writes(&written).latency_ns.len() * BS_BYTES);
    }
}

#[test]
fn an_idle_device_gets_its_first_operations_at_once_and_a_busy_one_the_rest_in_one_call() {
    for (free, in_flight, expected) in [
        (128, 0, 32),
        (96, 32, 96),
        (33, 95, 33),
        (63, 0, 63),
        // A queue of thousands is not filled at once beside a few operations.
        (4064, 32, 128),
        (3936, 160, 640),
    ] {
        assert_eq!(room(free, in_flight), expected, "{free} free, {in_flight} in flight");
    }
}
