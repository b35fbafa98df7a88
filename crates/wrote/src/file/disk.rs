//! One engine that several files share, and the loop that drives it for a waiting caller.

use super::entry::{Outcome, Work};
use super::order::Touch;
use super::schedule::Schedule;
use super::{DirectFile, Operation};
use crate::buffer::{Buffer, Pool};
use crate::engine::{Effective, Engine, FileOptions, Options, Sim};
use crate::error::Error;
use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// An [`Engine`] that any number of [`DirectFile`]s share. Clones are handles to the same engine,
/// which one thread uses.
///
/// Dropping the last handle, file and [`Operation`] carries out every operation first (W5).
///
/// ```
/// use wrote::engine::Options;
/// use wrote::{Disk, Error, FileOptions, Ioengine};
///
/// # let folder = tempfile::tempdir()?;
/// let disk = Disk::open(&Options::new(Ioengine::IoUring, 8, 64 << 10))?;
/// let options = FileOptions::new().create_new(true).write(true).direct(true);
/// let (left, right) = (folder.path().join("left"), folder.path().join("right"));
/// let (left, right) = (disk.open_file(&left, &options)?, disk.open_file(&right, &options)?);
///
/// disk.block_on(async {
///     let mut writes = Vec::new();
///     for number in 0..32 {
///         let mut buffer = disk.start_lease().await?; // waits while all are in flight
///         buffer.fill(number);
///         let file = if number % 2 == 0 { &left } else { &right };
///         writes.push(file.start_write(buffer, u64::from(number / 2) << 16));
///     }
///     for write in writes {
///         write.await?;
///     }
///     Ok::<(), Error>(())
/// })?;
/// assert_eq!(right.read(3 << 16, 1)?, [7][..]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Disk(Rc<RefCell<Schedule>>);

impl Disk {
    /// Opens an engine, on the best rung that works.
    pub fn open(options: &Options) -> Result<Disk, Error> {
        Ok(Disk::new(Engine::open(options)?))
    }

    /// Opens an engine on a simulated disk.
    pub fn simulated(sim: &Sim, options: &Options) -> Result<Disk, Error> {
        Ok(Disk::new(Engine::simulated(sim, options)?))
    }

    fn new(engine: Engine) -> Disk {
        Disk(Rc::new(RefCell::new(Schedule::new(engine))))
    }

    /// Opens a file. A block device is opened for reading only (W7). [`Error::Refused`] where
    /// [`Options::FILES_MAX`] files are open. A refused `O_DIRECT` is a fallback, not an error: see
    /// [`DirectFile::is_direct`].
    pub fn open_file(
        &self,
        path: impl AsRef<Path>,
        options: &FileOptions,
    ) -> Result<DirectFile, Error> {
        let path = path.as_ref();
        let place = self.with(|schedule| {
            let id = schedule.engine.open_file(path, options)?;
            match schedule.engine.file_len(id) {
                Ok(len) => Ok(schedule.add_file(path.to_owned(), id, len)),
                Err(error) => {
                    schedule.engine.close_file(id)?;
                    Err(error)
                }
            }
        })?;
        Ok(DirectFile::new(self.clone(), place, options.sync_metadata))
    }

    /// Leases a buffer of [`Options::buffer_bytes`] to write from; waits for a completion where all
    /// are in flight. The bytes are those of the last lease. Fails with `ENOBUFS` when all are held
    /// outside the engine.
    pub fn lease(&self) -> Result<Buffer, Error> {
        self.start_lease().wait()
    }

    /// As [`Disk::lease`], to await. Waiting callers get buffers in the order of their calls.
    pub fn start_lease(&self) -> Operation<Buffer> {
        self.start(None, Touch::Nothing, Work::Lease(None))
    }

    /// The engine's buffers.
    pub fn pool(&self) -> Pool {
        self.0.borrow().engine.pool().clone()
    }

    /// The settings in effect, and each step down from those requested (W6).
    pub fn effective(&self) -> Effective {
        self.0.borrow().engine.effective().clone()
    }

    /// Operations that were started and are not complete, with or without a handle.
    pub fn outstanding(&self) -> usize {
        self.0.borrow().unfinished()
    }

    /// Hands operations to the kernel, without waiting. Otherwise the next wait or poll does it,
    /// for all at once.
    pub fn submit(&self) -> Result<(), Error> {
        self.with(Schedule::submit)
    }

    /// Waits for every operation. Each handle returns its own operation's error.
    pub fn drain(&self) -> Result<(), Error> {
        self.with(|schedule| schedule.settle(None))
    }

    /// Runs a future to its end, on this thread. While it is pending the thread sleeps until an
    /// operation of this disk is complete, or, with none in flight, until it is woken.
    ///
    /// The future may await operations of several files, and other events. While operations are in
    /// flight, an event on another thread is noticed when one of them completes. Another executor
    /// inside the future must not wait for this disk's operations.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let alarm = Arc::new(Alarm { thread: std::thread::current(), rung: AtomicBool::new(true) });
        let waker = Waker::from(Arc::clone(&alarm));
        self.0.borrow_mut().drivers += 1;
        let _driver = Driver(self);
        loop {
            if alarm.rung.swap(false, Ordering::AcqRel)
                && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return output;
            }
            // A future that wakes itself must still leave the disk its turn.
            let min = usize::from(!alarm.rung.load(Ordering::Acquire));
            // Every operation returns a failure of the engine.
            let went = self.with(|schedule| schedule.drive(min)).unwrap_or(true);
            if went || alarm.rung.load(Ordering::Acquire) {
                continue;
            }
            // Every woken task had its turn: no buffer will become free.
            let starved = self.with(|schedule| {
                let leasing = !schedule.leasing.is_empty();
                schedule.starve(None);
                leasing
            });
            if !starved {
                std::thread::park();
            }
        }
    }

    pub(super) fn start<T: super::Output>(
        &self,
        file: Option<usize>,
        touch: Touch,
        work: Work,
    ) -> Operation<T> {
        let key = self.with(|schedule| schedule.start(file, touch, work));
        Operation::started(self.clone(), key)
    }

    /// Calls `look` with the schedule, and then the wakers of operations that are over: a waker may
    /// run code that comes back here.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        let (result, wakers) = {
            let mut schedule = self.0.borrow_mut();
            let result = look(&mut schedule);
            (result, std::mem::take(&mut schedule.wakers))
        };
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    pub(super) fn is_over(&self, key: usize) -> bool {
        self.0.borrow().is_over(key)
    }

    /// Drives the engine until the operation is over. Even if it is over already, everything that
    /// was started before goes to the kernel.
    pub(super) fn wait(&self, key: usize) -> Result<Outcome, Error> {
        if self.is_over(key) {
            // Each operation returns a failure of the engine.
            let _ = self.submit();
        }
        loop {
            let result = self.with(|schedule| {
                // The operation returns a failure of the engine.
                let idle = !schedule.is_over(key) && !schedule.drive(1).unwrap_or(true);
                if idle && !schedule.is_over(key) {
                    schedule.starve(Some(key));
                }
                schedule.take(key)
            });
            if let Some(result) = result {
                return result;
            }
        }
    }

    pub(super) fn poll(&self, key: usize, waker: &Waker) -> Poll<Result<Outcome, Error>> {
        // The previous waker is dropped when nothing is borrowed.
        let (polled, driven, _before) = self.with(|schedule| {
            let driven = schedule.drivers > 0;
            if !driven && !schedule.is_over(key) {
                // The operation returns a failure of the engine.
                let went = schedule.drive(0).unwrap_or(true);
                if !went && !schedule.is_over(key) && schedule.is_stuck(key) {
                    schedule.starve(Some(key));
                }
            }
            match schedule.take(key) {
                Some(result) => (Poll::Ready(result), driven, None),
                None => (Poll::Pending, driven, schedule.register(key, waker)),
            }
        });
        if polled.is_pending() && !driven {
            waker.wake_by_ref();
        }
        polled
    }
}

/// Ends the mark of a driven engine.
struct Driver<'a>(&'a Disk);

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().drivers -= 1;
    }
}

/// Wakes the thread that runs a future.
struct Alarm {
    thread: Thread,
    rung: AtomicBool,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedule = self.0.borrow();
        f.debug_struct("Disk")
            .field("effective", schedule.engine.effective())
            .field("outstanding", &schedule.unfinished())
            .finish()
    }
}
