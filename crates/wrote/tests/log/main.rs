//! Tests of logs. They have a program of their own, in which few processes are started: one that is
//! just starting holds copies of open files, and with them the lock of a log that was closed.

mod append;
mod full;
mod open;
mod read;
mod small_log;
