//! Threads that start together. The clock starts when every thread is ready, and no thread cleans
//! up before the results are collected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use wrote_result::Error;

const WATCH_EVERY: Duration = Duration::from_millis(250);

/// Runs `work` on `count` threads, each with its number and its gate. Each thread calls
/// [`Gate::ready`], and then [`Gate::work`]. Calls `clocked(go)` once all threads are ready: `go()`
/// runs the timed part, and `clocked` reads the counters before and after it. Calls `watch`
/// occasionally while the threads work. A thread whose timed part fails sets `failed`, so that the
/// others can stop early.
///
/// # Errors
///
/// The error of `clocked`, or of the first thread that failed, after all threads have finished. The
/// clock starts only if all threads are ready. If `clocked` fails before it calls `go()`, no thread
/// works.
pub fn together<P: Send, T>(
    count: usize,
    failed: &AtomicBool,
    work: impl Fn(usize, &Gate) -> Result<P, Error> + Sync,
    watch: &mut dyn FnMut(),
    clocked: impl FnOnce(&mut dyn FnMut()) -> Result<T, Error>,
) -> Result<(Vec<P>, T), Error> {
    let work = &work;
    let (told, news) = channel();
    let (parts, counted) = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut not_started = None;
        for number in 0..count {
            let (orders, ordered) = channel();
            let gate = Gate { told: told.clone(), ordered, failed };
            let thread = move || or_panicked(|| work(number, &gate));
            match std::thread::Builder::new().spawn_scoped(scope, thread) {
                Ok(thread) => threads.push((orders, thread)),
                Err(error) => {
                    not_started = Some(Error::Failed(format!("starting a thread: {error}")));
                    break;
                }
            }
        }
        let ready = all(&news, threads.len(), watch) && not_started.is_none();
        let counted = ready.then(|| {
            clocked(&mut || {
                threads.iter().for_each(|(orders, _)| orders.send(()).unwrap_or_default());
                all(&news, threads.len(), watch);
            })
        });
        // All threads finish before the first error is returned. A thread that receives no order
        // does not begin its timed part.
        let (orders, threads): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        drop(orders);
        let parts = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let mut parts: Vec<Result<P, Error>> = parts.collect();
        parts.splice(..0, not_started.map(Err));
        (parts, counted)
    });
    let counted = counted.transpose()?;
    // A thread that did not begin reports an interruption. The cause is the error of another
    // thread.
    let reason =
        |part: &Result<P, Error>| matches!(part, Err(e) if !matches!(e, Error::Interrupted));
    if let Some(first) = parts.iter().position(reason) {
        return Err(parts.into_iter().nth(first).and_then(Result::err).expect("it is an error"));
    }
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((parts, counted.expect("no thread failed, so the clock ran")))
}

/// Waits until `count` threads have reported, and returns whether all of them succeeded.
fn all(news: &Receiver<bool>, count: usize, watch: &mut dyn FnMut()) -> bool {
    let (mut left, mut good) = (count, true);
    while left > 0 {
        match news.recv_timeout(WATCH_EVERY) {
            Ok(is_good) => {
                good &= is_good;
                left -= 1;
            }
            Err(RecvTimeoutError::Timeout) => watch(),
            Err(RecvTimeoutError::Disconnected) => unreachable!("`together` holds a sender"),
        }
    }
    good
}

/// The point at which a thread reports its state and waits for the other threads.
pub struct Gate<'a> {
    told: Sender<bool>,
    ordered: Receiver<()>,
    failed: &'a AtomicBool,
}

impl Gate<'_> {
    /// Runs `make`, and returns its result when the clock starts.
    pub fn ready<T>(&self, make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let made = or_panicked(make);
        if self.pass(made.is_ok()) { made } else { made.and(Err(Error::Interrupted)) }
    }

    /// Runs the timed part, and returns its result when every thread has finished its part.
    pub fn work<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let done = or_panicked(work);
        if done.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.pass(done.is_ok());
        done
    }

    /// Reports the thread's state, and waits for an order. Returns `false` if no order will come.
    fn pass(&self, good: bool) -> bool {
        self.told.send(good).is_ok() && self.ordered.recv().is_ok()
    }
}

/// Turns a panic into an error, because other threads wait for this thread's report.
fn or_panicked<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::Failed("a thread of the run panicked: see above".into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A group of threads that records its steps, and fails at one step of one thread.
    struct Diary {
        lines: Mutex<Vec<String>>,
        wrong: Option<(&'static str, usize)>,
        panics: bool,
        failed: AtomicBool,
    }

    impl Diary {
        fn new(wrong: Option<(&'static str, usize)>, panics: bool) -> Diary {
            Diary { lines: Mutex::default(), wrong, panics, failed: AtomicBool::new(false) }
        }

        fn step(&self, step: &'static str, number: usize) -> Result<usize, Error> {
            self.lines.lock().unwrap().push(step.into());
            if self.wrong != Some((step, number)) {
                return Ok(number);
            }
            assert!(!self.panics, "on purpose");
            Err(Error::Failed(format!("{step} {number}")))
        }

        fn run(&self) -> Result<(Vec<usize>, &'static str), Error> {
            let work = |number, gate: &Gate| {
                gate.ready(|| self.step("ready", number))?;
                gate.work(|| self.step("work", number))?;
                self.step("clear", number)
            };
            together(3, &self.failed, work, &mut || {}, |go| {
                self.lines.lock().unwrap().push("before".into());
                go();
                self.lines.lock().unwrap().push("after".into());
                Ok("counted")
            })
        }

        fn lines(&self) -> String {
            self.lines.lock().unwrap().join(" ")
        }
    }

    #[test]
    fn all_are_ready_before_the_first_works_and_all_are_done_before_anyone_clears_up() {
        let diary = Diary::new(None, false);
        assert_eq!(diary.run().unwrap(), (vec![0, 1, 2], "counted"));
        assert_eq!(
            diary.lines(),
            "ready ready ready before work work work after clear clear clear"
        );
    }

    #[test]
    fn no_thread_works_unless_all_get_ready() {
        let diary = Diary::new(Some(("ready", 1)), false);
        assert_eq!(diary.run().unwrap_err().to_string(), "ready 1");
        assert_eq!(diary.lines(), "ready ready ready");
    }

    #[test]
    fn one_that_fails_is_told_and_the_others_hear_of_it_and_are_waited_for() {
        let diary = Diary::new(Some(("work", 2)), false);
        assert_eq!(diary.run().unwrap_err().to_string(), "work 2");
        assert_eq!(diary.lines(), "ready ready ready before work work work after clear clear");
        assert!(diary.failed.load(Ordering::Relaxed));
    }

    #[test]
    fn a_panic_is_an_error_and_keeps_nobody_waiting() {
        for step in ["ready", "work", "clear"] {
            let diary = Diary::new(Some((step, 0)), true);
            let error = diary.run().unwrap_err().to_string();
            assert!(error.contains("panicked"), "{step}: {error}");
        }
    }
}
