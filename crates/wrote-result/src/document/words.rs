//! The keys of a document with a fixed set of values.

use crate::words::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

/// The state of a file after a crash in the middle of a save, or before the save is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrashLeaves {
    /// All of the old text (or no file), or all of the new one.
    OldOrNew,
    /// Some of both.
    Torn,
    /// Nothing of either, or a part of the new one.
    Empty,
    /// All of the old text, followed by a part of the new one.
    OldAndPart,
}

/// Whether a power loss in the middle of a page's write may leave some of the old page and some of
/// the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Torn {
    /// It may: nothing promises more than whole sectors.
    Possible,
    /// Never: by the way of writing, or by the kernel's promise (`RWF_ATOMIC`).
    Never,
}

/// The state of a file's blocks when the clock starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blocks {
    /// The file is new and grows.
    New,
    /// Allocated by `fallocate(2)`, and not written.
    Allocated,
    /// Written and flushed before.
    Written,
    /// For reads: some blocks may never have been written.
    #[default]
    Unknown,
}

/// The cache state of a source that is read while the clock runs; the later, the faster to read.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SourceCache {
    /// The page cache holds none of it.
    Dropped,
    /// The page cache holds it.
    Warm,
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the file.
    Read,
    /// To the file.
    #[default]
    Write,
}

/// The arrivals of operations under a rate (fio's `rate_process`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// At even intervals.
    #[default]
    Linear,
    /// At random intervals, like independent requests: a Poisson process.
    Poisson,
}

/// The interface to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ioengine {
    /// `pwrite(2)` and `pread(2)`, one at a time.
    #[default]
    Psync,
    /// A ring of `io_uring(7)`.
    IoUring,
    /// Memory that is mapped.
    Mmap,
    /// A pool of threads, where io_uring is not available.
    Threads,
    /// An engine of fio's.
    #[serde(untagged)]
    Other(String),
}

/// The moments at which a job flushes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr,
)]
pub enum Flush {
    /// Never.
    #[default]
    None,
    /// By `fdatasync(2)` when all is written.
    FdatasyncAtEnd,
    /// By `fsync(2)` when all is written.
    FsyncAtEnd,
    /// By `fdatasync(2)` after each write.
    FdatasyncEach,
    /// By `fsync(2)` after each write.
    FsyncEach,
    /// With each write: `O_DSYNC`, or `RWF_DSYNC` (`pwritev2(2)`).
    ODsyncEach,
    /// With each write, and with all metadata: `O_SYNC`.
    OSyncEach,
    /// By `fdatasync(2)` after each group of this many writes.
    FdatasyncEvery(u32),
    /// By `fsync(2)` after each group of this many writes.
    FsyncEvery(u32),
    /// Before a log acknowledges a message.
    Always,
    /// Once a second, by a log.
    Everysec,
}

/// The words of all flushes but those after a group of writes.
const FLUSHES: [(Flush, &str); 9] = [
    (Flush::None, "none"),
    (Flush::FdatasyncAtEnd, "fdatasync-at-end"),
    (Flush::FsyncAtEnd, "fsync-at-end"),
    (Flush::FdatasyncEach, "fdatasync-each"),
    (Flush::FsyncEach, "fsync-each"),
    (Flush::ODsyncEach, "o_dsync-each"),
    (Flush::OSyncEach, "o_sync-each"),
    (Flush::Always, "always"),
    (Flush::Everysec, "everysec"),
];

impl Flush {
    /// Returns the flush by `fsync(2)` after each group of `writes` writes.
    pub fn fsync_after(writes: u32) -> Flush {
        if writes == 1 { Flush::FsyncEach } else { Flush::FsyncEvery(writes) }
    }

    /// Returns the flush by `fdatasync(2)` after each group of `writes` writes.
    pub fn fdatasync_after(writes: u32) -> Flush {
        if writes == 1 { Flush::FdatasyncEach } else { Flush::FdatasyncEvery(writes) }
    }

    /// Returns whether each write is flushed before the next begins.
    pub fn is_each(self) -> bool {
        use Flush::{FdatasyncEach, FsyncEach, ODsyncEach, OSyncEach};
        matches!(self, FdatasyncEach | FsyncEach | ODsyncEach | OSyncEach)
    }

    /// Returns whether flushes come between writes, as separate calls.
    pub fn is_between(self) -> bool {
        use Flush::{FdatasyncEach, FdatasyncEvery, FsyncEach, FsyncEvery};
        matches!(self, FdatasyncEach | FsyncEach | FdatasyncEvery(_) | FsyncEvery(_))
    }

    /// Returns whether a run flushes at most once.
    pub fn is_seldom(self) -> bool {
        matches!(self, Flush::None | Flush::FdatasyncAtEnd | Flush::FsyncAtEnd)
    }
}

impl fmt::Display for Flush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flush::FdatasyncEvery(writes) => write!(f, "fdatasync-every-{writes}"),
            Flush::FsyncEvery(writes) => write!(f, "fsync-every-{writes}"),
            other => {
                let known = FLUSHES.iter().find(|(flush, _)| flush == other);
                f.write_str(known.expect("every other flush has a word").1)
            }
        }
    }
}

impl FromStr for Flush {
    type Err = String;

    fn from_str(word: &str) -> Result<Flush, String> {
        let every = |prefix| word.strip_prefix(prefix)?.parse().ok();
        let known = FLUSHES.iter().find(|(_, known)| *known == word);
        known
            .map(|(flush, _)| *flush)
            .or_else(|| every("fdatasync-every-").map(Flush::FdatasyncEvery))
            .or_else(|| every("fsync-every-").map(Flush::FsyncEvery))
            .ok_or_else(|| format!("unknown flush {word:?}"))
    }
}

impl From<wrote::Ioengine> for Ioengine {
    fn from(ioengine: wrote::Ioengine) -> Ioengine {
        ioengine.as_str().into()
    }
}

impl From<&str> for Ioengine {
    fn from(word: &str) -> Ioengine {
        word.parse().unwrap_or_else(|_| Ioengine::Other(word.into()))
    }
}

word!(CrashLeaves, Torn, Blocks, SourceCache, Ioengine, Process, Direction);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_printed_as_it_is_parsed() {
        for word in ["psync", "io_uring", "mmap", "threads", "libaio"] {
            assert_eq!(Ioengine::from(word).to_string(), word);
        }
        assert_eq!(Ioengine::from("libaio"), Ioengine::Other("libaio".into()));
        for word in ["none", "fsync-at-end", "o_dsync-each", "fdatasync-every-8", "always"] {
            assert_eq!(word.parse::<Flush>().unwrap().to_string(), word);
        }
        assert!("sometimes".parse::<Flush>().is_err());
    }

    #[test]
    fn an_engine_of_fios_stays_as_it_is_called() {
        let engine: Ioengine = serde_json::from_str("\"libaio\"").unwrap();
        assert_eq!(serde_json::to_string(&engine).unwrap(), "\"libaio\"");
    }
}

/// The worst event that the bytes of an acknowledged write survive: the words of
/// [`Survives`](super::Survives) in documents.
///
/// Ordered from the weakest to the strongest, so `a >= b` reads "survives at least b".
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Survives")]
#[expect(dead_code, reason = "it is the schema, and values are read and written by their words")]
pub(crate) enum SurvivesWord {
    /// The bytes are in the program's own memory: a buffer that was not flushed.
    Nothing,
    /// The bytes are in the kernel's page cache, or only the kernel's memory has the map to them.
    /// They survive a process crash, but not a kernel crash.
    ProcessCrash,
    /// The bytes are on the device, perhaps in its volatile cache. They survive a kernel crash, but
    /// not power loss.
    OsCrash,
    /// The bytes, and everything needed to find them, are on stable storage.
    PowerLoss,
}
