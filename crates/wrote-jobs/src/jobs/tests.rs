//! A plain job for tests, and a run of it on a simulated disk.

mod stall;

use super::check::sequence;
use crate::spec::{JobSpec, Rw, SyncEach, WRITE};
use crate::worker::{DirectionReport, Done, Progress, Shared, Worker};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wrote::engine::{Engine, Fault, Op, Options};
use wrote::{FileOptions, Ioengine, Sim};
use wrote_result::{Error, Stop};

pub const BS_BYTES: u64 = 4096;
pub const BLOCKS: u64 = 10;

/// Returns a job of ten blocks without further options.
pub fn spec(name: &str, rw: Rw) -> JobSpec {
    JobSpec::new(name, rw, BS_BYTES).with(|job| {
        job.io.iodepth = 4;
        job.files.paths = vec![format!("/sim/{name}").into()];
        job.files.file_bytes = Some(BLOCKS * BS_BYTES);
    })
}

pub fn path() -> &'static Path {
    Path::new("/sim/job")
}

fn all_rw() -> impl Iterator<Item = Rw> {
    [(true, false), (false, true), (true, true)]
        .into_iter()
        .flat_map(|(read, write)| [false, true].map(|random| Rw { read, write, random }))
}

/// Returns a job that writes at random offsets, with the change applied.
fn write(change: impl FnOnce(&mut JobSpec)) -> JobSpec {
    spec("job", Rw { random: true, ..WRITE }).with(change)
}

fn jobs() -> Vec<JobSpec> {
    let one = |iodepth: u32, rw| {
        spec("job", rw).with(|job| (job.io.iodepth, job.io.direct) = (iodepth, iodepth > 1))
    };
    let plain = all_rw().flat_map(|rw| [1, 4].map(|iodepth| one(iodepth, rw)));
    let more = [
        write(|job| (job.writes.fdatasync, job.writes.end_fsync) = (Some(3), true)),
        write(|job| job.writes.fsync = Some(1)),
        write(|job| job.writes.sync = SyncEach::Dsync),
        write(|job| {
            (job.order.norandommap, job.pace.loops, job.writes.end_fsync) = (true, 3, true);
        }),
        write(|job| (job.io.iodepth_batch, job.io.iodepth_batch_complete_min) = (2, 3)),
        write(|job| (job.writes.end_fdatasync, job.io.iodepth_batch_complete_min) = (true, 1)),
        write(|job| (job.writes.fdatasync, job.writes.latency_with_flush) = (Some(1), true)),
    ];
    plain.chain(more).collect()
}

/// Runs the job's loop on a simulated disk. The blocks that the job reads have been written before.
pub fn run(sim: &Sim, spec: &JobSpec, stop: &Stop) -> Result<Done, Error> {
    let options = Options::new(spec.io.ioengine, spec.io.iodepth, BS_BYTES as usize);
    let mut engine = Engine::simulated(sim, &options)?;
    let options = FileOptions::new()
        .create_new(sim.contents(path()).is_none())
        .write(true)
        .direct(spec.io.direct);
    let file = engine.open_file(path(), &options)?;
    sim.sync();
    let region = spec.files.offset_bytes..spec.files.offset_bytes + spec.files.file_bytes.unwrap();
    let sequence = sequence(spec, vec![region])?;
    let (failed, progress) = (AtomicBool::new(false), Progress::default());
    let shared = Shared { stop, failed: &failed, over: &failed, progress: &progress };
    let done =
        Worker::new(engine, vec![(path().to_owned(), file)], spec, sequence, shared)?.run()?;
    assert_eq!(progress.moved_bytes().iter().sum::<u64>(), bytes(&done), "what is shown is true");
    Ok(done)
}

/// Returns a disk with blocks to be read.
fn filled(seed: u64) -> Sim {
    let sim = Sim::new(seed);
    let options = Options::new(Ioengine::Psync, 1, (BLOCKS * BS_BYTES) as usize);
    let mut engine = Engine::simulated(&sim, &options).unwrap();
    let options = FileOptions::new().create_new(true).write(true);
    let file = engine.open_file(path(), &options).unwrap();
    let buffer = engine.lease().unwrap();
    engine.queue(0, Op::Write { file, offset: 0, buffer, durable: true });
    engine.drain().unwrap();
    sim
}

/// Returns the report on the writes.
pub fn writes(done: &Done) -> &DirectionReport {
    &done.tally.directions[1]
}

fn bytes(done: &Done) -> u64 {
    done.tally.directions.iter().map(|direction| direction.bytes).sum()
}

fn at_every_operation(fault: Fault, check: impl Fn(&JobSpec, Result<Done, Error>)) {
    for job in jobs() {
        let sim = filled(0);
        let before = sim.operations();
        run(&sim, &job, &Stop::new()).unwrap();
        for operation in before..sim.operations() {
            let sim = filled(operation);
            sim.fault(operation, fault);
            check(&job, run(&sim, &job, &Stop::new()));
        }
    }
}

#[test]
fn a_disk_that_moves_less_than_asked_or_is_interrupted_moves_every_byte_all_the_same() {
    // W4
    const EINTR: i32 = 4;
    for fault in [Fault::Short(0), Fault::Short(513), Fault::Short(4095), Fault::Once(EINTR)] {
        at_every_operation(fault, |job, done| match done {
            Ok(done) => {
                let whole = BLOCKS * BS_BYTES * u64::from(job.pace.loops);
                assert_eq!(bytes(&done), whole, "{job:?}");
                assert_eq!(done.issued, whole / BS_BYTES);
            }
            // If a read returns less than one further sector, the file seems to end there.
            Err(error) => {
                assert!(
                    job.order.rw.read && error.to_string().contains("the file ends after"),
                    "{error}"
                );
            }
        });
    }
}

#[test]
fn a_disk_that_fails_is_an_error_that_names_the_file_and_no_result() {
    let (io, full) = ("Input/output error", "No space left on device");
    for (fault, words) in [(Fault::Once(5), io), (Fault::Forever(28), full), (Fault::PowerLoss, io)]
    {
        at_every_operation(fault, |job, done| {
            let error = done.expect_err(&job.name).to_string();
            assert!(error.starts_with("/sim/job: "), "{error}");
            assert!(error.contains(words), "{error}");
        });
    }
}

#[test]
fn a_job_that_is_stopped_ends_early_and_counts_what_it_did() {
    for job in jobs() {
        let stop = Stop::new();
        stop.request();
        let done = run(&filled(1), &job, &stop).unwrap();
        assert_eq!(bytes(&done), done.issued * BS_BYTES, "{job:?}");
        assert!(bytes(&done) < BLOCKS * BS_BYTES * u64::from(job.pace.loops), "{job:?}");
    }
}

#[test]
fn a_neighbour_that_failed_ends_the_job() {
    let (stop, progress, failed) = (Stop::new(), Progress::default(), AtomicBool::new(true));
    assert!(
        Shared { stop: &stop, failed: &failed, over: &failed, progress: &progress }.must_stop()
    );
}

#[test]
fn flushes_come_after_so_many_writes_and_at_the_end_and_leave_everything_stable() {
    // M1
    for (job, flushes) in [
        (write(|job| (job.writes.fdatasync, job.writes.end_fsync) = (Some(3), true)), 4),
        (write(|job| job.writes.fsync = Some(1)), 10),
        (
            write(|job| {
                (job.writes.fsync, job.writes.fdatasync) = (Some(4), Some(2));
                job.writes.end_fsync = true;
            }),
            6,
        ),
        (write(|job| job.writes.end_fsync = true), 1),
        (write(|job| job.writes.end_fdatasync = true), 1),
        (write(|job| job.writes.sync = SyncEach::Dsync), 0),
    ] {
        let sim = Sim::new(3);
        let done = run(&sim, &job, &Stop::new()).unwrap();
        assert_eq!(done.tally.flush_ns.len(), flushes, "{job:?}");
        // M11: each write waits for a flush, and no write is shorter than the flush.
        let is_between = job.writes.fsync.is_some() || job.writes.fdatasync.is_some();
        let durable_ns = &done.tally.durable_ns;
        assert_eq!(durable_ns.len(), if is_between { BLOCKS } else { 0 }, "{job:?}");
        assert!(durable_ns.is_empty() || durable_ns.min() >= done.tally.flush_ns.min(), "{job:?}");
        let written = sim.contents(path()).unwrap();
        assert_eq!(sim.after_power_loss(path()).unwrap(), written);
    }
}

#[test]
fn depths_and_batches_add_up_to_the_operations() {
    for job in jobs() {
        let done = run(&filled(2), &job, &Stop::new()).unwrap();
        let depths = done.tally.depths();
        assert_eq!(depths.len(), done.issued);
        assert!(depths.max() <= u64::from(job.io.iodepth));
        for together in [done.tally.submitted_together(), done.tally.completed_together()] {
            let sum: u64 = together
                .iter_recorded()
                .map(|value| value.value_iterated_to() * value.count_at_value())
                .sum();
            assert_eq!(sum, done.issued, "{job:?}");
        }
    }
}

#[test]
fn as_many_completions_are_waited_for_and_operations_handed_on_as_was_asked() {
    let asked = write(|job| (job.io.iodepth_batch, job.io.iodepth_batch_complete_min) = (2, 3));
    let done = run(&Sim::new(1), &asked, &Stop::new()).unwrap();
    assert_eq!(done.tally.submitted_together().max(), 2);
    // The disk completes only as many operations as the job waits for. At the end, one operation is
    // left.
    assert_eq!(done.tally.completed_together().count_at(3), 3);
    assert_eq!(done.tally.completed_together().count_at(1), 1);
}
