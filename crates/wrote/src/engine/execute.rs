//! `Engine`: queues operations, submits them, and returns their completions.

use super::backend::{Backend, Queue};
use super::files::KernelFiles;
#[cfg(feature = "log")]
use super::names::Folder;
use super::op::{Completion, FileId, Op, Reply};
use super::open_file::{OpenFile, known};
use super::options::{Callers, Effective, Fallback, Ioengine, Options};
use super::sim::Sim;
use super::slots::{Slots, Work};
use super::wait::Wait;
use super::{mmap, threads};
use crate::Error;
use crate::buffer::Buffer;
use crate::buffer::Pool;
use crate::error::errno_of;
use crate::fork::Process;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
#[cfg(feature = "log")]
use std::path::Path;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The ground below engines: the kernel, or a simulated disk.
#[derive(Clone)]
pub(crate) enum System {
    Kernel,
    Simulated(Sim),
}

impl System {
    /// Holds the folder of a log open, after `make` has made it where it is missing; `None` on a
    /// disk without folders, where nothing is made.
    #[cfg(feature = "log")]
    pub(crate) fn hold(
        &self,
        folder: &Path,
        make: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Option<Folder>, Error> {
        match self {
            System::Kernel => make().and_then(|()| Folder::open(folder)).map(Some),
            System::Simulated(_) => Ok(None),
        }
    }

    pub(crate) fn open(&self, options: &Options, callers: Callers) -> Result<Engine, Error> {
        match self {
            System::Kernel => Engine::open_for(options, callers),
            System::Simulated(sim) => {
                let pool = pool_for(options, callers)?;
                Ok(Engine::with(sim.backend(), pool, effective_of(options)))
            }
        }
    }
}

/// Executes operations on files, up to `iodepth` at once.
///
/// ```
/// use wrote::engine::{Engine, Op, Options};
/// use wrote::{FileOptions, Ioengine};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// let mut engine = Engine::open(&Options::new(Ioengine::IoUring, 8, 64 * 1024))?;
/// let options = FileOptions::new().create_new(true).write(true).direct(true);
/// let file = engine.open_file(&path, &options)?;
///
/// for number in 0..32 {
///     let mut buffer = engine.lease()?;
///     buffer.fill(number as u8);
///     let offset = number * buffer.len() as u64;
///     engine.queue(number, Op::Write { file, offset, buffer, durable: false });
/// }
/// engine.drain()?; // every write is whole
/// engine.flush(file)?; // and now survives a power loss, once its folder was synced too
///
/// for step in &engine.effective().fallbacks {
///     println!("{} instead of {}: {}", step.got, step.wanted, step.because);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    /// Dropped before the pool, because a ring must release its registered memory before that is
    /// unmapped. Not dropped in a child process, which has neither its threads nor its ring.
    pub(super) backend: ManuallyDrop<Backend>,
    pool: Pool,
    pub(super) files: Vec<Option<OpenFile>>,
    /// Slots of closed files, the lowest on top, because a ring registers the lowest ones.
    pub(super) free_files: BinaryHeap<Reverse<u32>>,
    pub(super) opened: u64,
    pub(super) slots: Slots,
    completed: Vec<Completion>,
    /// Replies of the backend, and how many are settled.
    done: Vec<Reply>,
    settled: usize,
    /// Whether registering the pool was tried.
    registered: bool,
    /// Whether several threads submit to a ring of this engine.
    pub(super) has_shared_ring: bool,
    /// Folders whose flush failed, with the error number (W2).
    pub(super) poisoned_folders: Vec<(PathBuf, i32)>,
    pub(super) effective: Effective,
    process: Process,
}

impl Engine {
    /// Creates an engine with the best method that works. Fails if there is no memory for the
    /// buffers, or no threads if io_uring is refused. Only a refused io_uring is a fallback and not
    /// an error.
    pub fn open(options: &Options) -> Result<Engine, Error> {
        Engine::open_for(options, Callers::One)
    }

    /// Like [`Engine::open`], for several calling threads, one at a time.
    pub(crate) fn open_for(options: &Options, callers: Callers) -> Result<Engine, Error> {
        let pool = pool_for(options, callers)?;
        let mut effective = Effective { huge_pages: pool.is_huge(), ..effective_of(options) };
        let queue: Box<dyn Queue> = match options.ioengine {
            Ioengine::Psync => Box::new(threads::Psync::default()),
            Ioengine::Mmap => Box::new(mmap::Mmap::default()),
            Ioengine::Threads => threads(effective.iodepth, callers)?,
            Ioengine::IoUring => match ring(options, callers, &pool, &mut effective) {
                Ok(ring) => ring,
                Err(because) => {
                    effective.fell_back("io_uring", "threads", because);
                    effective.ioengine = Ioengine::Threads;
                    effective.iodepth = iodepth(Ioengine::Threads, options.iodepth);
                    threads(effective.iodepth, callers)?
                }
            },
        };
        let backend = Backend { queue, files: Box::new(KernelFiles::default()) };
        let mut engine = Engine::with(backend, pool, effective);
        let has_ring = engine.effective.ioengine == Ioengine::IoUring;
        engine.has_shared_ring = has_ring && callers != Callers::One;
        Ok(engine)
    }

    /// Records fallbacks from before the engine was created.
    pub(crate) fn fell_back_before(&mut self, fallbacks: &[Fallback]) {
        for Fallback { wanted, got, because } in fallbacks {
            self.effective.fell_back(wanted, got, because.clone());
        }
    }

    /// Creates an engine on a simulated disk. Fails if there is no memory for the buffers.
    pub fn simulated(sim: &Sim, options: &Options) -> Result<Engine, Error> {
        System::Simulated(sim.clone()).open(options, Callers::One)
    }

    fn with(backend: Backend, pool: Pool, effective: Effective) -> Engine {
        let depth = effective.iodepth;
        Engine {
            backend: ManuallyDrop::new(backend),
            pool,
            files: Vec::new(),
            free_files: BinaryHeap::new(),
            opened: 0,
            slots: Slots::new(depth),
            completed: Vec::with_capacity(depth as usize),
            done: Vec::with_capacity(depth as usize),
            settled: 0,
            registered: false,
            has_shared_ring: false,
            poisoned_folders: Vec::new(),
            effective,
            process: Process::this(),
        }
    }

    /// Fails in a child of the process that opened it.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        self.process.check()
    }

    /// Tries whether io_uring is available. Returns the step that failed and the kernel's error, as
    /// in [`Fallback::because`].
    pub fn probe_io_uring() -> Result<(), String> {
        let options = Options::new(Ioengine::IoUring, 1, 4096);
        let engine = Engine::open(&options).map_err(|error| error.to_string())?;
        let refused = engine.effective.fallbacks.iter().find(|step| step.wanted == "io_uring");
        refused.map_or(Ok(()), |step| Err(step.because.clone()))
    }

    /// Registers the pool with the ring, unless [`Options::registered_buffers`] did. Registering
    /// touches every page, so a caller that may not fill the pool can delay it.
    pub(crate) fn register_buffers(&mut self) {
        if !self.registered && self.process.is_this() {
            self.registered = true;
            self.backend.queue.register_buffers(&self.pool, &mut self.effective);
        }
    }

    /// Leases a buffer of the engine's pool; waits for a completion if all are in flight. Fails
    /// with `ENOBUFS` if all buffers are leased and none is in flight.
    #[inline]
    pub fn lease(&mut self) -> Result<Buffer, Error> {
        match self.pool.lease() {
            Some(buffer) => Ok(buffer),
            None => self.lease_after_another(),
        }
    }

    #[cold]
    fn lease_after_another(&mut self) -> Result<Buffer, Error> {
        loop {
            if self.in_flight() == 0 {
                let what = "leasing a buffer: all are held outside the engine";
                return Err(Error::Engine { what, errno: libc::ENOBUFS });
            }
            self.advance(1)?;
            if let Some(buffer) = self.pool.lease() {
                return Ok(buffer);
            }
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The number of the engine's buffers, leased or not.
    pub fn buffers(&self) -> u32 {
        self.pool.count()
    }

    /// The buffers that are free.
    pub fn buffers_free(&self) -> usize {
        self.pool.free()
    }

    /// The length of a buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.pool.buffer_bytes()
    }

    /// Returns the settings in effect, and each fallback from those requested.
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Returns the number of operations queued and not yet reaped.
    pub fn outstanding(&self) -> usize {
        self.in_flight() + self.completed.len()
    }

    fn in_flight(&self) -> usize {
        self.slots.in_flight()
    }

    /// Returns whether `iodepth` operations are in flight, so that the next [`Engine::queue`] waits
    /// for one.
    pub fn is_full(&self) -> bool {
        self.slots.is_full()
    }

    /// Queues an operation; its [`Completion`] carries `user_data`. Every operation has exactly one
    /// completion: a refused one completes with the error.
    ///
    /// Waits for another operation while `iodepth` of them are in flight. Queued operations reach
    /// the kernel with [`Engine::submit`], [`Engine::reap`] or another call that waits.
    // For callers with a constant kind of operation, inlining saves 40 of 146 instructions.
    #[inline(always)]
    pub fn queue(&mut self, user_data: u64, op: Op) {
        if self.is_full() {
            return self.queue_after_another(user_data, op);
        }
        let file = known(&self.files, op.file());
        let work = Work::new(op);
        if work.is_refused(file) {
            self.completed.push(work.refuse(user_data, file));
            return;
        }
        self.slots.take().begin(user_data, work, file, &self.pool);
        self.check_disjoint();
    }

    #[cold]
    fn queue_after_another(&mut self, user_data: u64, op: Op) {
        while self.is_full() {
            if let Err(error) = self.advance(1) {
                self.completed.push(Completion { user_data, result: Err(error), buffer: None });
                return;
            }
        }
        self.queue(user_data, op);
    }

    /// Panics if the last operation writes a block on which another write is in flight (W3). That
    /// is a bug of the layer above, so only debug builds check it.
    #[inline]
    fn check_disjoint(&self) {
        debug_assert!(
            !self.slots.has_overlap(),
            "two writes in flight at byte {} of {}",
            self.slots.last().request.offset,
            self.file(self.slots.last().request.slot).path.display()
        );
    }

    /// Passes the queued operations to the backend.
    fn hand_on(&mut self) {
        let in_flight = self.in_flight() as u32;
        self.effective.iodepth_reached = self.effective.iodepth_reached.max(in_flight);
        self.backend.queue.push(self.slots.requests(&self.files));
        self.slots.handed_on(self.has_shared_ring);
    }

    /// Passes the queue to the kernel without waiting. After an error, operations in flight stay in
    /// flight.
    pub fn submit(&mut self) -> Result<(), Error> {
        self.check_process()?;
        self.hand_on();
        self.backend.queue.submit().map_err(|error| failed("submitting to the kernel", &error))
    }

    /// Submits, waits until at least `min` operations (or all, if fewer are outstanding) are
    /// complete, and appends all completions to `completions`. An operation's error is in its
    /// completion.
    pub fn reap(&mut self, min: usize, completions: &mut Vec<Completion>) -> Result<(), Error> {
        self.reap_each(min, |completion| completions.push(completion))
    }

    /// Like [`Engine::reap`], but passes each completion to `take` instead of storing it.
    #[inline]
    pub fn reap_each(&mut self, min: usize, mut take: impl FnMut(Completion)) -> Result<(), Error> {
        self.check_process()?;
        let left = self.outstanding().saturating_sub(min);
        // One by one, so that the others are kept if `take` panics.
        self.completed.reverse();
        while let Some(completion) = self.completed.pop() {
            take(completion);
        }
        loop {
            let missing = self.in_flight().saturating_sub(left);
            if self.in_flight() > 0 {
                self.settle_all(|queue, done| queue.wait(missing, done), &mut take)?;
            }
            if self.in_flight() <= left {
                return Ok(());
            }
        }
    }

    /// Submits the queue, and returns a wait for a completion during which other threads may use
    /// the engine. For an engine with [`Callers::Shared`].
    pub(crate) fn prepare_wait(&mut self) -> Result<Wait, Error> {
        self.check_process()?;
        self.hand_on();
        if !self.completed.is_empty() || self.has_unsettled() {
            return Ok(Wait::None);
        }
        self.backend
            .queue
            .prepare_wait()
            .map_err(|error| failed("submitting to the kernel", &error))
    }

    /// Ends such a wait from another thread.
    pub(crate) fn interrupt(&mut self) {
        // After an error the wait ends with the next completion.
        let _ = self.backend.queue.interrupt();
    }

    /// Returns whether completions arrive only inside calls of the engine.
    pub(crate) fn completes_in_calls(&self) -> bool {
        self.backend.queue.completes_in_calls()
    }

    /// Returns whether an operation is queued but not submitted, or complete.
    pub(crate) fn wants_turn(&self) -> bool {
        self.slots.has_queued() || !self.completed.is_empty()
    }

    /// Like [`Engine::reap`] if only errors matter: returns the first.
    pub(crate) fn reap_results(&mut self, min: usize) -> Result<(), Error> {
        let mut first = Ok(());
        self.reap_each(min, |completion| {
            if let (Ok(()), Err(error)) = (&first, completion.result) {
                first = Err(error);
            }
        })?;
        first
    }

    /// Submits, waits until an operation is complete or `time` is over, and appends all completions
    /// to `completions`: for a caller with other work at that time.
    ///
    /// It may return early without a completion: after a short transfer that continues, after a
    /// signal, and at once if no call can wait for both (poll queues, Linux before 5.11, [`Sim`]).
    /// With nothing outstanding it does not wait. An operation's error is in its completion.
    pub fn reap_within(
        &mut self,
        time: Duration,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Error> {
        self.check_process()?;
        if self.in_flight() > 0 && self.completed.is_empty() {
            let wait = |queue: &mut dyn Queue, done: &mut _| queue.wait_within(time, done);
            self.settle_all(wait, &mut |completion| completions.push(completion))?;
        }
        completions.append(&mut self.completed);
        Ok(())
    }

    /// Waits for everything outstanding, and discards bytes read. Returns the first error of an
    /// operation, after all are complete.
    pub fn drain(&mut self) -> Result<(), Error> {
        self.reap_results(usize::MAX)
    }

    /// Waits for everything outstanding, then flushes the file with `fdatasync(2)`. On success all
    /// writes queued before are durable (W1); a new file's name is once its folder is synced.
    /// Returns the first error of an outstanding operation, or of the flush, which poisons the file
    /// (W2).
    pub fn flush(&mut self, file: FileId) -> Result<(), Error> {
        self.drain()?;
        self.queue(0, Op::Fdatasync { file });
        self.drain()
    }

    /// Waits for `min` replies of the backend, and keeps the completions.
    pub(super) fn advance(&mut self, min: usize) -> Result<(), Error> {
        self.check_process()?;
        let mut completed = std::mem::take(&mut self.completed);
        let min = min.min(self.in_flight());
        let wait = |queue: &mut dyn Queue, done: &mut _| queue.wait(min, done);
        let waited = self.settle_all(wait, &mut |completion| completed.push(completion));
        self.completed = completed;
        waited
    }

    /// Returns the time of the disk, to measure how long its operations take.
    pub(crate) fn now(&mut self) -> Instant {
        self.backend.queue.now()
    }

    /// Returns whether replies are left because `take` panicked; the kernel reports them only once.
    fn has_unsettled(&self) -> bool {
        self.settled < self.done.len()
    }

    /// Submits the queue, and settles each reply collected by `wait`: retried, complete, or failed.
    #[inline]
    fn settle_all(
        &mut self,
        wait: impl FnOnce(&mut dyn Queue, &mut Vec<Reply>) -> io::Result<()>,
        take: &mut impl FnMut(Completion),
    ) -> Result<(), Error> {
        self.hand_on();
        let mut waited = Ok(());
        if !self.has_unsettled() {
            self.done.clear();
            self.settled = 0;
            waited = wait(&mut *self.backend.queue, &mut self.done);
        }
        while let Some(&reply) = self.done.get(self.settled) {
            self.settled += 1;
            self.settle(reply, take);
        }
        waited.map_err(|error| failed("waiting for the kernel", &error))
    }
}

fn effective_of(options: &Options) -> Effective {
    let Options { ioengine, iodepth: asked, .. } = *options;
    Effective { ioengine, iodepth: iodepth(ioengine, asked), ..Effective::default() }
}

fn iodepth(ioengine: Ioengine, asked: u32) -> u32 {
    let most = match ioengine {
        Ioengine::Psync | Ioengine::Mmap => 1,
        Ioengine::Threads => threads::THREADS_MAX,
        Ioengine::IoUring => Options::IODEPTH_MAX,
    };
    asked.clamp(1, most)
}

#[cfg(feature = "io-uring")]
fn ring(
    options: &Options,
    callers: Callers,
    pool: &Pool,
    effective: &mut Effective,
) -> Result<Box<dyn Queue>, String> {
    Ok(Box::new(super::uring::Uring::start(options, callers, pool, effective)?))
}

#[cfg(not(feature = "io-uring"))]
fn ring(_: &Options, _: Callers, _: &Pool, _: &mut Effective) -> Result<Box<dyn Queue>, String> {
    Err("the library was built without its feature io-uring".to_owned())
}

fn pool_for(options: &Options, callers: Callers) -> Result<Pool, Error> {
    let map = if callers == Callers::Shared { Pool::shared } else { Pool::new };
    map(options.buffers, options.buffer_bytes)
}

fn threads(iodepth: u32, callers: Callers) -> Result<Box<dyn Queue>, Error> {
    let threads = threads::Threads::start(iodepth, callers)
        .map_err(|error| failed("starting the engine's threads", &error))?;
    Ok(Box::new(threads))
}

#[cold]
fn failed(what: &'static str, error: &io::Error) -> Error {
    Error::Engine { what, errno: errno_of(error) }
}

impl Drop for Engine {
    /// Waits for operations in flight, because the kernel still uses their buffers (W5). Then
    /// closes every file.
    fn drop(&mut self) {
        while self.in_flight() > 0 && self.advance(1).is_ok() {}
        if self.in_flight() > 0 || !self.process.is_this() {
            // The kernel may use the memory forever, or it belongs to the parent, so it stays
            // mapped.
            self.pool.leak();
            self.slots.leak();
        }
        if self.process.is_this() {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.backend) };
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("effective", &self.effective)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
