//! Pieces of work on files and logs, each done by one method and timed.

#![forbid(unsafe_code)]

pub mod append;
pub mod bytes;
pub mod clock;
pub mod data;
pub mod lines;
pub mod load;
pub mod log;
pub mod many;
pub mod outcome;
pub mod place;
pub mod reader;
pub mod save;
pub mod stream;

use std::error::Error;

/// A result whose error is a single line.
pub type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;
