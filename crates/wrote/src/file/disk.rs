//! One engine that any number of files share, on any threads.

use super::buffer::{DiskBuffer, Home};
use super::carrier::DiskCarrier;
use super::entry::Work;
use super::order::Touch;
use super::schedule::Schedule;
use super::shared::{Arrival, Shared};
use super::{DirectFile, Operation};
use crate::buffer::Pool;
use crate::engine::{Callers, Effective, Engine, FileOptions, Ioengine, Options, Sim};
use crate::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// An [`Engine`] that any number of [`DirectFile`]s share, on any threads. Clones are handles to
/// the same engine.
///
/// It needs no runtime. A caller that blocks drives the engine itself. For futures a thread of the
/// disk's own does, `wrote-disk`: it starts when the first future is left pending, and sleeps while
/// no future waits.
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
///         writes.push(file.write_at(buffer, u64::from(number / 2) << 16));
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

/// The last one of a disk ends it.
struct Handle {
    shared: Arc<Shared>,
    /// The simulated disk, for engines that share this one.
    sim: Option<Sim>,
    /// The most bytes of buffers that `Writer`s have, and those that they have.
    memory_max_bytes: AtomicUsize,
    memory_bytes: AtomicUsize,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// The memory of all `Writer`s on a disk, until it is set.
const MEMORY_MAX_BYTES: usize = 64 << 20;
/// Number and bytes of the buffers that a `Writer` begins with: one is filled while the other is
/// written.
const FIRST_BUFFERS: (u32, usize) = (2, 16 << 10);

impl Disk {
    /// Opens an engine, on the best rung that works.
    pub fn open(options: &Options) -> Result<Disk, Error> {
        Ok(Disk::new(Engine::open_for(options, Callers::Shared)?, None))
    }

    /// Opens an engine on a simulated disk. One thread should use it: its order is repeatable
    /// because no thread drives it, but each wait and poll.
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
        let schedule = |disk: &Weak<Shared>| {
            let lacks_buffers = AtomicBool::new(false);
            Schedule::new(engine, Arc::new(Home { disk: Weak::clone(disk), lacks_buffers }))
        };
        let shared = Shared::new(schedule, arrival);
        let memory_max_bytes = AtomicUsize::new(MEMORY_MAX_BYTES);
        let memory_bytes = AtomicUsize::new(0);
        Disk(Arc::new(Handle { shared, sim, memory_max_bytes, memory_bytes }))
    }

    /// Sets the most bytes of buffers that all [`Writer`](crate::Writer)s on this disk have at once
    /// (W8); 64 MiB by default. Buffers that they have already stay.
    ///
    /// A `Writer` begins with 32 KiB, and fails to open where these do not fit. With its first full
    /// buffer it takes those of its options, 8 MiB by default, or halves of them: at most a quarter
    /// of the memory that is left then.
    pub fn set_memory(&self, max_bytes: usize) {
        self.0.memory_max_bytes.store(max_bytes, Ordering::Relaxed);
    }

    /// Bytes of buffers that the [`Writer`](crate::Writer)s on this disk have.
    pub fn memory(&self) -> usize {
        self.0.memory_bytes.load(Ordering::Relaxed)
    }

    /// Takes bytes of the memory, if they fit.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let Handle { memory_max_bytes, memory_bytes, .. } = &*self.0;
        let max_bytes = memory_max_bytes.load(Ordering::Relaxed);
        let fits = |taken: usize| taken.checked_add(bytes).filter(|&taken| taken <= max_bytes);
        memory_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Bytes of the memory that are not taken.
    pub(super) fn memory_left(&self) -> usize {
        self.0.memory_max_bytes.load(Ordering::Relaxed).saturating_sub(self.memory())
    }

    pub(super) fn unreserve(&self, bytes: usize) {
        self.0.memory_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Makes an engine whose requests this disk's carries out. It has files of its own, and takes
    /// buffers as in `options` when there is room. `path` is that of its first file, for errors.
    pub(crate) fn engine_for(&self, options: &Options, path: &Path) -> Result<Engine, Error> {
        if let Some(sim) = &self.0.sim {
            return Engine::simulated(sim, options);
        }
        let (count, bytes) = FIRST_BUFFERS;
        let (larger, first_bytes) =
            ((options.buffers, options.buffer_bytes), options.buffer_bytes.min(bytes));
        let reserved_bytes = count as usize * first_bytes;
        if !self.reserve(reserved_bytes) {
            let because = format!(
                "the Writers on the disk have {} bytes of buffers, and may have {}",
                self.memory(),
                self.0.memory_max_bytes.load(Ordering::Relaxed)
            );
            return Err(Error::refused(path, because));
        }
        let carrier = Box::new(DiskCarrier::new(self.clone(), reserved_bytes, larger));
        // If it fails, the carrier gives the memory back.
        let pool = Pool::new(count, first_bytes)?;
        let effective = self.effective();
        let iodepth = options.iodepth.min(effective.iodepth);
        Ok(Engine::carried(carrier, pool, iodepth, effective))
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

    /// Leases a buffer of [`Options::buffer_bytes`] to write from. Waits while all are in flight,
    /// or held on any thread: in a [`DiskBuffer`] or a [`ReadBytes`](super::ReadBytes). The bytes
    /// are those of the last lease.
    ///
    /// A thread that holds every buffer itself waits for ever; [`Disk::try_lease`] does not wait.
    /// On a simulated disk that is an error, `ENOBUFS`.
    pub fn lease(&self) -> Result<DiskBuffer, Error> {
        self.start_lease().wait()
    }

    /// As [`Disk::lease`], to await. Waiting callers get buffers in the order of their calls.
    pub fn start_lease(&self) -> Operation<DiskBuffer> {
        self.start(None, Touch::Nothing, Work::Lease(None))
    }

    /// Leases a buffer if one is free.
    pub fn try_lease(&self) -> Option<DiskBuffer> {
        self.with(Schedule::try_lease)
    }

    /// The number of the engine's buffers, held or not: [`Options::buffers`].
    pub fn buffers(&self) -> u32 {
        self.with(|schedule| schedule.engine.pool().count())
    }

    /// The number of free buffers, which changes with every operation.
    pub fn buffers_free(&self) -> usize {
        self.with(|schedule| schedule.engine.pool().free())
    }

    /// Bytes of one buffer: [`Options::buffer_bytes`].
    pub fn buffer_bytes(&self) -> usize {
        self.with(|schedule| schedule.engine.pool().buffer_bytes())
    }

    /// The settings in effect, and each step down from those requested (W6).
    pub fn effective(&self) -> Effective {
        self.with(|schedule| schedule.engine.effective().clone())
    }

    /// Operations that were started and are not complete, with or without a handle.
    pub fn outstanding(&self) -> usize {
        self.with(|schedule| schedule.unfinished())
    }

    /// Hands operations to the kernel, without waiting. Otherwise the next wait or poll does it,
    /// for all at once.
    pub fn submit(&self) -> Result<(), Error> {
        self.shared().submit()
    }

    /// Waits for every operation. Each handle returns its own operation's error.
    pub fn drain(&self) -> Result<(), Error> {
        self.shared().wait_until(|schedule| (schedule.unfinished() == 0).then_some(()))
    }

    /// Runs a future to its end, on this thread. While it is pending the thread sleeps until an
    /// operation of this disk is complete, or until it is woken.
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
        let key = self.with(|schedule| schedule.start(file, touch, work));
        Operation::started(self.clone(), key)
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Calls `look` with the schedule, and wakes the owners of operations that are over then.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        self.shared().with(look)
    }

    pub(super) fn is_over(&self, key: usize) -> bool {
        self.with(|schedule| schedule.is_over(key))
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
