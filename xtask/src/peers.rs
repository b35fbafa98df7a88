//! `cargo xtask peers`: wrote against fio and dd, in turn, on one folder.

mod dd;
mod file;
mod fio;
mod measured;
mod page;
mod table;
mod wrote;

use crate::failure::{Failure, Tried};
use crate::packages::{self, PEERS};
use crate::repository::{release_wrote, root};
use crate::run::check_interrupted;
use file::PeerFile;
use measured::Measured;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use table::Line;
use wrote::{Job, Wrote};

/// What a device gets to finish what it was given, before each run.
const SETTLE: Duration = Duration::from_millis(300);

/// Measure wrote against fio and dd, in turn, on one folder.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder to write in; a folder below it is made and removed.
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// How many pairs of runs of each comparison.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Put the table into docs/performance.md.
    #[arg(long)]
    write: bool,
}

/// Who does the same as wrote.
enum Peer {
    /// fio, with these arguments besides those that every job has.
    Fio(&'static [&'static str]),
    /// dd, with these operands, and whether the last piece is flushed.
    Dd { operands: &'static [&'static str], fdatasync: bool },
}

/// One job and who else does it.
struct Comparison {
    what: &'static str,
    job: Job,
    peers: &'static [Peer],
}

const GIB: &str = "1G";

const COMPARISONS: &[Comparison] = &[
    Comparison {
        what: "stream, direct, 512 KiB x 64 in flight",
        job: Job {
            only: "stream/direct-io_uring",
            settings: &["--bs", "512K", "--iodepth", "64", "--size", GIB],
        },
        peers: &[Peer::Fio(&["--ioengine=io_uring", "--direct=1", "--bs=512k", "--iodepth=64"])],
    },
    Comparison {
        what: "stream, direct, 8 MiB, one at a time",
        job: Job { only: "stream/direct-psync", settings: &["--bs", "8M", "--size", GIB] },
        peers: &[Peer::Dd { operands: &["bs=8M", "oflag=direct"], fdatasync: false }],
    },
    Comparison {
        what: "4 KiB, O_DSYNC each",
        job: Job { only: "small/o_dsync-each", settings: &[] },
        peers: &[Peer::Fio(&["--ioengine=psync", "--sync=dsync", "--bs=4k"])],
    },
    Comparison {
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

/// Measures, prints the table, and writes it where asked.
pub fn peers(arguments: &Arguments) -> Result<(), Failure> {
    let document = root().join("docs/performance.md");
    if arguments.write {
        page::check(&document)?;
    }
    packages::install(PEERS)?;
    let wrote = Wrote { program: release_wrote()? };
    let folder = tempfile::Builder::new()
        .prefix(".wrote-peers-")
        .tempdir_in(&arguments.path)
        .tried(arguments.path.display())?;
    let source = dd::Source::new()?;
    let mut lines = Vec::new();
    let mut commands = Vec::new();
    let mut place = None;
    for comparison in COMPARISONS {
        let bench = Bench { wrote: &wrote, folder: folder.path(), source: &source };
        for peer in comparison.peers {
            let result = bench.compare(comparison, peer, arguments.pairs)?;
            eprintln!("{}", result.line.row());
            lines.push(result.line);
            for command in result.commands {
                if !commands.contains(&command) {
                    commands.push(command);
                }
            }
            place = Some(result.place);
        }
    }
    let place = place.ok_or_else(|| Failure::Failed("nothing to compare".into()))?;
    let text = page::text(&place, &fio::version()?, &lines, &commands, arguments.pairs);
    println!("{text}");
    if arguments.write { page::write(&document, &text) } else { Ok(()) }
}

/// What all comparisons use.
struct Bench<'a> {
    wrote: &'a Wrote,
    folder: &'a Path,
    source: &'a dd::Source,
}

/// What one comparison gave.
struct Compared {
    line: Line,
    commands: Vec<String>,
    place: wrote::Place,
}

impl Bench<'_> {
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
        let mut line = Line::new(comparison.what, first.blocks.word(), peer.name());
        for pair in 0..pairs {
            let wrote = || self.wrote.run(&comparison.job, self.folder).map(|run| run.measured);
            // The order is swapped in every second pair: what comes second finds another device.
            let (ours, theirs) = if pair % 2 == 0 {
                let ours = settled(wrote)?;
                (ours, settled(run_peer)?)
            } else {
                let theirs = settled(run_peer)?;
                (settled(wrote)?, theirs)
            };
            eprintln!(
                "{}: wrote {:.0} MB/s, {} {:.0} MB/s",
                comparison.what,
                ours.throughput_bytes_per_s() / 1e6,
                peer.name(),
                theirs.throughput_bytes_per_s() / 1e6
            );
            line.add(ours, theirs);
        }
        file.remove();
        let commands = vec![wrote::describe(&comparison.job), self.describe(peer, &file)];
        Ok(Compared { line, commands, place: first.place })
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

/// Measures once all that was written before is on the device.
fn settled(measure: impl FnOnce() -> Result<Measured, Failure>) -> Result<Measured, Failure> {
    rustix::fs::sync();
    thread::sleep(SETTLE);
    check_interrupted()?;
    measure()
}
