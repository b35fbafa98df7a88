//! The only door to the disk: queue an operation on a leased buffer, submit, reap.
//!
//! An [`Engine`] is a ladder. The best way that works is taken, and each step down is kept with the
//! kernel's own reason in [`Effective`] (W6):
//!
//! | rung | what it is | when |
//! |---|---|---|
//! | polled pair | a ring that asks the device for completions, for transfers, and a plain ring for the rest | asked for, and the device has poll queues |
//! | sqpoll | a thread of the kernel's takes operations from the rings of all engines that share it | asked for: it spends a CPU |
//! | io_uring | `SINGLE_ISSUER`, `DEFER_TASKRUN`, registered files and buffers, each where the kernel has it | asked for, and allowed |
//! | threads | `pwritev2(2)` and `preadv2(2)` on a small pool | io_uring is absent or forbidden |
//! | psync | the same calls on the caller's thread, one at a time | asked for |
//! | mmap | copies to and from a mapping of the file, one at a time | asked for |
//!
//! Whatever the rung, above this door an operation is whole or an error: short transfers, `EINTR`
//! and `EAGAIN` end here (W4). A flush that fails poisons its file for good (W2). A buffer in flight
//! belongs to the engine, and dropping the engine waits for what is in flight (W5). [`Sim`] is a
//! disk that fails on demand, for proving all of that, and everything built on it.
//!
//! An engine is used by one thread; there are no locks inside.

mod backend;
mod effective;
mod files;
mod judge;
mod mmap;
mod names;
mod op;
mod options;
mod perform;
mod polled;
mod psync;
mod ring;
mod sim;
mod sqpoll;
mod threads;
mod uring;

pub use effective::{Effective, Fallback};
pub(crate) use names::folder_of;
pub use names::{Found, Located};
pub use op::{Completion, FileId, Op};
pub use options::{FileOptions, Ioengine, Options};
pub use sim::{Fault, Sim};
pub use sqpoll::Sqpoll;

use crate::buffer::{Buffer, Pool};
use crate::error::errno_of;
use crate::{Action, Error};
use backend::{Backend, Done, Kernel, Request};
use op::Kind;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Carries out operations on files, up to `iodepth` at once.
///
/// ```
/// use wrote::{Engine, FileOptions, Ioengine, Op, Options};
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = std::env::temp_dir().join(format!("wrote-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("data");
/// let mut engine = Engine::open(&Options::new(Ioengine::IoUring, 8, 64 * 1024))?;
/// let options = FileOptions { create_new: true, write: true, direct: true, ..Default::default() };
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
/// # drop(engine);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    /// Dropped before the pool: a ring lets go of its registered memory before that is unmapped.
    backend: Box<dyn Backend>,
    pool: Pool,
    files: Vec<Option<OpenFile>>,
    /// How many files were opened.
    opened: u64,
    slots: Vec<Option<InFlight>>,
    free_slots: Vec<u32>,
    /// Completions that came while something else was waited for.
    completed: VecDeque<Completion>,
    /// Results of one call to the backend; kept to save allocations.
    done: Vec<Done>,
    /// Whether the pool was registered, or at least tried.
    registered: bool,
    /// Folders whose flush failed, with the error number (W2).
    poisoned_folders: Vec<(PathBuf, i32)>,
    effective: Effective,
}

/// Which threads call an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// The one that made it: a ring then needs no care for others (`IORING_SETUP_SINGLE_ISSUER`).
    One,
    /// Any, one at a time.
    Any,
}

/// What the engine knows of a file.
struct OpenFile {
    path: PathBuf,
    /// Transfers bypass the page cache, as far as is known.
    direct: bool,
    /// A direct transfer succeeded: the file system means it, and EINVAL means something else.
    direct_proven: bool,
    align_bytes: u32,
    /// The `RWF_` flags of its reads, and those that its writes have besides.
    read_flags: i32,
    write_flags: i32,
    /// What makes a write durable: `RWF_DSYNC` or `RWF_SYNC`.
    durable_flag: i32,
    /// The error number of the flush that failed (W2).
    poison: Option<i32>,
    in_flight: u32,
    /// Which file this is of all that were opened at its place.
    generation: u64,
}

/// An operation between `queue` and its completion.
struct InFlight {
    user_data: u64,
    kind: Kind,
    file: u32,
    offset: u64,
    len: u64,
    buffer: Option<Buffer>,
    /// Bytes moved by the tries so far.
    moved: u64,
    /// Tries that brought nothing.
    fruitless: u32,
    /// The last try was made while the file was open directly.
    direct: bool,
    /// The flags of the last try.
    rw_flags: i32,
}

impl InFlight {
    fn into_completion(self, result: Result<usize, Error>) -> Completion {
        let buffer = self.buffer.filter(|_| self.kind == Kind::Read);
        Completion { user_data: self.user_data, result, buffer }
    }
}

/// The most that the kernel moves in one call (`read(2)`, `write(2)`), less than 2 GiB.
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// Flags of one transfer (`pwritev2(2)`, and `linux/fs.h` for the last two, which the page lacks).
const RWF_DSYNC: i32 = 0x02;
const RWF_SYNC: i32 = 0x04;
const RWF_ATOMIC: i32 = 0x40;
const RWF_DONTCACHE: i32 = 0x80;

impl Engine {
    /// Makes an engine, on the best rung that works.
    ///
    /// # Errors
    ///
    /// When there is no memory for the buffers, or no threads where io_uring is refused. A refused
    /// io_uring alone is a fallback, not an error.
    pub fn open(options: &Options) -> Result<Engine, Error> {
        Engine::open_for(options, Callers::One)
    }

    /// As [`Engine::open`], for callers of several threads, one at a time.
    pub(crate) fn open_for(options: &Options, callers: Callers) -> Result<Engine, Error> {
        let depth = iodepth(options.ioengine, options.iodepth);
        let mut effective = Effective::new(options.ioengine, depth);
        let pool = Pool::new(options.buffers, options.buffer_bytes)?;
        effective.huge_pages = pool.is_huge();
        let backend: Box<dyn Backend> = match options.ioengine {
            Ioengine::Psync => Box::new(Kernel::new(psync::Psync::default())),
            Ioengine::Mmap => Box::new(Kernel::new(mmap::Mmap::default())),
            Ioengine::Threads => threads(effective.iodepth)?,
            Ioengine::IoUring => match uring::Uring::start(options, callers, &pool, &mut effective)
            {
                Ok(ring) => Box::new(Kernel::new(ring)),
                Err(ring::Refused(because)) => {
                    effective.fell_back("io_uring", "threads", because);
                    effective.ioengine = Ioengine::Threads;
                    effective.iodepth = iodepth(Ioengine::Threads, options.iodepth);
                    threads(effective.iodepth)?
                }
            },
        };
        Ok(Engine::with(backend, pool, effective))
    }

    /// Makes an engine on a simulated disk.
    ///
    /// # Errors
    ///
    /// When there is no memory for the buffers.
    pub fn simulated(sim: &Sim, options: &Options) -> Result<Engine, Error> {
        let pool = Pool::new(options.buffers, options.buffer_bytes)?;
        let depth = iodepth(options.ioengine, options.iodepth);
        let effective = Effective::new(options.ioengine, depth);
        Ok(Engine::with(sim.backend(), pool, effective))
    }

    fn with(backend: Box<dyn Backend>, pool: Pool, effective: Effective) -> Engine {
        let depth = effective.iodepth;
        Engine {
            backend,
            pool,
            files: Vec::new(),
            opened: 0,
            slots: (0..depth).map(|_| None).collect(),
            free_slots: (0..depth).rev().collect(),
            completed: VecDeque::new(),
            done: Vec::with_capacity(depth as usize),
            registered: false,
            poisoned_folders: Vec::new(),
            effective,
        }
    }

    /// Whether io_uring may be used here, or what was tried and what the kernel said.
    ///
    /// # Errors
    ///
    /// The reason, as [`Fallback::because`] has it.
    pub fn probe_io_uring() -> Result<(), String> {
        let options = Options::new(Ioengine::IoUring, 1, 4096);
        let engine = Engine::open(&options).map_err(|error| error.to_string())?;
        match engine.effective.fallbacks.iter().find(|step| step.wanted == "io_uring") {
            Some(step) => Err(step.because.clone()),
            None => Ok(()),
        }
    }

    /// Opens a file. A block device is opened for reading only (W7).
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's words; also when [`Options::FILES_MAX`] files are open. A
    /// refused `O_DIRECT` is a fallback, not an error.
    pub fn open_file(&mut self, path: &Path, options: &FileOptions) -> Result<FileId, Error> {
        let failed = |errno| Error::File {
            path: path.to_owned(),
            action: Action::Open,
            offset: None,
            errno,
        };
        let slot = self.files.iter().position(Option::is_none).unwrap_or(self.files.len()) as u32;
        if slot >= Options::FILES_MAX {
            return Err(failed(libc::EMFILE));
        }
        let options = self.possible(options);
        let opened = self
            .backend
            .open(slot, path, &options, &mut self.effective)
            .map_err(|error| failed(errno_of(&error)))?;
        self.opened += 1;
        if let Some(errno) = opened.refused {
            self.refused_direct("open", errno);
        }
        let file = OpenFile {
            path: path.to_owned(),
            direct: opened.direct,
            direct_proven: false,
            align_bytes: opened.align_bytes,
            read_flags: flag(options.dontcache, RWF_DONTCACHE),
            write_flags: flag(options.dontcache, RWF_DONTCACHE) | flag(options.atomic, RWF_ATOMIC),
            durable_flag: if options.sync_metadata { RWF_SYNC } else { RWF_DSYNC },
            poison: None,
            in_flight: 0,
            generation: self.opened,
        };
        if slot as usize == self.files.len() {
            self.files.push(None);
        }
        self.files[slot as usize] = Some(file);
        Ok(FileId { slot, generation: self.opened })
    }

    /// What of the options this engine can do; the rest is a fallback.
    fn possible(&mut self, options: &FileOptions) -> FileOptions {
        let mut options = *options;
        if options.direct && self.effective.ioengine == Ioengine::Mmap {
            let because = "mmap: a mapping is of the page cache".to_owned();
            self.effective.fell_back("O_DIRECT", "page cache", because);
            options.direct = false;
        }
        options
    }

    fn refused_direct(&mut self, action: &str, errno: i32) {
        let words = std::io::Error::from_raw_os_error(errno);
        self.effective.fell_back("O_DIRECT", "page cache", format!("{action}: {words}"));
    }

    /// Waits for what is in flight on the file, and closes it. Nothing is flushed.
    ///
    /// # Errors
    ///
    /// When the engine itself fails while it waits.
    pub fn close_file(&mut self, file: FileId) -> Result<(), Error> {
        while self.known(file).in_flight > 0 {
            self.advance(1)?;
        }
        self.files[file.slot as usize] = None;
        self.backend.close(file.slot);
        Ok(())
    }

    /// Whether the file's transfers bypass the page cache, as far as is known: a file system that
    /// takes `O_DIRECT` when the file is opened may still refuse the first transfer.
    pub fn is_direct(&self, file: FileId) -> bool {
        self.known(file).direct
    }

    /// What offset and length of a transfer must be multiples of: 1 unless the file is direct.
    pub fn align_bytes(&self, file: FileId) -> u32 {
        let file = self.known(file);
        if file.direct { file.align_bytes } else { 1 }
    }

    /// The file's length in bytes.
    ///
    /// # Errors
    ///
    /// With the kernel's words.
    pub fn file_len(&self, file: FileId) -> Result<u64, Error> {
        let path = &self.known(file).path;
        self.backend
            .len(file.slot)
            .map_err(|error| Error::file(path, Action::Examine, None, &error))
    }

    /// Waits for what is in flight on the file, and makes the file `len_bytes` long: what is beyond
    /// is gone, what is new reads as zeros (`ftruncate(2)`). Nothing is flushed.
    ///
    /// # Errors
    ///
    /// With the kernel's words, or when an earlier flush of the file failed (W2), or the engine
    /// itself fails while it waits.
    pub fn truncate(&mut self, file: FileId, len_bytes: u64) -> Result<(), Error> {
        while self.known(file).in_flight > 0 {
            self.advance(1)?;
        }
        let path = self.known(file).path.clone();
        if let Some(errno) = self.known(file).poison {
            return Err(Error::Poisoned { path, errno });
        }
        let (action, offset) = (Action::Truncate, Some(len_bytes));
        // The kernel's offsets are signed.
        if len_bytes > i64::MAX as u64 {
            return Err(Error::File { path, action, offset, errno: libc::EFBIG });
        }
        uninterrupted(|| self.backend.truncate(file.slot, len_bytes))
            .map_err(|error| Error::file(&path, action, offset, &error))
    }

    /// Registers the pool with the ring now, where [`Options::registered_buffers`] was not asked for:
    /// that touches every page of it, which who may not need them all can put off.
    pub(crate) fn register_buffers(&mut self) {
        if !self.registered {
            self.registered = true;
            self.backend.register_buffers(&self.pool, &mut self.effective);
        }
    }

    /// The open file itself, for what is no transfer: its permissions, its extents. `None` on a
    /// simulated disk.
    pub fn descriptor(&self, file: FileId) -> Option<BorrowedFd<'_>> {
        self.known(file);
        self.backend.descriptor(file.slot)
    }

    /// Leases a buffer of the engine's pool; waits for a completion where all are in flight.
    ///
    /// # Errors
    ///
    /// When the engine itself fails while it waits, or all buffers are leased and none of them is
    /// in flight (`ENOBUFS`).
    pub fn lease(&mut self) -> Result<Buffer, Error> {
        loop {
            if let Some(mut buffer) = self.pool.lease() {
                buffer.set_len(buffer.capacity());
                return Ok(buffer);
            }
            if self.in_flight() == 0 {
                let what = "leasing a buffer: all are held outside the engine";
                return Err(Error::Engine { what, errno: libc::ENOBUFS });
            }
            self.advance(1)?;
        }
    }

    /// The engine's buffers.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// What is really in effect, and each step down from what was asked.
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Operations queued and not yet reaped.
    pub fn outstanding(&self) -> usize {
        self.in_flight() + self.completed.len()
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Whether `iodepth` operations are in flight: the next [`Engine::queue`] waits for one.
    pub fn is_full(&self) -> bool {
        self.free_slots.is_empty()
    }

    /// Queues an operation; its [`Completion`] carries `user_data`. Every operation has exactly one
    /// completion: what is refused here completes with the error.
    ///
    /// Waits for another operation where `iodepth` of them are in flight. Nothing reaches the
    /// kernel for certain before [`Engine::submit`] or [`Engine::reap`].
    pub fn queue(&mut self, user_data: u64, op: Op) {
        while self.is_full() {
            if let Err(error) = self.advance(1) {
                let result = Err(error);
                self.completed.push_back(Completion { user_data, result, buffer: None });
                return;
            }
        }
        let in_flight = self.prepare(user_data, op);
        if let Some(error) = self.refusal(&in_flight) {
            self.completed.push_back(in_flight.into_completion(Err(error)));
            return;
        }
        self.check_disjoint(&in_flight);
        let token = self.free_slots.pop().expect("the queue is not full");
        self.file_mut(in_flight.file).in_flight += 1;
        self.slots[token as usize] = Some(in_flight);
        self.effective.iodepth_reached =
            self.effective.iodepth_reached.max(self.in_flight() as u32);
        self.push(token);
    }

    fn prepare(&self, user_data: u64, op: Op) -> InFlight {
        self.known(op.file());
        let file = op.file().slot;
        let (kind, offset, len, buffer) = match op {
            Op::Write { offset, buffer, durable, .. } => {
                let kind = if durable { Kind::DurableWrite } else { Kind::Write };
                (kind, offset, buffer.len() as u64, Some(buffer))
            }
            Op::Read { offset, buffer, .. } => {
                (Kind::Read, offset, buffer.len() as u64, Some(buffer))
            }
            Op::Fdatasync { .. } => (Kind::Fdatasync, 0, 0, None),
            Op::Fsync { .. } => (Kind::Fsync, 0, 0, None),
            Op::Fallocate { offset, len, .. } => (Kind::Fallocate, offset, len, None),
        };
        InFlight {
            user_data,
            kind,
            file,
            offset,
            len,
            buffer,
            moved: 0,
            fruitless: 0,
            direct: false,
            rw_flags: 0,
        }
    }

    /// Why an operation is not even tried.
    fn refusal(&self, op: &InFlight) -> Option<Error> {
        let file = self.file(op.file);
        let path = || file.path.clone();
        if let Some(errno) = file.poison.filter(|_| op.kind != Kind::Read) {
            return Some(Error::Poisoned { path: path(), errno });
        }
        // The kernel's offsets are signed.
        if op.offset.checked_add(op.len).is_none_or(|end| end > i64::MAX as u64) {
            let (action, offset) = (op.kind.action(), Some(op.offset));
            return Some(Error::File { path: path(), action, offset, errno: libc::EFBIG });
        }
        let align = u64::from(file.align_bytes);
        if op.kind.transfers() && file.direct && !(op.offset | op.len).is_multiple_of(align) {
            let (action, offset, align_bytes) = (op.kind.action(), op.offset, file.align_bytes);
            return Some(Error::Alignment { path: path(), action, offset, align_bytes });
        }
        None
    }

    /// W3: never two writes in flight on one block. A mistake of the layer above, so only checked
    /// where debug assertions are on.
    fn check_disjoint(&self, op: &InFlight) {
        if cfg!(debug_assertions) && op.kind.writes() {
            let overlaps = |other: &InFlight| {
                other.kind.writes()
                    && other.file == op.file
                    && other.offset < op.offset + op.len
                    && op.offset < other.offset + other.len
            };
            assert!(
                !self.slots.iter().flatten().any(overlaps),
                "two writes in flight at byte {} of {}",
                op.offset,
                self.file(op.file).path.display()
            );
        }
    }

    /// Hands an operation, or what is left of it, to the backend.
    fn push(&mut self, token: u32) {
        let op = self.slots[token as usize].as_mut().expect("pushed while in flight");
        let file = self.files[op.file as usize].as_ref().expect("open while in flight");
        op.direct = file.direct;
        op.rw_flags = match op.kind {
            Kind::Read => file.read_flags,
            Kind::Write => file.write_flags,
            Kind::DurableWrite => file.write_flags | file.durable_flag,
            Kind::Fdatasync | Kind::Fsync | Kind::Fallocate => 0,
        };
        let (address, in_pool) = match &op.buffer {
            // SAFETY: `moved` is at most the buffer's length.
            Some(buffer) => unsafe {
                (buffer.address().add(op.moved as usize), self.pool.owns(buffer))
            },
            None => (std::ptr::NonNull::dangling().as_ptr(), false),
        };
        let left = op.len - op.moved;
        self.backend.push(Request {
            token,
            kind: op.kind,
            slot: op.file,
            offset: op.offset + op.moved,
            address,
            len: if op.kind.transfers() { left.min(TRANSFER_BYTES_MAX) } else { left },
            in_pool,
            rw_flags: op.rw_flags,
        });
    }

    /// Hands what is queued to the kernel, without waiting.
    ///
    /// # Errors
    ///
    /// When the engine itself fails; what is in flight stays in flight.
    pub fn submit(&mut self) -> Result<(), Error> {
        self.backend.submit().map_err(|error| failed("submitting to the kernel", &error))
    }

    /// Submits, waits until at least `min` operations (or all, where fewer are outstanding) are
    /// complete, and appends every completion that there is to `completions`.
    ///
    /// # Errors
    ///
    /// When the engine itself fails; an operation's own error is in its completion.
    pub fn reap(&mut self, min: usize, completions: &mut Vec<Completion>) -> Result<(), Error> {
        let min = min.min(self.outstanding());
        loop {
            let missing = min.saturating_sub(self.completed.len());
            if self.in_flight() > 0 {
                self.advance(missing)?;
            }
            if self.completed.len() >= min {
                completions.extend(self.completed.drain(..));
                return Ok(());
            }
        }
    }

    /// Submits, waits until an operation is complete or so much time is over, and appends every
    /// completion that there is to `completions`: for those who have something else to do at that time.
    ///
    /// It may return earlier without a completion: by a short transfer that goes on, by a signal, and
    /// where nothing can wait for both (poll queues, Linux before 5.11, [`Sim`]), at once. With nothing
    /// outstanding it does not wait.
    ///
    /// # Errors
    ///
    /// When the engine itself fails; an operation's own error is in its completion.
    pub fn reap_within(
        &mut self,
        time: Duration,
        completions: &mut Vec<Completion>,
    ) -> Result<(), Error> {
        if self.in_flight() > 0 && self.completed.is_empty() {
            self.advanced(|backend, done| backend.wait_within(time, done))?;
        }
        completions.extend(self.completed.drain(..));
        Ok(())
    }

    /// Waits for everything outstanding; what was read is dropped.
    ///
    /// # Errors
    ///
    /// The first error of an operation, after all of them are complete.
    pub fn drain(&mut self) -> Result<(), Error> {
        let mut completions = Vec::new();
        self.reap(usize::MAX, &mut completions)?;
        completions.into_iter().try_for_each(|completion| completion.result.map(drop))
    }

    /// Waits for everything outstanding, then flushes the file by `fdatasync(2)`. After success
    /// every write that was queued before survives a power loss (W1); the name of a file that was
    /// just made does only after its folder was synced too.
    ///
    /// # Errors
    ///
    /// The first error of an outstanding operation, or the flush's own, which poisons the file (W2).
    pub fn flush(&mut self, file: FileId) -> Result<(), Error> {
        self.drain()?;
        self.queue(0, Op::Fdatasync { file });
        self.drain()
    }

    /// Waits for `min` requests of the backend's, and settles each: again, whole, or failed.
    fn advance(&mut self, min: usize) -> Result<(), Error> {
        let min = min.min(self.in_flight());
        self.advanced(|backend, done| backend.wait(min, done))
    }

    /// Settles each request that `wait` finds done.
    fn advanced(
        &mut self,
        wait: impl FnOnce(&mut dyn Backend, &mut Vec<Done>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut done = std::mem::take(&mut self.done);
        let waited = wait(&mut *self.backend, &mut done);
        for result in done.drain(..) {
            self.settle(result);
        }
        self.done = done;
        waited.map_err(|error| failed("waiting for the kernel", &error))
    }

    /// The file that was given out as `id`: one that was closed since is a mistake of the caller's,
    /// and must not mean the file that was opened in its place.
    fn known(&self, id: FileId) -> &OpenFile {
        let file = self.files.get(id.slot as usize).and_then(Option::as_ref);
        let same = file.filter(|file| file.generation == id.generation);
        same.expect("the file was not closed, and is this engine's")
    }

    fn file(&self, slot: u32) -> &OpenFile {
        self.files[slot as usize].as_ref().expect("the file is open")
    }

    fn file_mut(&mut self, slot: u32) -> &mut OpenFile {
        self.files[slot as usize].as_mut().expect("the file is open")
    }
}

fn iodepth(ioengine: Ioengine, asked: u32) -> u32 {
    let most = match ioengine {
        Ioengine::Psync | Ioengine::Mmap => 1,
        Ioengine::Threads => threads::THREADS_MAX,
        Ioengine::IoUring => Options::IODEPTH_MAX,
    };
    asked.clamp(1, most)
}

/// Tries again what was interrupted (W4), but not for ever.
fn uninterrupted<T>(mut call: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    let mut tries = 0;
    loop {
        let result = call();
        tries += 1;
        match &result {
            Err(error)
                if matches!(errno_of(error), libc::EINTR | libc::EAGAIN)
                    && tries <= judge::FRUITLESS_TRIES_MAX => {}
            _ => return result,
        }
    }
}

fn flag(wanted: bool, flag: i32) -> i32 {
    if wanted { flag } else { 0 }
}

fn threads(iodepth: u32) -> Result<Box<dyn Backend>, Error> {
    let threads = threads::Threads::start(iodepth)
        .map_err(|error| failed("starting the engine's threads", &error))?;
    Ok(Box::new(Kernel::new(threads)))
}

fn failed(what: &'static str, error: &std::io::Error) -> Error {
    Error::Engine { what, errno: errno_of(error) }
}

impl Drop for Engine {
    /// Waits for what is in flight: the kernel still uses its buffers (W5). Then closes every file.
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            if self.advance(1).is_err() {
                // Nothing can be known of them any more: their memory stays mapped for good.
                self.pool.leak();
                std::mem::take(&mut self.slots).into_iter().for_each(std::mem::forget);
                return;
            }
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
