//! Options of an engine and of its files, and the settings in effect: no fallback is silent (W6).

use super::sqpoll::Sqpoll;

/// The method of passing operations to the kernel. The names come from fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Ioengine {
    /// `pwritev2(2)` and `preadv2(2)` on the calling thread, one operation at a time.
    Psync,
    /// The same calls on a thread pool: the fallback if io_uring is refused.
    Threads,
    /// `io_uring(7)`, with the newest set-up flags that the kernel supports.
    #[default]
    IoUring,
    /// Copies between the buffers and a mapping of the file (`mmap(2)`), on the calling thread, one
    /// operation at a time. Uses the page cache without system calls. If another process truncates
    /// the file, SIGBUS kills this process.
    Mmap,
}

impl Ioengine {
    /// Returns the name used in results: `psync`, `threads`, `io_uring` or `mmap`.
    pub fn as_str(self) -> &'static str {
        match self {
            Ioengine::Psync => "psync",
            Ioengine::Threads => "threads",
            Ioengine::IoUring => "io_uring",
            Ioengine::Mmap => "mmap",
        }
    }
}

/// The threads that may call an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Only the thread that created the engine. Its ring can assume a single caller
    /// (`IORING_SETUP_SINGLE_ISSUER`).
    One,
    /// Any thread, one at a time.
    Any,
    /// Any thread, one at a time. In addition, any thread may hold the engine's buffers at any
    /// time, and one thread may wait for the kernel while another calls the engine.
    Shared,
}

/// Options of an engine, as a builder. [`super::Effective`] contains the settings in effect.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) ioengine: Ioengine,
    pub(crate) iodepth: u32,
    pub(crate) buffer_bytes: usize,
    pub(crate) buffers: u32,
    pub(crate) registered_buffers: bool,
    pub(crate) registered_files: bool,
    pub(crate) sqpoll: Option<Sqpoll>,
    pub(crate) iopoll: bool,
    /// Whether, with [`Ioengine::Threads`], the calling thread does reads and writes itself and the
    /// pool does the rest.
    pub(crate) transfers_itself: bool,
}

impl Options {
    /// The maximum number of files that an engine can have open at once. The kernel allows fewer if
    /// `RLIMIT_NOFILE` is lower (`getrlimit(2)`).
    pub const FILES_MAX: u32 = 1 << 20;
    /// The maximum number of files registered with a ring at once. Further files are used by
    /// descriptor, which is recorded as a fallback.
    pub const REGISTERED_FILES_MAX: u32 = 64;
    /// The maximum `iodepth`. Higher values are reduced to it.
    pub const IODEPTH_MAX: u32 = 4096;

    /// Returns the fastest settings for up to `iodepth` operations in flight, with a buffer of
    /// `buffer_bytes` for each. [`Ioengine::Psync`] and [`Ioengine::Mmap`] have one operation in
    /// flight, and [`Ioengine::Threads`] up to 64.
    pub fn new(ioengine: Ioengine, iodepth: u32, buffer_bytes: usize) -> Options {
        Options {
            ioengine,
            iodepth,
            buffer_bytes,
            buffers: iodepth,
            registered_buffers: true,
            registered_files: true,
            sqpoll: None,
            iopoll: false,
            transfers_itself: false,
        }
    }

    /// Sets the number of buffers in the engine's pool. Buffers beyond `iodepth` can be filled
    /// while the others are in flight.
    pub fn buffers(self, buffers: u32) -> Options {
        Options { buffers, ..self }
    }

    /// Sets whether the pool is registered with the ring; true by default. The kernel then pins the
    /// pool's pages once instead of for each operation.
    pub fn registered_buffers(self, registered_buffers: bool) -> Options {
        Options { registered_buffers, ..self }
    }

    /// Sets whether open files are registered with the ring; true by default. The kernel then looks
    /// each file up once instead of for each operation.
    pub fn registered_files(self, registered_files: bool) -> Options {
        Options { registered_files, ..self }
    }

    /// Has a kernel thread poll the ring for operations (`IORING_SETUP_SQPOLL`,
    /// `io_uring_setup(2)`; for ordinary users since Linux 5.13), so that submitting needs no
    /// system call. The thread occupies a CPU. It sleeps after `idle_ms` milliseconds without work
    /// (0 selects the kernel's default of one second), and is bound to the CPU `cpu`, if given.
    ///
    /// Engines that are opened with these options, or with clones of them, share one thread
    /// (`IORING_SETUP_ATTACH_WQ`, Linux 5.6). A thread that serves several rings takes up to 8
    /// operations from each in turn (`io_uring/sqpoll.c`), which slows small transfers but not
    /// large ones.
    pub fn sqpoll(self, idle_ms: u32, cpu: Option<u32>) -> Options {
        Options { sqpoll: Some(Sqpoll::new(idle_ms, cpu)), ..self }
    }

    /// Has the kernel thread of `other` poll the ring, too, if `other` has one.
    pub fn sqpoll_of(self, other: &Options) -> Options {
        Options { sqpoll: other.sqpoll.clone(), ..self }
    }

    /// Copies the method, and the kernel features that it uses, from `other`.
    pub(crate) fn by_means_of(self, other: &Options) -> Options {
        let &Options { ioengine, registered_files, iopoll, transfers_itself, .. } = other;
        let sqpoll = other.sqpoll.clone();
        Options { ioengine, registered_files, iopoll, transfers_itself, sqpoll, ..self }
    }

    /// Sets whether completions are found by polling the device instead of by interrupts. Polling
    /// applies to reads and writes of direct files on a device with poll queues.
    pub fn iopoll(self, iopoll: bool) -> Options {
        Options { iopoll, ..self }
    }
}

/// Options of an engine's file, as a builder: `FileOptions::new().write(true)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileOptions {
    pub(crate) create_new: bool,
    pub(crate) create: bool,
    pub(crate) truncate: bool,
    pub(crate) mode: Option<u32>,
    pub(crate) write: bool,
    pub(crate) direct: bool,
    pub(crate) sync_metadata: bool,
    pub(crate) atomic: bool,
    pub(crate) dontcache: bool,
}

impl FileOptions {
    /// Returns the options for reading an existing file through the page cache.
    pub const fn new() -> FileOptions {
        FileOptions {
            create_new: false,
            create: false,
            truncate: false,
            mode: None,
            write: false,
            direct: false,
            sync_metadata: false,
            atomic: false,
            dontcache: false,
        }
    }

    /// Sets whether the file is created, with an error if the name exists (W7).
    pub const fn create_new(self, create_new: bool) -> FileOptions {
        FileOptions { create_new, ..self }
    }

    /// Sets whether the file is created if the name does not exist.
    pub const fn create(self, create: bool) -> FileOptions {
        FileOptions { create, ..self }
    }

    /// Sets whether the file is truncated when it is opened, which destroys its contents (W7).
    pub const fn truncate(self, truncate: bool) -> FileOptions {
        FileOptions { truncate, ..self }
    }

    /// Sets the permissions of a new file (`open(2)`), from which the umask is removed; 0o666 for
    /// `None`, the default.
    pub const fn mode(self, mode: Option<u32>) -> FileOptions {
        FileOptions { mode, ..self }
    }

    /// Sets whether writes are allowed. Reads are always allowed.
    pub const fn write(self, write: bool) -> FileOptions {
        FileOptions { write, ..self }
    }

    /// Sets whether transfers bypass the page cache (`O_DIRECT`, `open(2)`), if the file system
    /// supports that.
    pub const fn direct(self, direct: bool) -> FileOptions {
        FileOptions { direct, ..self }
    }

    /// Sets whether durable writes also make all of the file's metadata durable: `RWF_SYNC` instead
    /// of `RWF_DSYNC` (`pwritev2(2)`), like `O_SYNC` for a single write.
    pub const fn sync_metadata(self, sync_metadata: bool) -> FileOptions {
        FileOptions { sync_metadata, ..self }
    }

    /// Sets whether each write is atomic: after a power loss, it is either complete or absent
    /// (`RWF_ATOMIC`, `pwritev2(2)`; block devices since Linux 6.11, files since 6.13). Its length
    /// must be a power of two that divides its offset. If the file system or device does not
    /// support that, the write fails, because no slower method has the same effect.
    /// [`device::atomic_writes`](crate::device::atomic_writes) returns the possible lengths, or the
    /// reason why there are none.
    pub const fn atomic(self, atomic: bool) -> FileOptions {
        FileOptions { atomic, ..self }
    }

    /// Sets whether transferred bytes leave the page cache as soon as they are on the device:
    /// `RWF_DONTCACHE` (`pwritev2(2)`, Linux 6.14). Falls back to the ordinary page cache.
    pub const fn dontcache(self, dontcache: bool) -> FileOptions {
        FileOptions { dontcache, ..self }
    }
}

/// A fallback from a requested setting, with the kernel's reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fallback {
    /// The requested setting, such as `io_uring`, `registered buffers` or `O_DIRECT`.
    pub wanted: &'static str,
    /// The setting in effect, such as `threads`, `unregistered buffers` or `page cache`.
    pub got: &'static str,
    /// The call that failed, and the kernel's error.
    pub because: String,
}

impl Fallback {
    /// Returns the fallback from `wanted` to `got`.
    pub fn new(wanted: &'static str, got: &'static str, because: impl Into<String>) -> Fallback {
        Fallback { wanted, got, because: because.into() }
    }
}

/// An engine's settings in effect.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Effective {
    /// The method of passing operations to the kernel.
    pub ioengine: Ioengine,
    /// The maximum number of operations in flight.
    pub iodepth: u32,
    /// The highest number of operations that were in flight at once.
    pub iodepth_reached: u32,
    /// The ring's set-up flags that the kernel accepted, named as in `io_uring_setup(2)` without
    /// the prefix `IORING_SETUP_`.
    pub ring_flags: Vec<&'static str>,
    /// Whether the pool is registered with the ring.
    pub registered_buffers: bool,
    /// Whether open files are registered with the ring.
    pub registered_files: bool,
    /// Whether a kernel thread polls the ring for submissions.
    pub sqpoll: bool,
    /// Whether transfers of any file complete by polling the device.
    pub iopoll: bool,
    /// Whether the pool is in reserved huge pages (`MAP_HUGETLB`, `mmap(2)`).
    pub huge_pages: bool,
    /// All fallbacks, in order.
    pub fallbacks: Vec<Fallback>,
}

impl Effective {
    /// Records a fallback, unless it is already recorded.
    pub(crate) fn fell_back(&mut self, wanted: &'static str, got: &'static str, because: String) {
        let fallback = Fallback { wanted, got, because };
        if !self.fallbacks.contains(&fallback) {
            self.fallbacks.push(fallback);
        }
    }
}
