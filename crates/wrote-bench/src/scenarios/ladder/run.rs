//! One run of one way: files are made ready, the clock runs, what it cost is counted, all is cleared.

use crate::measured::{OneRun, fallback};
use crate::scenarios::ladder::job::Job;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wrote::device::{BlockDevice, Counters};
use wrote::{Effective, Engine, FileOptions, Op, Options};
use wrote_jobs::buffers::{buffers, cannot_allocate, seed};
use wrote_jobs::clock::counters;
use wrote_jobs::gates;
use wrote_jobs::gates::Crew;
use wrote_jobs::jobs::cached_bytes;
use wrote_jobs::worker::{Done, Progress, Shared, Worker, histogram};
use wrote_machine::usage::Usage;
use wrote_machine::watch::cpu::CpuWatch;
use wrote_result::document::{Blocks, Fallback, Run, Settings};
use wrote_result::stats;
use wrote_result::{Error, Stop};

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
pub(crate) fn run(job: &Job, place: &Place) -> Result<OneRun, Error> {
    let (failed, progress) = (AtomicBool::new(false), Progress::default());
    let shared = Shared { stop: place.stop, failed: &failed, progress: &progress };
    let writers = Writers { job, place, shared };
    let held_before = held(job, place);
    let (parts, (usage, counters, cpu)) =
        gates::together(&writers, job.numjobs as usize, &mut || {}, |go| {
            // Making ready and clearing up cost nobody's CPU time.
            let cpu = CpuWatch::begin();
            let counters_before = counters(place.device);
            let usage_before = Usage::now();
            go();
            let usage = Usage::now().since(&usage_before);
            let counters = counters(place.device).zip(counters_before);
            let cpu = cpu.end();
            (usage, counters.map(|(after, before)| after.since(&before)), cpu)
        })?;
    place.stop.check()?;
    let mut measured = measured(job, parts, usage, counters);
    measured.run.cpu_busiest = cpu.busiest;
    measured.run.cpu_waited_s = cpu.waited_s;
    if measured.effective.direct {
        // What was written past the page cache was dropped from it.
        let left = |before: u64| before.saturating_sub(measured.run.bytes);
        let held = held(job, place).zip(held_before);
        measured.run.page_cache_bytes =
            held.map(|(after, before)| after.saturating_sub(left(before)));
    }
    Ok(measured)
}

/// Bytes of the files that the page cache holds, where they are to be written past it; `None` where the
/// kernel does not say.
fn held(job: &Job, place: &Place) -> Option<u64> {
    let of_file = |file: &PathBuf| {
        // One that is not there yet is nowhere.
        if file.exists() { cached_bytes(file, &(0..job.file_bytes())) } else { Some(0) }
    };
    if job.direct { place.files.iter().map(of_file).sum() } else { None }
}

/// The threads of a run, each with a file of its own.
struct Writers<'a> {
    job: &'a Job,
    place: &'a Place<'a>,
    shared: Shared<'a>,
}

/// What one thread gave.
struct Part {
    written: Done,
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

impl<'a> Crew for Writers<'a> {
    type Ready = Ready<'a>;
    type Done = Done;
    type Part = Part;

    fn make_ready(&self, number: usize) -> Result<Ready<'a>, Error> {
        make_ready(self.job, number, self.place, self.shared)
    }

    fn work(&self, ready: &mut Ready<'a>) -> Result<Done, Error> {
        ready.worker.run()
    }

    fn clear_up(&self, ready: Ready<'a>, written: Done) -> Result<Part, Error> {
        let Ready { mut worker, blocks, mut fallbacks } = ready;
        let file = worker.files[0].1;
        if self.job.blocks == Blocks::Written {
            // The file stays. Where O_DIRECT fell back, the kernel would write it back at the cost
            // of later runs.
            worker.engine.flush(file)?;
        }
        let effective = worker.engine.effective().clone();
        fallbacks.extend(effective.fallbacks.iter().map(fallback));
        let direct = worker.engine.is_direct(file);
        Ok(Part { written, effective, direct, blocks, fallbacks })
    }

    fn failed(&self) -> &AtomicBool {
        self.shared.failed
    }
}

fn make_ready<'a>(
    job: &Job,
    number: usize,
    place: &Place,
    shared: Shared<'a>,
) -> Result<Ready<'a>, Error> {
    let path = place.files[number].as_path();
    let mut options = Options::new(job.ioengine, job.iodepth, job.bs_bytes as usize);
    options.buffers = buffers(job.bs_bytes, job.iodepth);
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
    let files = vec![(path.to_owned(), file)];
    let worker = Worker::new(engine, files, job.task(number as u32, place.time, seed())?, shared)?;
    Ok(Ready { worker, blocks, fallbacks })
}

fn measured(job: &Job, parts: Vec<Part>, usage: Usage, counters: Option<Counters>) -> OneRun {
    let began = parts.iter().map(|part| part.written.began).min();
    let ended = parts.iter().map(|part| part.written.ended).max();
    let elapsed = ended.zip(began).map_or(Duration::ZERO, |(end, begin)| end - begin);
    let elapsed_s = elapsed.as_secs_f64().max(1e-9);
    let bytes: u64 = parts.iter().map(|part| part.written.writes().bytes).sum();
    let mut latencies = histogram();
    for part in &parts {
        let latency_ns = &part.written.writes().latency_ns;
        latencies.add(latency_ns).expect("all histograms have the same bounds");
    }
    let mut issue_delays = histogram();
    for part in &parts {
        let delay_ns = &part.written.tally.issue_delay_ns;
        issue_delays.add(delay_ns).expect("all histograms have the same bounds");
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
        ioengine: first.effective.ioengine.into(),
        iodepth: iodepth_reached,
        direct: parts.iter().all(|part| part.direct),
        blocks: Job { blocks: first.blocks, ..*job }.asked().blocks,
        registered_buffers: ring(first.effective.registered_buffers),
        registered_files: ring(first.effective.registered_files),
        huge_pages: Some(first.effective.huge_pages),
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
        max_rss_bytes: Some(usage.max_rss_bytes),
        iodepth_reached,
        issue_delay_ns: job.rate.map(|_| stats::latency(&issue_delays)),
        ..Run::default()
    };
    OneRun { run, latencies, effective, fallbacks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_result::document::Flush;
    use std::path::Path;
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
            rate: None,
        }
    }

    fn in_folder(job: &Job, folder: &Path, stop: &Stop) -> Result<OneRun, Error> {
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
}
