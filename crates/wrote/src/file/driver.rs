//! Has threads that wait for shared work take turns at doing it.
//!
//! One thread at a time has the turn, and works on behalf of all. A waiting thread takes the turn
//! if no other thread has it, so that it never depends on another thread. Otherwise, it sleeps
//! until its own condition holds, or until it is woken because the turn is free again. If only
//! tasks wait, the work is left to whatever [`Driven::leave`] chooses: a separate thread, or the
//! tasks' next poll.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Wake, Waker};
use std::thread::Thread;

/// The turn, and the threads that sleep while another thread has it.
#[derive(Default)]
pub(super) struct Turns {
    is_taken: bool,
    sleepers: Vec<Arc<Alarm>>,
}

impl Turns {
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken
    }
}

/// A waker for the thread that created the alarm.
pub(super) struct Alarm {
    thread: Thread,
    /// Whether the alarm has rung. Other code on the thread may consume the unpark that ends a
    /// sleep, but not this flag.
    is_rung: AtomicBool,
}

impl Alarm {
    pub(super) fn new() -> Arc<Alarm> {
        Arc::new(Alarm { thread: std::thread::current(), is_rung: AtomicBool::new(false) })
    }

    /// Sleeps until the alarm rings, or not at all if it has rung since the last sleep.
    pub(super) fn sleep(&self) {
        while !self.is_rung.swap(false, Ordering::SeqCst) {
            std::thread::park();
        }
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_rung.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Work for which several threads wait, and which one thread at a time does.
pub(super) trait Driven {
    type State;

    fn lock(&self) -> MutexGuard<'_, Self::State>;

    /// Unlocks the state, and then calls the wakers that were collected under the lock. The wakers
    /// are callers' code, which may call this object again.
    fn release(&self, state: MutexGuard<'_, Self::State>);

    /// Like [`Driven::release`], but then locks the state again.
    fn relock<'a>(&'a self, state: MutexGuard<'a, Self::State>) -> MutexGuard<'a, Self::State> {
        self.release(state);
        self.lock()
    }

    fn turns(state: &mut Self::State) -> &mut Turns;

    /// Returns whether a thread with the turn could make progress.
    fn has_work(&self, state: &mut Self::State) -> bool;

    /// Works until something has changed, perhaps without the lock. No other thread works in the
    /// meantime, because this one has the turn.
    fn work<'a>(&'a self, state: MutexGuard<'a, Self::State>) -> MutexGuard<'a, Self::State>;

    /// Notifies the thread that has the turn that there is new work.
    fn nudge(&self, state: &mut Self::State);

    /// Called when there is work, the turn is free, and there is no sleeping thread that could take
    /// it.
    fn leave(&self, state: &mut Self::State);

    /// Takes the turn and works, if the turn is free and there is work. Otherwise, returns the
    /// state as an error.
    fn take_turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, Self::State>,
    ) -> Result<MutexGuard<'a, Self::State>, MutexGuard<'a, Self::State>> {
        if Self::turns(&mut state).is_taken || !self.has_work(&mut state) {
            return Err(state);
        }
        Self::turns(&mut state).is_taken = true;
        let mut state = self.work(state);
        Self::turns(&mut state).is_taken = false;
        // The wakers are called only now, because one may drop the last handle, which waits for the
        // turn.
        Ok(self.relock(state))
    }

    /// Ensures that some thread or task does the work, if there is any.
    fn attend(&self, state: &mut Self::State) {
        if Self::turns(state).is_taken {
            self.nudge(state);
        } else if self.has_work(state) {
            match Self::turns(state).sleepers.first() {
                Some(sleeper) => sleeper.wake_by_ref(),
                None => self.leave(state),
            }
        }
    }

    /// Waits until `look` returns a value: works, or sleeps while another thread does. `register`
    /// stores a waker to be called when a value may be available. It returns the waker that it
    /// replaced, which must not be dropped under the lock.
    fn wait_for<T>(
        &self,
        mut look: impl FnMut(&mut Self::State) -> Option<T>,
        mut register: impl FnMut(&mut Self::State, &Waker) -> Option<Waker>,
    ) -> T {
        let mut alarm = None;
        let mut state = self.lock();
        let found = loop {
            if let Some(found) = look(&mut state) {
                break found;
            }
            state = match self.take_turn(state) {
                Ok(state) => state,
                Err(mut state) => {
                    let alarm = alarm.get_or_insert_with(Alarm::new);
                    self.attend(&mut state);
                    let replaced = register(&mut state, &Waker::from(Arc::clone(alarm)));
                    Self::turns(&mut state).sleepers.push(Arc::clone(alarm));
                    self.release(state);
                    drop(replaced);
                    alarm.sleep();
                    let mut state = self.lock();
                    let sleepers = &mut Self::turns(&mut state).sleepers;
                    sleepers.retain(|sleeper| !Arc::ptr_eq(sleeper, alarm));
                    state
                }
            };
        };
        self.attend(&mut state);
        self.release(state);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::time::Duration;

    /// A counter that each turn increments by one, up to a target.
    #[derive(Default)]
    struct Counter(Mutex<Count>);

    #[derive(Default)]
    struct Count {
        turns: Turns,
        left: u32,
        done: u32,
        at_work: u32,
        left_alone: u32,
        watchers: Vec<Waker>,
        wakers: Vec<Waker>,
    }

    impl Driven for Counter {
        type State = Count;

        fn lock(&self) -> MutexGuard<'_, Count> {
            self.0.lock().unwrap()
        }

        fn release(&self, mut state: MutexGuard<'_, Count>) {
            let wakers = std::mem::take(&mut state.wakers);
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        }

        fn turns(state: &mut Count) -> &mut Turns {
            &mut state.turns
        }

        fn has_work(&self, state: &mut Count) -> bool {
            state.left > 0
        }

        fn work<'a>(&'a self, mut state: MutexGuard<'a, Count>) -> MutexGuard<'a, Count> {
            state.at_work += 1;
            assert_eq!(state.at_work, 1, "one thread at a time works");
            drop(state);
            std::thread::yield_now();
            let mut state = self.lock();
            state.at_work -= 1;
            state.left -= 1;
            state.done += 1;
            let watchers = std::mem::take(&mut state.watchers);
            state.wakers.extend(watchers);
            state
        }

        fn nudge(&self, _: &mut Count) {}

        fn leave(&self, state: &mut Count) {
            state.left_alone += 1;
        }
    }

    impl Counter {
        fn wait_until(&self, done: u32) {
            self.wait_for(
                |count| (count.done >= done).then_some(()),
                |count, waker| {
                    count.watchers.push(waker.clone());
                    None
                },
            );
        }
    }

    #[test]
    fn a_thread_that_waits_works_itself_where_nobody_else_does() {
        let counter = Counter::default();
        counter.lock().left = 3;
        counter.wait_until(2);
        let count = counter.lock();
        assert_eq!((count.done, count.left_alone), (2, 1), "the rest is left to others");
    }

    #[test]
    fn threads_that_wait_take_turns_until_each_has_what_it_waits_for() {
        for _ in 0..50 {
            let counter = Counter::default();
            counter.lock().left = 40;
            std::thread::scope(|scope| {
                for number in 0..8 {
                    let counter = &counter;
                    scope.spawn(move || counter.wait_until(5 * (number + 1)));
                }
            });
            assert_eq!(counter.lock().done, 40);
        }
    }

    #[test]
    fn a_thread_that_sleeps_is_called_to_work_that_comes_later() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            scope.spawn(|| counter.wait_until(1));
            while counter.lock().turns.sleepers.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut count = counter.lock();
            count.left = 1;
            counter.attend(&mut count);
        });
        let count = counter.lock();
        assert_eq!((count.done, count.left_alone), (1, 0));
    }
}
