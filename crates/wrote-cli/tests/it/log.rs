//! `wrote log`: records on standard output, one line for an error, and no command changes the log
//! unless its help documents it.

mod append;
mod cat;
mod place;
mod plain;
mod stat;
mod tail;
mod verify;
