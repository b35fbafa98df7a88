//! The server: appends messages from many connections to logs, and acknowledges each once it is
//! safe.
//!
//! [`Server::start`] opens the logs of a [`Config`] and binds its listeners; [`Server::run`] serves
//! until it is stopped. The crate neither prints nor measures. This file only lists the modules,
//! and contains what they all share.
//!
//! A message passes from a [`listener`](Listen) through a door, which parses its protocol, into a
//! [`wrote::Log`]. Its answer is sent once the message has reached the listener's [`Level`]: in
//! order, with many answers per write.

mod acks;
mod answers;
mod channel;
mod config;
mod connection;
mod datagrams;
mod doors;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod listen;
mod memory;
mod metrics;
mod operators;
mod port;
mod refusals;
mod server;
mod sockets;
mod stamp;
mod stream;
mod target;
mod workers;

pub use config::access::AccessConfig;
pub use config::{Config, Door, Frame, Key, Limits, Listen, LogConfig, Oversize, Socket, Stamp};
pub use metrics::Figures;
pub use server::{Handle, Server};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
pub use stream::TlsFiles;
pub use target::Level;

/// Locks a mutex, even after another thread has panicked, because no thread leaves a change half
/// done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reason why a server did not start or has stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid configuration, with one line per fault.
    #[error("{0}")]
    Config(String),
    /// A listener could not be bound.
    #[error("{url}: {}", unbound(source))]
    Listen {
        /// The listener.
        url: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A log could not be opened or closed.
    #[error("{0}")]
    Log(#[from] wrote::Error),
    /// The runtime could not be started.
    #[error("starting the server: {0}")]
    Runtime(io::Error),
}

/// Explains why a socket could not be bound, with a remedy if there is one.
fn unbound(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens here: stop it, or choose another address".into()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_is_reported_with_the_way_out() {
        let first = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let source = std::net::TcpListener::bind(first.local_addr().unwrap()).unwrap_err();
        let told = Error::Listen { url: "tcp://a:1".into(), source }.to_string();
        let expected = "tcp://a:1: another program listens here: stop it, or choose another \
                        address";
        assert_eq!(told, expected);
    }
}
