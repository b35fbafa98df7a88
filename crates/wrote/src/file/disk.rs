//! One engine shared by any number of files, on any threads, and the handles of its operations.

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
/// It needs no runtime. A blocking caller drives the engine itself. Futures are driven by the
/// disk's thread, `wrote-disk`, which starts when the first future is left pending, and sleeps
/// while no future waits.
///
/// [`Writer`](crate::Writer)s, [`Reader`](crate::Reader)s and [`Log`](crate::Log)s can be opened on
/// it too. They have their own engines and buffers, by the same method, and on the same simulated
/// disk.
///
/// Dropping the last handle, file and [`Operation`] completes every operation first (W5).
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

/// The last one ends the disk.
struct Handle {
    shared: Arc<Shared>,
    /// The ground below the engine, and its options: for other engines on the same disk.
    system: System,
    options: Options,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Disk {
    /// Opens an engine with the best method that works.
    pub fn open(options: &Options) -> Result<Disk, Error> {
        Disk::on(System::Kernel, options)
    }

    /// Opens an engine on a simulated disk, to test code that uses this crate. Only one thread
    /// should use it: no thread drives it, only waits and polls, so the order of operations is
    /// repeatable.
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

    /// Opens another engine, of a `Writer` or `Reader` on this disk: with its own depth and
    /// buffers, and for the rest by the same means.
    pub(crate) fn engine(&self, options: &Options) -> Result<Engine, Error> {
        self.check_process()?;
        self.0.system.open(&options.clone().by_means_of(&self.0.options), Callers::Any)
    }

    /// Opens an engine like [`Disk::engine`]. Without a disk, the engine is for callers on any
    /// thread.
    #[cfg(feature = "log")]
    pub(crate) fn engine_of(disk: Option<&Disk>, options: &Options) -> Result<Engine, Error> {
        match disk {
            Some(disk) => disk.engine(options),
            None => Engine::open_for(options, Callers::Any),
        }
    }

    /// Returns the ground below a disk's engines: the kernel where no disk is given.
    #[cfg(feature = "log")]
    pub(crate) fn system_of(disk: Option<&Disk>) -> &System {
        disk.map_or(&System::Kernel, |disk| &disk.0.system)
    }

    /// Opens a file. A block device can only be opened for reading (W7). [`Error::Refused`] if
    /// [`Options::FILES_MAX`] files are open. A refused `O_DIRECT` is a fallback, not an error: see
    /// [`DirectFile::is_direct`]. With [`FileOptions::atomic`] it is [`Error::Refused`] with the
    /// reason where there are no such writes, and a file that was created stays, empty.
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

    /// Leases a buffer of [`Disk::buffer_bytes`] to write from. Waits while all are in flight, or
    /// held on any thread in a [`DiskBuffer`]. It still holds the previous lease's content.
    ///
    /// A thread that holds all buffers itself waits forever; [`Disk::try_lease`] does not wait.
    pub fn lease(&self) -> Result<DiskBuffer, Error> {
        self.start_lease().wait()
    }

    /// Like [`Disk::lease`], to await. Waiting callers get buffers in the order of their calls.
    pub fn start_lease(&self) -> Operation<DiskBuffer> {
        self.start(None, (Touch::Nothing, Work::Lease(None)), Outcome::buffer)
    }

    /// Leases a buffer if one is free.
    pub fn try_lease(&self) -> Option<DiskBuffer> {
        self.check_process().ok()?;
        self.with(Schedule::try_lease)
    }

    /// Returns the number of the engine's buffers, held or not: [`Options::buffers`].
    pub fn buffers(&self) -> u32 {
        self.look(|schedule| schedule.engine.pool().count())
    }

    /// Returns the number of free buffers, which changes with every operation.
    pub fn buffers_free(&self) -> usize {
        self.look(|schedule| schedule.engine.pool().free())
    }

    /// Returns the size of a buffer ([`Options::new`]).
    pub fn buffer_bytes(&self) -> usize {
        self.look(|schedule| schedule.engine.pool().buffer_bytes())
    }

    /// Returns the settings in effect, and each fallback from those requested (W6).
    pub fn effective(&self) -> Effective {
        self.look(|schedule| schedule.engine.effective().clone())
    }

    /// Returns the number of started operations that are not complete, with or without a handle.
    pub fn outstanding(&self) -> usize {
        self.look(|schedule| schedule.unfinished())
    }

    /// Submits operations to the kernel without waiting. Otherwise the next wait or poll does it
    /// for all at once.
    pub fn submit(&self) -> Result<(), Error> {
        self.shared().submit()
    }

    /// Waits for every operation. Each handle returns its operation's error.
    pub fn drain(&self) -> Result<(), Error> {
        self.shared().wait_until(|schedule| (schedule.unfinished() == 0).then_some(()))
    }

    /// Runs a future to its end on this thread, which sleeps while the future is pending. The
    /// future may await operations of several files and disks, and other events.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.shared().block_on(future)
    }

    /// Starts an operation, whose outcome `output` turns into the caller's result.
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

    /// Calls `look` with the schedule, and wakes the owners of operations that are then complete.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.shared().with(look)
    }

    /// Like [`Disk::with`]. In a child process, where a thread that is not there may hold the lock,
    /// it returns nothing.
    pub(super) fn look<T: Default>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.check_process().map_or_else(|_| T::default(), |()| self.with(look))
    }
}

impl Sim {
    /// Creates a [`Disk`] on this one, through which everything is opened here:
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

/// A started operation, which will be executed. [`Operation::wait`] blocks; it is also a `Future`
/// for [`Disk::block_on`] or any other executor, on any thread.
///
/// Dropping it cancels nothing (W5). The operation continues, and its buffer returns to the pool
/// when it is complete. The error of a dropped change is returned by the file's next flush or by
/// [`DirectFile::close`](super::DirectFile::close). Only an operation that waits for a buffer is
/// cancelled. If more operations were dropped than the engine's `iodepth`, dropping waits (W8).
///
/// # On another executor
///
/// A pending operation uses no CPU: the disk's thread waits for it, and wakes its task once. Where
/// operations complete inside calls ([`Ioengine::Psync`], a simulated disk), a poll carries them
/// out until its own is complete.
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
    /// Complete before it was started: no work, or an error.
    Over(Result<Outcome, Error>),
    Taken,
}

impl<T> Operation<T> {
    pub(super) fn over(result: Result<Outcome, Error>, output: fn(Outcome) -> T) -> Operation<T> {
        Operation { state: State::Over(result), output }
    }

    /// Returns whether the operation is known to be complete or failed. Only a wait or a poll
    /// notices new completions.
    pub fn is_over(&self) -> bool {
        match &self.state {
            State::Started { disk, key } => disk.look(|schedule| schedule.is_over(*key)),
            State::Over(_) | State::Taken => true,
        }
    }

    /// Waits until the operation is complete. Other operations continue, and their awaiting tasks
    /// are woken. Panics if its result was already taken by awaiting it.
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
