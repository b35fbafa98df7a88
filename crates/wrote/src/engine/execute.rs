//! `Engine`: queues operations, submits them, and returns their completions. It also opens files,
//! and changes files and names.

use super::backend::{Backend, OpenedFile, Queue};
use super::files::KernelFiles;
use super::judge::{Verdict, judge, result_of, uninterrupted};
use super::names::{Folder, Located, NameChange};
use super::op::{Completion, FileId, Op, Reply, Request};
use super::open_file::{OpenFile, known};
use super::options::{Callers, Effective, Fallback, FileOptions, Ioengine, Options};
use super::sim::Sim;
use super::slots::{Slots, Work};
use super::wait::Wait;
use super::{mmap, threads};
use crate::buffer::{Buffer, Pool};
use crate::error::{Action, Error, Tried, errno_of};
use crate::fork::Process;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    /// The backend. It is dropped before the pool, because a ring must release its registered
    /// memory before that is unmapped. It is not dropped in a child process, which has neither its
    /// threads nor its ring.
    backend: ManuallyDrop<Backend>,
    pool: Pool,
    files: Vec<Option<OpenFile>>,
    /// The slots of closed files. The lowest is on top, because a ring registers only low slots.
    free_files: BinaryHeap<Reverse<u32>>,
    opened: u64,
    slots: Slots,
    completed: Vec<Completion>,
    /// The backend's replies, and how many of them have been settled.
    done: Vec<Reply>,
    settled: usize,
    /// Whether registering the pool has been attempted.
    registered: bool,
    /// Whether several threads submit to a ring of this engine.
    has_shared_ring: bool,
    /// The folders whose flush failed, with the error number (W2).
    poisoned_folders: Vec<(PathBuf, i32)>,
    effective: Effective,
    process: Process,
}

impl Engine {
    /// Creates an engine that uses the best method that works. Fails if there is no memory for the
    /// buffers, or if no threads can be started. A refused io_uring is not an error: the engine
    /// falls back to threads.
    pub fn open(options: &Options) -> Result<Engine, Error> {
        Engine::open_for(options, Callers::One)
    }

    /// Like [`Engine::open`], but for the threads that `callers` allows.
    pub(crate) fn open_for(options: &Options, callers: Callers) -> Result<Engine, Error> {
        let pool = pool_for(options, callers)?;
        let mut effective = Effective { huge_pages: pool.is_huge(), ..effective_of(options) };
        let queue: Box<dyn Queue> = match options.ioengine {
            Ioengine::Psync => Box::new(threads::Psync::default()),
            Ioengine::Mmap => Box::new(mmap::Mmap::default()),
            Ioengine::Threads => threads(options, &effective, callers)?,
            Ioengine::IoUring => match ring(options, callers, &pool, &mut effective) {
                Ok(ring) => ring,
                Err(because) => {
                    effective.fell_back("io_uring", "threads", because);
                    effective.ioengine = Ioengine::Threads;
                    effective.iodepth = iodepth(Ioengine::Threads, options.iodepth);
                    threads(options, &effective, callers)?
                }
            },
        };
        let backend = Backend { queue, files: Box::new(KernelFiles::default()) };
        let mut engine = Engine::with(backend, pool, effective);
        let has_ring = engine.effective.ioengine == Ioengine::IoUring;
        engine.has_shared_ring = has_ring && callers != Callers::One;
        Ok(engine)
    }

    /// Records fallbacks that occurred before the engine was created.
    pub(crate) fn fell_back_before(&mut self, fallbacks: &[Fallback]) {
        for Fallback { wanted, got, because } in fallbacks {
            self.effective.fell_back(wanted, got, because.clone());
        }
    }

    /// Creates an engine on a simulated disk. Fails if there is no memory for the buffers.
    pub fn simulated(sim: &Sim, options: &Options) -> Result<Engine, Error> {
        Engine::on(sim.backend(), options, Callers::One)
    }

    /// Creates an engine on a backend that has no fallbacks.
    pub(super) fn on(
        backend: Backend,
        options: &Options,
        callers: Callers,
    ) -> Result<Engine, Error> {
        Ok(Engine::with(backend, pool_for(options, callers)?, effective_of(options)))
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

    /// Fails in a child of the process that opened the engine.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        self.process.check()
    }

    /// Tests whether io_uring is available. If not, returns the step that failed and the kernel's
    /// error, as in [`Fallback::because`].
    pub fn probe_io_uring() -> Result<(), String> {
        let options = Options::new(Ioengine::IoUring, 1, 4096);
        let engine = Engine::open(&options).map_err(|error| error.to_string())?;
        let refused = engine.effective.fallbacks.iter().find(|step| step.wanted == "io_uring");
        refused.map_or(Ok(()), |step| Err(step.because.clone()))
    }

    /// Registers the pool with the ring, unless [`Options::registered_buffers`] has already done
    /// so. Registering touches every page, so a caller that may not use the whole pool can delay
    /// it.
    pub(crate) fn register_buffers(&mut self) {
        if !self.registered && self.process.is_this() {
            self.registered = true;
            self.backend.queue.register_buffers(&self.pool, &mut self.effective);
        }
    }

    /// Leases a buffer from the engine's pool. Waits for a completion if all buffers are in flight.
    /// Fails with `ENOBUFS` if all buffers are leased and none is in flight.
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

    /// Returns the number of the engine's buffers, whether leased or not.
    pub fn buffers(&self) -> u32 {
        self.pool.count()
    }

    /// Returns the number of free buffers.
    pub fn buffers_free(&self) -> usize {
        self.pool.free()
    }

    /// Returns the size of a buffer, in bytes.
    pub fn buffer_bytes(&self) -> usize {
        self.pool.buffer_bytes()
    }

    /// Returns the settings in effect, and every fallback from the requested ones.
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Returns the number of operations that have been queued and not reaped yet.
    pub fn outstanding(&self) -> usize {
        self.in_flight() + self.completed.len()
    }

    fn in_flight(&self) -> usize {
        self.slots.in_flight()
    }

    /// Returns whether `iodepth` operations are in flight, so that the next [`Engine::queue`] must
    /// wait for one.
    pub fn is_full(&self) -> bool {
        self.slots.is_full()
    }

    /// Queues an operation, whose [`Completion`] has the same `user_data`. Every operation has
    /// exactly one completion: if it is refused, it completes with the error.
    ///
    /// Waits for another operation while `iodepth` of them are in flight. [`Engine::submit`],
    /// [`Engine::reap`] and every other call that waits submit the queued operations to the kernel.
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

    /// Panics if the last operation writes to a block to which another write is in flight (W3).
    /// That would be a bug in the calling code, so only debug builds check it.
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

    /// Submits the queue to the kernel without waiting. If that fails, operations in flight remain
    /// in flight.
    pub fn submit(&mut self) -> Result<(), Error> {
        self.check_process()?;
        self.hand_on();
        self.backend.queue.submit().map_err(|error| failed("submitting to the kernel", &error))
    }

    /// Submits the queue, waits until at least `min` operations are complete (or all, if fewer are
    /// outstanding), and appends all completions to `completions`. An operation's error is in its
    /// completion.
    pub fn reap(&mut self, min: usize, completions: &mut Vec<Completion>) -> Result<(), Error> {
        self.reap_each(min, |completion| completions.push(completion))
    }

    /// Like [`Engine::reap`], but passes each completion to `take` instead of storing it.
    #[inline]
    pub fn reap_each(&mut self, min: usize, mut take: impl FnMut(Completion)) -> Result<(), Error> {
        self.check_process()?;
        let left = self.outstanding().saturating_sub(min);
        // The completions are taken one by one, so that the others are kept if `take` panics.
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

    /// Submits the queue, and returns a wait for a completion. Other threads may use the engine
    /// during the wait. Requires an engine with [`Callers::Shared`].
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

    /// Ends another thread's wait that [`Engine::prepare_wait`] returned.
    pub(crate) fn interrupt(&mut self) {
        // After an error, the wait lasts until the next completion.
        let _ = self.backend.queue.interrupt();
    }

    /// Returns whether completions arrive only during calls of the engine.
    pub(crate) fn completes_in_calls(&self) -> bool {
        self.backend.queue.completes_in_calls()
    }

    /// Returns whether any operation is queued but not submitted, or is complete but not reaped.
    pub(crate) fn wants_turn(&self) -> bool {
        self.slots.has_queued() || !self.completed.is_empty()
    }

    /// Like [`Engine::reap`], but discards the completions and returns their first error.
    pub(crate) fn reap_results(&mut self, min: usize) -> Result<(), Error> {
        let mut first = Ok(());
        self.reap_each(min, |completion| {
            if let (Ok(()), Err(error)) = (&first, completion.result) {
                first = Err(error);
            }
        })?;
        first
    }

    /// Submits the queue, waits until an operation is complete or `time` has passed, and appends
    /// all completions to `completions`. It suits a caller that has other work to do after `time`.
    ///
    /// The call may return early without a completion: after a short transfer that continues, after
    /// a signal, or at once if no system call can wait for both (poll queues, Linux before 5.11,
    /// [`Sim`]). It does not wait if nothing is outstanding. An operation's error is in its
    /// completion.
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

    /// Waits for everything outstanding, and discards the bytes that were read. When all operations
    /// are complete, returns the first error of any of them.
    pub fn drain(&mut self) -> Result<(), Error> {
        self.reap_results(usize::MAX)
    }

    /// Waits for everything outstanding, and then flushes the file with `fdatasync(2)`. On success,
    /// all writes queued before are durable (W1); the name of a new file is durable once its folder
    /// has been synced. Returns the first error of an outstanding operation, or the error of the
    /// flush, which poisons the file (W2).
    pub fn flush(&mut self, file: FileId) -> Result<(), Error> {
        self.drain()?;
        self.queue(0, Op::Fdatasync { file });
        self.drain()
    }

    /// Waits for `min` replies from the backend, and stores the completions.
    fn advance(&mut self, min: usize) -> Result<(), Error> {
        self.check_process()?;
        let mut completed = std::mem::take(&mut self.completed);
        let min = min.min(self.in_flight());
        let wait = |queue: &mut dyn Queue, done: &mut _| queue.wait(min, done);
        let waited = self.settle_all(wait, &mut |completion| completed.push(completion));
        self.completed = completed;
        waited
    }

    /// Returns the time on the disk's clock, to measure how long operations take.
    pub(crate) fn now(&mut self) -> Instant {
        self.backend.queue.now()
    }

    /// Returns whether replies are left over because `take` panicked. The kernel reports them only
    /// once.
    fn has_unsettled(&self) -> bool {
        self.settled < self.done.len()
    }

    /// Submits the queue, and settles each reply collected by `wait`: the operation is retried,
    /// complete, or failed.
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

    /// Completes an operation and passes its completion to `take`, or queues another attempt.
    #[inline]
    fn settle(&mut self, reply: Reply, take: &mut impl FnMut(Completion)) {
        let op = self.slots.op(reply.token);
        if !op.is_plainly_whole(reply.result) {
            return self.settle_by_verdict(reply).into_iter().for_each(take);
        }
        let (user_data, bytes, buffer) = op.end();
        self.slots.free(reply.token);
        take(Completion { user_data, result: Ok(bytes), buffer });
    }

    #[inline(never)]
    fn settle_by_verdict(&mut self, reply: Reply) -> Option<Completion> {
        let op = self.slots.op(reply.token);
        let request = op.request;
        let file = self.files[request.slot as usize].as_mut().expect("open while in flight");
        let ended = match judge(op, file, reply.result, self.has_shared_ring) {
            Verdict::Again => None,
            Verdict::AgainCached(errno) => self.leave_direct(&request, errno).err().map(Err),
            Verdict::AgainKeeping(errno) => {
                let because = format!("RWF_DONTCACHE: {}", io::Error::from_raw_os_error(errno));
                self.effective.fell_back("uncached transfers", "page cache", because);
                None
            }
            Verdict::Whole(moved) => Some(Ok(moved)),
            Verdict::Failed(errno) => Some(Err(errno)),
        };
        let op = self.slots.op(reply.token);
        let file = self.files[request.slot as usize].as_mut().expect("open while in flight");
        let Some(ended) = ended else {
            op.prepare_again(file);
            self.slots.again(reply.token);
            return None;
        };
        let result = result_of(op, file, ended);
        let (user_data, _, buffer) = op.end();
        self.slots.free(reply.token);
        Some(Completion { user_data, result, buffer })
    }

    /// Makes later attempts on a file go through the page cache. If that is not possible, returns
    /// the error.
    fn leave_direct(&mut self, request: &Request, errno: i32) -> Result<(), i32> {
        if self.file(request.slot).direct {
            self.change_direct(request.slot, false).map_err(|_| errno)?;
            let is_read = request.kind.action() == Action::Read;
            self.refused_direct(if is_read { "read" } else { "write" }, errno);
        }
        Ok(())
    }

    /// Opens a file. A block device can be opened only for reading (W7). Fails with
    /// [`Error::Refused`] if [`Options::FILES_MAX`] files are open. A refused `O_DIRECT` is a
    /// fallback, not an error.
    pub fn open_file(
        &mut self,
        path: impl AsRef<Path>,
        options: &FileOptions,
    ) -> Result<FileId, Error> {
        self.open_path(path.as_ref(), options)
    }

    fn free_slot(&self) -> u32 {
        self.free_files.peek().map_or(self.files.len() as u32, |&Reverse(slot)| slot)
    }

    fn keep(&mut self, slot: u32, file: OpenFile) -> FileId {
        self.opened += 1;
        if slot as usize == self.files.len() {
            self.files.push(None);
        } else {
            self.free_files.pop();
        }
        let generation = file.generation;
        self.files[slot as usize] = Some(file);
        FileId { slot, generation }
    }

    fn open_path(&mut self, path: &Path, options: &FileOptions) -> Result<FileId, Error> {
        self.check_process()?;
        let slot = self.free_slot();
        if slot >= Options::FILES_MAX {
            let max = Options::FILES_MAX;
            let because = format!("the engine has {max} files open, the most: close one before");
            return Err(Error::refused(path, because));
        }
        let mut options = *options;
        if options.direct && self.effective.ioengine == Ioengine::Mmap {
            let because = "mmap: a mapping is of the page cache".to_owned();
            self.effective.fell_back("O_DIRECT", "page cache", because);
            options.direct = false;
        }
        let access = self.backend.files.open(slot, path, &options).tried(path, Action::Open)?;
        let opened = OpenedFile { slot, path, access };
        self.backend.queue.opened(&opened, &mut self.effective);
        if let Some(errno) = access.refused {
            self.refused_direct("open", errno);
        }
        Ok(self.keep(slot, OpenFile::new(path, &options, &access, self.opened + 1)))
    }

    fn refused_direct(&mut self, action: &str, errno: i32) {
        let words = io::Error::from_raw_os_error(errno);
        self.effective.fell_back("O_DIRECT", "page cache", format!("{action}: {words}"));
    }

    /// Waits for the file's operations in flight, and closes it. Nothing is flushed.
    pub fn close_file(&mut self, file: FileId) -> Result<(), Error> {
        self.check_process()?;
        self.wait_for_file(file)?;
        self.files[file.slot as usize] = None;
        self.free_files.push(Reverse(file.slot));
        self.backend.queue.closing(file.slot);
        self.backend.files.close(file.slot);
        Ok(())
    }

    /// Waits for all operations, and then makes all files and names on the file's file system
    /// durable. Reports an error of any write there since the file was opened, and an earlier error
    /// that has not been reported yet.
    pub(crate) fn sync_file_system(&mut self, file: FileId) -> Result<(), Error> {
        self.drain()?;
        let slot = self.slot(file);
        uninterrupted(|| self.backend.files.sync_file_system(slot))
            .tried(self.path(file), Action::Fsync)
    }

    fn wait_for_file(&mut self, file: FileId) -> Result<(), Error> {
        self.known(file);
        while self.slots.iter().any(|op| op.request.slot == file.slot) {
            self.advance(1)?;
        }
        Ok(())
    }

    /// Returns whether the file's transfers bypass the page cache, as far as is known: a file
    /// system may accept `O_DIRECT` when the file is opened and refuse the first transfer.
    pub fn is_direct(&self, file: FileId) -> bool {
        self.known(file).direct
    }

    /// Waits for the file's operations in flight, and sets whether later transfers bypass the page
    /// cache.
    pub(crate) fn set_direct(&mut self, file: FileId, direct: bool) -> Result<(), Error> {
        // If pages are cached while a direct write to them is in flight, the next flush fails
        // (EIO).
        self.wait_for_file(file)?;
        let set = self.change_direct(file.slot, direct);
        set.tried(&self.known(file).path, Action::Open)
    }

    /// Sets whether transfers of the file bypass the page cache. The file must have nothing in
    /// flight, except operations that are about to be retried.
    fn change_direct(&mut self, slot: u32, direct: bool) -> io::Result<()> {
        self.backend.files.set_direct(slot, direct)?;
        if !direct {
            self.backend.queue.left_direct(slot);
        }
        self.file_mut(slot).direct = direct;
        Ok(())
    }

    /// Returns the required alignment of offsets and lengths, in bytes; 1 unless the file is
    /// direct.
    pub fn align_bytes(&self, file: FileId) -> u32 {
        let file = self.known(file);
        if file.direct { file.align_bytes } else { 1 }
    }

    /// Sets the path that the user gave for the file, for errors.
    pub(crate) fn set_path(&mut self, file: FileId, path: &Path) {
        self.known(file);
        path.clone_into(&mut self.file_mut(file.slot).path);
    }

    pub(crate) fn path(&self, file: FileId) -> &Path {
        &self.known(file).path
    }

    /// Returns the file's length in bytes.
    pub fn file_len(&self, file: FileId) -> Result<u64, Error> {
        self.check_process()?;
        let path = &self.known(file).path;
        self.backend.files.len(file.slot).tried(path, Action::Examine)
    }

    /// Waits for the file's operations in flight, and sets its length (`ftruncate(2)`). Bytes
    /// beyond the new length are discarded, and added bytes read as zeros. Nothing is flushed.
    /// Fails if an earlier flush of the file failed (W2).
    pub fn truncate(&mut self, file: FileId, len_bytes: u64) -> Result<(), Error> {
        self.check_process()?;
        self.wait_for_file(file)?;
        let open = self.known(file);
        if let Some(poisoned) = open.poisoned() {
            return Err(poisoned);
        }
        let path = open.path.clone();
        let (action, offset) = (Action::Truncate, Some(len_bytes));
        // The kernel's offsets are signed.
        if len_bytes > i64::MAX as u64 {
            return Err(Error::File { path, action, offset, errno: libc::EFBIG });
        }
        uninterrupted(|| self.backend.files.truncate(file.slot, len_bytes))
            .map_err(|error| Error::file(&path, action, offset, &error))?;
        self.backend.queue.truncated(file.slot);
        Ok(())
    }

    /// Writes all bytes at `offset`, directly from the caller's memory and through the page cache
    /// (W4). Fails if an earlier flush of the file failed (W2).
    pub(crate) fn write(
        &mut self,
        file: FileId,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> Result<(), Error> {
        self.check_process()?;
        self.wait_for_file(file)?;
        if let Some(poisoned) = self.known(file).poisoned() {
            return Err(poisoned);
        }
        while !bytes.is_empty() {
            // A write that moved no bytes is also repeated.
            let written =
                uninterrupted(|| match self.backend.files.write(file.slot, offset, bytes) {
                    Ok(0) => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
                    written => written,
                });
            let path = &self.known(file).path;
            let failed = |error| Error::file(path, Action::Write, Some(offset), &error);
            let written = written.map_err(failed)?;
            bytes = &bytes[written..];
            offset += written as u64;
        }
        Ok(())
    }

    /// Drops the file's clean pages from the page cache (`posix_fadvise(2)`), so that later reads,
    /// through any open file, return what is on the disk.
    pub(crate) fn drop_clean_pages(&mut self, file: FileId) {
        self.backend.files.drop_clean_pages(file.slot);
    }

    /// Returns whether another program may still see writes to the file, because it has a second
    /// name, or is also open elsewhere, including in this process. Programs on this system that
    /// opened the file earlier are included. Fails if the system can't determine that.
    pub(crate) fn is_shared(&self, file: FileId) -> Result<bool, Error> {
        let path = &self.known(file).path;
        self.backend.files.is_shared(file.slot).tried(path, Action::Examine)
    }

    /// Returns the descriptor of the open file, to examine or change its permissions and extents.
    /// `None` on a simulated disk.
    pub fn descriptor(&self, file: FileId) -> Option<BorrowedFd<'_>> {
        self.known(file);
        self.backend.files.descriptor(file.slot)
    }

    fn slot(&self, file: FileId) -> u32 {
        self.known(file);
        file.slot
    }

    #[inline]
    fn known(&self, id: FileId) -> &OpenFile {
        known(&self.files, id)
    }

    fn file(&self, slot: u32) -> &OpenFile {
        self.files[slot as usize].as_ref().expect("the file is open")
    }

    fn file_mut(&mut self, slot: u32) -> &mut OpenFile {
        self.files[slot as usize].as_mut().expect("the file is open")
    }

    /// Makes paths below the folder's path resolve relative to the folder, even after it is
    /// renamed. Has no effect on a simulated disk, which has no folders.
    pub(crate) fn enter(&mut self, folder: Folder) {
        self.backend.files.enter(folder);
    }

    /// Opens a folder, and makes paths below it resolve relative to it. If the folder can't be
    /// opened, each path is resolved as usual.
    pub(crate) fn hold_folder(&mut self, folder: &Path) {
        if let Ok(held) = Folder::open(folder) {
            self.enter(held);
        }
    }

    /// Returns whether `path` still refers to the file. The name may have been removed or reused.
    pub(crate) fn is_named(&self, file: FileId, path: &Path) -> Result<bool, Error> {
        Ok(self.len_at(file, path)?.is_some())
    }

    /// Returns the length of an ordinary file if `path` still refers to it.
    pub(crate) fn len_at(&self, file: FileId, path: &Path) -> Result<Option<u64>, Error> {
        self.check_process()?;
        self.backend.files.len_at(self.slot(file), path).tried(path, Action::Examine)
    }

    /// Finds where a write to `path` goes, following symbolic links like `open(2)`, and what exists
    /// there. A missing name is not an error.
    pub(crate) fn locate(&mut self, path: impl AsRef<Path>) -> Result<Located, Error> {
        self.check_process()?;
        let path = path.as_ref();
        uninterrupted(|| self.backend.files.locate(path)).tried(path, Action::Examine)
    }

    /// Renames the file `from` to `to` atomically, within one file system: at every moment, `to` is
    /// either the old file or the new one (`rename(2)`). An existing file is replaced if `replace`
    /// is set; otherwise, it is an error (W7). The rename is durable once the folder has been
    /// synced.
    pub fn rename(
        &mut self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        replace: bool,
    ) -> Result<(), Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.change_name(NameChange::Rename { from, to, replace }, to, Action::Rename)
    }

    /// Removes the name of a file (`unlink(2)`).
    pub fn remove(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        self.change_name(NameChange::Remove(path), path, Action::Remove)
    }

    /// Makes the names in the folder durable (`fsync(2)`): files that were created or renamed there
    /// survive a power loss. If the file system does not need to sync folders, that is a fallback,
    /// not an error. After an error, every later call for this folder returns an error, too (W2).
    pub fn sync_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        let poisoned = self.poisoned_folders.iter().find(|(path, _)| path == folder);
        if let Some(&(ref path, errno)) = poisoned {
            return Err(Error::Poisoned { path: path.clone(), errno });
        }
        self.check_process()?;
        self.change_name(NameChange::SyncFolder(folder), folder, Action::SyncFolder)
            .inspect_err(|error| self.poisoned_folders.push((folder.to_owned(), error.errno())))
    }

    /// Creates a folder (`mkdir(2)`); if it exists, that is not an error. The folder is durable
    /// once its parent has been synced.
    pub fn make_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        self.check_process()?;
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.files.make_folder(folder)).tried(folder, Action::MakeFolder)
    }

    /// Lists a folder, sorted by name.
    pub fn list(&mut self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        self.check_process()?;
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.files.list(folder)).tried(folder, Action::Examine)
    }

    fn change_name(
        &mut self,
        change: NameChange,
        path: &Path,
        action: Action,
    ) -> Result<(), Error> {
        self.check_process()?;
        let fallback =
            uninterrupted(|| self.backend.files.change_name(change)).tried(path, action)?;
        if let Some(Fallback { wanted, got, because }) = fallback {
            self.effective.fell_back(wanted, got, because);
        }
        Ok(())
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

fn threads(
    options: &Options,
    effective: &Effective,
    callers: Callers,
) -> Result<Box<dyn Queue>, Error> {
    let threads = threads::Threads::start(effective.iodepth, callers, options.transfers_itself)
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
            // The memory must stay mapped: the kernel may use it forever, or it belongs to the
            // parent.
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
