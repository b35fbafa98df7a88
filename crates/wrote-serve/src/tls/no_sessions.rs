//! A build without TLS: listeners that need it are refused.

use super::{Loaded, TlsFiles};
use crate::doors::Door;
use std::io;

/// Uninhabited: there are no sessions.
#[derive(Clone, Debug)]
pub(crate) enum Sessions {}

impl TlsFiles {
    /// Fails with one line.
    pub(crate) fn load(&self, _: Door) -> Result<Loaded, String> {
        let cert = self.cert_file.display();
        Err(format!("{cert}: this program was built without TLS; build it with the feature tls"))
    }
}

/// Can't be called.
pub(crate) async fn handshake<S>(_: S, sessions: Sessions) -> io::Result<S> {
    match sessions {}
}
