//! Copies of files, folders and streams in constant memory.
//!
//! The copy is made under a temporary name beside its place. It takes the place when it is whole
//! and as safe as requested: other processes find the old file, or all of the copy.

mod allocate;
mod checksum;
mod extents;
mod make;
mod options;
mod place;
mod progress;
mod server;
mod source;
mod stdio;
mod stream;
mod tree;

pub use options::{CopyOptions, Reflink};
pub use progress::{CopyProgress, Watch};
pub use stdio::{copy_in, copy_in_through, copy_out};
pub use tree::{FOLDERS_DEEP_MAX, TreeCopied, copy_tree, copy_tree_through};

use crate::{Effective, Engine, Error, FileId};
use make::CopyOutcome;
use options::{engine_options, len_hint};
use source::Source;
use std::path::Path;
use std::time::{Duration, Instant};

/// The way by which the bytes were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Blocks are shared: no bytes were moved.
    Reflink,
    /// The file system's server moved them (`copy_file_range(2)`).
    CopyFileRange,
    /// Read, and written past the page cache.
    Direct,
    /// Read, and written through the page cache: for a short file, or where the file system takes
    /// no direct transfers.
    Cached,
}

/// The result of a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Copied {
    /// The file's length.
    pub bytes: u64,
    /// The way by which the bytes were copied.
    pub method: Method,
    /// The time until the copy was as safe as requested.
    pub elapsed: Duration,
    /// The checksum (XXH3, 128 bits) of source and copy, if they were compared.
    pub checksum: Option<u128>,
    /// The settings in effect.
    pub effective: Effective,
}

/// Copies the ordinary file `from` to `to`, where it appears when it is whole.
///
/// Symbolic links are followed on both sides. The copy gets the permissions, times and extended
/// attributes of the source; holes stay holes. Bytes that are appended to the source meanwhile are
/// not copied.
///
/// ```
/// use std::ops::ControlFlow;
/// use wrote::CopyOptions;
///
/// # let folder = tempfile::tempdir()?;
/// # let (from, to) = (folder.path().join("from"), folder.path().join("to"));
/// # std::fs::write(&from, b"precious")?;
/// let options = CopyOptions { verify: true, ..CopyOptions::default() };
/// let copied = wrote::copy(&from, &to, &options, &mut |progress| {
///     println!("{} bytes", progress.bytes_done);
///     ControlFlow::Continue(()) // or Break, and nothing is left of the copy
/// })?;
/// assert_eq!(copied.bytes, 8); // and the copy survives a power loss
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// A file at `to` is then unchanged, unless only the last step failed, the flush of its folder.
///
/// - [`Error::Refused`]: `from` is no ordinary file, `to` is a folder, a device or the same file,
///   or blocks can't be shared with [`Reflink::Always`];
/// - [`Error::File`] with the kernel's words: `ENOENT`, `ENOSPC`, `EEXIST` for an existing file
///   without `replace`;
/// - [`Error::Differs`]: the source became shorter, or the copy was read back otherwise;
/// - [`Error::Interrupted`]: `watch` asked to stop.
pub fn copy(from: &Path, to: &Path, options: &CopyOptions, watch: Watch) -> Result<Copied, Error> {
    let engine_options = engine_options(len_hint(from), options);
    copy_through(&mut Engine::open(&engine_options)?, from, to, options, watch)
}

/// As [`copy`], through an engine of the caller's with nothing outstanding. One engine serves
/// copies of many files, and can be that of a [`crate::Sim`].
///
/// Memory and depth are the engine's, not those of `options`. A transfer is no longer than the
/// engine's buffers, which hold a page at least.
pub fn copy_through(
    engine: &mut Engine,
    from: &Path,
    to: &Path,
    options: &CopyOptions,
    watch: Watch,
) -> Result<Copied, Error> {
    let started = Instant::now();
    let source = Source::open(engine, from, options.bs_bytes)?;
    let made = make::make(engine, &source, to, options, watch);
    let bytes = source.len;
    let closed = engine.close_file(source.file);
    let CopyOutcome { method, checksum, mut fallbacks } = made?;
    closed?;
    let mut effective = engine.effective().clone();
    effective.fallbacks.append(&mut fallbacks);
    Ok(Copied { bytes, method, elapsed: started.elapsed(), checksum, effective })
}

/// Returns how the engine has written the file, as far as is known now.
fn transferred(engine: &Engine, file: FileId) -> Method {
    if engine.is_direct(file) { Method::Direct } else { Method::Cached }
}
