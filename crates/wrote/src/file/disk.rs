//! An engine shared by any number of files, on any threads, and the handles of its operations.

use super::DirectFile;
use super::buffer::{DiskBuffer, Home};
use super::entry::{Outcome, Touch, Work};
use super::schedule::Schedule;
use super::shared::Shared;
use crate::engine::{Callers, Effective, Engine, FileOptions, Ioengine, Options, Sim, System};
use crate::error::Error;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// An engine shared by any number of [`DirectFile`]s on any threads. Clones are handles to the same
/// engine.
///
/// A disk needs no runtime. A blocking caller drives the engine itself. Futures are driven by the
/// disk's thread, `wrote-disk`, which starts when a future is first left pending, and sleeps while
/// no future waits.
///
/// [`Writer`](crate::Writer)s, [`Reader`](crate::Reader)s and [`Log`](crate::Log)s can use a disk,
/// too (method `on` of their options). Each of these has its own engine and buffers, but uses the
/// same method, or the same simulated disk.
///
/// When the last handle, file or [`Operation`] is dropped, the drop first waits until every
/// operation is complete (W5).
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
pub struct Disk(Arc<Handle>);

/// The shared handle. When the last reference is dropped, the disk is closed.
struct Handle {
    shared: Arc<Shared>,
    /// The system on which the engine runs, and the engine's options, for opening other engines on
    /// the same disk.
    system: System,
    options: Options,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Disk {
    /// Opens an engine that uses the best method that works.
    pub fn open(options: &Options) -> Result<Disk, Error> {
        Disk::on(System::Kernel, options)
    }

    /// Opens an engine on a simulated disk, to test code that uses this crate. Only one thread
    /// should use it. No background thread drives it, only waits and polls do, so that the order of
    /// operations is repeatable.
    pub fn simulated(sim: &Sim, options: &Options) -> Result<Disk, Error> {
        Disk::on(System::Simulated(sim.clone()), options)
    }

    fn on(system: System, options: &Options) -> Result<Disk, Error> {
        let engine = system.open(options, Callers::Shared)?;
        let schedule = |disk: &Weak<Shared>| {
            let disk = Weak::clone(disk);
            let on_return = Box::new(move || {
                if let Some(disk) = disk.upgrade() {
                    disk.buffer_returned();
                }
            });
            let home = Home { lacks_buffers: AtomicBool::new(false), on_return };
            Schedule::new(engine, Arc::new(home))
        };
        let (shared, options) = (Shared::new(schedule), options.clone());
        Ok(Disk(Arc::new(Handle { shared, system, options })))
    }

    /// Opens another engine, for a `Writer` or `Reader` on this disk: with the depth and buffers of
    /// `options`, and otherwise with the disk's settings.
    pub(crate) fn engine(&self, options: &Options) -> Result<Engine, Error> {
        self.check_process()?;
        self.0.system.open(&options.clone().by_means_of(&self.0.options), Callers::Any)
    }

    /// Opens an engine like [`Disk::engine`]. If no disk is given, opens one on the kernel, for
    /// callers on any thread.
    #[cfg(feature = "log")]
    pub(crate) fn engine_of(disk: Option<&Disk>, options: &Options) -> Result<Engine, Error> {
        match disk {
            Some(disk) => disk.engine(options),
            None => Engine::open_for(options, Callers::Any),
        }
    }

    /// Returns the system on which a disk's engines run; if no disk is given, the kernel.
    #[cfg(feature = "log")]
    pub(crate) fn system_of(disk: Option<&Disk>) -> &System {
        disk.map_or(&System::Kernel, |disk| &disk.0.system)
    }

    /// Opens a file. A block device can be opened only for reading (W7). Fails with
    /// [`Error::Refused`] if [`Options::FILES_MAX`] files are open. A refused `O_DIRECT` is a
    /// fallback, not an error: see [`DirectFile::is_direct`]. With [`FileOptions::atomic`], fails
    /// with [`Error::Refused`] and the reason if atomic writes are not supported; if the call
    /// created the file, it remains, empty.
    pub fn open_file(
        &self,
        path: impl AsRef<Path>,
        options: &FileOptions,
    ) -> Result<DirectFile, Error> {
        self.check_process()?;
        let path = path.as_ref();
        let file = self.with(|schedule| {
            let id = schedule.engine.open_file(path, options)?;
            match schedule.engine.file_len(id) {
                Ok(len) => Ok((schedule.add_file(path.to_owned(), id, len), id)),
                Err(error) => {
                    schedule.engine.close_file(id)?;
                    Err(error)
                }
            }
        })?;
        let file = DirectFile::new(self.clone(), file, options);
        if options.atomic {
            file.atomic_writes()?;
        }
        Ok(file)
    }

    /// Leases a buffer of [`Disk::buffer_bytes`] for a write. Waits while every buffer is in
    /// flight, or held by any thread as a [`DiskBuffer`]. The buffer still has the content of its
    /// previous lease.
    ///
    /// A thread that itself holds all buffers waits forever; [`Disk::try_lease`] does not wait.
    pub fn lease(&self) -> Result<DiskBuffer, Error> {
        self.start_lease().wait()
    }

    /// Like [`Disk::lease`], but can be awaited. Waiting callers get buffers in the order of their
    /// calls.
    pub fn start_lease(&self) -> Operation<DiskBuffer> {
        self.start(None, (Touch::Nothing, Work::Lease(None)), Outcome::buffer)
    }

    /// Leases a buffer if one is free and no other caller is waiting for one; otherwise returns
    /// `None`.
    pub fn try_lease(&self) -> Option<DiskBuffer> {
        self.check_process().ok()?;
        self.with(Schedule::try_lease)
    }

    /// Returns the number of the engine's buffers, whether held or free ([`Options::buffers`]).
    pub fn buffers(&self) -> u32 {
        self.look(|schedule| schedule.engine.pool().count())
    }

    /// Returns the number of free buffers, which changes with every operation.
    pub fn buffers_free(&self) -> usize {
        self.look(|schedule| schedule.engine.pool().free())
    }

    /// Returns the size of a buffer, in bytes ([`Options::new`]).
    pub fn buffer_bytes(&self) -> usize {
        self.look(|schedule| schedule.engine.pool().buffer_bytes())
    }

    /// Returns the settings in effect, and every fallback from the requested ones (W6).
    pub fn effective(&self) -> Effective {
        self.look(|schedule| schedule.engine.effective().clone())
    }

    /// Returns the number of operations that have been started and are not complete, whether or not
    /// their handles still exist.
    pub fn outstanding(&self) -> usize {
        self.look(|schedule| schedule.unfinished())
    }

    /// Submits all started operations to the kernel without waiting. Otherwise, the next wait or
    /// poll submits them together.
    pub fn submit(&self) -> Result<(), Error> {
        self.shared().submit()
    }

    /// Waits for every operation to complete. The handle of each operation returns that operation's
    /// error.
    pub fn drain(&self) -> Result<(), Error> {
        self.shared().wait_until(|schedule| (schedule.unfinished() == 0).then_some(()))
    }

    /// Runs a future to completion on this thread, which sleeps while the future is pending. The
    /// future may await operations of several files and disks, and other events.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.shared().block_on(future)
    }

    /// Starts an operation. `output` converts its outcome into the caller's result.
    pub(super) fn start<T>(
        &self,
        file: Option<usize>,
        (touch, work): (Touch, Work),
        output: fn(Outcome) -> T,
    ) -> Operation<T> {
        let state = match self.check_process() {
            Ok(()) => {
                let key = self.with(|schedule| schedule.start(file, touch, work));
                State::Started { disk: self.clone(), key }
            }
            Err(error) => State::Over(Err(error)),
        };
        Operation { state, output }
    }

    /// Fails in a child of the process that opened the disk.
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        self.0.shared.process.check()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Calls `look` with the schedule, and then wakes the owners of operations that have completed.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.shared().with(look)
    }

    /// Like [`Disk::with`], but returns a default value in a child process, in which the lock may
    /// be held by a thread that does not exist.
    pub(super) fn look<T: Default>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.check_process().map_or_else(|_| T::default(), |()| self.with(look))
    }
}

impl Sim {
    /// Creates a [`Disk`] on this simulated disk, on which writers, readers and logs can be opened:
    /// `Writer::options().on(&sim.disk())`. [`Disk::simulated`] creates one with other buffers.
    ///
    /// # Panics
    ///
    /// If there is no memory for a few pages.
    pub fn disk(&self) -> Disk {
        let options = Options::new(Ioengine::IoUring, 4, 4096);
        Disk::simulated(self, &options).expect("there is memory for a few pages")
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("effective", &self.effective())
            .field("outstanding", &self.outstanding())
            .finish()
    }
}

/// A started operation, which is executed even without a waiting caller. [`Operation::wait`] blocks
/// until it is complete. It is also a `Future` for [`Disk::block_on`] or any other executor, on any
/// thread.
///
/// Dropping the handle does not cancel the operation (W5), unless it is still waiting for a buffer.
/// The operation continues, and its buffer returns to the pool when it is complete. If a change
/// fails after its handle was dropped, the file's next flush or
/// [`DirectFile::close`](super::DirectFile::close) returns the error. While more operations without
/// a handle are in progress than the engine's `iodepth`, dropping another handle waits (W8).
///
/// # On other executors
///
/// A pending operation uses no CPU time: the disk's thread waits for it, and wakes its task once.
/// If operations complete only during calls ([`Ioengine::Psync`], a simulated disk), a poll
/// performs operations until the awaited one is complete.
#[must_use = "the operation continues, but its error reaches only the next flush"]
pub struct Operation<T> {
    state: State,
    output: fn(Outcome) -> T,
}

enum State {
    Started {
        disk: Disk,
        key: usize,
    },
    /// Complete without being started: there was nothing to do, or an error occurred.
    Over(Result<Outcome, Error>),
    Taken,
}

impl<T> Operation<T> {
    pub(super) fn over(result: Result<Outcome, Error>, output: fn(Outcome) -> T) -> Operation<T> {
        Operation { state: State::Over(result), output }
    }

    /// Returns whether the operation is known to be complete or failed. Only a wait or a poll
    /// discovers new completions.
    pub fn is_over(&self) -> bool {
        match &self.state {
            State::Started { disk, key } => disk.look(|schedule| schedule.is_over(*key)),
            State::Over(_) | State::Taken => true,
        }
    }

    /// Waits until the operation is complete. Other operations continue, and the tasks that await
    /// them are woken. Panics if the operation has already been awaited to completion.
    pub fn wait(mut self) -> Result<T, Error> {
        let output = self.output;
        let result = match std::mem::replace(&mut self.state, State::Taken) {
            State::Started { disk, key } => disk.shared().wait(key),
            State::Over(result) => result,
            State::Taken => panic!("the operation has given its result"),
        };
        result.map(output)
    }
}

impl<T> Future for Operation<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let result = match std::mem::replace(&mut self.state, State::Taken) {
            State::Started { disk, key } => match disk.shared().poll(key, context.waker()) {
                Poll::Ready(result) => result,
                Poll::Pending => {
                    self.state = State::Started { disk, key };
                    return Poll::Pending;
                }
            },
            State::Over(result) => result,
            State::Taken => panic!("the operation has given its result"),
        };
        Poll::Ready(result.map(self.output))
    }
}

impl<T> Drop for Operation<T> {
    fn drop(&mut self) {
        if let State::Started { disk, key } = &self.state {
            disk.shared().forget(*key);
        }
    }
}

impl<T> fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Started { .. } => "started",
            State::Over(_) => "over",
            State::Taken => "taken",
        };
        f.debug_tuple("Operation").field(&state).finish()
    }
}
