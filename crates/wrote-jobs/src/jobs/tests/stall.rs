//! A device that stalls in closed and open loops (M5), and jobs with a rate.

use super::{BLOCKS, BS_BYTES, filled, run, spec, writes};
use crate::jobs::check::sequence;
use crate::spec::{READ, Rw, WRITE};
use crate::worker::{Done, Progress, Shared, Worker};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wrote::engine::{Engine, Options};
use wrote::{FileOptions, Ioengine};
use wrote_result::Stop;
use wrote_result::document::Process;

const READS: u64 = 100;
const BEFORE_STALL: u64 = 5;
const STALL: Duration = Duration::from_secs(1);

/// Reads from a pipe, one read after another. The pipe stays empty for a second after the first few
/// reads. Returns `None` without io_uring, because no other engine can read a pipe at an offset.
fn read_from_stalling_pipe(rate_iops: Option<u32>) -> Option<Done> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    let mut engine = Engine::open(&Options::new(Ioengine::IoUring, 1, BS_BYTES as usize)).unwrap();
    if engine.effective().ioengine != Ioengine::IoUring {
        return None;
    }
    let options = FileOptions::new().write(true);
    let file = engine.open_file(&path, &options).unwrap();
    let mut job = spec("pipe", READ);
    job.io.iodepth = 1;
    job.pace.read_rate_iops = rate_iops;
    job.files.file_bytes = Some(READS * BS_BYTES);
    let region = 0..READS * BS_BYTES;
    let sequence = sequence(&job, vec![region]).unwrap();
    let (stop, failed, progress) = (Stop::new(), AtomicBool::new(false), Progress::default());
    let shared = Shared { stop: &stop, failed: &failed, over: &failed, progress: &progress };
    let files = vec![(path.clone(), file)];
    let mut worker = Worker::new(engine, files, &job, sequence, shared).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| feed(&path, &progress));
        Some(worker.run().unwrap())
    })
}

fn feed(path: &Path, progress: &Progress) {
    let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let mut write = |count: u64| {
        (0..count).for_each(|_| pipe.write_all(&[7; BS_BYTES as usize]).unwrap());
    };
    write(BEFORE_STALL);
    while progress.moved_bytes()[0] < BEFORE_STALL * BS_BYTES {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(STALL);
    write(READS - BEFORE_STALL);
}

/// Returns the sum of all latencies, in seconds.
fn waited_s(done: &Done) -> f64 {
    let latency_ns = &done.tally.directions[0].latency_ns;
    assert_eq!(latency_ns.len(), READS);
    latency_ns.mean() * READS as f64 / 1e9
}

#[test]
fn while_a_device_stands_still_all_that_is_due_waits_in_an_open_loop_and_one_in_a_closed_loop() {
    // M5. All operations are due within half of the stall, so each operation after the stall's
    // start waited at least half a second, however busy the machine is.
    let Some(open) = read_from_stalling_pipe(Some(200)) else {
        return fixtures::skip("a stall in both loops", "there is no io_uring");
    };
    let latency_ns = &open.tally.directions[0].latency_ns;
    let half_second = 499_000_000;
    assert!(latency_ns.count_between(half_second, u64::MAX) >= READS - BEFORE_STALL);
    assert!(waited_s(&open) > 47.0, "{}", waited_s(&open));
    // In a closed loop of depth 1, waits do not overlap, so their sum is at most the elapsed time.
    let closed = read_from_stalling_pipe(None).unwrap();
    assert!(waited_s(&closed) <= 1.01 * (closed.ended - closed.began).as_secs_f64());
    assert!(closed.tally.directions[0].latency_ns.max() >= half_second, "the one that waited");
}

#[test]
fn nothing_is_handed_on_before_it_is_due_and_how_late_it_was_is_counted() {
    for process in [Process::Linear, Process::Poisson] {
        let mut job = spec("job", READ);
        (job.pace.read_rate_iops, job.pace.rate_process) = (Some(1000), process);
        let done = run(&filled(1), &job, &Stop::new()).unwrap();
        assert_eq!(done.tally.issue_delay_ns.len(), BLOCKS);
        assert_eq!(done.tally.directions[0].latency_ns.len(), BLOCKS);
        if process == Process::Linear {
            assert!(done.ended - done.began >= Duration::from_millis(BLOCKS - 1));
        }
    }
    let closed = run(&filled(1), &spec("job", READ), &Stop::new()).unwrap();
    assert_eq!(closed.tally.issue_delay_ns.len(), 0);
}

#[test]
fn without_latencies_all_operations_are_counted_and_none_is_timed() {
    for iodepth in [1, 4] {
        let job = spec("job", Rw { random: true, ..WRITE }).with(|job| {
            job.io.iodepth = iodepth;
            job.latencies = false;
            job.samples = false;
            job.writes.fdatasync = Some(2);
        });
        let done = run(&filled(1), &job, &Stop::new()).unwrap();
        assert_eq!(writes(&done).operations, BLOCKS);
        assert_eq!(writes(&done).bytes, BLOCKS * BS_BYTES);
        assert_eq!((writes(&done).latency_ns.len(), done.tally.flush_ns.len()), (0, 0));
        // The only sample covers the whole job.
        assert_eq!(writes(&done).bandwidth_samples_bytes_per_s.len(), 1);
    }
}
