//! The common path to the disk: queue an operation on a leased buffer, submit it, reap its
//! completion.
//!
//! An [`Engine`] uses the best method that works, and records each fallback, with the kernel's
//! reason, in [`Effective`] (W6):
//!
//! | method | description | when |
//! |---|---|---|
//! | polled pair | a ring that polls for completions, and a plain ring | requested, and possible |
//! | sqpoll | a kernel thread takes operations from the rings of several engines | requested |
//! | io_uring | the newest set-up flags, registered files and buffers | requested, and allowed |
//! | threads | `pwritev2(2)` and `preadv2(2)` on a small pool | io_uring is absent or forbidden |
//! | psync | the same calls on the caller's thread, one at a time | requested |
//! | mmap | copies to and from a mapping of the file, one at a time | requested |
//!
//! With every method, an operation either completes in full or fails: the engine handles short
//! transfers, `EINTR` and `EAGAIN` (W4). A failed flush poisons its file permanently (W2). A buffer
//! in flight belongs to the engine, and dropping the engine waits for it (W5). [`Sim`] is a disk
//! that fails on demand, to test all of this and the code that uses it.
//!
//! Only one thread at a time may use an engine, which has no locks inside. This module only joins
//! its submodules.

mod backend;
mod execute;
mod files;
mod judge;
mod mmap;
mod names;
mod op;
mod open_file;
mod options;
#[cfg(feature = "io-uring")]
mod ring;
mod sim;
mod slots;
mod sqpoll;
mod system;
mod threads;
#[cfg(feature = "io-uring")]
mod uring;
mod wait;

#[cfg(feature = "log")]
pub(crate) use names::{Folder, open_within};
pub(crate) use names::{Found, Located, exchange, folder_of};
pub(crate) use options::Callers;
pub use options::{Effective, Fallback, FileOptions, Ioengine, Options};
pub use sim::{Fault, Sim};
pub(crate) use system::System;
pub(crate) use wait::Wait;

#[cfg(feature = "engine")]
pub use {
    crate::buffer::Buffer,
    execute::Engine,
    op::{Completion, FileId, Op},
};
#[cfg(not(feature = "engine"))]
pub(crate) use {
    execute::Engine,
    op::{Completion, FileId, Op},
};
