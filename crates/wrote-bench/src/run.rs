//! One run of one way: files are made ready, the clock runs, what it cost is counted, all is cleared.

use crate::job::{Blocks, Job};
use crate::result::{Fallback, Run, Settings};
use crate::usage::Usage;
use crate::worker::{Worker, Written, histogram};
use crate::{Error, Stop};
use hdrhistogram::Histogram;
use rand::TryRng;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use wrote::device::{BlockDevice, Counters};
use wrote::{Effective, Engine, FileOptions, Op, Options};

/// The buffers are at least this much together: a large buffer keeps most of its bytes from one
/// write to the next, and a single one would repeat itself within what a file system compresses.
const POOL_BYTES_MIN: u64 = 1 << 20;

/// What one run gave.
pub(crate) struct Measured {
    pub run: Run,
    pub latencies: Histogram<u64>,
    /// What was in effect, with the depth that was reached.
    pub effective: Settings,
    pub fallbacks: Vec<Fallback>,
}

/// Where and within which bounds a run is made.
pub(crate) struct Place<'a> {
    /// The files of the jobs, one each.
    pub files: &'a [PathBuf],
    /// The device whose counters are read (M7).
    pub device: Option<&'a BlockDevice>,
    /// How long the clock may run, a last flush not counted.
    pub time: Duration,
    pub stop: &'a Stop,
}

/// Makes one run. The files are left as they are afterwards.
pub(crate) fn run(job: &Job, place: &Place) -> Result<Measured, Error> {
    let (told, news) = channel();
    let (parts, usage, counters) = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut not_started = None;
        for path in &place.files[..job.numjobs as usize] {
            let (orders, ordered) = channel();
            let gate = Gate { told: told.clone(), ordered };
            let work = move || work(job, path, place, &gate);
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push((orders, thread)),
                Err(error) => {
                    not_started = Some(Error::Failed(format!("starting a thread: {error}")));
                    break;
                }
            }
        }
        // Making ready and clearing up cost nobody's CPU time: all are ready before the clock of
        // the first starts, and nobody clears up before all is counted.
        let all = |threads: &[_]| threads.iter().for_each(|_| news.recv().expect("told holds it"));
        let order = |threads: &[(Sender<()>, _)]| {
            threads.iter().for_each(|(orders, _)| orders.send(()).unwrap_or_default());
        };
        all(&threads);
        let counters_before = counters(place.device);
        let usage_before = Usage::now();
        if not_started.is_none() {
            order(&threads);
            all(&threads);
        }
        let usage = Usage::now().since(&usage_before);
        let counters =
            counters(place.device).zip(counters_before).map(|(after, before)| after.since(&before));
        // All are waited for before the first error is told.
        let parts = threads.into_iter().map(|(orders, thread)| {
            drop(orders);
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let mut parts: Vec<Result<Part, Error>> = parts.collect();
        parts.splice(..0, not_started.map(Err));
        (parts, usage, counters)
    });
    let parts = parts.into_iter().collect::<Result<Vec<Part>, Error>>()?;
    place.stop.check()?;
    Ok(measured(job, parts, usage, counters))
}

/// Where a thread tells how far it is, and waits for what comes next.
struct Gate {
    told: Sender<()>,
    ordered: Receiver<()>,
}

impl Gate {
    /// Tells that this far all is done, and waits for the next order; `false` where none will come.
    fn pass(&self) -> bool {
        self.told.send(()).is_ok() && self.ordered.recv().is_ok()
    }
}

fn counters(device: Option<&BlockDevice>) -> Option<Counters> {
    device.filter(|device| device.counts())?.counters().ok()
}

/// What one thread gave.
struct Part {
    written: Written,
    effective: Effective,
    direct: bool,
    blocks: Blocks,
    fallbacks: Vec<Fallback>,
}

/// What a thread has ready when the clock starts.
struct Ready<'a> {
    worker: Worker<'a>,
    blocks: Blocks,
    fallbacks: Vec<Fallback>,
}

fn work(job: &Job, path: &Path, place: &Place, gate: &Gate) -> Result<Part, Error> {
    let ready = or_panicked(|| make_ready(job, path, place));
    if !gate.pass() {
        return Err(Error::Interrupted);
    }
    let written = or_panicked(|| {
        let mut ready = ready?;
        Ok((ready.worker.write()?, ready))
    });
    gate.pass();
    let (written, Ready { mut worker, blocks, mut fallbacks }) = written?;
    if job.blocks == Blocks::Written {
        // The file stays. Where O_DIRECT fell back, the kernel would write it back at the cost of
        // later runs.
        worker.engine.flush(worker.file)?;
    }
    let engine = &worker.engine;
    fallbacks.extend(engine.effective().fallbacks.iter().map(|step| Fallback {
        wanted: step.wanted.into(),
        got: step.got.into(),
        because: step.because.clone(),
    }));
    let direct = engine.is_direct(worker.file);
    Ok(Part { written, effective: engine.effective().clone(), direct, blocks, fallbacks })
}

/// A thread that panicked would leave the others waiting for its news.
fn or_panicked<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::Failed("a thread of the run panicked: see above".into())))
}

fn make_ready<'a>(job: &'a Job, path: &Path, place: &'a Place) -> Result<Ready<'a>, Error> {
    let mut options = Options::new(job.ioengine, job.iodepth, job.bs_bytes as usize);
    options.buffers = options.buffers.max((POOL_BYTES_MIN / job.bs_bytes) as u32);
    let mut engine = Engine::open(&options)?;
    let create_new = job.blocks != Blocks::Written;
    let options = FileOptions { create_new, write: true, direct: job.direct, ..Default::default() };
    let file = engine.open_file(path, &options)?;
    let (mut blocks, mut fallbacks) = (job.blocks, Vec::new());
    if job.blocks == Blocks::Allocated {
        engine.queue(0, Op::Fallocate { file, offset: 0, len: job.file_bytes() });
        match engine.drain() {
            Ok(()) => {}
            Err(error) if cannot_allocate(error.errno()) => {
                blocks = Blocks::New;
                fallbacks.push(Fallback {
                    wanted: "allocated blocks".into(),
                    got: "new blocks".into(),
                    because: format!("fallocate: {}", io::Error::from_raw_os_error(error.errno())),
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    let worker = Worker::new(engine, file, job, seed(), place.time, place.stop)?;
    Ok(Ready { worker, blocks, fallbacks })
}

/// The file system has no `fallocate(2)`.
fn cannot_allocate(errno: i32) -> bool {
    use rustix::io::Errno;
    [Errno::OPNOTSUPP, Errno::NOSYS].iter().any(|known| known.raw_os_error() == errno)
}

/// Another run's data is never the same (M2).
fn seed() -> u64 {
    rand::rngs::SysRng.try_next_u64().unwrap_or_else(|_| {
        // No getrandom(2): the clock tells two runs apart too.
        std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos() as u64)
    })
}

fn measured(job: &Job, parts: Vec<Part>, usage: Usage, counters: Option<Counters>) -> Measured {
    let began = parts.iter().map(|part| part.written.began).min();
    let ended = parts.iter().map(|part| part.written.ended).max();
    let elapsed = ended.zip(began).map_or(Duration::ZERO, |(end, begin)| end - begin);
    let elapsed_s = elapsed.as_secs_f64().max(1e-9);
    let bytes: u64 = parts.iter().map(|part| part.written.bytes).sum();
    let mut latencies = histogram();
    for part in &parts {
        latencies.add(&part.written.latencies).expect("all histograms have the same bounds");
    }
    let first = &parts[0];
    let mut fallbacks: Vec<Fallback> =
        parts.iter().flat_map(|part| part.fallbacks.clone()).collect();
    fallbacks.sort();
    fallbacks.dedup();
    let iodepth_reached =
        parts.iter().map(|part| part.effective.iodepth_reached).max().unwrap_or_default();
    let ring = |is: bool| (first.effective.ioengine == wrote::Ioengine::IoUring).then_some(is);
    let flags = first.effective.ring_flags.iter().map(|flag| (*flag).to_owned()).collect();
    let effective = Settings {
        ioengine: first.effective.ioengine.as_str().into(),
        iodepth: iodepth_reached,
        direct: parts.iter().all(|part| part.direct),
        blocks: Job { blocks: first.blocks, ..*job }.asked().blocks,
        registered_buffers: ring(first.effective.registered_buffers),
        registered_files: ring(first.effective.registered_files),
        ring_flags: ring(true).map(|_| flags),
        ..job.asked()
    };
    let run = Run {
        bytes,
        elapsed_s,
        throughput_bytes_per_s: bytes as f64 / elapsed_s,
        iops: latencies.len() as f64 / elapsed_s,
        cpu_user_s: usage.cpu_user_s,
        cpu_system_s: usage.cpu_system_s,
        context_switches: usage.context_switches,
        device_written_bytes: counters.map(|counters| counters.written_bytes),
        device_read_bytes: counters.map(|counters| counters.read_bytes),
        max_rss_bytes: usage.max_rss_bytes,
        iodepth_reached,
    };
    Measured { run, latencies, effective, fallbacks }
}

/// Removes the files, and waits until the file system has let go of them: what the next run measures
/// is its own writes alone.
pub(crate) fn clear(files: &[PathBuf], folder: &Path) -> Result<(), Error> {
    for file in files {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Failed(format!("{}: unlink: {error}", file.display())));
            }
            _ => {}
        }
    }
    // A folder that can't be flushed (some FUSE) has nothing to let go of.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Flush;
    use wrote::Ioengine;

    fn job(numjobs: u32, blocks: Blocks) -> Job {
        Job {
            ioengine: Ioengine::IoUring,
            direct: true,
            bs_bytes: 4096,
            size_bytes: 64 * 4096 * u64::from(numjobs),
            iodepth: 4,
            numjobs,
            flush: Flush::FdatasyncAtEnd,
            blocks,
        }
    }

    fn in_folder(job: &Job, folder: &Path, stop: &Stop) -> Result<Measured, Error> {
        let files: Vec<PathBuf> =
            (0..job.numjobs).map(|number| folder.join(format!("job-{number}.data"))).collect();
        run(job, &Place { files: &files, device: None, time: Duration::from_secs(3600), stop })
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    #[test]
    fn every_thread_writes_a_file_of_its_own_and_all_of_them_are_counted() {
        for blocks in [Blocks::New, Blocks::Allocated] {
            let folder = folder();
            let job = job(3, blocks);
            let measured = in_folder(&job, folder.path(), &Stop::new()).unwrap();
            assert_eq!(measured.run.bytes, job.size_bytes);
            assert_eq!(measured.latencies.len(), 3 * 64);
            assert!((1..=4).contains(&measured.effective.iodepth));
            for number in 0..3 {
                let file = folder.path().join(format!("job-{number}.data"));
                assert_eq!(file.metadata().unwrap().len(), job.file_bytes());
            }
        }
    }

    #[test]
    fn blocks_that_were_written_are_written_over_in_a_file_of_the_same_length() {
        let folder = folder();
        in_folder(&job(1, Blocks::Allocated), folder.path(), &Stop::new()).unwrap();
        let file = folder.path().join("job-0.data");
        let before = std::fs::read(&file).unwrap();
        in_folder(&job(1, Blocks::Written), folder.path(), &Stop::new()).unwrap();
        let after = std::fs::read(&file).unwrap();
        assert_eq!(before.len(), after.len());
        // M2: no sector is what it was.
        assert!(before.chunks(512).zip(after.chunks(512)).all(|(old, new)| old != new));
    }

    #[test]
    fn one_thread_that_fails_fails_the_run_and_the_others_are_waited_for() {
        let folder = folder();
        // W7: the second thread's file is there already.
        std::fs::write(folder.path().join("job-1.data"), "precious").unwrap();
        let error = in_folder(&job(3, Blocks::New), folder.path(), &Stop::new()).err().unwrap();
        assert!(error.to_string().contains("job-1.data: open: File exists"), "{error}");
        assert_eq!(std::fs::read(folder.path().join("job-1.data")).unwrap(), b"precious");
    }

    #[test]
    fn a_run_that_was_stopped_has_no_result() {
        let (folder, stop) = (folder(), Stop::new());
        stop.request();
        let error = in_folder(&job(2, Blocks::New), folder.path(), &stop).err().unwrap();
        assert!(matches!(error, Error::Interrupted));
    }

    #[test]
    fn a_panic_is_an_error_and_keeps_nobody_waiting() {
        let error = or_panicked(|| -> Result<(), Error> { panic!("on purpose") }).unwrap_err();
        assert!(error.to_string().contains("panicked"));
    }
}
