//! The result of a copy.

use super::options::Method;
use crate::{Effective, Engine, Fallback};
use std::time::{Duration, Instant};

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

/// The file of a copy that has all its bytes.
pub(super) struct Filled {
    pub bytes: u64,
    pub method: Method,
    /// Of source and copy, if they were compared.
    pub checksum: Option<u128>,
    pub fallbacks: Vec<Fallback>,
}

impl Filled {
    pub(super) fn copied(self, engine: &Engine, began: Instant) -> Copied {
        let Filled { bytes, method, checksum, mut fallbacks } = self;
        let mut effective = engine.effective().clone();
        effective.fallbacks.append(&mut fallbacks);
        Copied { bytes, method, elapsed: began.elapsed(), checksum, effective }
    }
}
