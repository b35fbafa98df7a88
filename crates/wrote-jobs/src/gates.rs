//! Threads that begin together. The clock starts when every thread is ready, and no thread cleans
//! up before the results are collected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use wrote_result::Error;

const WATCH_EVERY: Duration = Duration::from_millis(250);

/// The work of each thread of a run. Its [`Crew::Ready`] stays in the thread.
pub trait Crew: Sync {
    /// The state that a thread has ready when the clock starts.
    type Ready;
    /// The outcome of its work.
    type Done;
    /// The result of the thread.
    type Part: Send;

    /// Makes everything ready for the thread of this number.
    fn make_ready(&self, number: usize) -> Result<Self::Ready, Error>;
    /// Does the timed part.
    fn work(&self, ready: &mut Self::Ready) -> Result<Self::Done, Error>;
    /// Cleans up after every thread has ended its work.
    fn clear_up(&self, ready: Self::Ready, done: Self::Done) -> Result<Self::Part, Error>;
    /// Returns the flag that a failed thread raises, so that other threads can end early.
    fn failed(&self) -> &AtomicBool;
}

/// Runs `count` threads of a crew. Calls `clocked(go)` once all threads are ready: `go()` runs the
/// timed part, and counters are read before and after it. Calls `watch` now and then meanwhile.
///
/// # Errors
///
/// The error of the first thread that failed, after all threads have ended. The clock starts only
/// if all threads are ready.
pub fn together<C: Crew, T>(
    crew: &C,
    count: usize,
    watch: &mut dyn FnMut(),
    clocked: impl FnOnce(&mut dyn FnMut()) -> T,
) -> Result<(Vec<C::Part>, T), Error> {
    let (told, news) = channel();
    let (parts, counted) = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut not_started = None;
        for number in 0..count {
            let (orders, ordered) = channel();
            let gate = Gate { told: told.clone(), ordered };
            let work = move || member(crew, number, &gate);
            match std::thread::Builder::new().spawn_scoped(scope, work) {
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
        // All threads end before the first error is returned. Without an order no thread begins.
        let (orders, threads): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        drop(orders);
        let parts = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let mut parts: Vec<Result<C::Part, Error>> = parts.collect();
        parts.splice(..0, not_started.map(Err));
        (parts, counted)
    });
    // A thread that did not begin reports an interruption; the reason is that of another thread.
    let reason =
        |part: &Result<C::Part, Error>| matches!(part, Err(e) if !matches!(e, Error::Interrupted));
    if let Some(first) = parts.iter().position(reason) {
        return Err(parts.into_iter().nth(first).and_then(Result::err).expect("it is an error"));
    }
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((parts, counted.expect("no thread failed, so the clock ran")))
}

/// Waits for news of `count` threads; returns whether all are good.
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

/// The point where a thread reports its state and waits for the next order.
struct Gate {
    told: Sender<bool>,
    ordered: Receiver<()>,
}

impl Gate {
    /// Reports the state so far, and waits for an order. Returns `false` where none will come.
    fn pass(&self, good: bool) -> bool {
        self.told.send(good).is_ok() && self.ordered.recv().is_ok()
    }
}

fn member<C: Crew>(crew: &C, number: usize, gate: &Gate) -> Result<C::Part, Error> {
    let ready = or_panicked(|| crew.make_ready(number));
    if !gate.pass(ready.is_ok()) {
        return Err(ready.err().unwrap_or(Error::Interrupted));
    }
    let done = or_panicked(|| {
        let mut ready = ready?;
        Ok((crew.work(&mut ready)?, ready))
    });
    if done.is_err() {
        crew.failed().store(true, Ordering::Relaxed);
    }
    gate.pass(done.is_ok());
    let (done, ready) = done?;
    or_panicked(|| crew.clear_up(ready, done))
}

/// Turns a panic into an error: other threads wait for news of this one.
fn or_panicked<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::Failed("a thread of the run panicked: see above".into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A crew that records its steps and fails at one step of one thread.
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
            together(self, 3, &mut || {}, |go| {
                self.lines.lock().unwrap().push("before".into());
                go();
                self.lines.lock().unwrap().push("after".into());
                "counted"
            })
        }

        fn lines(&self) -> String {
            self.lines.lock().unwrap().join(" ")
        }
    }

    impl Crew for Diary {
        type Ready = usize;
        type Done = ();
        type Part = usize;

        fn make_ready(&self, number: usize) -> Result<usize, Error> {
            self.step("ready", number)
        }
        fn work(&self, ready: &mut usize) -> Result<(), Error> {
            self.step("work", *ready).map(drop)
        }
        fn clear_up(&self, ready: usize, (): ()) -> Result<usize, Error> {
            self.step("clear", ready)
        }
        fn failed(&self) -> &AtomicBool {
            &self.failed
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
    fn where_one_does_not_get_ready_nobody_works() {
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
