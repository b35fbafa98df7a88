//! The shared memory used by claims: from the standard library, or a model checker.
//!
//! With `--cfg loom`, the crate `loom` runs a test with every possible order of its threads.

#[cfg(loom)]
pub(super) use loom::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(super) use std::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now,
};
