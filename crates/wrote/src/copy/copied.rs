//! The result of a copy.

use super::options::Method;
use crate::{Effective, Engine, Error, Fallback};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The result of a copy, of one file or of a folder with its contents.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Copied {
    /// Ordinary files that were copied. A stream counts as one.
    pub files: u64,
    /// Folders that were made.
    pub folders: u64,
    /// Symbolic links that were made.
    pub links: u64,
    /// Bytes of the files, holes included.
    pub bytes: u64,
    /// Each way that copied a file's bytes.
    pub methods: Vec<Method>,
    /// Whether the copies were read back and compared.
    pub verified: bool,
    /// The checksum (XXH3, 128 bits) of source and copy, where one file was copied and verified.
    pub checksum: Option<u128>,
    /// The first hundred pipes, sockets and devices of a folder, which are not copied.
    pub left_out: Vec<PathBuf>,
    /// The number of pipes, sockets and devices.
    pub left_out_count: u64,
    /// The first hundred errors about entries that could not be read, with
    /// [`CopyOptions::keep_going`](super::CopyOptions::keep_going).
    pub failed: Vec<Error>,
    /// The number of entries that could not be read.
    pub failed_count: u64,
    /// The time until the copy was as safe as requested.
    pub elapsed: Duration,
    /// The settings in effect.
    pub effective: Effective,
}

pub(super) struct Filled {
    pub bytes: u64,
    pub method: Method,
    /// The checksum of source and copy, if compared.
    pub checksum: Option<u128>,
    pub fallbacks: Vec<Fallback>,
}

impl Filled {
    /// Returns the bytes that went through the page cache to a stream, where no more is known.
    pub(super) fn into_stream(bytes: u64) -> Filled {
        Filled { bytes, method: Method::Cached, checksum: None, fallbacks: Vec::new() }
    }

    pub(super) fn copied(self, engine: &Engine, began: Instant) -> Copied {
        let Filled { bytes, method, checksum, mut fallbacks } = self;
        let mut effective = engine.effective().clone();
        effective.fallbacks.append(&mut fallbacks);
        Copied {
            files: 1,
            bytes,
            methods: vec![method],
            verified: checksum.is_some(),
            checksum,
            elapsed: began.elapsed(),
            effective,
            ..Copied::default()
        }
    }
}
