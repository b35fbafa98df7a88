//! `wrote log`: records on standard output, one line for an error, and only commands that say so
//! change the log.

mod append;
mod cat;
mod place;
mod stat;
mod tail;
mod verify;
