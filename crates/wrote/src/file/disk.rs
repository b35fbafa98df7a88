//! One engine that several files share, and the loop that drives it while something is awaited.

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

/// An [`Engine`] that any number of [`DirectFile`]s share. Clones are handles to the same one; it is
/// used by one thread.
///
/// When the last handle goes, the last file of it and the last [`Operation`], everything that was
/// started is carried out first (W5).
///
/// ```
/// use wrote::{Disk, Error, FileOptions, Ioengine, Options};
///
/// # fn main() -> Result<(), Error> {
/// # let folder = std::env::temp_dir().join(format!("wrote-doc-disk-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let disk = Disk::open(&Options::new(Ioengine::IoUring, 8, 64 << 10))?;
/// let options = FileOptions { create_new: true, write: true, direct: true, ..Default::default() };
/// let (left, right) = (folder.join("left"), folder.join("right"));
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
/// # drop((left, right, disk));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Disk(Rc<RefCell<Schedule>>);

impl Disk {
    /// Opens an engine, on the best rung that works.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`].
    pub fn open(options: &Options) -> Result<Disk, Error> {
        Ok(Disk::new(Engine::open(options)?))
    }

    /// The same on a simulated disk.
    ///
    /// # Errors
    ///
    /// As [`Engine::simulated`].
    pub fn simulated(sim: &Sim, options: &Options) -> Result<Disk, Error> {
        Ok(Disk::new(Engine::simulated(sim, options)?))
    }

    fn new(engine: Engine) -> Disk {
        Disk(Rc::new(RefCell::new(Schedule::new(engine))))
    }

    /// Opens a file. A block device is opened for reading only (W7).
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's words; also when [`Options::FILES_MAX`] files are open. A
    /// refused `O_DIRECT` is a fallback, not an error: [`DirectFile::is_direct`] tells.
    pub fn open_file(&self, path: &Path, options: &FileOptions) -> Result<DirectFile, Error> {
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
    /// are in flight. Its bytes are what its last user left.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`] with `ENOBUFS` when all are held outside the engine.
    pub fn lease(&self) -> Result<Buffer, Error> {
        self.start_lease().wait()
    }

    /// As [`Disk::lease`], for awaiting. Those who wait for buffers get them in the order in which
    /// they came.
    pub fn start_lease(&self) -> Operation<Buffer> {
        self.start(None, Touch::Nothing, Work::Lease(None))
    }

    /// The engine's buffers.
    pub fn pool(&self) -> Pool {
        self.0.borrow().engine.pool().clone()
    }

    /// What is really in effect, and each step down from what was asked (W6).
    pub fn effective(&self) -> Effective {
        self.0.borrow().engine.effective().clone()
    }

    /// Operations that were started and are not complete, of those that wait for their turn and
    /// those that nobody waits for too.
    pub fn outstanding(&self) -> usize {
        self.0.borrow().unfinished()
    }

    /// Hands what was started to the kernel, without waiting. Without it that happens at the next
    /// wait or poll, all at once.
    ///
    /// # Errors
    ///
    /// When the engine itself fails.
    pub fn submit(&self) -> Result<(), Error> {
        self.with(Schedule::submit)
    }

    /// Waits for everything that was started. Each operation's own error is told where it is waited
    /// for.
    ///
    /// # Errors
    ///
    /// When the engine itself fails.
    pub fn drain(&self) -> Result<(), Error> {
        self.with(Schedule::settle_all)
    }

    /// Runs a future to its end, on this thread. While it is pending the thread sleeps until an
    /// operation of this disk's is complete, or, where none is in flight, until it is woken.
    ///
    /// The future may await operations of several files, and anything else that wakes it. What does
    /// so from another thread while operations are in flight is seen when one of them completes.
    /// Another executor that runs inside the future must not wait for this disk's operations.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let alarm = Arc::new(Alarm { thread: std::thread::current(), rung: AtomicBool::new(true) });
        let waker = Waker::from(Arc::clone(&alarm));
        let _driver = Driver::of(self);
        loop {
            if alarm.rung.swap(false, Ordering::AcqRel)
                && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return output;
            }
            // A future that wakes itself still leaves the disk its turn.
            let min = usize::from(!alarm.rung.load(Ordering::Acquire));
            // A failure of the engine's is told to every operation.
            let went = self.with(|schedule| schedule.drive(min)).unwrap_or(true);
            if went || alarm.rung.load(Ordering::Acquire) {
                continue;
            }
            // Everyone who was woken had a turn: no buffer will come by itself.
            let starved = self.with(|schedule| {
                let leasing = schedule.is_leasing();
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

    /// Looks at the schedule, and then wakes those whose operations are over: a waker may run code
    /// that comes back here.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        let (result, wakers) = {
            let mut schedule = self.0.borrow_mut();
            let result = look(&mut schedule);
            (result, schedule.take_wakers())
        };
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Drives the engine until the operation is over.
    pub(super) fn wait(&self, key: usize) -> Result<Outcome, Error> {
        loop {
            let result = self.with(|schedule| {
                // A failure of the engine's is told to the operation.
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
        // The waker that was known before is dropped when nothing is borrowed.
        let (result, driven, _before) = self.with(|schedule| {
            let driven = schedule.drivers > 0;
            if !driven && !schedule.is_over(key) {
                // A failure of the engine's is told to the operation.
                let went = schedule.drive(0).unwrap_or(true);
                if !went && !schedule.is_over(key) && schedule.is_stuck(key) {
                    schedule.starve(Some(key));
                }
            }
            match schedule.take(key) {
                Some(result) => (Some(result), driven, None),
                None => (None, driven, schedule.register(key, waker)),
            }
        });
        match result {
            Some(result) => Poll::Ready(result),
            None => {
                if !driven {
                    waker.wake_by_ref();
                }
                Poll::Pending
            }
        }
    }

    pub(super) fn is_over(&self, key: usize) -> bool {
        self.0.borrow().is_over(key)
    }

    pub(super) fn forget(&self, key: usize) {
        let _waker = self.with(|schedule| schedule.forget(key));
    }
}

/// Tells polls that someone drives the engine, for as long as it is there.
struct Driver<'a>(&'a Disk);

impl Driver<'_> {
    fn of(disk: &Disk) -> Driver<'_> {
        disk.0.borrow_mut().drivers += 1;
        Driver(disk)
    }
}

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
