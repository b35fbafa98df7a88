//! The program `rivals`: messages appended without wrote. It prints its figures as one line of
//! JSON, as `trial` does for `wrote::Log`.

mod logs;

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use trial::Result;
use trial::append::{Messages, Work};
use trial::outcome::{self, Outcome};

/// Appends messages from several producers at once, one way, prints the figures, and removes the
/// file or folder.
#[derive(Parser)]
#[command(name = "rivals")]
struct Arguments {
    /// The way.
    #[arg(long)]
    by: By,
    #[command(flatten)]
    work: Work,
    /// The file or folder, which must not exist.
    place: PathBuf,
}

/// The ways to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// A batch of raft-engine, written with `sync`: each producer waits until its message is
    /// durable.
    RaftEngine,
}

fn main() -> ExitCode {
    outcome::print("rivals", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<Outcome> {
    let Arguments { by, work, place } = arguments;
    let messages = Messages::new(&work)?;
    match by {
        By::RaftEngine => logs::raft_engine::each(&messages, &place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_takes_all_messages_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = Work { messages: 50, producers: 3, shortest: 300, longest: 2000 };
        let bytes = Messages::new(&work).expect("a range").total_bytes();
        for &by in By::value_variants() {
            let place = folder.path().join("place");
            let appended = run(Arguments { by, work, place: place.clone() });
            let appended = appended.unwrap_or_else(|error| panic!("{by:?}: {error}"));
            assert_eq!((appended.operations, appended.bytes), (50, bytes), "{by:?}");
            assert_eq!(appended.latency_ns.map(|all| all.count), Some(50), "{by:?}");
            assert!(!place.exists(), "{by:?}");
        }
    }
}
