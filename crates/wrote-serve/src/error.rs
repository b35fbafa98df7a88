//! Errors of starting and running a server.

use std::io;

/// Why a server did not start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid configuration, with one line per fault.
    #[error("{0}")]
    Config(String),
    /// A listener could not be bound.
    #[error("{url}: {source}")]
    Listen {
        /// The listener.
        url: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A log could not be opened or closed.
    #[error("{0}")]
    Log(#[from] wrote::Error),
    /// The runtime could not be started.
    #[error("starting the server: {0}")]
    Runtime(io::Error),
}
