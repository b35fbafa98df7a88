//! What programs append messages with otherwise: what it came to is one line of JSON, as `trial` says
//! it of `wrote::Log`.

mod gather;
mod logs;
mod strategies;

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use strategies::Strategy;
use trial::Done;
use trial::append::{Messages, Work};
use trial::outcome::Outcome;

/// Appends messages from several producers at once one way, says what it came to, and removes what
/// they were written to.
#[derive(Parser)]
#[command(name = "rivals")]
struct Arguments {
    /// The way.
    #[arg(long)]
    by: By,
    #[command(flatten)]
    work: Work,
    /// The file or folder, which must not be there.
    place: PathBuf,
}

/// The ways. The first six write to a file and sync it once in the end; of the others each producer
/// waits until its message is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// One task that writes them all to a tokio `File`.
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
    /// An entry of okaywal's, committed.
    Okaywal,
    /// An insertion into a keyspace of fjall's, and `persist(SyncData)`.
    Fjall,
    /// All messages that wait, as one batch of fjall's.
    FjallGathered,
    /// A transaction of SQLite's each, in WAL mode with `synchronous=FULL`.
    Sqlite,
    /// All messages that wait, as one transaction.
    SqliteGathered,
    /// A connection to `redis-server` each, over a Unix socket, with `appendfsync always`.
    Redis,
    /// All messages that wait, as one pipeline over one connection.
    RedisGathered,
}

fn main() -> ExitCode {
    match run(Arguments::parse()).and_then(|outcome| outcome.json()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("rivals: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Done<Outcome> {
    let Arguments { by, work, place } = arguments;
    let messages = Messages::new(&work)?;
    let strategy = |messages, strategy| strategies::run(strategy, &work, messages, &place);
    match by {
        By::Loop => strategy(messages, Strategy::Loop),
        By::Mutex => strategy(messages, Strategy::Mutex),
        By::Mpsc => strategy(messages, Strategy::Mpsc),
        By::Flume => strategy(messages, Strategy::Flume),
        By::FlumeTen => strategy(messages, Strategy::FlumeTen),
        By::Rendezvous => strategy(messages, Strategy::Rendezvous),
        By::Okaywal => logs::okaywal::each(&work, &messages, &place),
        By::Fjall => logs::fjall::each(&work, &messages, &place),
        By::FjallGathered => logs::fjall::gathered(&work, &messages, &place),
        By::Sqlite => logs::sqlite::each(&work, &messages, &place),
        By::SqliteGathered => logs::sqlite::gathered(&work, &messages, &place),
        By::Redis => logs::redis::each(&work, &messages, &place),
        By::RedisGathered => logs::redis::gathered(&work, &messages, &place),
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
            let is_timed = by as usize >= By::Okaywal as usize;
            assert_eq!(appended.latency_ns.map(|all| all.count), is_timed.then_some(50), "{by:?}");
            assert!(!place.exists(), "{by:?}");
        }
    }
}
