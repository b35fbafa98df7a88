//! The target of a channel's messages, which is a log or a line file, and how safe messages are in
//! it.

use std::sync::Arc;
use wrote::{Error, Lines, Log, Ticket};
use wrote_result::words;

words! {
    /// The durability that an acknowledgement promises.
    #[derive(Default)]
    pub enum Level {
        /// The message is in the server's memory, and does not survive a crash of the server.
        Received = "received",
        /// The kernel has the message; it survives a crash of the server.
        Written = "written",
        /// The message survives power loss (W1).
        #[default]
        Durable = "durable",
    }
}

impl Level {
    /// Returns the sequence before which every message of `log` may be acknowledged.
    pub(crate) fn reached(self, log: &Log) -> u64 {
        match self {
            Level::Received => u64::MAX,
            Level::Written => log.written_sequence(),
            Level::Durable => log.durable_sequence(),
        }
    }

    /// Returns the sequence before which records have reached the promised level, and may be read.
    /// The sequence of a record that a client has read therefore never refers to another record
    /// after a crash.
    pub(crate) fn readable(self, log: &Log) -> u64 {
        self.reached(log).min(log.written_sequence())
    }

    /// Waits until all current records are readable, so that a client reads its own writes. Returns
    /// the sequence before which records may be read.
    pub(crate) async fn present(self, log: &Log) -> u64 {
        if let Some(last) = log.stats().next_sequence.checked_sub(1) {
            // If the log has failed, earlier records can still be read.
            let _ = Target::Log(log.clone()).ticket(self, last).await;
        }
        self.readable(log)
    }
}

/// An open log or file, which clones share.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Log(Log),
    File(Arc<Lines>),
}

/// Whether a target accepts messages.
pub(crate) enum Health {
    Well,
    /// The target currently accepts no messages, but continues on its own once the disk has room.
    Waits(Error),
    /// The target has failed, and must be opened again (W2).
    Failed(Error),
}

impl Target {
    /// Returns the log; `None` for a file, which has no records to read.
    pub(crate) fn log(self) -> Option<Log> {
        match self {
            Target::Log(log) => Some(log),
            Target::File(_) => None,
        }
    }

    pub(crate) fn health(&self) -> Health {
        let (checked, waits) = match self {
            Target::Log(log) => (log.check(), log.is_waiting_for_room()),
            Target::File(lines) => {
                let checked = lines.check();
                let waits = matches!(checked, Err(Error::NotYet { .. }));
                (checked, waits)
            }
        };
        match checked {
            Ok(()) => Health::Well,
            Err(error) if waits => Health::Waits(error),
            Err(error) => Health::Failed(error),
        }
    }

    /// Waits until there is room for messages.
    pub(crate) async fn room(&self) -> Result<(), Error> {
        match self {
            Target::Log(log) => log.room().await,
            // Once the file's lines are written, its buffer is empty.
            Target::File(lines) => lines.ticket().until_written().await,
        }
    }

    /// Returns the sequence before which every message has reached `level`.
    pub(crate) fn reached(&self, level: Level) -> u64 {
        match (self, level) {
            (Target::Log(log), level) => level.reached(log),
            (Target::File(_), Level::Received) => u64::MAX,
            (Target::File(lines), Level::Written) => lines.written(),
            (Target::File(lines), Level::Durable) => lines.durable(),
        }
    }

    /// Returns a ticket for a message to reach `level`; in a file, for all messages appended so
    /// far.
    pub(crate) fn ticket(&self, level: Level, sequence: u64) -> Ticket<'static> {
        let ticket = match self {
            Target::Log(log) => log.ticket(sequence),
            Target::File(lines) => lines.ticket(),
        };
        match level {
            Level::Durable => ticket.into_owned().until_durable(),
            _ => ticket.into_owned().until_written(),
        }
    }

    /// Reopens the path of a file after another program has rotated it.
    pub(crate) fn reopen(&self) -> Result<(), Error> {
        match self {
            Target::Log(_) => Ok(()),
            Target::File(lines) => lines.reopen(),
        }
    }

    pub(crate) fn close(&self) -> Result<(), Error> {
        match self {
            Target::Log(log) => log.close(),
            Target::File(lines) => lines.close(),
        }
    }
}
