//! The clients of a job of steps. Each client waits for its transaction, and one client leads the
//! commit of a group.

use super::Steps;
use super::calls::{Calls, Counts};
use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

/// The maximum wait before a thread checks for a request to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The minimum sleep of clients with a rate.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// A job whose files have been prepared.
pub struct Running<'a> {
    steps: &'a Steps,
    /// The handles of each set of files.
    calls: Vec<Calls>,
    /// The handles of the concurrent thread, if the job has one.
    beside: Option<Calls>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Done {
    /// The time of each transaction, from its start until its steps are done. If the steps flush,
    /// the transaction is then durable (M11).
    pub latencies_ns: Histogram<u64>,
    /// The time of each flush of a file. If the transactions flush no file, this contains the
    /// flushes of the concurrent thread.
    pub flushes_ns: Histogram<u64>,
    /// The number of transactions.
    pub transactions: u64,
    /// The calls of all threads while the clock ran.
    pub counts: Counts,
}

impl<'a> Running<'a> {
    /// Prepares the files, and performs the steps before the clock starts. `path` returns the path
    /// of a file, given its name and the number of its set of files.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`], which names the call and the file.
    pub fn new(
        steps: &'a Steps,
        path: &dyn Fn(&str, u32) -> PathBuf,
        seed: u64,
    ) -> Result<Running<'a>, Error> {
        let ready = |set: u32| {
            let mut calls =
                Calls::new(steps, &|name| path(name, set), seed ^ u64::from(set) << 32)?;
            calls.lay_out()?;
            calls.make(&steps.before, steps, 1)?;
            calls.counts = Counts::default();
            calls.flushes_ns.reset();
            Ok(calls)
        };
        let calls = (0..steps.sets()).map(ready).collect::<Result<_, Error>>()?;
        let has_beside = !steps.beside.is_empty();
        let first = |name: &str| path(name, 0);
        let beside = has_beside.then(|| Calls::new(steps, &first, seed ^ 1)).transpose()?;
        Ok(Running { steps, calls, beside })
    }

    /// Runs transactions until `time` has elapsed, or until `most` transactions have run on each
    /// set of files.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`], or the error of the first call that failed.
    pub fn run(self, time: Duration, most: u64, stop: &Stop) -> Result<Done, Error> {
        let Running { steps, mut calls, mut beside } = self;
        let deadline = Instant::now() + time;
        let over = Stop::new();
        let groups: Vec<_> = calls.iter_mut().map(|calls| Group::new(steps, calls, most)).collect();
        let (latencies_ns, of_beside) = thread::scope(|scope| {
            let beside = beside.as_mut().map(|calls| {
                let (groups, over) = (&groups, &over);
                scope.spawn(move || work_beside(steps, calls, groups, over))
            });
            let of_client = |client: u32| &groups[client as usize % groups.len()];
            let clients: Vec<_> = (0..steps.clients)
                .map(|client| scope.spawn(move || of_client(client).work(deadline, stop)))
                .collect();
            let mut latencies = crate::histogram();
            for client in clients {
                let of_client = client.join().expect("a client does not panic");
                latencies.add(of_client).expect("histograms grow");
            }
            over.request();
            let beside = beside.map(|thread| thread.join().expect("it does not panic"));
            (latencies, beside.unwrap_or(Ok(())))
        });
        let ends: Vec<_> = groups.into_iter().map(Group::end).collect();
        stop.check()?;
        let mut done = Done {
            latencies_ns,
            flushes_ns: crate::histogram(),
            transactions: 0,
            counts: Counts::default(),
        };
        for (transactions, failed) in ends {
            failed.map_or(Ok(()), Err)?;
            done.transactions += transactions;
        }
        of_beside?;
        for calls in &mut calls {
            calls.make(&steps.end, steps, 1)?;
            done.counts.add(calls.counts);
            done.flushes_ns.add(&calls.flushes_ns).expect("histograms grow");
        }
        if let Some(calls) = beside {
            done.counts.add(calls.counts);
            if done.flushes_ns.is_empty() {
                done.flushes_ns = calls.flushes_ns;
            }
        }
        Ok(done)
    }
}

/// The state that the clients share, and the handles that a leader uses.
struct Group<'a> {
    steps: &'a Steps,
    queue: Mutex<Queue>,
    moved: Condvar,
    calls: Mutex<&'a mut Calls>,
    most: u64,
}

#[derive(Default)]
struct Queue {
    /// The number of submitted transactions.
    submitted: u64,
    done: u64,
    has_leader: bool,
    failed: Option<Error>,
}

impl<'a> Group<'a> {
    fn new(steps: &'a Steps, calls: &'a mut Calls, most: u64) -> Group<'a> {
        let (queue, moved) = (Mutex::default(), Condvar::new());
        Group { steps, queue, moved, calls: Mutex::new(calls), most }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits transactions, and waits until each is done before submitting the next. Returns the
    /// latencies.
    fn work(&self, deadline: Instant, stop: &Stop) -> Histogram<u64> {
        let mut latencies = crate::histogram();
        let clients = f64::from(self.steps.clients);
        let pace = self.steps.rate.map(|rate| Duration::from_secs_f64(clients / rate));
        let start = Instant::now();
        let mut began = start;
        while began < deadline && !stop.is_requested() {
            if self.steps.think_us > 0 {
                think(Duration::from_micros(self.steps.think_us.into()));
                began = Instant::now();
            }
            if let Some(pace) = pace {
                let due = start + pace.mul_f64(latencies.len() as f64);
                // A sleep is longer than many intervals, so some steps start early.
                if due > began + SLEEP_MIN {
                    thread::sleep(due - began);
                }
                began = due.min(Instant::now());
            }
            if !self.commit() {
                break;
            }
            // The end of a transaction is the start of the next (M10).
            let now = Instant::now();
            latencies.saturating_record((now - began).as_nanos() as u64);
            began = now;
        }
        latencies
    }

    /// Commits a transaction; returns `false` if there are no more transactions, or if a step
    /// failed.
    fn commit(&self) -> bool {
        let mut queue = self.queue();
        if queue.submitted >= self.most {
            return false;
        }
        queue.submitted += 1;
        let mine = queue.submitted;
        loop {
            if queue.failed.is_some() {
                return false;
            }
            if queue.done >= mine {
                return true;
            }
            if queue.has_leader {
                queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.has_leader = true;
            let (from, until) = (queue.done, queue.submitted);
            drop(queue);
            let made = self.make(from, until);
            queue = self.queue();
            queue.has_leader = false;
            match made {
                Ok(()) => queue.done = until,
                Err(error) => queue.failed = Some(error),
            }
            self.moved.notify_all();
        }
    }

    /// Performs the steps of the transactions from `from` up to `until`, and then the repeated
    /// steps that are due.
    fn make(&self, from: u64, until: u64) -> Result<(), Error> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.make(&self.steps.each, self.steps, until - from)?;
        for every in &self.steps.every {
            let is_due = every.transactions.is_some_and(|each| from / each != until / each);
            if is_due {
                calls.make(&every.steps, self.steps, 1)?;
            }
        }
        Ok(())
    }

    fn end(self) -> (u64, Option<Error>) {
        let queue = self.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        (queue.done, queue.failed)
    }
}

/// Uses this much CPU time, like the program's own work.
fn think(time: Duration) {
    let until = cpu_time() + time;
    while cpu_time() < until {}
}

/// Returns the CPU time of this thread. `getrusage(2)` is only accurate to a tick of the scheduler.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Performs the concurrent steps when they are due, until the clients have finished.
fn work_beside(
    steps: &Steps,
    calls: &mut Calls,
    groups: &[Group<'_>],
    over: &Stop,
) -> Result<(), Error> {
    let begin = Instant::now();
    // When each list of steps was last performed: the time, and the number of transactions.
    let mut last: Vec<(f64, u64)> = vec![(0.0, 0); steps.beside.len()];
    loop {
        let mut next = LOOK;
        for (every, (last_s, last_done)) in steps.beside.iter().zip(&mut last) {
            if over.is_requested() {
                return Ok(());
            }
            let now_s = begin.elapsed().as_secs_f64();
            let done = groups.iter().map(|group| group.queue().done).sum::<u64>();
            let is_due = match every.interval_s {
                Some(interval_s) => now_s - *last_s >= interval_s,
                None => every.transactions.is_some_and(|each| done / each != *last_done / each),
            };
            if is_due {
                calls.make(&every.steps, steps, 1)?;
                (*last_s, *last_done) = (now_s, done);
            }
            if let Some(interval_s) = every.interval_s {
                next = next.min(Duration::from_secs_f64(interval_s / 4.0));
            }
        }
        thread::sleep(next);
    }
}
