//! Why a server does not start, or ended.

use std::io;

/// Why a server does not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration that cannot be served: a line for each thing that is wrong.
    #[error("{0}")]
    Config(String),
    /// A listener that could not be bound.
    #[error("{url}: {source}")]
    Listen {
        /// The listener.
        url: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A log that could not be opened or closed.
    #[error("{0}")]
    Log(#[from] wrote::Error),
    /// The runtime could not be started.
    #[error("starting the server: {0}")]
    Runtime(io::Error),
}
