//! TLS: the files of certificates and keys, and the sessions that are made from them.

#[cfg(not(feature = "tls"))]
mod no_sessions;
#[cfg(feature = "tls")]
mod sessions;

#[cfg(not(feature = "tls"))]
pub(crate) use no_sessions::{Sessions, handshake};
#[cfg(feature = "tls")]
pub(crate) use sessions::{Sessions, handshake};

use std::path::PathBuf;

/// The files from which a listener has its certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and behind it those that sign it.
    pub cert_file: PathBuf,
    /// The certificate's private key.
    pub key_file: PathBuf,
    /// The certificates that sign those of clients. With it a client without one is refused.
    pub client_ca_file: Option<PathBuf>,
}

/// The settings of a listener's sessions, from its files.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub sessions: Sessions,
    /// When the own certificate expires, in seconds since 1970.
    pub expires_s: Option<u64>,
    /// Says in one line that the own certificate is not valid now.
    pub warning: Option<String>,
}
