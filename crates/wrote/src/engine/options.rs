//! What is asked of an engine, and of a file that it opens.

use super::Sqpoll;

/// How operations reach the kernel, in fio's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Ioengine {
    /// `pwritev2(2)` and `preadv2(2)` on the caller's own thread, one operation at a time.
    Psync,
    /// The same calls on a pool of threads: what is used where io_uring may not be.
    Threads,
    /// `io_uring(7)`, with the newest set-up flags that the kernel takes.
    #[default]
    IoUring,
    /// Copies between the buffers and a mapping of the file (`mmap(2)`), on the caller's own thread,
    /// one at a time: what the page cache costs without a system call. A file that someone else makes
    /// shorter meanwhile ends the process with SIGBUS.
    Mmap,
}

impl Ioengine {
    /// The name in results: `psync`, `threads`, `io_uring`, `mmap`.
    pub fn as_str(self) -> &'static str {
        match self {
            Ioengine::Psync => "psync",
            Ioengine::Threads => "threads",
            Ioengine::IoUring => "io_uring",
            Ioengine::Mmap => "mmap",
        }
    }
}

/// Which threads call an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// The one that made it: a ring then needs no care for others (`IORING_SETUP_SINGLE_ISSUER`).
    One,
    /// Any, one at a time.
    Any,
}

/// What is asked of an engine. What is got is in [`super::Effective`].
#[derive(Clone, Debug)]
pub struct Options {
    /// How operations reach the kernel.
    pub ioengine: Ioengine,
    /// The most operations in flight at once. [`Ioengine::Psync`] has one and [`Ioengine::Threads`]
    /// at most 64, whatever is asked.
    pub iodepth: u32,
    /// Bytes of one buffer of the engine's pool.
    pub buffer_bytes: usize,
    /// Buffers in the pool. Those beyond `iodepth` can be filled while the others are in flight.
    pub buffers: u32,
    /// Register the pool with the ring, so that the kernel does not pin its pages for each
    /// operation.
    pub registered_buffers: bool,
    /// Register open files with the ring, so that the kernel does not look them up for each
    /// operation.
    pub registered_files: bool,
    /// Have a thread of the kernel's take operations from the ring, so that handing them on needs no
    /// system call. It spends a CPU.
    pub sqpoll: Option<Sqpoll>,
    /// Find completions by asking the device instead of by its interrupts, for reads and writes of
    /// direct files on a device that has poll queues.
    pub iopoll: bool,
}

impl Options {
    /// The most files that an engine has open at once.
    pub const FILES_MAX: u32 = 64;
    /// The greatest `iodepth`; more is cut to it.
    pub const IODEPTH_MAX: u32 = 4096;

    /// An engine with everything that makes it fast, and a buffer for each operation in flight.
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
        }
    }
}

/// What is asked of a file that an engine opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileOptions {
    /// Make the file; it is an error if the name is there already (W7).
    pub create_new: bool,
    /// Make the file where there is none of the name.
    pub create: bool,
    /// Cut the file to nothing when it is opened: whoever says so wants it overwritten (W7).
    pub truncate: bool,
    /// The permissions of a file that is made (`open(2)`), less the umask; 0o666 where not said.
    pub mode: Option<u32>,
    /// Allow writes. Reads are always allowed.
    pub write: bool,
    /// Bypass the page cache (`O_DIRECT`, `open(2)`), where the file system can.
    pub direct: bool,
    /// Durable writes bring all of the file's metadata to stable storage too: `RWF_SYNC` in place of
    /// `RWF_DSYNC` (`pwritev2(2)`), which is what `O_SYNC` does for a whole file.
    pub sync_metadata: bool,
    /// Each write is there whole or not at all after a power loss: `RWF_ATOMIC` (`pwritev2(2)`,
    /// Linux 6.11, for files 6.13). A file system or device without it is an error of the write, as
    /// nothing slower gives the same.
    pub atomic: bool,
    /// Drop what was transferred from the page cache as soon as it is on the device:
    /// `RWF_DONTCACHE` (`pwritev2(2)`, Linux 6.14). Falls back to the page cache as it is.
    pub dontcache: bool,
}
