//! A channel: one log of the server, opened again after it has failed.

use crate::config::LogConfig;
use std::fmt;
use std::sync::{PoisonError, RwLock};
use wrote::Log;

/// One log of the server.
pub(crate) struct Channel {
    pub config: LogConfig,
    /// `None` while the log has failed and is not open again.
    log: RwLock<Option<Log>>,
}

impl Channel {
    /// Opens the log.
    pub(crate) fn open(config: LogConfig) -> Result<Channel, wrote::Error> {
        let log = config.options.clone().open(&config.folder)?;
        Ok(Channel { config, log: RwLock::new(Some(log)) })
    }

    /// Returns the log, if it takes messages now.
    pub(crate) fn log(&self) -> Option<Log> {
        self.log.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what was appended, makes it durable, and ends the log.
    pub(crate) fn close(&self) -> Result<(), wrote::Error> {
        let log = self.log.write().unwrap_or_else(PoisonError::into_inner).take();
        log.map_or(Ok(()), |log| log.close())
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("config", &self.config).finish_non_exhaustive()
    }
}
