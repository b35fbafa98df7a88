//! The part of a disk shared by its threads, and which thread drives it.
//!
//! All operations are in the [`Schedule`], behind one lock. One thread at a time *drives*: it
//! submits operations to the kernel, waits for completions, and routes them. It waits without the
//! lock, so that other threads can start operations. They interrupt its wait, and it then submits
//! everything started by then in one call.
//!
//! A blocking caller drives if no other thread does, without a thread switch; otherwise it sleeps.
//! A future never drives: the disk's thread does that for it, while no caller does.

use super::entry::Outcome;
use super::schedule::Schedule;
use super::thread;
use crate::error::Error;
use crate::fork::Process;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;

/// How completions arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// On their own, from the kernel or its threads: a thread can wait for them.
    Kernel,
    /// Inside the call that submits the operation.
    AtOnce,
    /// When a caller asks: on a simulated disk, whose order is repeatable because it has no thread.
    Simulated,
}

pub(super) struct Shared {
    state: Mutex<State>,
    pub arrival: Arrival,
    pub process: Process,
    /// Wakes the disk's thread.
    work: Condvar,
    /// Wakes threads that wait for an event of the schedule, after each turn.
    turned: Condvar,
}

pub(super) struct State {
    /// `None` when the last handle is gone.
    schedule: Option<Schedule>,
    /// Whether a thread drives, and whether it waits without the lock.
    is_driven: bool,
    is_away: bool,
    /// Whether the disk's thread exists, and whether it sleeps.
    has_thread: bool,
    thread_sleeps: bool,
    /// Threads that sleep until their operation is complete, or until they should drive.
    sleepers: Vec<Arc<Alarm>>,
    /// The number of threads that wait for `turned`.
    watchers: usize,
}

impl State {
    pub fn schedule(&mut self) -> &mut Schedule {
        self.schedule.as_mut().expect("there is a handle, so the schedule is there")
    }

    /// Returns whether driving now would advance an operation.
    fn can_drive(&mut self) -> bool {
        !self.is_driven && {
            self.schedule().pump();
            self.schedule().has_work()
        }
    }

    /// Ends the wait of the driving thread, so that it submits newly started operations.
    fn recall(&mut self) {
        if self.is_away {
            self.is_away = false;
            self.schedule().engine.interrupt();
        }
    }
}

/// Wakes a task. A waker is the caller's code: if it panics, the panic hook reports it, and the
/// other tasks continue.
fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

thread_local! {
    /// The disks whose `block_on` polls on this thread, and which therefore drive for the futures
    /// inside.
    static BLOCKING_ON: RefCell<Vec<*const Shared>> = const { RefCell::new(Vec::new()) };
}

type Guard<'a> = MutexGuard<'a, State>;

impl Shared {
    pub fn new(
        schedule: impl FnOnce(&std::sync::Weak<Shared>) -> Schedule,
        arrival: Arrival,
    ) -> Arc<Shared> {
        Arc::new_cyclic(|own| Shared {
            state: Mutex::new(State {
                schedule: Some(schedule(own)),
                is_driven: false,
                is_away: false,
                has_thread: false,
                thread_sleeps: false,
                sleepers: Vec::new(),
                watchers: 0,
            }),
            arrival,
            process: Process::this(),
            work: Condvar::new(),
            turned: Condvar::new(),
        })
    }

    fn lock(&self) -> Guard<'_> {
        // A panic under the lock has been reported, and every operation is still known.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `look` with the schedule, and then the wakers of finished operations, which may call
    /// this again.
    pub fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        let mut state = self.lock();
        let result = look(state.schedule());
        self.release(state);
        result
    }

    /// Unlocks, and wakes the owners of finished operations.
    fn release(&self, mut state: Guard) {
        let Some(schedule) = &mut state.schedule else { return };
        if schedule.wakers.is_empty() {
            return;
        }
        let wakers = std::mem::take(&mut schedule.wakers);
        drop(state);
        wakers.into_iter().for_each(wake);
    }

    /// The same, then locks again.
    fn relock<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        if state.schedule().wakers.is_empty() {
            return state;
        }
        self.release(state);
        self.lock()
    }

    /// One turn of driving: submits operations, waits for a completion, routes completions, and
    /// wakes the owners. Ringing `alarm` ends the wait.
    fn drive<'a>(&'a self, mut state: Guard<'a>, alarm: Option<&Alarm>) -> Guard<'a> {
        state.is_driven = true;
        let wait = state.schedule().prepare_wait();
        // A ring from here on interrupts the wait.
        let goes = alarm.is_none_or(|alarm| alarm.goes_away());
        // A waker is not called while this thread drives, because it may drop the last handle.
        let goes = goes && state.schedule().wakers.is_empty();
        let waited = match wait {
            Ok(wait) if goes => {
                state.is_away = true;
                drop(state);
                let waited = wait.wait();
                state = self.lock();
                state.is_away = false;
                waited.map_err(|error| {
                    let errno = crate::error::errno_of(&error);
                    Error::Engine { what: "waiting for the kernel", errno }
                })
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Some(alarm) = alarm {
            alarm.is_back();
        }
        let min = usize::from(self.arrival != Arrival::Kernel);
        // Every operation returns a failure of the engine.
        match waited {
            Ok(()) if min == 0 => state.schedule().collect(),
            Ok(()) => _ = state.schedule().drive(min),
            Err(error) => state.schedule().fail(&error),
        }
        state.is_driven = false;
        if state.watchers > 0 {
            self.turned.notify_all();
        }
        self.relock(state)
    }

    /// Leaves the disk to another thread, or its operations to the kernel if no thread waits.
    fn hand_over<'a>(self: &'a Arc<Shared>, mut state: Guard<'a>) -> Guard<'a> {
        if state.is_driven || state.schedule.is_none() {
            return state;
        }
        if state.schedule().has_work() {
            if let Some(sleeper) = state.sleepers.first() {
                sleeper.call();
            } else if state.schedule().awaited > 0 {
                self.need_thread(&mut state);
            } else if state.schedule().engine.wants_turn() {
                // Every operation returns a failure of the engine.
                let _ = state.schedule().submit();
            }
        }
        state
    }

    fn wake_thread(&self, state: &mut State) {
        if state.thread_sleeps {
            state.thread_sleeps = false;
            self.work.notify_one();
        }
    }

    /// Drives until the operation is complete, or sleeps while another thread does. Even if it is
    /// complete already, submits everything that was started before.
    pub fn wait(self: &Arc<Shared>, key: usize) -> Result<Outcome, Error> {
        self.process.check()?;
        let mut alarm: Option<Arc<Alarm>> = None;
        let mut state = self.lock();
        let result = loop {
            let over = state.schedule().is_over(key);
            if let Some(result) = state.schedule().take(key) {
                if over && !state.is_driven && state.schedule().engine.wants_turn() {
                    let _ = state.schedule().submit();
                }
                break result;
            }
            if state.can_drive() {
                state = self.drive(state, None);
                continue;
            }
            if self.arrival == Arrival::Simulated {
                state.schedule().starve(Some(key));
                state = self.relock(state);
                continue;
            }
            if state.schedule().engine.wants_turn() {
                state.recall();
            }
            let alarm = alarm.get_or_insert_with(|| Arc::new(Alarm::of(std::thread::current())));
            let waker = Waker::from(Arc::clone(alarm));
            let before = state.schedule().register(key, &waker, false);
            state = self.sleep(state, alarm);
            alarm.rung.store(false, Ordering::SeqCst);
            drop(before);
        };
        let state = self.hand_over(state);
        self.release(state);
        result
    }

    /// Sleeps until the alarm rings, or this thread should drive.
    fn sleep<'a>(&'a self, mut state: Guard<'a>, alarm: &Arc<Alarm>) -> Guard<'a> {
        state.sleepers.push(Arc::clone(alarm));
        self.release(state);
        while !alarm.is_called.swap(false, Ordering::SeqCst) && !alarm.rung.load(Ordering::SeqCst) {
            std::thread::park();
        }
        let mut state = self.lock();
        state.sleepers.retain(|sleeper| !Arc::ptr_eq(sleeper, alarm));
        state
    }

    /// Returns the result of the operation, or wakes `waker` when it is complete.
    pub fn poll(self: &Arc<Shared>, key: usize, waker: &Waker) -> Poll<Result<Outcome, Error>> {
        if let Err(error) = self.process.check() {
            return Poll::Ready(Err(error));
        }
        let is_awaited_here = BLOCKING_ON.with_borrow(|disks| disks.contains(&Arc::as_ptr(self)));
        match self.arrival {
            Arrival::Simulated => return self.poll_simulated(key, waker, is_awaited_here),
            Arrival::AtOnce => {
                let mut state = self.lock();
                while !state.schedule().is_over(key) && state.can_drive() {
                    state = self.drive(state, None);
                }
                self.release(state);
            }
            Arrival::Kernel => {}
        }
        let mut state = self.lock();
        let lacks_buffers = !state.schedule().leasing.is_empty();
        if let Some(result) = state.schedule().take(key) {
            if lacks_buffers {
                state = self.attend(state);
            }
            self.release(state);
            return Poll::Ready(result);
        }
        // The previous waker is dropped after the lock.
        let _before = state.schedule().register(key, waker, !is_awaited_here);
        // If `block_on` polls, its thread drives next.
        if state.is_driven || !is_awaited_here {
            state = self.attend(state);
        }
        self.release(state);
        Poll::Pending
    }

    /// Ensures that a thread drives while anyone waits for an operation that needs it.
    fn attend<'a>(self: &'a Arc<Shared>, mut state: Guard<'a>) -> Guard<'a> {
        if self.arrival == Arrival::Simulated {
            return state;
        }
        if !state.is_driven {
            return self.hand_over(state);
        }
        if state.schedule().engine.wants_turn() {
            state.recall();
        }
        state
    }

    /// Drops an operation's handle. Waits if more operations without a handle are in progress than
    /// the engine's depth (W8).
    pub fn forget(self: &Arc<Shared>, key: usize) {
        if !self.process.is_this() {
            return;
        }
        let mut state = self.lock();
        let lacks_buffers = !state.schedule().leasing.is_empty();
        // Dropped after the lock.
        let _waker = state.schedule().forget(key);
        if lacks_buffers {
            state.schedule().pump();
            state = self.attend(state);
        }
        let is_bounded = state.schedule().is_bounded();
        self.release(state);
        if !is_bounded {
            // After a failure of the engine nothing is in progress.
            let _ = self.wait_until(|schedule| schedule.is_bounded().then_some(()));
        }
    }

    /// Wakes the disk's thread, starting it the first time.
    fn need_thread(self: &Arc<Shared>, state: &mut State) {
        if state.has_thread {
            return self.wake_thread(state);
        }
        state.has_thread = true;
        if let Err(error) = thread::start(Arc::clone(self)) {
            // Without memory for a thread there is none for the operations either.
            state.has_thread = false;
            let errno = crate::error::errno_of(&error);
            state.schedule().fail(&Error::Engine { what: "starting the disk's thread", errno });
        }
    }

    /// On a simulated disk a poll drives, and a pending operation wakes itself.
    fn poll_simulated(
        &self,
        key: usize,
        waker: &Waker,
        is_driven: bool,
    ) -> Poll<Result<Outcome, Error>> {
        let (polled, _before) = self.with(|schedule| {
            if !is_driven && !schedule.is_over(key) {
                // The operation returns a failure of the engine.
                let went = schedule.drive(0).unwrap_or(true);
                if !went && !schedule.is_over(key) && schedule.is_stuck(key) {
                    schedule.starve(Some(key));
                }
            }
            match schedule.take(key) {
                Some(result) => (Poll::Ready(result), None),
                None => (Poll::Pending, schedule.register(key, waker, false)),
            }
        });
        if polled.is_pending() && !is_driven {
            waker.wake_by_ref();
        }
        polled
    }

    /// Runs a future to its end, and drives while it is pending.
    pub fn block_on<F: Future>(self: &Arc<Shared>, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let alarm = Arc::new(Alarm::of(std::thread::current()));
        let alarm = Arc::new(DiskAlarm { alarm, disk: Arc::downgrade(self) });
        alarm.alarm.rung.store(true, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&alarm));
        let alarm = &alarm.alarm;
        loop {
            if alarm.rung.swap(false, Ordering::SeqCst) {
                let _marked = BlockingOn::mark(self);
                let polled = future.as_mut().poll(&mut std::task::Context::from_waker(&waker));
                if let Poll::Ready(output) = polled {
                    let state = self.hand_over(self.lock());
                    self.release(state);
                    return output;
                }
            }
            let mut state = self.lock();
            if self.arrival == Arrival::Simulated {
                self.release(state);
                self.turn_simulated(alarm);
            } else if state.can_drive() {
                let state = self.drive(state, Some(alarm));
                self.release(state);
            } else {
                if state.schedule().engine.wants_turn() {
                    state.recall();
                }
                drop(self.sleep(state, alarm));
            }
        }
    }

    /// Drives a simulated disk for a pending future; without work, the thread sleeps.
    fn turn_simulated(&self, alarm: &Alarm) {
        // A future that wakes itself must still let the disk work.
        let min = usize::from(!alarm.rung.load(Ordering::SeqCst));
        // Every operation returns a failure of the engine.
        let went = self.with(|schedule| schedule.drive(min)).unwrap_or(true);
        if went || alarm.rung.load(Ordering::SeqCst) {
            return;
        }
        // Every woken task had its turn, so no buffer will become free.
        let starved = self.with(|schedule| {
            let leasing = !schedule.leasing.is_empty();
            schedule.starve(None);
            leasing
        });
        if !starved {
            std::thread::park();
        }
    }

    /// Waits until `is_there` returns a value: drives, or waits while another thread does.
    pub fn wait_until<T>(
        self: &Arc<Shared>,
        mut is_there: impl FnMut(&mut Schedule) -> Option<T>,
    ) -> Result<T, Error> {
        self.process.check()?;
        let mut state = self.lock();
        let found = loop {
            if let Some(found) = is_there(state.schedule()) {
                break Ok(found);
            }
            if let Some(error) = &state.schedule().failure {
                break Err(error.clone());
            }
            if state.can_drive() {
                state = self.drive(state, None);
            } else if self.arrival == Arrival::Simulated {
                state.schedule().starve(None);
                state = self.relock(state);
            } else {
                if state.schedule().engine.wants_turn() {
                    state.recall();
                }
                state = self.relock(state);
                state.watchers += 1;
                state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.watchers -= 1;
            }
        };
        let state = self.hand_over(state);
        self.release(state);
        found
    }

    /// Submits operations to the kernel without waiting.
    pub fn submit(self: &Arc<Shared>) -> Result<(), Error> {
        self.process.check()?;
        let mut state = self.lock();
        let submitted = if state.is_driven {
            state.schedule().pump();
            if state.schedule().engine.wants_turn() {
                state.recall();
            }
            Ok(())
        } else {
            state.schedule().submit()
        };
        self.release(state);
        submitted
    }

    /// The same, and routes completions if no thread drives, which would do that.
    pub fn look(self: &Arc<Shared>) -> Result<(), Error> {
        self.submit()?;
        let mut state = self.lock();
        if !state.is_driven && state.schedule().has_work() {
            state.schedule().collect();
            if state.watchers > 0 {
                self.turned.notify_all();
            }
        }
        self.release(state);
        Ok(())
    }

    /// Gives a buffer returned from outside to the first operation that waits for one.
    pub fn buffer_returned(self: &Arc<Shared>) {
        if !self.process.is_this() {
            return;
        }
        let mut state = self.lock();
        let Some(schedule) = &mut state.schedule else { return };
        schedule.pump();
        if state.watchers > 0 {
            self.turned.notify_all();
        }
        let state = self.attend(state);
        self.release(state);
    }

    /// Drives for pending futures until the last handle is gone: the disk's thread.
    pub fn serve(self: &Arc<Shared>) {
        let mut state = self.lock();
        while let Some(schedule) = &mut state.schedule {
            if schedule.awaited > 0 && state.can_drive() {
                // The last handle may be dropped by a waker.
                state = self.drive(state, None);
                continue;
            }
            state = self.hand_over(state);
            state.thread_sleeps = true;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.thread_sleeps = false;
        }
    }

    /// Ends the disk with its last handle: waits for the driving thread, and completes every
    /// operation (W5).
    pub fn close(&self) {
        if !self.process.is_this() {
            return;
        }
        let mut state = self.lock();
        while state.is_driven {
            state.recall();
            state.watchers += 1;
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.watchers -= 1;
        }
        let schedule = state.schedule.take();
        self.work.notify_one();
        drop(state);
        drop(schedule);
    }
}

/// Marks this thread as driving the disk for the futures that it polls.
struct BlockingOn;

impl BlockingOn {
    fn mark(disk: &Arc<Shared>) -> BlockingOn {
        BLOCKING_ON.with_borrow_mut(|disks| disks.push(Arc::as_ptr(disk)));
        BlockingOn
    }
}

impl Drop for BlockingOn {
    fn drop(&mut self) {
        BLOCKING_ON.with_borrow_mut(|disks| disks.pop());
    }
}

/// Wakes a thread that runs a future, or waits for an operation.
pub(super) struct Alarm {
    thread: Thread,
    rung: AtomicBool,
    /// Whether the thread should drive.
    is_called: AtomicBool,
    /// Whether the thread drives a disk, and may wait in the kernel.
    is_away: AtomicBool,
}

impl Alarm {
    fn of(thread: Thread) -> Alarm {
        let [rung, is_called, is_away] = [(); 3].map(|()| AtomicBool::new(false));
        Alarm { thread, rung, is_called, is_away }
    }

    /// Announces a wait in the kernel. Returns whether it may start, because nothing rang before.
    fn goes_away(&self) -> bool {
        self.is_away.store(true, Ordering::SeqCst);
        !self.rung.load(Ordering::SeqCst)
    }

    fn is_back(&self) {
        self.is_away.store(false, Ordering::SeqCst);
    }

    fn call(&self) {
        self.is_called.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }

    fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

/// The alarm of `block_on`, which also ends its wait in the kernel.
struct DiskAlarm {
    alarm: Arc<Alarm>,
    disk: std::sync::Weak<Shared>,
}

impl Wake for DiskAlarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.alarm.ring();
        if self.alarm.is_away.load(Ordering::SeqCst)
            && let Some(disk) = self.disk.upgrade()
        {
            let mut state = disk.lock();
            if state.schedule.is_some() && self.alarm.is_away.load(Ordering::SeqCst) {
                state.recall();
            }
        }
    }
}
