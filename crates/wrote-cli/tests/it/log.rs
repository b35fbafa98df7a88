//! Tests of `wrote log`: records on standard output, one line for an error, and no command that
//! changes the log unless its help says so.

mod append;
mod cat;
mod place;
mod plain;
mod stat;
mod tail;
mod verify;
