//! Writes to a disk as fast as the device allows, and states what each write survives.
//!
//! # Which API?
//!
//! | I want to | use |
//! |---|---|
//! | write a file from start to end: a faster `BufWriter<File>` | [`Writer`] |
//! | replace a file, so that a crash leaves the old or the new content | [`write`](fn@write) |
//! | replace it like that with a stream of content | [`Writer::replace`], [`Writer::finish`] |
//! | create a new file, complete and durable, and never replace one | [`write_new`] |
//! | save many files, and wait for the device only a few times in total | [`write_many`] |
//! | read a whole file | [`read`](fn@read) |
//! | read a file from start to end, by bytes or lines: a faster `BufReader<File>` | [`Reader`] |
//! | read and write files in tasks (with a feature) | `Reader::into_async`, `Writer::into_async` |
//! | copy files and streams | [`copy`](fn@copy), [`copy_in`], [`copy_out`] |
//! | read any bytes of a file and write its blocks, directly | [`file::DirectFile`] |
//! | do all of this by a method other than io_uring, or on a simulated disk | [`Disk`] |
//! | make writes durable by the fastest method for a folder | [`file::calibrate`] |
//! | transfer many blocks at full speed in my own loop (with a feature) | `engine::Engine` |
//! | append records from many threads, and know when each is durable | [`Log`] |
//! | read the records of a log, and follow it, blocking or awaited | [`LogReader`] |
//! | know what an acknowledged write survives | [`Survives`], [`device::Target::survives`] |
//! | know the file system, device and alignment below a path | [`device::examine`] |
//! | test that my code withstands a failing disk | [`Sim`] |
//!
//! # What a write survives
//!
//! An acknowledged write is not yet safe. [`Survives`] names how safe it is; `docs/durability.md`
//! contains the evidence for each file system:
//!
//! - a write through the page cache survives a process crash;
//! - a direct write over blocks that were written and flushed before survives a kernel crash; into
//!   new blocks, it is only as safe as a cached write;
//! - a write covered by `Engine::flush`, or queued as durable, survives a power loss.
//!
//! # After `fork(2)`
//!
//! A child process has copies of its parent's handles, but can't use them, because it has neither
//! their threads nor their rings. Every call on such a handle that can fail fails with
//! [`Error::Forked`], and dropping one does nothing: it waits for no thread, flushes nothing, and
//! takes no lock or file from the parent. A call that can't fail returns zero or nothing if it
//! would need a lock. A [`Writer`] accepts what fits into its buffer, and fails after that. The
//! child opens its own handles. This applies to forks through the C library, whose handlers report
//! it (`pthread_atfork(3)`), not to a raw `clone(2)`.
//!
//! # The rules
//!
//! The documentation refers to these rules by number:
//!
//! - **W1.** No write is called durable before the flush that covers it has returned success.
//! - **W2.** A failed flush poisons its file or log: every later call returns that error. The
//!   kernel may have marked the lost pages clean, so a second flush proves nothing.
//! - **W3.** Two writes are never in flight on the same block, and no block that holds acknowledged
//!   records is written again.
//! - **W4.** The engine handles short transfers, `EINTR` and `EAGAIN`: an operation either
//!   completes in full or fails.
//! - **W5.** A buffer in flight belongs to the engine until its completion. Dropping a future or a
//!   handle frees nothing that the kernel uses.
//! - **W6.** Both the requested and the effective settings are kept ([`Effective`]). No fallback is
//!   silent, and none is an error if a slower method works.
//! - **W7.** Nothing that exists is overwritten unless the caller asks for it. Block devices are
//!   never written.
//! - **W8.** Memory is bounded by settings, never by file size, records, producers or operations.
//! - **W9.** Each producer's records stay in order, and if a record is durable, so are all records
//!   before it.

#![cfg_attr(
    not(all(feature = "copy", feature = "engine", feature = "io-uring", feature = "log")),
    allow(dead_code, reason = "the modules of these features alone use it")
)]

#[cfg(not(target_os = "linux"))]
compile_error!("wrote runs on Linux: it writes by system calls that other systems lack");

#[cfg(all(
    feature = "io-uring",
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        target_arch = "loongarch64",
        target_arch = "powerpc64"
    ))
))]
compile_error!(
    "wrote has io_uring on x86_64, aarch64, riscv64, loongarch64 and powerpc64; for another \
     processor turn the default features off: threads then take its place"
);

#[cfg(feature = "tokio")]
mod asynchronous;
mod buffer;
#[cfg(feature = "copy")]
pub mod copy;
pub mod device;
pub mod engine;
pub mod error;
pub mod file;
mod fork;
#[cfg(feature = "log")]
mod lines;
#[cfg(feature = "log")]
pub mod log;
mod metadata;
#[cfg(any(feature = "copy", feature = "log"))]
mod progress;
mod read_ahead;
pub mod reader;
pub mod save;
mod staged;
pub mod sync;
pub mod writer;

#[cfg(feature = "copy")]
pub use copy::{CopyOptions, copy, copy_in, copy_out};
pub(crate) use engine::{Completion, Engine, Fallback, FileId};
pub use engine::{Effective, FileOptions, Ioengine, Sim};
pub use error::{Action, Error};
pub use file::Disk;
pub use file::cached::cached_bytes;
#[cfg(feature = "log")]
pub use lines::{Lines, LinesOptions};
#[cfg(feature = "log")]
pub use log::{Log, LogOptions, LogReader, Record, Ticket};
pub use reader::{Reader, ReaderOptions};
pub use save::{read, rename, sync_folder, write, write_many, write_new, write_unflushed};
pub use sync::{Survives, SyncPolicy};
pub use writer::{Method, Writer, WriterOptions, Written};
