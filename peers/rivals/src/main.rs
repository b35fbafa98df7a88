//! The program `rivals`: messages appended without wrote. It prints its figures as one line of
//! JSON, as `trial` does for `wrote::Log`.

mod logs;
mod strategies;

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use strategies::Job;
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

/// The ways to append. The first seven write to a file and sync it at the end; with the others
/// each producer waits until its message is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// One task that writes all messages to a tokio `File`.
    Loop,
    /// A tokio `File` behind a tokio `Mutex`.
    Mutex,
    /// tokio's channel to one task that writes to a tokio `File`.
    Mpsc,
    /// flume's unbounded channel to one thread with a `BufWriter`.
    Flume,
    /// flume's unbounded channel to ten threads, each with the file open for appending.
    FlumeTen,
    /// flume's unbounded channel to one thread that answers each message by a rendezvous.
    Rendezvous,
    /// As `flume`, with an `fdatasync` each second.
    FlumeEverySec,
    /// A batch of raft-engine, written with `sync`.
    RaftEngine,
    /// An entry of walrus with `FsyncSchedule::SyncEach`.
    Walrus,
    /// All waiting messages as one batch of fjall.
    FjallGathered,
    /// All waiting messages as one transaction of SQLite, in WAL mode with `synchronous=FULL`.
    SqliteGathered,
    /// A connection of each producer to `redis-server` with `appendfsync always`.
    Redis,
    /// All waiting messages as one pipeline over one connection to `redis-server`.
    RedisGathered,
}

fn main() -> ExitCode {
    outcome::print("rivals", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<Outcome> {
    let Arguments { by, work, place } = arguments;
    let messages = Messages::new(&work)?;
    match by {
        By::Loop => strategies::run(Job::one_loop, messages, &place),
        By::Mutex => strategies::run(Job::mutex, messages, &place),
        By::Mpsc => strategies::run(Job::mpsc, messages, &place),
        By::Flume => strategies::run(Job::flume, messages, &place),
        By::FlumeTen => strategies::run(Job::flume_ten, messages, &place),
        By::Rendezvous => strategies::run(Job::rendezvous, messages, &place),
        By::FlumeEverySec => strategies::run(Job::flume_every_sec, messages, &place),
        By::RaftEngine => logs::raft_engine::each(&messages, &place),
        By::Walrus => logs::walrus::each(&messages, &place),
        By::FjallGathered => logs::fjall::gathered(&messages, &place),
        By::SqliteGathered => logs::sqlite::gathered(&messages, &place),
        By::Redis => logs::redis::each(&messages, &place),
        By::RedisGathered => logs::redis::gathered(&messages, &place),
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
            let is_redis = matches!(by, By::Redis | By::RedisGathered);
            if is_redis && !logs::redis::is_installed() {
                let reason = format!("there is no redis-server for {by:?}");
                fixtures::skip("every_way_takes_all_messages_and_leaves_nothing", &reason);
                continue;
            }
            let place = folder.path().join("place");
            let appended = run(Arguments { by, work, place: place.clone() });
            let appended = appended.unwrap_or_else(|error| panic!("{by:?}: {error}"));
            assert_eq!((appended.operations, appended.bytes), (50, bytes), "{by:?}");
            let is_timed = by as usize >= By::RaftEngine as usize;
            assert_eq!(appended.latency_ns.map(|all| all.count), is_timed.then_some(50), "{by:?}");
            assert!(!place.exists(), "{by:?}");
        }
    }
}
