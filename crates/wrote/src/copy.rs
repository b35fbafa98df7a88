//! Copies of files and streams in constant memory.
//!
//! A copy is made under a temporary name in the same folder. It gets its final name once it is
//! complete and as safe as requested: other processes find the old file, or the whole copy. This
//! door only names the rooms.

mod ends;
mod file;
mod options;
mod pieces;
mod streams;

pub use file::copy;
pub use options::CopyOptions;
pub use streams::{copy_in, copy_out};
