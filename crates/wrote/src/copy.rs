//! Copies of files, folders and streams in constant memory.
//!
//! A copy is made under a temporary name in the same folder. It gets its final name once it is
//! complete and as safe as requested: other processes find the old file, or the whole copy.

mod checksum;
mod copied;
mod extents;
mod file;
mod filler;
mod options;
mod pipe;
mod place;
mod server;
mod source;
mod stdio;
mod stream;
mod tree;

pub use copied::Copied;
pub use file::copy;
pub use options::{CopyOptions, Method, Reflink};
pub use stdio::{copy_in, copy_out};
pub use tree::{FOLDERS_DEEP_MAX, copy_tree};
