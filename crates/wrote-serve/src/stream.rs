//! Streams that tell what the kernel has received for them.

use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A stream of a client.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Tells whether bytes wait in the kernel to be read. The runtime may not know of them yet.
    fn has_unread(&self) -> bool;
}

impl Stream for TcpStream {
    fn has_unread(&self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }
}

impl Stream for UnixStream {
    fn has_unread(&self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }
}
