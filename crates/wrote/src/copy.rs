//! One file to another in constant memory.
//!
//! The copy is made beside its place under another name, and takes the place when it is whole and as
//! safe as was asked: whoever looks finds what was there before, or all of the copy.

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

/// How the bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Blocks are shared: nothing was moved.
    Reflink,
    /// The file system's server moved them (`copy_file_range(2)`).
    CopyFileRange,
    /// Read, and written past the page cache.
    Direct,
    /// Read, and written through the page cache: a short file, or one where the file system takes no
    /// direct transfers.
    Cached,
}

/// What a copy was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Copied {
    /// The file's length.
    pub bytes: u64,
    /// How the bytes went.
    pub method: Method,
    /// Until the copy was as safe as asked.
    pub elapsed: Duration,
    /// The checksum (XXH3, 128 bits) of source and copy, where it was compared.
    pub checksum: Option<u128>,
    /// What was in effect.
    pub effective: Effective,
}

/// Copies the ordinary file `from` to `to`, where it appears when it is whole.
///
/// Symbolic links are followed on both sides. Permissions, times and extended attributes are those of
/// the source; holes stay holes. What the source grows by meanwhile is not copied.
///
/// ```
/// use std::ops::ControlFlow;
/// use wrote::CopyOptions;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("wrote-doc-copy-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let (from, to) = (folder.join("from"), folder.join("to"));
/// # std::fs::write(&from, b"precious")?;
/// let options = CopyOptions { verify: true, ..CopyOptions::default() };
/// let copied = wrote::copy(&from, &to, &options, &mut |progress| {
///     println!("{} bytes", progress.bytes_done);
///     ControlFlow::Continue(()) // or Break, and nothing is left of the copy
/// })?;
/// assert_eq!(copied.bytes, 8); // and the copy survives a power loss
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// What was at `to` is then as it was, unless only the flush of its folder failed, the last step.
///
/// - [`Error::Refused`]: `from` is no ordinary file, `to` is a folder, a device or the same file, or
///   blocks can't be shared and [`Reflink::Always`] was asked;
/// - [`Error::File`] with the kernel's words: `ENOENT`, `EEXIST` where there is a file and `replace`
///   was not asked, `ENOSPC`;
/// - [`Error::Differs`]: the source became shorter, or the copy was read back otherwise;
/// - [`Error::Interrupted`]: `watch` asked to stop.
pub fn copy(from: &Path, to: &Path, options: &CopyOptions, watch: Watch) -> Result<Copied, Error> {
    let engine_options = engine_options(len_hint(from), options);
    copy_through(&mut Engine::open(&engine_options)?, from, to, options, watch)
}

/// As [`copy`], through an engine of the caller's, of which nothing is outstanding: copies of many
/// files then share what it costs to make one, and a copy can be tried on a [`crate::Sim`].
///
/// Memory and depth are the engine's, whatever `options` says of `iodepth`; a transfer is no longer
/// than the engine's buffers, which hold a page at least.
///
/// # Errors
///
/// Those of [`copy`].
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

/// How the engine has written the file, as far as is known now.
fn transferred(engine: &Engine, file: FileId) -> Method {
    if engine.is_direct(file) { Method::Direct } else { Method::Cached }
}
