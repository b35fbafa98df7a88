//! Tests of logs. They have a program of their own, which starts few processes: a process that is
//! just starting holds copies of open files, and so the lock of a closed log.

mod append;
mod awaited;
mod follow;
mod full;
mod held;
mod open;
mod read;
mod recycled;
mod rescue;
mod small_log;
mod stream;
mod thread;
mod wal;
