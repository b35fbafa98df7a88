//! Keeps this thread and the watched thread on one processor.
//!
//! A stop of the watched thread wakes this thread, and the end of the stop wakes the watched
//! thread. Linux moves a woken thread to an idle processor, and waking that processor takes longer
//! than everything else: a stop took 80 us on two processors of a virtual machine, and 4 us on one.

use libc::pid_t;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::io;
use std::time::{Duration, Instant};

/// The number of consecutive stops after which a thread is kept on one processor.
const ROW_MIN: u32 = 4;
/// The maximum time between consecutive stops.
const DENSE: Duration = Duration::from_millis(1);

/// The consecutive stops of a thread, and the processor on which they are handled.
#[derive(Default)]
pub struct Near {
    /// The thread that stopped last, the number of its consecutive stops before that, and the time
    /// of the last stop.
    task: pid_t,
    row: u32,
    at: Option<Instant>,
    /// The processors that this thread may normally use, and the one to which it is restricted, if
    /// it is.
    own: Option<(CpuSet, usize)>,
}

impl Near {
    /// Notes a stop.
    pub fn stopped(&mut self, task: pid_t, now: Instant) {
        let before = self.at.replace(now);
        let is_dense = before.is_some_and(|at| now.duration_since(at) < DENSE);
        if task == self.task && is_dense {
            self.row += 1;
        } else {
            (self.task, self.row) = (task, 0);
            if let Some((all, _)) = self.own.take() {
                let _ = sched_setaffinity(None, &all);
            }
        }
    }

    /// Ends the run of stops, because the thread is about to pass on its set of processors or to
    /// query it.
    pub fn apart(&mut self) {
        self.row = 0;
    }

    /// Resumes the stopped task by `resume`, on this processor if its stops are frequent.
    /// Immediately afterwards, the task may use its other processors again.
    pub fn resume(&mut self, resume: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let task = Pid::from_raw(self.task).filter(|_| self.row >= ROW_MIN);
        let before = task.and_then(|task| self.keep(task));
        let done = resume();
        if let Some(before) = before {
            let _ = sched_setaffinity(task, &before);
        }
        done
    }

    /// Restricts both threads to one processor. Returns the processors that the task may normally
    /// use; `None` if the task could not be restricted.
    fn keep(&mut self, task: Pid) -> Option<CpuSet> {
        let allowed = sched_getaffinity(Some(task)).ok()?;
        let (own, here) = match self.own.take() {
            Some(kept) => kept,
            None => (sched_getaffinity(None).ok()?, sched_getcpu()),
        };
        // The task may not be allowed to use the current processor.
        let here = [here].into_iter().chain(0..CpuSet::MAX_CPU).find(|at| allowed.is_set(*at))?;
        self.own = Some((own, here));
        let mut only = CpuSet::new();
        only.set(here);
        let both = [None, Some(task)].map(|of| sched_setaffinity(of, &only));
        both[1].is_ok().then_some(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::gettid;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn only_a_thread_that_stops_often_is_kept_near_and_only_until_it_runs() {
        let (send, task) = mpsc::channel();
        let (end, is_over) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            send.send(gettid()).unwrap();
            let _ = is_over.recv();
        });
        let task = task.recv().unwrap();
        let may = |task| sched_getaffinity(task).unwrap();
        let (own, all) = (may(None), may(Some(task)));
        let mut near = Near::default();
        let resume = |near: &mut Near| {
            let mut during = None;
            near.resume(|| {
                during = Some(may(Some(task)));
                Ok(())
            })
            .unwrap();
            assert_eq!(may(Some(task)), all, "it may use all processors again");
            during.unwrap()
        };
        let number = task.as_raw_nonzero().get();
        for row in 0..=ROW_MIN {
            near.stopped(number, Instant::now());
            let is_near = row == ROW_MIN;
            assert_eq!(resume(&mut near).count() == 1, is_near || all.count() == 1, "{row}");
        }
        near.apart();
        assert_eq!(resume(&mut near), all, "at a call that would show it");
        near.stopped(number + 1, Instant::now());
        assert_eq!(may(None), own, "this thread may use all again");
        drop(end);
        other.join().unwrap();
    }
}
