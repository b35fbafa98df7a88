//! TLS: certificate and key files, and sessions made from them.

#[cfg(not(feature = "tls"))]
mod no_sessions;
#[cfg(feature = "tls")]
mod sessions;

#[cfg(not(feature = "tls"))]
pub(crate) use no_sessions::{Sessions, handshake};
#[cfg(feature = "tls")]
pub(crate) use sessions::{Sessions, handshake};

use std::path::PathBuf;

/// The PEM files of a listener's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its signers'.
    pub cert_file: PathBuf,
    /// The certificate's private key.
    pub key_file: PathBuf,
    /// The authorities of client certificates. If set, clients without a certificate are refused.
    pub client_ca_file: Option<PathBuf>,
}

/// A listener's session settings, loaded from files.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub sessions: Sessions,
    /// When the server's certificate expires, in seconds since 1970.
    pub expires_s: Option<u64>,
    /// A one-line warning that the server's certificate is not valid now.
    pub warning: Option<String>,
}
