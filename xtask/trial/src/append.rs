//! Messages that several producers append at once: to `wrote::Log`, and to a file by hand.

mod crew;
mod file;
mod log;
mod messages;

pub use crew::{Crew, Step, Timed};
pub use messages::{Messages, Share};

use crate::Done;
use crate::outcome::Outcome;
use std::path::Path;

/// What is appended, and by how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct Work {
    /// How many messages, of all producers together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: u64,
    /// How many producers, each a thread.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub producers: u32,
    /// The shortest message, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pub shortest: u32,
    /// The longest: lengths are spread evenly from the one to the other.
    #[arg(long, value_name = "BYTES", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub longest: u32,
}

/// The ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::Log` with `Sync::No`, and one `sync` in the end.
    Log,
    /// `wrote::Log` with `Sync::Always`: each producer waits until its message is durable.
    LogDurable,
    /// A file that grows: each message written and `fdatasync`ed, one after the other.
    File,
    /// The same over a file that was written with zeros before: no flush has to note new blocks.
    FilePrepared,
}

/// Appends what `work` says to `place`, which is gone afterwards.
pub fn append(by: By, work: &Work, messages: &Messages, place: &Path) -> Done<Outcome> {
    match by {
        By::Log => log::at_the_end(work, messages, place),
        By::LogDurable => log::durable_each(work, messages, place),
        By::File => file::growing(work, messages, place),
        By::FilePrepared => file::prepared(work, messages, place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_way_takes_all_messages_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let work = Work { messages: 50, producers: 3, shortest: 300, longest: 2000 };
        let messages = Messages::new(&work).expect("a range");
        for &by in By::value_variants() {
            let place = folder.path().join("place");
            let appended = append(by, &work, &messages, &place).expect("room");
            let timed = |is_timed: bool| is_timed.then_some(50);
            let by_hand = matches!(by, By::File | By::FilePrepared);
            assert_eq!((appended.operations, appended.bytes), (50, messages.total_bytes()));
            let waits = appended.latency_ns.map(|all| all.count);
            assert_eq!(waits, timed(by != By::Log), "{by:?}");
            assert_eq!(appended.flush_ns.map(|all| all.count), timed(by_hand), "{by:?}");
            assert!(!place.exists(), "{by:?}");
        }
    }
}
