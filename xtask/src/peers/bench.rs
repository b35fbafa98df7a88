//! The rows of `wrote bench` that fio and dd can do too.

use super::file::PeerFile;
use super::measured::Measured;
use super::rows::Row;
use super::table::{Line, Subject, Unit};
use super::turn::in_turn;
use super::wrote::{self, Job, Wrote};
use super::{dd, fio};
use crate::failure::Failure;
use std::path::Path;

/// Who does the same as wrote.
enum Peer {
    /// fio, with these arguments besides those that every job has.
    Fio(&'static [&'static str]),
    /// dd, with these operands, and whether the last piece is flushed.
    Dd { operands: &'static [&'static str], fdatasync: bool },
}

/// One job and who else does it.
pub struct Comparison {
    /// The name by which it is chosen.
    pub row: Row,
    what: &'static str,
    job: Job,
    peers: &'static [Peer],
}

const GIB: &str = "1G";

/// All of them.
pub const COMPARISONS: &[Comparison] = &[
    Comparison {
        row: Row::Stream,
        what: "stream, direct, 512 KiB x 64 in flight",
        job: Job {
            only: "stream/direct-io_uring",
            settings: &["--bs", "512K", "--iodepth", "64", "--size", GIB],
        },
        peers: &[Peer::Fio(&["--ioengine=io_uring", "--direct=1", "--bs=512k", "--iodepth=64"])],
    },
    Comparison {
        row: Row::StreamOne,
        what: "stream, direct, 8 MiB, one at a time",
        job: Job { only: "stream/direct-psync", settings: &["--bs", "8M", "--size", GIB] },
        peers: &[Peer::Dd { operands: &["bs=8M", "oflag=direct"], fdatasync: false }],
    },
    Comparison {
        row: Row::Dsync,
        what: "4 KiB, O_DSYNC each",
        job: Job { only: "small/o_dsync-each", settings: &[] },
        peers: &[Peer::Fio(&["--ioengine=psync", "--sync=dsync", "--bs=4k"])],
    },
    Comparison {
        row: Row::Cached,
        what: "stream, cached, 1 MiB, one fdatasync at the end",
        job: Job {
            only: "stream/cached-fdatasync-at-end",
            settings: &["--bs", "1M", "--size", GIB],
        },
        peers: &[
            Peer::Dd { operands: &["bs=1M"], fdatasync: true },
            Peer::Fio(&["--ioengine=psync", "--bs=1m", "--end_fsync=1"]),
        ],
    },
];

/// What all comparisons use.
pub struct Bench<'a> {
    /// The command `wrote`.
    pub wrote: &'a Wrote,
    /// The folder to write in.
    pub folder: &'a Path,
    /// What dd reads.
    pub source: dd::Source,
}

/// What one comparison gave.
pub struct Compared {
    /// Its line of the table.
    pub line: Line,
    /// The commands as one would type them.
    pub commands: [String; 2],
}

impl Bench<'_> {
    /// Measures a comparison with each of its peers, `pairs` times in turn.
    pub fn measure(&self, comparison: &Comparison, pairs: u32) -> Result<Vec<Compared>, Failure> {
        comparison.peers.iter().map(|peer| self.compare(comparison, peer, pairs)).collect()
    }

    fn compare(
        &self,
        comparison: &Comparison,
        peer: &Peer,
        pairs: u32,
    ) -> Result<Compared, Failure> {
        // Not counted: it says how many bytes, and on what blocks.
        let first = self.wrote.run(&comparison.job, self.folder)?;
        let file = PeerFile::new(self.folder.join("peer"), first.blocks, first.measured.bytes);
        let run_peer = || self.run_peer(peer, &file);
        if file.is_overwritten() {
            run_peer()?;
        }
        let subject = Subject {
            what: comparison.what.to_owned(),
            blocks: first.blocks.word(),
            peer: peer.name(),
            throughput: None,
            cpu: None,
        };
        let mut line = Line::new(Unit::Stream, subject);
        in_turn(
            pairs,
            || self.wrote.run(&comparison.job, self.folder).map(|run| run.measured),
            run_peer,
            |ours, theirs| line.add(ours, theirs),
        )?;
        file.remove();
        let commands = [wrote::describe(&comparison.job), self.describe(peer, &file)];
        Ok(Compared { line, commands })
    }

    fn run_peer(&self, peer: &Peer, file: &PeerFile) -> Result<Measured, Failure> {
        file.prepare()?;
        match peer {
            Peer::Fio(arguments) => fio::run(arguments, file),
            Peer::Dd { operands, fdatasync } => self.source.run(operands, *fdatasync, file),
        }
    }

    fn describe(&self, peer: &Peer, file: &PeerFile) -> String {
        match peer {
            Peer::Fio(arguments) => fio::describe(arguments, file),
            Peer::Dd { operands, fdatasync } => dd::describe(operands, *fdatasync, file),
        }
    }
}

impl Peer {
    fn name(&self) -> &'static str {
        match self {
            Peer::Fio(_) => "fio",
            Peer::Dd { .. } => "dd",
        }
    }
}
