//! Options of an engine and of its files, and those in effect: no fallback is silent (W6).

use super::sqpoll::Sqpoll;

/// How operations reach the kernel, in fio's terms.
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
    /// at a time: the page cache without system calls. If another process truncates the file,
    /// SIGBUS ends this one.
    Mmap,
}

impl Ioengine {
    /// Returns the name in results: `psync`, `threads`, `io_uring`, `mmap`.
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
    /// Only the thread that created it: its ring can assume one caller
    /// (`IORING_SETUP_SINGLE_ISSUER`).
    One,
    /// Any thread, one at a time.
    Any,
    /// Any thread, one at a time. Its buffers may be on any thread at any time, and one thread may
    /// wait for the kernel while another calls the engine.
    Shared,
}

/// Options of an engine, as a builder. [`super::Effective`] has those in effect.
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
    /// Whether the calling thread reads and writes itself, where the method is threads: these do
    /// the rest.
    pub(crate) transfers_itself: bool,
}

impl Options {
    /// The maximum number of files that an engine has open at once. The kernel allows fewer if
    /// `RLIMIT_NOFILE` is lower (`getrlimit(2)`).
    pub const FILES_MAX: u32 = 1 << 20;
    /// The maximum number of files registered with a ring at once. Later ones are used by
    /// descriptor, which is recorded as a fallback.
    pub const REGISTERED_FILES_MAX: u32 = 64;
    /// The maximum `iodepth`; a greater one is reduced to it.
    pub const IODEPTH_MAX: u32 = 4096;

    /// Returns the fastest settings for at most `iodepth` operations in flight, with a buffer of
    /// `buffer_bytes` for each. [`Ioengine::Psync`] and [`Ioengine::Mmap`] have one operation in
    /// flight, and [`Ioengine::Threads`] at most 64.
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

    /// Sets the number of buffers in the engine's pool. Those beyond `iodepth` can be filled while
    /// the others are in flight.
    pub fn buffers(self, buffers: u32) -> Options {
        Options { buffers, ..self }
    }

    /// Sets whether the pool is registered with the ring; true by default. The kernel then pins its
    /// pages once instead of for each operation.
    pub fn registered_buffers(self, registered_buffers: bool) -> Options {
        Options { registered_buffers, ..self }
    }

    /// Sets whether open files are registered with the ring; true by default. The kernel then looks
    /// them up once instead of for each operation.
    pub fn registered_files(self, registered_files: bool) -> Options {
        Options { registered_files, ..self }
    }

    /// Makes a kernel thread poll the ring for operations (`IORING_SETUP_SQPOLL`,
    /// `io_uring_setup(2)`; for ordinary users since Linux 5.13): submitting then needs no system
    /// call. The thread occupies a CPU. It sleeps after `idle_ms` without work (0 is the kernel's
    /// default of a second), and is bound to `cpu` if given.
    ///
    /// Engines opened with these options or clones of them share one thread
    /// (`IORING_SETUP_ATTACH_WQ`, Linux 5.6). A thread of several rings takes at most 8 operations
    /// of each in turn (`io_uring/sqpoll.c`), which slows small transfers but not large ones.
    pub fn sqpoll(self, idle_ms: u32, cpu: Option<u32>) -> Options {
        Options { sqpoll: Some(Sqpoll::new(idle_ms, cpu)), ..self }
    }

    /// Has the kernel thread of `other` options take operations from the ring, if they have one.
    pub fn sqpoll_of(self, other: &Options) -> Options {
        Options { sqpoll: other.sqpoll.clone(), ..self }
    }

    /// Takes the method, and the features that the kernel provides by itself, from `other` options.
    pub(crate) fn by_means_of(self, other: &Options) -> Options {
        let &Options { ioengine, registered_files, iopoll, transfers_itself, .. } = other;
        let sqpoll = other.sqpoll.clone();
        Options { ioengine, registered_files, iopoll, transfers_itself, sqpoll, ..self }
    }

    /// Sets whether completions are found by polling the device instead of by interrupts, for reads
    /// and writes of direct files on a device with poll queues.
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

    /// Sets whether the file is created, and an existing name is an error (W7).
    pub const fn create_new(self, create_new: bool) -> FileOptions {
        FileOptions { create_new, ..self }
    }

    /// Sets whether the file is created if the name does not exist.
    pub const fn create(self, create: bool) -> FileOptions {
        FileOptions { create, ..self }
    }

    /// Sets whether the file is truncated on open, which overwrites it (W7).
    pub const fn truncate(self, truncate: bool) -> FileOptions {
        FileOptions { truncate, ..self }
    }

    /// Sets the permissions of a new file (`open(2)`), minus the umask; 0o666 by default.
    pub const fn mode(self, mode: Option<u32>) -> FileOptions {
        FileOptions { mode, ..self }
    }

    /// Sets whether writes are allowed. Reads are always allowed.
    pub const fn write(self, write: bool) -> FileOptions {
        FileOptions { write, ..self }
    }

    /// Sets whether transfers bypass the page cache (`O_DIRECT`, `open(2)`), if the file system
    /// can.
    pub const fn direct(self, direct: bool) -> FileOptions {
        FileOptions { direct, ..self }
    }

    /// Sets whether durable writes also make all of the file's metadata durable: `RWF_SYNC` instead
    /// of `RWF_DSYNC` (`pwritev2(2)`), which is `O_SYNC` for one write.
    pub const fn sync_metadata(self, sync_metadata: bool) -> FileOptions {
        FileOptions { sync_metadata, ..self }
    }

    /// Sets whether power loss leaves each write complete or not done: `RWF_ATOMIC` (`pwritev2(2)`,
    /// Linux 6.11, for files 6.13), whose length is a power of two that divides its offset. Without
    /// support of file system and device the write fails, because no slower way gives the same;
    /// [`device::atomic_writes`](crate::device::atomic_writes) tells the lengths, or the reason.
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
    /// The requested setting: `io_uring`, `registered buffers`, `O_DIRECT`.
    pub wanted: &'static str,
    /// The setting in effect: `threads`, `unregistered buffers`, `page cache`.
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
    /// How operations reach the kernel.
    pub ioengine: Ioengine,
    /// The maximum number of operations in flight at once.
    pub iodepth: u32,
    /// The maximum number of operations that were queued and not yet reaped.
    pub iodepth_reached: u32,
    /// The ring's set-up flags accepted by the kernel, named as in `io_uring_setup(2)` without the
    /// prefix `IORING_SETUP_`.
    pub ring_flags: Vec<&'static str>,
    /// Whether the pool is registered with the ring.
    pub registered_buffers: bool,
    /// Whether open files are registered with the ring.
    pub registered_files: bool,
    /// Whether a kernel thread polls the ring for submissions.
    pub sqpoll: bool,
    /// Whether any file's transfers complete by polling the device.
    pub iopoll: bool,
    /// Whether the pool lies in reserved huge pages (`MAP_HUGETLB`, `mmap(2)`).
    pub huge_pages: bool,
    /// Each fallback, in order.
    pub fallbacks: Vec<Fallback>,
}

impl Effective {
    /// Records a fallback, once.
    pub(crate) fn fell_back(&mut self, wanted: &'static str, got: &'static str, because: String) {
        let fallback = Fallback { wanted, got, because };
        if !self.fallbacks.contains(&fallback) {
            self.fallbacks.push(fallback);
        }
    }
}
