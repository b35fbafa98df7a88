//! Streams that tell whether more was received for them.

use rustix::io::ioctl_fionread;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A stream of a client.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Tells whether bytes wait to be read, here or in the kernel. The runtime may not know of them
    /// yet.
    fn has_unread(&mut self) -> bool;

    /// Returns the name in the client's certificate.
    fn certificate_name(&self) -> Option<String> {
        None
    }
}

/// A stream that was accepted.
pub(crate) trait Accepted: Stream + Sized {
    /// Moves it to the runtime that was entered.
    fn moved(self) -> io::Result<Self>;
}

impl Accepted for TcpStream {
    fn moved(self) -> io::Result<TcpStream> {
        TcpStream::from_std(self.into_std()?)
    }
}

impl Accepted for UnixStream {
    fn moved(self) -> io::Result<UnixStream> {
        UnixStream::from_std(self.into_std()?)
    }
}

impl Stream for TcpStream {
    fn has_unread(&mut self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }
}

impl Stream for UnixStream {
    fn has_unread(&mut self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }
}

impl<S: Stream> Stream for Box<S> {
    fn has_unread(&mut self) -> bool {
        (**self).has_unread()
    }

    fn certificate_name(&self) -> Option<String> {
        (**self).certificate_name()
    }
}
