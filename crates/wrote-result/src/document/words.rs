//! The keys of a document that have a fixed set of values.

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
    /// All of the old text (or no file), or all of the new text.
    OldOrNew,
    /// Some of both texts.
    Torn,
    /// Nothing of either text, or a part of the new text.
    Empty,
    /// All of the old text, followed by a part of the new text.
    OldAndPart,
}

/// Whether a power loss while a page is written may leave some of the old page and some of the new
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Torn {
    /// A page may be torn, because nothing guarantees more than whole sectors.
    Possible,
    /// A page is never torn, due to the method of writing or to a guarantee of the kernel
    /// (`RWF_ATOMIC`).
    Never,
}

/// The state of a file's blocks when the clock starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blocks {
    /// The file is new and grows.
    New,
    /// The blocks were allocated by `fallocate(2)`, but not written.
    Allocated,
    /// The blocks were written and flushed beforehand.
    Written,
    /// For reads: some blocks may never have been written.
    #[default]
    Unknown,
}

/// Whether the page cache holds a source that is read while the clock runs. Later variants are
/// faster to read.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SourceCache {
    /// The page cache holds no part of the source.
    Dropped,
    /// The page cache holds the source.
    Warm,
}

/// The direction in which bytes move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the file.
    Read,
    /// To the file.
    #[default]
    Write,
}

/// The arrivals of operations at a rate (fio's `rate_process`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// At even intervals.
    #[default]
    Linear,
    /// At random intervals, as independent requests arrive: a Poisson process.
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
    /// Memory into which the file is mapped.
    Mmap,
    /// A pool of threads, if io_uring is not available.
    Threads,
    /// Another of fio's engines.
    #[serde(untagged)]
    Other(String),
}

/// When and how a job flushes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr,
)]
pub enum Flush {
    /// Never.
    #[default]
    None,
    /// By `fdatasync(2)`, after the last write.
    FdatasyncAtEnd,
    /// By `fsync(2)`, after the last write.
    FsyncAtEnd,
    /// By `fdatasync(2)`, after each write.
    FdatasyncEach,
    /// By `fsync(2)`, after each write.
    FsyncEach,
    /// With each write: `O_DSYNC`, or `RWF_DSYNC` (`pwritev2(2)`).
    ODsyncEach,
    /// With each write, and with all metadata: `O_SYNC`.
    OSyncEach,
    /// By `fdatasync(2)`, after each group of this many writes.
    FdatasyncEvery(u32),
    /// By `fsync(2)`, after each group of this many writes.
    FsyncEvery(u32),
    /// Before a log acknowledges a message.
    Always,
    /// Once a second, by a log.
    Everysec,
}

/// The words of all flushes except those after a group of writes.
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

    /// Returns whether each write is flushed before the next one begins.
    pub fn is_each(self) -> bool {
        use Flush::{FdatasyncEach, FsyncEach, ODsyncEach, OSyncEach};
        matches!(self, FdatasyncEach | FsyncEach | ODsyncEach | OSyncEach)
    }

    /// Returns whether flushes occur between writes, as separate calls.
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

/// The worst event that the bytes of an acknowledged write survive. Documents use these words for
/// [`Survives`](super::Survives).
///
/// The variants are ordered from the weakest to the strongest, so that `a >= b` means "survives at
/// least b".
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Survives")]
#[expect(dead_code, reason = "it is the schema, and values are read and written by their words")]
pub(crate) enum SurvivesWord {
    /// The bytes are in the program's own memory: in a buffer that was not flushed.
    Nothing,
    /// The bytes are in the kernel's page cache, or only the kernel's memory contains the metadata
    /// that leads to them. They survive a process crash, but not a kernel crash.
    ProcessCrash,
    /// The bytes are on the device, perhaps in its volatile cache. They survive a kernel crash, but
    /// not a power loss.
    OsCrash,
    /// The bytes, and everything needed to find them, are on stable storage.
    PowerLoss,
}
