//! Jobs of steps: a program's transaction as its system calls, run by several clients.
//!
//! A [`crate::spec::JobSpec`] repeats one kind of operation, as fio does. A transaction of a
//! program is several: a journal is created, written, flushed and unlinked for one commit of
//! SQLite. [`Steps`] lists them, and [`Running`] makes them by plain calls, since the programs do.

mod calls;
mod group;
mod spec;
#[cfg(test)]
mod tests;

pub use calls::Counts;
pub use group::{Done, Running};
pub use spec::{Every, FileSpec, Full, Start, Step, Steps};
