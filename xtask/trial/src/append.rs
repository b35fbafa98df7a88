//! Messages that several producers append at once: to `wrote::Log`, and to a file by hand.

mod crew;
mod file;
mod log;
mod messages;

pub use crew::Timing;
pub use messages::Messages;

use crate::Result;
use crate::outcome::Outcome;
use std::path::Path;

/// The messages of a piece of work, and their producers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct Work {
    /// Messages of all producers together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: u64,
    /// Producers, each a thread.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub producers: u32,
    /// The shortest message, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pub shortest: u32,
    /// The longest message, in bytes; lengths are spread evenly between the two.
    #[arg(long, value_name = "BYTES", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub longest: u32,
}

/// The ways to append messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::Log` with `Sync::No`, and one `sync` in the end.
    Log,
    /// `wrote::Log` with `Sync::Always`: each producer waits until its message is durable.
    LogDurable,
    /// A file that grows: each message written and `fdatasync`ed, one after the other.
    File,
    /// A file that was written with zeros before, so that no flush has to record new blocks.
    FilePrepared,
}

/// Appends the messages to `place`, and removes it.
pub fn append(by: By, messages: &Messages, place: &Path) -> Result<Outcome> {
    match by {
        By::Log => log::at_the_end(messages, place),
        By::LogDurable => log::durable_each(messages, place),
        By::File => file::growing(messages, place),
        By::FilePrepared => file::prepared(messages, place),
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
            let appended = append(by, &messages, &place).expect("room");
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
