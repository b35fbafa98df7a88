//! `libwrote`: the library for C and C++. cbindgen generates `wrote.h` from these files, so their
//! comments are the documentation that C programmers read. This file is short because it only lists
//! the other files.

#![allow(clippy::missing_safety_doc, reason = "the header says what a caller promises")]

mod border;
mod error;
mod lines;
mod log;
mod reader;
mod writer;
