//! The loop of one thread of a run: issues, times and counts the job's operations.

mod checked;
mod flush;
pub mod header;
pub mod pace;
pub mod sequence;
mod tally;
#[cfg(test)]
mod tests;
mod trail;

pub use tally::{DirectionReport, Tally, histogram};
pub use trail::Mark;

use crate::data::Data;
use crate::data::seed;
use crate::machine::usage::Usage;
use crate::spec::{JobSpec, SyncEach};
use crate::worker::checked::Damage;
use crate::worker::flush::Flushes;
use crate::worker::header::{HEADER_BYTES, Header};
use crate::worker::pace::Pace;
use crate::worker::sequence::{Next, Sequence};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wrote::engine::{Buffer, Completion, Engine, FileId, Op};
use wrote_result::{Error, Stop};

/// The most operations that a worker submits or waits for together, if the task sets no number.
/// More would hardly save calls and context switches. A worker waits for at most half of its depth,
/// so that the device always has work.
const TOGETHER_MAX: usize = 32;
/// If the task sets no number, a worker collects completions for this time. It notices a completion
/// late by at most this.
const PATIENCE_NS: u64 = 100_000;
/// The due time of an operation without a rate: its time counts from its submission.
const NOT_DUE: u64 = u64::MAX;

/// The outcome of one thread.
#[derive(Debug)]
pub struct Done {
    /// The counts since the clock began.
    pub tally: Tally,
    /// When the clock began: just before the first operation, or at the end of the ramp.
    pub began: Instant,
    /// Just after the last acknowledgement, including a last flush's (M1).
    pub ended: Instant,
    /// The thread's CPU use in between.
    pub thread: Usage,
    /// The process's CPU use in between, with the kernel's threads that work for it.
    pub process: Usage,
    /// Operations begun, including the ramp's.
    pub issued: u64,
    /// Bytes checked by a job that only reads and has `verify`, including the ramp's.
    pub verified_bytes: u64,
    /// The job ended before its ramp did.
    pub all_ramp: bool,
}

#[derive(Clone, Copy)]
struct InFlight {
    next: Next,
    /// The start of its latency, in nanoseconds from the start of the worker.
    since_ns: u64,
    writing: bool,
}

/// A completed operation that was not counted yet.
struct Arrival {
    place: u32,
    bytes: usize,
    /// The bytes of a read.
    buffer: Option<Buffer>,
}

/// Why no more operations are prepared now.
enum Pause {
    /// The batch is full; the queue has room for more.
    Batch,
    /// An operation must complete first.
    Wait,
    /// The next operation is due at this time, in nanoseconds from the start.
    Due(u64),
    Flush,
    Think,
    /// The task has no more operations.
    End,
}

/// A thread's engine, files, data and counts, all allocated before the clock starts (M2, M10).
pub struct Worker<'a> {
    pub engine: Engine,
    pub files: Vec<(PathBuf, FileId)>,
    spec: JobSpec,
    sequence: Sequence,
    /// An operation may touch the bytes of another one in flight.
    comes_again: bool,
    /// The paces of reads and writes, which are independent arrivals.
    pace: [Pace; 2],
    shared: Shared<'a>,
    /// The source of written bytes; `None` for a task without writes.
    data: Option<Data>,
    tally: Tally,
    in_flight: Vec<InFlight>,
    /// Free places of `in_flight`.
    free: Vec<u32>,
    /// Places of operations that are queued and not submitted yet.
    ready: Vec<u32>,
    arrivals: Vec<Arrival>,
    /// Completions of a wait with a limit; kept to save allocations.
    completions: Vec<Completion>,
    /// The next operation, which must wait for a write in flight to its bytes.
    held: Option<Next>,
    issued: u64,
    /// The task pauses next after this number of operations.
    think_at: u64,
    /// The end of the last pause. No operation of a job with a rate is due before.
    thought_until_ns: u64,
    flushes: Flushes,
    paced: bool,
    submit_together: Option<usize>,
    wait_for: usize,
    wait_for_max: usize,
    /// The queue was full until this time, so the worker could submit no operation before.
    room_since_ns: u64,
    /// The origin of all times.
    start: Instant,
    now_ns: u64,
    counts_from_ns: u64,
    counting: bool,
    deadline_ns: u64,
    usage: (Usage, Usage),
    /// The bytes after each header of a job that writes with `verify`.
    unit_bytes: Option<usize>,
    /// Bytes that a job that only reads has checked.
    verified_bytes: u64,
    /// The time is up, or the caller asked to stop.
    over: bool,
}

/// Returns the most writes between two flushes of a job whose write latencies end before them.
fn flushed_together(spec: &JobSpec) -> Option<u32> {
    let times = spec.latencies && spec.rw.write && !spec.latency_with_flush;
    let flushes = spec.fsync.into_iter().chain(spec.fdatasync).min();
    flushes.filter(|_| times && spec.sync == SyncEach::No)
}

impl<'a> Worker<'a> {
    /// Returns a worker, with every buffer of the engine's pool filled.
    pub fn new(
        mut engine: Engine,
        files: Vec<(PathBuf, FileId)>,
        spec: &JobSpec,
        sequence: Sequence,
        shared: Shared<'a>,
    ) -> Result<Self, Error> {
        let rw = spec.rw;
        let mut data = rw.write.then(|| Data::new(0, seed()));
        let mut buffers = Vec::new();
        while engine.buffers_free() > 0 {
            let mut buffer = engine.lease()?;
            match &mut data {
                Some(data) => data.fill(&mut buffer),
                // Writing to a buffer allocates its pages before the clock starts.
                None => buffer.fill(0),
            }
            buffers.push(buffer);
        }
        drop(buffers);
        if let Some(data) = data.as_mut().filter(|_| rw.read) {
            data.refill_always();
        }
        let depth = engine.effective().iodepth as usize;
        let pace = |kind: u64, bytes_per_s, iops| {
            Pace::new(bytes_per_s, iops).process(spec.rate_process, spec.seed ^ kind << 32)
        };
        let pace = [
            pace(1, spec.read_rate_bytes_per_s, spec.read_rate_iops),
            pace(2, spec.write_rate_bytes_per_s, spec.write_rate_iops),
        ];
        let paced = pace.iter().any(Pace::holds);
        // 1 is fio's default, and leaves the choice to the job.
        let submit_together = (spec.iodepth_batch > 1).then_some(spec.iodepth_batch as usize);
        let wait_for = Some(spec.iodepth_batch_complete_min as usize).filter(|min| *min > 0);
        let adaptive_max = if paced { 1 } else { (depth / 2).clamp(1, TOGETHER_MAX) };
        let nothing = Next { write: false, file: 0, offset: 0, len: 0 };
        Ok(Worker {
            comes_again: rw.write && sequence.outline().comes_again(),
            pace,
            data,
            tally: Tally::new(depth, flushed_together(spec)),
            in_flight: vec![InFlight { next: nothing, since_ns: 0, writing: false }; depth],
            free: (0..depth as u32).rev().collect(),
            ready: Vec::with_capacity(depth),
            arrivals: Vec::with_capacity(depth),
            completions: Vec::new(),
            held: None,
            issued: 0,
            think_at: spec.think.map_or(u64::MAX, |think| think.blocks.into()),
            thought_until_ns: 0,
            flushes: Flushes::new(files.len()),
            paced,
            submit_together: submit_together.map(|together| together.clamp(1, depth)),
            wait_for: wait_for.map_or(1, |min| min.clamp(1, depth)),
            wait_for_max: wait_for.map_or(adaptive_max, |min| min.clamp(1, depth)),
            room_since_ns: 0,
            start: Instant::now(),
            now_ns: 0,
            counts_from_ns: 0,
            counting: false,
            deadline_ns: u64::MAX,
            usage: Default::default(),
            unit_bytes: header::unit_bytes(&spec.write_bs),
            verified_bytes: 0,
            over: false,
            engine,
            files,
            spec: spec.clone(),
            sequence,
            shared,
        })
    }

    /// Runs the task until it is done, its time is up, or the caller asks to stop.
    pub fn run(&mut self) -> Result<Done, Error> {
        self.prepare_to_pace();
        self.start_clock();
        while !self.over {
            let pause = self.make_ready()?;
            self.stamp();
            match pause {
                Pause::Batch => self.engine.submit()?,
                Pause::Wait => self.reap(self.wait_for)?,
                Pause::Due(due_ns) => self.wait_until(due_ns)?,
                Pause::Flush => self.flush()?,
                Pause::Think => self.think()?,
                Pause::End if self.engine.outstanding() == 0 => break,
                Pause::End => self.reap(self.wait_for)?,
            }
        }
        self.reap(usize::MAX)?;
        self.flush_at_end()?;
        Ok(self.done())
    }

    fn read_clock(&mut self) {
        self.now_ns = self.start.elapsed().as_nanos() as u64;
    }

    fn start_clock(&mut self) {
        self.counts_from_ns = nanoseconds(self.spec.ramp_time);
        self.count_time();
        self.counting = self.spec.ramp_time.is_zero();
        self.usage = (Usage::of_thread(), Usage::now());
        self.start = Instant::now();
        self.now_ns = 0;
    }

    /// Sets the deadline: the task's time from the end of its ramp on.
    fn count_time(&mut self) {
        self.deadline_ns = self
            .spec
            .runtime
            .map_or(u64::MAX, |time| self.counts_from_ns.saturating_add(nanoseconds(time)));
    }

    /// Prepares a batch of operations, and returns the reason to stop, if any.
    fn make_ready(&mut self) -> Result<Pause, Error> {
        if self.paced {
            self.read_clock();
            if self.now_ns >= self.deadline_ns {
                self.over = true;
                return Ok(Pause::End);
            }
        }
        let free = self.free.len();
        let room = match self.submit_together {
            Some(together) => free.min(together),
            None => room(free, self.in_flight.len() - free),
        };
        let until_think = self.think_at - self.issued;
        if self.flushes.is_due(&self.spec) {
            return Ok(Pause::Flush);
        }
        for _ in 0..until_think.min(room as u64) {
            let (write, due_ns) = self.due();
            if let Some(due_ns) = due_ns.filter(|due_ns| *due_ns > self.now_ns)
                && self.held.is_none()
            {
                return Ok(Pause::Due(due_ns));
            }
            let next = self.held.take().or_else(|| match write {
                Some(write) => self.sequence.next_of(write),
                None => self.sequence.next(),
            });
            let Some(next) = next else { return Ok(Pause::End) };
            if next.write && self.comes_again && self.is_in_the_way(&next) {
                self.held = Some(next);
                return Ok(Pause::Wait);
            }
            self.add(next)?;
            if next.write && self.flushes.is_due(&self.spec) {
                return Ok(Pause::Flush);
            }
        }
        Ok(match self.free.is_empty() {
            _ if self.issued == self.think_at => Pause::Think,
            true => Pause::Wait,
            false => Pause::Batch,
        })
    }

    /// Returns whether a write in flight overlaps the operation (W3).
    fn is_in_the_way(&self, next: &Next) -> bool {
        let end = next.offset + next.len as u64;
        self.in_flight.iter().any(|other| {
            let other_end = other.next.offset + other.next.len as u64;
            other.writing
                && other.next.file == next.file
                && other.next.offset < end
                && next.offset < other_end
        })
    }

    /// Queues the operation; [`Worker::stamp`] sets its time.
    fn add(&mut self, next: Next) -> Result<(), Error> {
        let mut buffer = self.engine.lease()?;
        buffer.set_len(next.len);
        let (file, offset) = (self.files[next.file].1, next.offset);
        if next.write {
            self.make_data(&next, &mut buffer);
            self.flushes.count(next.file);
            let durable = self.spec.sync != SyncEach::No;
            let place = self.begin(&next);
            self.engine.queue(place.into(), Op::Write { file, offset, buffer, durable });
        } else {
            let place = self.begin(&next);
            self.engine.queue(place.into(), Op::Read { file, offset, buffer });
        }
        Ok(())
    }

    /// Records an operation that begins, and returns its place.
    fn begin(&mut self, next: &Next) -> u32 {
        let mut since_ns = NOT_DUE;
        if self.paced {
            let pace = &mut self.pace[usize::from(next.write)];
            if pace.holds() {
                // Under a rate the time counts from when the operation was due (M5).
                since_ns = pace.due_ns().max(self.thought_until_ns);
            }
            pace.count(next.len);
        }
        self.issued += 1;
        let place = self.free.pop().expect("there is room");
        self.in_flight[place as usize] = InFlight { next: *next, since_ns, writing: next.write };
        self.ready.push(place);
        place
    }

    fn make_data(&mut self, next: &Next, buffer: &mut Buffer) {
        let data = self.data.as_mut().expect("a job that writes has data");
        data.make(buffer, &self.spec.data);
        if self.spec.verify.is_some() {
            debug_assert!(next.len >= HEADER_BYTES);
            let (seed, len) = (self.spec.seed, next.len as u32);
            let header = Header { offset: next.offset, seed, sequence: self.issued, len };
            header.stamp_parts(self.unit_bytes, buffer);
        }
    }

    /// Sets the start of the operations that are ready, just before they are submitted, with one
    /// read of the clock.
    fn stamp(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        if self.paced || self.spec.latencies {
            self.read_clock();
        }
        let before = self.in_flight.len() - self.free.len() - self.ready.len();
        self.tally.submitted(before, self.ready.len());
        for place in self.ready.drain(..) {
            let since_ns = &mut self.in_flight[place as usize].since_ns;
            if *since_ns != NOT_DUE {
                self.tally.issued(self.now_ns.saturating_sub(self.room_since_ns.max(*since_ns)));
            }
            *since_ns = self.now_ns.min(*since_ns);
        }
    }

    fn reap(&mut self, min: usize) -> Result<(), Error> {
        self.collect(min)?;
        self.acknowledge()
    }

    /// Waits for at least `min` operations; [`Worker::acknowledge`] counts them.
    fn collect(&mut self, min: usize) -> Result<(), Error> {
        let (arrivals, mut first) = (&mut self.arrivals, None);
        self.engine.reap_each(
            min,
            |Completion { user_data, result, buffer, .. }| match result {
                Ok(bytes) => arrivals.push(Arrival { place: user_data as u32, bytes, buffer }),
                Err(error) => _ = first.get_or_insert(error),
            },
        )?;
        first.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Counts the arrivals, with one read of the clock, and frees their places.
    fn acknowledge(&mut self) -> Result<(), Error> {
        let before_ns = self.now_ns;
        self.read_clock();
        let completed = self.arrivals.len();
        if completed > 0 && (self.free.is_empty() || self.held.is_some()) {
            self.room_since_ns = self.now_ns;
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for Arrival { place, bytes, buffer } in arrivals.drain(..) {
            let InFlight { next, since_ns, .. } = self.in_flight[place as usize];
            if bytes != next.len {
                let what = format!("the file ends after {bytes} of {} bytes", next.len);
                return Err(self.failed("read", &next, &what));
            }
            if self.spec.only_verifies()
                && let Some(buffer) = &buffer
            {
                let checked = checked::check(&self.files[next.file].0, next.offset, buffer);
                self.verified_bytes += checked.map_err(|Damage { offset, what }| {
                    self.failed("verify", &Next { offset, ..next }, &what)
                })?;
            }
            self.tally.count(next.write, bytes);
            if self.spec.latencies {
                self.tally.record(next.write, self.now_ns.saturating_sub(since_ns));
                if next.write && self.tally.waits_for_flush() {
                    self.tally.unflushed(since_ns);
                }
            }
            self.in_flight[place as usize].writing = false;
            self.free.push(place);
        }
        self.arrivals = arrivals;
        self.tally.completed(completed);
        if self.spec.iodepth_batch_complete_min == 0 && completed > 0 {
            let came_in_ns = (self.now_ns - before_ns).max(1);
            self.wait_for = (completed as u64 * PATIENCE_NS / came_in_ns)
                .clamp(1, self.wait_for_max as u64) as usize;
        }
        self.look_around();
        Ok(())
    }

    fn failed(&self, action: &str, next: &Next, what: &str) -> Error {
        let path = self.files[next.file].0.display();
        Error::Failed(format!("{path}: {action} at byte {}: {what}", next.offset))
    }

    /// Publishes progress, takes a sample, ends the ramp, and detects the end of the task.
    fn look_around(&mut self) {
        self.shared.progress.publish(&self.tally);
        if self.counting {
            if self.spec.samples {
                self.tally.sample(self.now_ns);
            }
        } else if self.now_ns >= self.counts_from_ns {
            self.counting = true;
            // The last batch may have ended after the ramp.
            self.counts_from_ns = self.now_ns;
            self.count_time();
            self.tally.begin_again(self.now_ns);
            self.usage = (Usage::of_thread(), Usage::now());
        }
        self.over |= self.now_ns >= self.deadline_ns || self.shared.must_stop();
    }

    fn done(&mut self) -> Done {
        let ended = Instant::now();
        // Read before the counts are put together, which may take longer than a short job.
        let (thread, process) =
            (Usage::of_thread().since(&self.usage.0), Usage::now().since(&self.usage.1));
        let end_ns = (ended - self.start).as_nanos() as u64;
        let all_ramp = !self.counting;
        if all_ramp {
            self.counts_from_ns = end_ns;
            self.tally.begin_again(end_ns);
        }
        self.tally.finish(end_ns);
        let depth = self.in_flight.len();
        Done {
            tally: std::mem::replace(&mut self.tally, Tally::new(depth, None)),
            began: self.start + Duration::from_nanos(self.counts_from_ns),
            ended,
            thread,
            process,
            issued: self.issued,
            verified_bytes: self.verified_bytes,
            all_ramp,
        }
    }
}

/// Returns the number of operations to prepare before the next call, which submits them.
///
/// An idle device gets its first operations at once, and has work while the rest of a long queue is
/// filled. With enough in flight the whole queue is filled, so that one call submits it and waits.
fn room(free: usize, in_flight: usize) -> usize {
    let together = TOGETHER_MAX.max(4 * in_flight);
    if free < together + TOGETHER_MAX { free } else { together }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The state that a thread shares with other threads of its run.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// The caller's request to stop.
    pub stop: &'a Stop,
    pub failed: &'a AtomicBool,
    pub progress: &'a Progress,
}

impl Shared<'_> {
    pub fn must_stop(&self) -> bool {
        self.stop.is_requested() || self.failed.load(Ordering::Relaxed)
    }
}

/// The progress of a thread: bytes read and written.
#[derive(Debug, Default)]
pub struct Progress([AtomicU64; 2]);

impl Progress {
    fn publish(&self, tally: &Tally) {
        for (shown, bytes) in self.0.iter().zip(tally.moved_bytes()) {
            shown.store(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the bytes read and written so far, including the ramp's.
    pub fn moved_bytes(&self) -> [u64; 2] {
        [0, 1].map(|direction: usize| self.0[direction].load(Ordering::Relaxed))
    }
}
