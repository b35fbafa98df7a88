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
    #[error("{url}: {}", unbound(source))]
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

/// Explains why a socket could not be bound, with the way out where there is one.
fn unbound(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another socket listens here; stop it, or choose another address".into()
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
        let expected = "tcp://a:1: another socket listens here; stop it, or choose another address";
        assert_eq!(told, expected);
    }
}
