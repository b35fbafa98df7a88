//! Messages that several producers append concurrently, either to `wrote::Log` or `wrote::Lines`,
//! or to a file with hand-written code.

mod buffered;
pub mod crew;
pub mod gathered;
mod messages;
mod tasks;

pub use messages::Messages;

use crate::Result;
use crate::outcome::Outcome;
use crate::place::Place;
use crew::Timing;
use std::path::Path;
use wrote::{Lines, Log, LogReader, SyncPolicy};

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
    #[arg(long, value_name = "BYTES", default_value_t = 300,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub shortest: u32,
    /// The longest message, in bytes; lengths are spread evenly between the two.
    #[arg(long, value_name = "BYTES", default_value_t = 2000,
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub longest: u32,
}

/// The ways to append messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::Log` with `SyncPolicy::No`, and one `sync` at the end.
    Log,
    /// `wrote::Log` with `SyncPolicy::Always`: each producer waits until its message is durable.
    LogDurable,
    /// As `log-durable`; the producers are tasks of tokio.
    LogTasks,
    /// As `log-durable`, with a log that recycles the files of removed segments.
    LogRecycled,
    /// As `log-recycled`; the producers are tasks of tokio.
    LogRecycledTasks,
    /// A buffer under a lock, written through the page cache by a thread, and one `fdatasync`.
    Buffered,
    /// A thread that gathers waiting messages: one write over zeros and one `fdatasync` for all.
    Gathered,
    /// As `gathered`; the producers are tasks of tokio.
    GatheredTasks,
    /// `wrote::Lines` with `SyncPolicy::No`, and one `flush` at the end.
    Lines,
    /// `wrote::Lines`: each producer waits until its line is durable.
    LinesDurable,
    /// A thread that gathers waiting lines: through a `BufWriter`, and one `fdatasync` for all.
    GatheredLines,
}

/// The segment length, and the retained length, of a log that has been in use.
const USED_SEGMENT_BYTES: u64 = 32 << 20;
const USED_RETAIN_BYTES: u64 = 128 << 20;
/// The number of shorter segments at the start of a log.
const RAMP_SEGMENTS: u64 = 7;

/// Appends the messages to `place`, and removes it.
pub fn append(by: By, messages: &Messages, place: &Path) -> Result<Outcome> {
    match by {
        By::Log => log_synced_at_end(messages, place),
        By::LogDurable => log_durable_each(messages, place, open_new),
        By::LogTasks => log_durable_tasks(messages, place, open_new),
        By::LogRecycled => log_durable_each(messages, place, open_used),
        By::LogRecycledTasks => log_durable_tasks(messages, place, open_used),
        By::Buffered => buffered::buffered(messages, place),
        By::Gathered => gathered::threads(messages, place),
        By::GatheredTasks => gathered::tasks(messages, place),
        By::Lines => lines(messages, place, SyncPolicy::No),
        By::LinesDurable => lines(messages, place, SyncPolicy::Always),
        By::GatheredLines => gathered::lines(&messages.lines(), place),
    }
}

/// Appends without waiting, with a single `sync` at the end.
fn log_synced_at_end(messages: &Messages, path: &Path) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let log = Log::options().sync(SyncPolicy::No).open(path)?;
    let step = |message: &[u8]| {
        drop(log.append(message)?);
        Ok(())
    };
    let steps = vec![step; messages.work.producers as usize];
    let appended = crew::append(messages, steps, Timing::None, || Ok(log.sync()?))?;
    finish_log(&log, 0, appended, &folder)
}

/// Waits after each append until the message is durable.
fn log_durable_each(messages: &Messages, path: &Path, open: Open) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let (log, first) = open(path)?;
    let step = |message: &[u8]| Ok(log.append(message)?.wait()?);
    finish_log(&log, first, crew::append_each(messages, step)?, &folder)
}

/// Awaits each append until the message is durable, in tasks.
fn log_durable_tasks(messages: &Messages, path: &Path, open: Open) -> Result<Outcome> {
    let folder = Place::folder(path)?;
    let (log, first) = open(path)?;
    let producer = log.clone();
    let appended = tasks::by_tasks(messages, move |message: &[u8]| {
        let (log, message) = (producer.clone(), message.to_vec());
        async move {
            loop {
                if let Some(ticket) = log.try_append(&[&message])? {
                    return Ok(ticket.await?);
                }
                log.room().await?;
            }
        }
    })?;
    finish_log(&log, first, appended, &folder)
}

/// Appends lines. With [`SyncPolicy::Always`], each line is durable before its producer appends the
/// next one; otherwise, a flush at the end makes all lines durable.
fn lines(messages: &Messages, path: &Path, sync: SyncPolicy) -> Result<Outcome> {
    let (place, messages) = (Place::take(path)?, messages.lines());
    let file = Lines::options().sync(sync).open(path)?;
    let appended = if sync == SyncPolicy::Always {
        crew::append_each(&messages, |line: &[u8]| Ok(file.append(line)?.wait()?))?
    } else {
        let step = |line: &[u8]| {
            drop(file.append(line)?);
            Ok(())
        };
        let steps = vec![step; messages.work.producers as usize];
        crew::append(&messages, steps, Timing::None, || Ok(file.flush()?))?
    };
    file.close()?;
    place.check_length(appended.bytes + appended.operations)?;
    Ok(appended)
}

/// A function that opens a log, and returns it with the sequence of its next record.
type Open = fn(&Path) -> Result<(Log, u64)>;

fn open_new(path: &Path) -> Result<(Log, u64)> {
    Ok((Log::options().sync(SyncPolicy::Always).open(path)?, 0))
}

/// Opens a log, and fills it until retention has removed full segments and a file has been
/// recycled.
fn open_used(path: &Path) -> Result<(Log, u64)> {
    const FILLING_BYTES: usize = 256 << 10;
    let options = Log::options().sync(SyncPolicy::Always).segment_bytes(USED_SEGMENT_BYTES);
    let log = options.retain_bytes(USED_RETAIN_BYTES).open(path)?;
    let filling = vec![b'f'; FILLING_BYTES];
    let is_used = |log: &Log| log.stats().recycled > 1 && log.stats().removed > RAMP_SEGMENTS;
    let mut filled_bytes = 0;
    while !is_used(&log) {
        if filled_bytes > 4 * USED_RETAIN_BYTES {
            return Err("no segment began in the file of another".into());
        }
        log.append(&filling)?.wait()?;
        filled_bytes += FILLING_BYTES as u64;
    }
    let first = log.stats().next_sequence;
    Ok((log, first))
}

/// Closes the log. Fails unless it contains all messages, from record `first` on.
fn finish_log(log: &Log, first: u64, appended: Outcome, folder: &Place) -> Result<Outcome> {
    log.close()?;
    let mut reader = LogReader::open(folder.path(), first)?;
    let (mut messages, mut bytes) = (0_u64, 0_u64);
    while let Some(record) = reader.next_lent()? {
        messages += 1;
        bytes += record.bytes.len() as u64;
    }
    if (messages, bytes) == (appended.operations, appended.bytes) {
        return Ok(appended);
    }
    let path = folder.path().display();
    Err(format!("{path}: {messages} records of {bytes} bytes, not all that were sent").into())
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
            let unsynced = [By::Log, By::Buffered, By::Lines];
            let waits = !unsynced.contains(&by);
            assert_eq!((appended.operations, appended.bytes), (50, messages.total_bytes()));
            assert_eq!(appended.latency_ns.map(|all| all.count), waits.then_some(50), "{by:?}");
            assert!(!place.exists(), "{by:?}");
        }
    }
}
