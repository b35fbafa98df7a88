//! `libwrote`: the library for C and C++. `wrote.h` is made from these files by cbindgen, so their
//! comments are a C programmer's documentation.

#![allow(clippy::missing_safety_doc, reason = "the header says what a caller promises")]

mod border;
mod error;
mod log;
mod log_reader;
mod options;
mod reader;
mod save;
mod ticket;
mod writer;

use std::ffi::{CStr, c_char};

/// Returns the version of the library, such as "0.1.0". Never freed. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn wrote_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}
