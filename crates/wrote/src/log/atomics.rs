//! The shared memory that claims are made of: the standard library's, or that of a model checker.
//!
//! With `--cfg loom` the crate `loom` stands in, and runs a test in every order in which its
//! threads might come to each other.

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
