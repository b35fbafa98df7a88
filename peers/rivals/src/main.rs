//! The program `rivals`: appends messages without wrote. It prints its figures as one line of JSON,
//! as `trial` does for `wrote::Log`.

mod raft_engine;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use trial::Result;
use trial::append::{Messages, Work};
use trial::outcome::{self, Outcome};

/// Appends messages from several producers at once to raft-engine, prints the figures, and removes
/// the folder.
#[derive(Parser)]
#[command(name = "rivals")]
struct Arguments {
    #[command(flatten)]
    work: Work,
    /// The folder, which must not exist.
    place: PathBuf,
}

fn main() -> ExitCode {
    outcome::print("rivals", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<Outcome> {
    raft_engine::each(&Messages::new(&arguments.work)?, &arguments.place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_all_messages_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = Work { messages: 50, producers: 3, shortest: 300, longest: 2000 };
        let bytes = Messages::new(&work).expect("a range").total_bytes();
        let place = folder.path().join("place");
        let appended = run(Arguments { work, place: place.clone() }).expect("room");
        assert_eq!((appended.operations, appended.bytes), (50, bytes));
        assert_eq!(appended.latency_ns.map(|all| all.count), Some(50));
        assert!(!place.exists());
    }
}
