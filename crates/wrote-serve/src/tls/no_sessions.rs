//! A server that was built without TLS: a listener that asks for it is refused.

use super::{Loaded, TlsFiles};
use crate::doors::Door;
use std::io;

/// The settings of sessions, of which there are none.
#[derive(Clone, Debug)]
pub(crate) enum Sessions {}

impl TlsFiles {
    /// Refuses. The error is one line.
    pub(crate) fn load(&self, _: Door) -> Result<Loaded, String> {
        let cert = self.cert_file.display();
        Err(format!("{cert}: this program was built without TLS; build it with the feature tls"))
    }
}

/// Agrees with a client on a session, which can't happen here.
pub(crate) async fn handshake<S>(_: S, sessions: Sessions) -> io::Result<S> {
    match sessions {}
}
