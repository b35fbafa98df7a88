//! The scenario `ways`: writes one file completely, by each method that programs use and by the
//! methods of this library.

mod advice;
mod dd;
mod findings;
mod plan;
mod rounds;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use write::Done;

use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use wrote::{CopyOptions, Survives};
use wrote_jobs::findings::Evidence;
use wrote_result::Error;
use wrote_result::document::{
    Advice, Answer, Blocks, Cell, Finding, Flush, Ioengine, Settings, SourceCache,
};
use wrote_result::units::block_size;

pub(crate) const NAME: &str = "ways";
pub(crate) const FILE: &str = "ways/file";
pub(crate) const CHUNK: &str = "ways/chunk";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The block size in most uses of dd.
const DD_BS_BYTES: u64 = MIB;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    FsWrite,
    /// One `write_all` of all bytes, followed by `sync_all`.
    WriteAll,
    /// Pieces of this size into a `BufWriter`, followed by `sync_all`.
    BufWriter(u64),
    /// Pieces of this size directly to the file, followed by `sync_all`.
    Chunks(u64),
    /// A loop of `read` and `write_all` through one buffer of this size, followed by `sync_all`.
    Stream(u64, SourceCache),
    /// The same block of this size again and again, followed by `sync_all`.
    Constant(u64),
    /// `dd` of zeros, with `conv=fdatasync` or with `oflag=direct` and no flush.
    Dd {
        direct: bool,
    },
    /// `wrote::Writer`, which receives pieces of this size.
    Writer(u64),
    /// `wrote::copy`, durable, without reflinks.
    CopyFile(SourceCache),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub name: &'static str,
    pub workload: &'static str,
    /// A description of at most 26 columns. For chunks, it is the size, a comma, and the method.
    pub words: &'static str,
    pub kind: Kind,
}

use Kind::{BufWriter, Chunks, Constant, CopyFile, Dd, FsWrite, Stream, WriteAll, Writer};
use SourceCache::{Dropped, Warm};

const fn way(workload: &'static str, name: &'static str, words: &'static str, kind: Kind) -> Way {
    Way { name, workload, words, kind }
}

/// All rows, from the most common method to the rarest.
pub(crate) const WAYS: &[Way] = &[
    way(FILE, "ways/file/fs-write", "fs::write", FsWrite),
    way(FILE, "ways/file/write_all", "write_all, sync_all", WriteAll),
    way(FILE, "ways/file/bufwriter-4k", "BufWriter, 4 KiB pieces", BufWriter(4 * KIB)),
    way(FILE, "ways/file/chunks-8m", "8 MiB chunks", Chunks(8 * MIB)),
    way(FILE, "ways/file/stream-8m", "8 MiB copy loop", Stream(8 * MIB, Warm)),
    way(FILE, "ways/file/stream-8m-dropped", "8 MiB copy loop, dropped", Stream(8 * MIB, Dropped)),
    way(FILE, "ways/file/constant-8m", "constant 8 MiB block", Constant(8 * MIB)),
    way(FILE, "ways/file/dd-fdatasync", "dd conv=fdatasync, zeros", Dd { direct: false }),
    way(FILE, "ways/file/dd-direct", "dd oflag=direct, zeros", Dd { direct: true }),
    way(FILE, "ways/file/writer", "wrote::Writer", Writer(64 * KIB)),
    way(FILE, "ways/file/copy", "wrote::copy", CopyFile(Warm)),
    way(FILE, "ways/file/copy-dropped", "wrote::copy, dropped", CopyFile(Dropped)),
    way(CHUNK, "ways/chunk/write_all-4k", "4 KiB, write_all", Chunks(4 * KIB)),
    way(CHUNK, "ways/chunk/write_all-16k", "16 KiB, write_all", Chunks(16 * KIB)),
    way(CHUNK, "ways/chunk/write_all-64k", "64 KiB, write_all", Chunks(64 * KIB)),
    way(CHUNK, "ways/chunk/write_all-256k", "256 KiB, write_all", Chunks(256 * KIB)),
    way(CHUNK, "ways/chunk/write_all-1m", "1 MiB, write_all", Chunks(MIB)),
    way(CHUNK, "ways/chunk/write_all-8m", "8 MiB, write_all", Chunks(8 * MIB)),
    way(CHUNK, "ways/chunk/writer-4k", "4 KiB, wrote::Writer", Writer(4 * KIB)),
    way(CHUNK, "ways/chunk/writer-16k", "16 KiB, wrote::Writer", Writer(16 * KIB)),
    way(CHUNK, "ways/chunk/writer-64k", "64 KiB, wrote::Writer", Writer(64 * KIB)),
    way(CHUNK, "ways/chunk/writer-256k", "256 KiB, wrote::Writer", Writer(256 * KIB)),
    way(CHUNK, "ways/chunk/writer-1m", "1 MiB, wrote::Writer", Writer(MIB)),
    way(CHUNK, "ways/chunk/writer-8m", "8 MiB, wrote::Writer", Writer(8 * MIB)),
];

/// The scenario `ways`. It has no settings.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Ways {}

impl Scenario for Ways {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let listed = |way: &Way| {
            let survives = Some(way.acknowledged());
            Listed { scenario: NAME, row: way.name, way: way.words, survives }
        };
        WAYS.iter().map(listed).collect()
    }

    fn takes_rate(&self) -> bool {
        false
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        Ok(plan::plan(call)?.into_iter().collect())
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        findings::find(evidence).into_iter().flatten().collect()
    }

    fn advice(&self, evidence: &Evidence) -> Vec<Advice> {
        advice::advise(evidence).into_iter().flatten().collect()
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        advice::answers(evidence)
    }
}

impl Kind {
    /// Returns whether all bytes are in memory before the clock starts.
    fn holds_input(self) -> bool {
        matches!(self, FsWrite | WriteAll | BufWriter(_) | Chunks(_) | Writer(_))
    }

    /// Returns the required state of the page cache, if the method reads the source while the clock
    /// runs.
    fn cache(self) -> Option<SourceCache> {
        match self {
            Stream(_, cache) | CopyFile(cache) => Some(cache),
            _ => None,
        }
    }

    #[cfg(test)]
    fn has_source(self) -> bool {
        self.holds_input() || self.cache().is_some()
    }

    /// Returns the number of bytes of one write, as the program passes them.
    fn bs_bytes(self, size_bytes: u64) -> u64 {
        let bs_bytes = match self {
            FsWrite | WriteAll => size_bytes,
            BufWriter(bytes) | Chunks(bytes) | Constant(bytes) | Writer(bytes) => bytes,
            Stream(bytes, _) => bytes,
            Dd { .. } => DD_BS_BYTES,
            CopyFile(_) => CopyOptions::BS_BYTES as u64,
        };
        bs_bytes.min(size_bytes)
    }

    fn sync(self) -> Flush {
        match self {
            FsWrite | Dd { direct: true } => Flush::None,
            WriteAll | BufWriter(_) | Chunks(_) | Stream(..) | Constant(_) | CopyFile(_) => {
                Flush::FsyncAtEnd
            }
            Dd { direct: false } | Writer(_) => Flush::FdatasyncAtEnd,
        }
    }
}

impl Way {
    /// Returns the settings for the result. `Writer` and `copy` run with their default settings.
    pub(crate) fn asked(&self, size_bytes: u64) -> Settings {
        let ours = matches!(self.kind, Writer(_) | CopyFile(_));
        let data = match self.kind {
            Constant(_) => Some("constant"),
            Dd { .. } => Some("zeros"),
            _ => None,
        };
        Settings {
            rw: "write".into(),
            ioengine: if ours { Ioengine::IoUring } else { Ioengine::Psync },
            bs_bytes: self.kind.bs_bytes(size_bytes),
            size_bytes,
            iodepth: 1,
            numjobs: 1,
            direct: ours || self.kind == Dd { direct: true },
            sync: self.kind.sync(),
            blocks: Blocks::New,
            registered_buffers: ours.then_some(true),
            registered_files: ours.then_some(true),
            data: data.map(str::to_owned),
            source_cache: self.kind.cache(),
            ..Settings::default()
        }
    }

    /// Returns the cell of a row in the grid of chunks, which consists of the size of a piece and
    /// the method; `None` for a row that is not in the grid.
    pub(crate) fn cell(&self) -> Option<Cell> {
        let (bytes, head) = match self.kind {
            Chunks(bytes) => (bytes, "write_all"),
            Writer(bytes) => (bytes, "wrote::Writer"),
            _ => return None,
        };
        let (title, side) = ("CHUNK".into(), block_size(bytes));
        (self.workload == CHUNK).then(|| Cell { title, side, head: head.into() })
    }

    /// Returns the worst event that the file survives once its method has returned, on a disk that
    /// flushes reach (M3).
    pub(crate) fn acknowledged(&self) -> Survives {
        // Every method creates a new file, so the file's blocks are not settled.
        Survives::of_write(self.kind.sync() != Flush::None, false)
    }
}
