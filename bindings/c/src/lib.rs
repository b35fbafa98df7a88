//! `libwrote`: the library for C and C++. `wrote.h` is made from these files by cbindgen, so their
//! comments are a C programmer's documentation. This room is short, since it only lists the others.

#![allow(clippy::missing_safety_doc, reason = "the header says what a caller promises")]

mod border;
mod error;
mod lines;
mod log;
mod reader;
mod writer;
