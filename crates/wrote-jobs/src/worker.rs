//! The loop of one thread of a run, which issues, times and counts the job's operations.

mod checked;
mod flush;
pub mod header;
mod kept;
pub mod pace;
pub mod sequence;
mod tally;
#[cfg(test)]
mod tests;
mod trail;

pub use kept::{Logged, Steadiness};
pub use tally::{DirectionReport, Progress, Tally, histogram};
pub use trail::Mark;

use crate::data::Data;
use crate::data::seed;
use crate::machine::usage::Usage;
use crate::spec::{JobSpec, SyncEach};
use crate::worker::checked::Damage;
use crate::worker::flush::Flushes;
use crate::worker::header::{HEADER_BYTES, Header};
use crate::worker::kept::{Keeper, Watch};
use crate::worker::pace::Paces;
use crate::worker::sequence::{Next, Sequence};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wrote::engine::{Buffer, Completion, Engine, FileId, Op};
use wrote_result::{Error, Stop};

/// The maximum number of operations submitted together, if the job sets none. The device works on
/// them while the worker prepares the next ones. With 16 random writes of 4 KiB in flight,
/// submitting 16 together reached 0.76 times the rate of fio, which submits them one by one;
/// submitting 8 together reached 0.94 times that rate, and 4 together 0.95 times.
const TOGETHER_MAX: usize = 4;
/// The due time of an operation without a rate, which is timed from its submission.
const NOT_DUE: u64 = u64::MAX;

/// The result of one thread.
#[derive(Debug)]
pub struct Done {
    /// The counts since the clock started.
    pub tally: Tally,
    /// When the clock started: just before the first operation, or at the end of the ramp.
    pub began: Instant,
    /// The time just after the last acknowledgement, or just after a last flush (M1).
    pub ended: Instant,
    /// The thread's CPU use while the clock ran.
    pub thread: Usage,
    /// The process's CPU use while the clock ran, including kernel threads that work for it.
    pub process: Usage,
    /// The number of operations begun, including those during the ramp.
    pub issued: u64,
    /// The number of bytes checked by a job with `verify` that only reads, including those during
    /// the ramp.
    pub verified_bytes: u64,
    /// The time at the start that is not counted.
    pub ramp: Duration,
    /// Whether the job ended during its ramp.
    pub all_ramp: bool,
    pub log: Vec<Logged>,
    pub steady: Option<Steadiness>,
}

#[derive(Clone, Copy)]
struct InFlight {
    next: Next,
    /// When the operation's latency starts, in nanoseconds since the worker's start.
    since_ns: u64,
    writing: bool,
}

/// A completed operation that has not been counted yet.
struct Arrival {
    place: u32,
    bytes: usize,
    /// The buffer of a read.
    buffer: Option<Buffer>,
}

/// The reason why no more operations are prepared for now.
enum Pause {
    /// The batch is full, but the queue has room for more.
    Batch,
    /// An operation has to complete first.
    Wait,
    /// The next operation is due at this time, in nanoseconds since the start.
    Due(u64),
    Flush,
    Think,
    /// The job has no more operations.
    End,
}

/// The engine, files, data and counts of a thread, all allocated before the clock starts (M2, M10).
pub struct Worker<'a> {
    pub engine: Engine,
    pub files: Vec<(PathBuf, FileId)>,
    spec: JobSpec,
    sequence: Sequence,
    /// Whether an operation may overlap another operation in flight.
    comes_again: bool,
    paces: Paces,
    shared: Shared<'a>,
    /// The source of written data; `None` for a job without writes.
    data: Option<Data>,
    tally: Tally,
    in_flight: Vec<InFlight>,
    /// The free slots of `in_flight`.
    free: Vec<u32>,
    /// The slots of operations that have been queued but not submitted.
    ready: Vec<u32>,
    arrivals: Vec<Arrival>,
    /// The completions of a wait with a time limit, kept to avoid allocations.
    completions: Vec<Completion>,
    /// The next operation, if it overlaps a write in flight, for which it has to wait.
    held: Option<Next>,
    issued: u64,
    /// The number of operations after which the job pauses next.
    think_at: u64,
    flushes: Flushes,
    submit_together: usize,
    wait_for: usize,
    /// When the queue last became not full. The worker could not submit an operation before this
    /// time.
    room_since_ns: u64,
    /// The instant from which all times are counted.
    start: Instant,
    now_ns: u64,
    counts_from_ns: u64,
    counting: bool,
    deadline_ns: u64,
    usage: (Usage, Usage),
    /// The distance between headers, if the job writes with `verify`.
    unit_bytes: Option<usize>,
    /// The number of bytes that have been checked, if the job only reads.
    verified_bytes: u64,
    log: Option<Keeper>,
    watch: Option<Watch>,
    /// Whether the time is up, or the caller has requested a stop.
    over: bool,
}

impl<'a> Worker<'a> {
    /// Returns a worker. Fills every buffer in the engine's pool.
    pub fn new(
        mut engine: Engine,
        files: Vec<(PathBuf, FileId)>,
        spec: &JobSpec,
        sequence: Sequence,
        shared: Shared<'a>,
    ) -> Result<Self, Error> {
        let rw = spec.order.rw;
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
        let paces = Paces::new(spec);
        // 1 is fio's default, so it is not taken as a request.
        let submit_together = match spec.io.iodepth_batch {
            0 | 1 => TOGETHER_MAX,
            batch => batch as usize,
        };
        let nothing = Next { write: false, file: 0, offset: 0, len: 0 };
        Ok(Worker {
            comes_again: rw.write && sequence.outline().comes_again(),
            paces,
            data,
            tally: Tally::new(depth, flush::flushed_together(spec)),
            in_flight: vec![InFlight { next: nothing, since_ns: 0, writing: false }; depth],
            free: (0..depth as u32).rev().collect(),
            ready: Vec::with_capacity(depth),
            arrivals: Vec::with_capacity(depth),
            completions: Vec::new(),
            held: None,
            issued: 0,
            think_at: spec.pace.think.map_or(u64::MAX, |think| think.blocks.into()),
            flushes: Flushes::new(files.len()),
            submit_together: submit_together.min(depth),
            wait_for: (spec.io.iodepth_batch_complete_min as usize).clamp(1, depth),
            room_since_ns: 0,
            start: Instant::now(),
            now_ns: 0,
            counts_from_ns: 0,
            counting: false,
            deadline_ns: u64::MAX,
            usage: Default::default(),
            unit_bytes: header::unit_bytes(&spec.order.write_bs),
            verified_bytes: 0,
            log: spec.log.map(Keeper::new),
            watch: spec.pace.steady.map(Watch::new),
            over: false,
            engine,
            files,
            spec: spec.clone(),
            sequence,
            shared,
        })
    }

    /// Runs the job until it is done, its time is up, or the caller requests a stop.
    pub fn run(&mut self) -> Result<Done, Error> {
        self.paces.prepare();
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
        self.counts_from_ns = nanoseconds(self.spec.pace.ramp_time);
        self.count_time();
        self.counting = self.spec.pace.ramp_time.is_zero();
        self.usage = (Usage::of_thread(), Usage::now());
        self.start = Instant::now();
        self.now_ns = 0;
    }

    /// Sets the deadline: the time limit of the job, counted from the end of its ramp.
    fn count_time(&mut self) {
        let of = |time| self.counts_from_ns.saturating_add(nanoseconds(time));
        self.deadline_ns = self.spec.pace.runtime.map_or(u64::MAX, of);
    }

    /// Prepares a batch of operations, and returns why it ended.
    fn make_ready(&mut self) -> Result<Pause, Error> {
        if self.paces.hold {
            self.read_clock();
            if self.now_ns >= self.deadline_ns {
                self.over = true;
                return Ok(Pause::End);
            }
        }
        let room = self.free.len().min(self.submit_together);
        let until_think = self.think_at - self.issued;
        if self.flushes.is_due(&self.spec) {
            return Ok(Pause::Flush);
        }
        for _ in 0..until_think.min(room as u64) {
            let (write, due_ns) = self.paces.next(self.spec.order.rw, self.now_ns);
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

    /// Queues the operation. [`Worker::stamp`] later sets its start time.
    fn add(&mut self, next: Next) -> Result<(), Error> {
        let mut buffer = self.engine.lease()?;
        buffer.set_len(next.len);
        let (file, offset) = (self.files[next.file].1, next.offset);
        if next.write {
            self.make_data(&next, &mut buffer);
            self.flushes.count(next.file);
            let durable = self.spec.writes.sync != SyncEach::No;
            let place = self.begin(&next);
            self.engine.queue(place.into(), Op::Write { file, offset, buffer, durable });
        } else {
            let place = self.begin(&next);
            self.engine.queue(place.into(), Op::Read { file, offset, buffer });
        }
        Ok(())
    }

    /// Records that an operation begins, and returns its slot.
    fn begin(&mut self, next: &Next) -> u32 {
        // With a rate, the latency is counted from when the operation was due (M5).
        let since_ns = self.paces.count(next.write, next.len).unwrap_or(NOT_DUE);
        self.issued += 1;
        let place = self.free.pop().expect("there is room");
        self.in_flight[place as usize] = InFlight { next: *next, since_ns, writing: next.write };
        self.ready.push(place);
        place
    }

    fn make_data(&mut self, next: &Next, buffer: &mut Buffer) {
        let data = self.data.as_mut().expect("a job that writes has data");
        data.make(buffer, &self.spec.writes.data);
        if self.spec.writes.verify.is_some() {
            debug_assert!(next.len >= HEADER_BYTES);
            let (seed, len) = (self.spec.seed, next.len as u32);
            let header = Header { offset: next.offset, seed, sequence: self.issued, len };
            header.stamp_parts(self.unit_bytes, buffer);
        }
    }

    /// Sets the start times of the operations that are ready, just before they are submitted, with
    /// a single read of the clock.
    fn stamp(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        if self.paces.hold || self.spec.latencies {
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

    /// Waits for at least `min` completions. [`Worker::acknowledge`] counts them.
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

    /// Counts the arrivals, with a single read of the clock, and frees their slots.
    fn acknowledge(&mut self) -> Result<(), Error> {
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
                let latency_ns = self.now_ns.saturating_sub(since_ns);
                self.tally.record(next.write, latency_ns);
                if let Some(log) = self.log.as_mut().filter(|_| self.counting) {
                    let at_ns = self.now_ns - self.counts_from_ns;
                    log.add(at_ns, &Next { len: bytes, ..next }, latency_ns);
                }
                if next.write && self.tally.waits_for_flush() {
                    self.tally.unflushed(since_ns);
                }
            }
            self.in_flight[place as usize].writing = false;
            self.free.push(place);
        }
        self.arrivals = arrivals;
        self.tally.completed(completed);
        self.look_around();
        Ok(())
    }

    fn failed(&self, action: &str, next: &Next, what: &str) -> Error {
        let path = self.files[next.file].0.display();
        Error::Failed(format!("{path}: {action} at byte {}: {what}", next.offset))
    }

    /// Publishes the progress, takes a sample, ends the ramp, and detects the end of the job.
    fn look_around(&mut self) {
        self.shared.progress.publish(&self.tally);
        if self.counting {
            if self.spec.samples {
                self.tally.sample(self.now_ns);
            }
            if let Some(watch) = &mut self.watch {
                self.over |= watch.look(self.now_ns - self.counts_from_ns, &self.tally);
            }
        } else if self.now_ns >= self.counts_from_ns {
            self.counting = true;
            // The last batch may have ended later than the ramp.
            self.counts_from_ns = self.now_ns;
            self.count_time();
            self.tally.begin_again(self.now_ns);
            self.usage = (Usage::of_thread(), Usage::now());
        }
        self.over |= self.now_ns >= self.deadline_ns || self.shared.must_stop();
    }

    fn done(&mut self) -> Done {
        let ended = Instant::now();
        // The CPU use is read before the counts are combined, because combining them may take
        // longer than a short job.
        let (thread, process) =
            (Usage::of_thread().since(&self.usage.0), Usage::now().since(&self.usage.1));
        let end_ns = (ended - self.start).as_nanos() as u64;
        if !self.counting && self.spec.pace.counts_short_ramp {
            (self.counting, self.counts_from_ns) = (true, 0);
        }
        let all_ramp = !self.counting;
        if all_ramp {
            self.counts_from_ns = end_ns;
            self.tally.begin_again(end_ns);
        }
        self.tally.finish(end_ns);
        let depth = self.in_flight.len();
        let log = self.log.take().map(|log| log.finish(end_ns - self.counts_from_ns));
        Done {
            tally: std::mem::replace(&mut self.tally, Tally::new(depth, None)),
            began: self.start + Duration::from_nanos(self.counts_from_ns),
            ended,
            thread,
            process,
            issued: self.issued,
            verified_bytes: self.verified_bytes,
            ramp: Duration::from_nanos(self.counts_from_ns),
            all_ramp,
            log: log.unwrap_or_default(),
            steady: self.watch.take().map(|watch| watch.so_far),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The state that a thread shares with the other threads of its run.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// The caller's request to stop.
    pub stop: &'a Stop,
    pub failed: &'a AtomicBool,
    /// Whether the job must stop because another job has ended.
    pub over: &'a AtomicBool,
    pub progress: &'a Progress,
}

impl Shared<'_> {
    pub fn must_stop(&self) -> bool {
        self.stop.is_requested()
            || self.failed.load(Ordering::Relaxed)
            || self.over.load(Ordering::Relaxed)
    }
}
