//! A client's stream, plain or encrypted, which reports whether it has unread bytes.

#[cfg(feature = "tls")]
mod tls;

use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::ioctl_fionread;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
#[cfg(feature = "tls")]
use tls::load;
#[cfg(feature = "tls")]
pub(crate) use tls::{Sessions, handshake};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A client's stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns the socket that the stream uses.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Returns whether the stream or the kernel has unread bytes. The runtime may not know of them
    /// yet.
    fn has_unread(&mut self) -> bool {
        ioctl_fionread(self.socket()).is_ok_and(|bytes| bytes > 0)
    }

    /// Returns whether the client has closed its side of the stream (`POLLRDHUP` in poll(2)), even
    /// if unread bytes remain.
    fn has_hung_up(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.socket(), PollFlags::RDHUP)];
        // A timeout of zero means not to wait.
        event::poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Returns the name in the client's certificate; `None` if there is no certificate.
    fn certificate_name(&self) -> Option<String> {
        None
    }
}

impl Stream for TcpStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Stream for UnixStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// The PEM files of the server's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by the certificates of its signers.
    pub cert_file: PathBuf,
    /// The certificate's private key.
    pub key_file: PathBuf,
    /// The authorities that sign client certificates. If set, clients without a certificate are
    /// refused.
    pub client_ca_file: Option<PathBuf>,
}

/// The settings of TLS sessions, loaded from files.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub sessions: Sessions,
    /// The time at which the server's certificate expires, in seconds since 1970.
    pub expires_s: Option<u64>,
    /// A one-line warning if the server's certificate is currently not valid.
    pub warning: Option<String>,
}

impl TlsFiles {
    /// Reads the files for sessions. The error is a single line.
    pub(crate) fn load(&self) -> Result<Loaded, String> {
        match self.cert_file.as_os_str().is_empty() || self.key_file.as_os_str().is_empty() {
            true => Err("cert_file and key_file go together".to_owned()),
            false => load(self),
        }
    }
}

/// An uninhabited type, because a build without TLS has no sessions.
#[cfg(not(feature = "tls"))]
#[derive(Clone, Debug)]
pub(crate) enum Sessions {}

#[cfg(not(feature = "tls"))]
fn load(files: &TlsFiles) -> Result<Loaded, String> {
    let cert = files.cert_file.display();
    Err(format!("{cert}: this program was built without TLS; build it with the feature tls"))
}

/// Cannot be called, because no value of [`Sessions`] exists.
#[cfg(not(feature = "tls"))]
pub(crate) async fn handshake<S>(_: S, sessions: Sessions) -> std::io::Result<S> {
    match sessions {}
}
