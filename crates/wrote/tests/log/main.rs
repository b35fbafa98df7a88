//! Tests of logs. They are a separate program that starts few processes, because a process that is
//! being started holds copies of open files, including the lock of a closed log.

mod append;
mod awaited;
mod follow;
mod full;
mod open;
mod read;
mod recycled;
mod rescue;
mod sealed;
mod small_log;
mod stream;
mod thread;
mod wal;
