//! The target of a channel's messages: a log, or a plain file of lines.

use crate::acks::Level;
use crate::config::LogConfig;
use crate::doors::Store;
use std::sync::Arc;
use wrote::{Error, Lines, Log, Ticket};

/// An open log or file; clones share it.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Log(Log),
    File(Arc<Lines>),
}

/// Whether a target takes messages.
pub(crate) enum Health {
    Well,
    /// Not now; it continues by itself once the disk has room.
    Waits(Error),
    /// It has failed, and must be opened again (W2).
    Failed(Error),
}

impl Target {
    /// Opens the file of lines of a channel.
    pub(crate) fn open_file(config: &LogConfig) -> Result<Target, Error> {
        let buffer_bytes = config.buffer_bytes.unwrap_or(super::config::BUFFER_BYTES_MIN);
        let options = Lines::options().sync(config.sync).mode(super::config::LOG_MODE);
        let lines = options.buffer_bytes(buffer_bytes).open(&config.folder)?;
        if let Some(torn) = lines.torn() {
            let (path, torn) = (config.folder.display(), torn.display());
            log::warn!("{path}: the end of an interrupted write is kept in {torn}");
        }
        Ok(Target::File(Arc::new(lines)))
    }

    /// Returns the log; a file has no records to read.
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
            // Its buffer is empty then.
            Target::File(lines) => lines.ticket().until_written().await,
        }
    }

    /// Returns the sequence before which every message is at least this safe.
    pub(crate) fn reached(&self, level: Level) -> u64 {
        match (self, level) {
            (Target::Log(log), level) => level.reached(log),
            (Target::File(_), Level::Received) => u64::MAX,
            (Target::File(lines), Level::Written) => lines.written(),
            (Target::File(lines), Level::Durable) => lines.durable(),
        }
    }

    /// Returns the wait for a message to reach the level; in a file, for all that were appended.
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

    /// Opens the path of a file anew, after another program has rotated it.
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

impl Store for Target {
    fn try_append(&self, messages: &[&[u8]]) -> Result<Option<u64>, Error> {
        let ticket = match self {
            Target::Log(log) => log.try_append(messages)?,
            Target::File(lines) => lines.try_append(messages)?,
        };
        Ok(ticket.map(|ticket| ticket.sequence() + 1 - messages.len() as u64))
    }

    fn is_well(&self) -> bool {
        !matches!(self.health(), Health::Failed(_))
    }
}
