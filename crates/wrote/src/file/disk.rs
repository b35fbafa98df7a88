//! One engine shared by any number of files, on any threads.

use super::buffer::{DiskBuffer, Home};
use super::carrier::DiskCarrier;
use super::entry::Work;
use super::order::Touch;
use super::schedule::Schedule;
use super::shared::{Arrival, Shared};
use super::{DirectFile, Operation};
use crate::budget::{Allowance, Budget, Share};
use crate::buffer::Pool;
use crate::engine::{Callers, Effective, Engine, FileOptions, Ioengine, Options, Sim};
use crate::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

/// An [`Engine`] shared by any number of [`DirectFile`]s, [`Writer`](crate::Writer)s and
/// [`Reader`](crate::Reader)s on any threads, with one memory budget ([`Disk::set_memory`]). Clones
/// are handles to the same engine.
///
/// It needs no runtime. A blocking caller drives the engine itself. Futures are driven by the
/// disk's thread, `wrote-disk`, which starts when the first future is left pending, and sleeps
/// while no future waits.
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
    /// The simulated disk, for engines that share this one.
    sim: Option<Sim>,
    /// The memory of all buffers: the engine's, the `Writer`s' and the `Reader`s'.
    budget: Arc<Budget>,
    /// The memory of the engine's buffers.
    _own: Share,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// The default memory besides the disk's own buffers.
const MEMORY_BYTES: usize = 64 << 20;
/// Number and size of a `Writer`'s first buffers: one is filled while the other is written.
const FIRST_BUFFERS: (u32, usize) = (2, 16 << 10);

impl Disk {
    /// Opens an engine with the best method that works.
    pub fn open(options: &Options) -> Result<Disk, Error> {
        Ok(Disk::new(Engine::open_for(options, Callers::Shared)?, None))
    }

    /// Opens an engine on a simulated disk, to test code that uses this crate. Only one thread
    /// should use it: no thread drives it, only waits and polls, so the order of operations is
    /// repeatable.
    pub fn simulated(sim: &Sim, options: &Options) -> Result<Disk, Error> {
        let engine = Engine::simulated_for(sim, options, Callers::Shared)?;
        Ok(Disk::new(engine, Some(sim.clone())))
    }

    fn new(engine: Engine, sim: Option<Sim>) -> Disk {
        let arrival = match engine.effective().ioengine {
            _ if sim.is_some() => Arrival::Simulated,
            Ioengine::IoUring | Ioengine::Threads => Arrival::Kernel,
            Ioengine::Psync | Ioengine::Mmap | Ioengine::Null => Arrival::AtOnce,
        };
        let own_bytes = Pool::mapped_bytes(engine.pool().count(), engine.pool().buffer_bytes());
        let budget = Budget::new(own_bytes.saturating_add(MEMORY_BYTES));
        let own = budget.take(own_bytes).expect("it fits");
        let schedule = |disk: &Weak<Shared>| {
            let lacks_buffers = AtomicBool::new(false);
            Schedule::new(engine, Arc::new(Home { disk: Weak::clone(disk), lacks_buffers }))
        };
        let shared = Shared::new(schedule, arrival);
        Disk(Arc::new(Handle { shared, sim, budget, _own: own }))
    }

    /// Sets the most bytes of all buffers on this disk (W8). The default is 64 MiB more than the
    /// disk's own. Buffers already in use are kept.
    ///
    /// The sum includes:
    ///
    /// - the disk's own buffers ([`Options::new`], [`Options::buffers`]), into which
    ///   [`DirectFile`]s read and which callers lease. They exist from the start, and their number
    ///   is fixed;
    /// - the buffers of each [`Writer`](crate::Writer) on it ([details](crate::WriterOptions::on));
    /// - the buffers of each [`Reader`](crate::Reader) on it ([details](crate::ReaderOptions::on)).
    ///
    /// A `Writer` or `Reader` can't be opened if its first few KiB do not fit. Each takes more when
    /// useful: at most a quarter of what is left.
    ///
    /// Not included: pages of cached files, which belong to the kernel; a few hundred bytes per
    /// file and operation; and one read that a write waits for while the caller holds all of the
    /// disk's own buffers.
    ///
    /// ```
    /// use wrote::engine::Options;
    /// use wrote::{Disk, Ioengine, Reader, Writer};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// # std::fs::write(folder.join("old"), "content")?;
    /// let disk = Disk::open(&Options::new(Ioengine::IoUring, 64, 64 << 10))?; // 4 MiB of its own
    /// disk.set_memory(32 << 20); // with all that follows
    /// let reader = Reader::options().on(&disk).open(folder.join("old"))?;
    /// let writer = Writer::options().on(&disk).open(folder.join("new"))?;
    /// assert!(disk.memory() > 4 << 20 && disk.memory() <= 32 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_memory(&self, max_bytes: usize) {
        self.0.budget.set_max(max_bytes);
    }

    /// Returns the bytes of all buffers on this disk, as counted for [`Disk::set_memory`].
    pub fn memory(&self) -> usize {
        self.0.budget.taken_bytes()
    }

    /// Takes bytes of the memory, for the owner of the file `path`.
    pub(crate) fn take_memory(&self, bytes: usize, path: &Path) -> Result<Share, Error> {
        self.0.budget.take(bytes).ok_or_else(|| self.has_no_room(path))
    }

    fn has_no_room(&self, path: &Path) -> Error {
        let (taken, max) = (self.memory(), self.0.budget.max_bytes());
        let because = format!("the disk has {taken} bytes of buffers, and may have {max}");
        Error::refused(path, because)
    }

    /// Returns the simulated disk, if any.
    pub(crate) fn sim(&self) -> Option<&Sim> {
        self.0.sim.as_ref()
    }

    /// Creates an engine with its own files, whose requests this disk's engine executes. It starts
    /// with small buffers, and [`Engine::grow`] takes the sizes in `options` when there is room.
    /// `path` names its first file, for errors.
    pub(crate) fn engine_for(&self, options: &Options, path: &Path) -> Result<Engine, Error> {
        self.check_process()?;
        let (count, bytes) = FIRST_BUFFERS;
        let first = (count, options.buffer_bytes.min(bytes));
        let larger = (options.buffers, options.buffer_bytes);
        let memory = Allowance::begin(&self.0.budget, first, larger)?;
        let memory = memory.ok_or_else(|| self.has_no_room(path))?;
        Ok(self.engine_within(memory, options))
    }

    /// Like [`Disk::engine_for`], with the buffers of `options` at once, or repeatedly halved ones
    /// down to `bytes_min`. `None` if the memory can't spare even those.
    pub(crate) fn whole_engine_for(
        &self,
        options: &Options,
        bytes_min: usize,
    ) -> Result<Option<Engine>, Error> {
        self.check_process()?;
        let buffers = (options.buffers, options.buffer_bytes);
        let memory = Allowance::whole(&self.0.budget, buffers, bytes_min)?;
        Ok(memory.map(|memory| self.engine_within(memory, options)))
    }

    /// Like [`Disk::whole_engine_for`], for the owner of the file `path`.
    pub(crate) fn engine_with(
        &self,
        options: &Options,
        bytes_min: usize,
        path: &Path,
    ) -> Result<Engine, Error> {
        self.whole_engine_for(options, bytes_min)?.ok_or_else(|| self.has_no_room(path))
    }

    fn engine_within(&self, memory: (Pool, Allowance), options: &Options) -> Engine {
        if let Some(sim) = &self.0.sim {
            // Names are on the simulated disk, so it needs its own engine.
            return Engine::simulated_within(sim, memory, options);
        }
        let effective = self.effective();
        let iodepth = options.iodepth.min(effective.iodepth);
        Engine::carried(Box::new(DiskCarrier::new(self.clone())), memory, iodepth, effective)
    }

    /// Opens a file. A block device can only be opened for reading (W7). [`Error::Refused`] if
    /// [`Options::FILES_MAX`] files are open. A refused `O_DIRECT` is a fallback, not an error: see
    /// [`DirectFile::is_direct`].
    pub fn open_file(
        &self,
        path: impl AsRef<Path>,
        options: &FileOptions,
    ) -> Result<DirectFile, Error> {
        self.check_process()?;
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
        Ok(DirectFile::new(self.clone(), place, options))
    }

    /// Leases a buffer of [`Disk::buffer_bytes`] to write from. Waits while all are in flight, or
    /// held on any thread: in a [`DiskBuffer`] or a [`ReadBytes`](super::ReadBytes). It still holds
    /// the previous lease's content.
    ///
    /// A thread that holds all buffers itself waits forever; [`Disk::try_lease`] does not wait. On
    /// a simulated disk that is an error, `ENOBUFS`.
    pub fn lease(&self) -> Result<DiskBuffer, Error> {
        self.start_lease().wait()
    }

    /// Like [`Disk::lease`], to await. Waiting callers get buffers in the order of their calls.
    pub fn start_lease(&self) -> Operation<DiskBuffer> {
        self.start(None, Touch::Nothing, Work::Lease(None))
    }

    /// Leases a buffer if one is free.
    pub fn try_lease(&self) -> Option<DiskBuffer> {
        self.check_process().ok()?;
        self.with(Schedule::try_lease)
    }

    /// Returns the number of the engine's buffers, held or not: [`Options::buffers`].
    pub fn buffers(&self) -> u32 {
        self.with(|schedule| schedule.engine.pool().count())
    }

    /// Returns the number of free buffers, which changes with every operation.
    pub fn buffers_free(&self) -> usize {
        self.with(|schedule| schedule.engine.pool().free())
    }

    /// Returns the size of a buffer ([`Options::new`]).
    pub fn buffer_bytes(&self) -> usize {
        self.with(|schedule| schedule.engine.pool().buffer_bytes())
    }

    /// Returns the settings in effect, and each fallback from those requested (W6).
    pub fn effective(&self) -> Effective {
        self.with(|schedule| schedule.engine.effective().clone())
    }

    /// Returns the number of started operations that are not complete, with or without a handle.
    pub fn outstanding(&self) -> usize {
        self.with(|schedule| schedule.unfinished())
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

    /// Runs a future to its end on this thread. While it is pending the thread sleeps until an
    /// operation of this disk is complete, or it is woken.
    ///
    /// The future may await operations of several files, and other events. On a simulated disk with
    /// operations in flight, an event on another thread is noticed when one of them completes.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.shared().block_on(future)
    }

    pub(super) fn start<T: super::Output>(
        &self,
        file: Option<usize>,
        touch: Touch,
        work: Work,
    ) -> Operation<T> {
        if let Err(error) = self.check_process() {
            return Operation::over(Err(error));
        }
        let key = self.with(|schedule| schedule.start(file, touch, work));
        Operation::started(self.clone(), key)
    }

    /// Fails in a child of the process that opened the disk.
    pub(super) fn check_process(&self) -> Result<(), Error> {
        self.0.shared.process.check()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Calls `look` with the schedule, and wakes the owners of operations that are then complete.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.shared().with(look)
    }

    pub(super) fn is_over(&self, key: usize) -> bool {
        self.with(|schedule| schedule.is_over(key))
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
