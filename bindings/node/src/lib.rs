//! The native part of the npm package. `lib/` makes promises, streams and errors of Node.js from
//! it.

// A test exports nothing to Node.js, and so uses nothing. The package's tests are in `test/`.
#![cfg_attr(test, allow(dead_code))]

mod bell;
mod error;
mod log;
mod options;
mod records;
mod save;
mod work;
mod writer;

use napi_derive::napi;

/// Returns the version of the library.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
