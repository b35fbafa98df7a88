//! Streams that report whether unread bytes exist.

use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::ioctl_fionread;
use std::io;
use std::os::fd::AsFd;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A client's stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns whether unread bytes exist here or in the kernel. The runtime may not know of them
    /// yet.
    fn has_unread(&mut self) -> bool;

    /// Returns whether the client has ended the stream, even if unread bytes precede the end.
    fn has_hung_up(&self) -> bool;

    /// Returns the name in the client's certificate.
    fn certificate_name(&self) -> Option<String> {
        None
    }
}

pub(crate) trait Accepted: Stream + Sized {
    /// Moves it to the current runtime.
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

/// Returns whether the peer has closed a socket's stream (`POLLRDHUP` in poll(2)).
fn has_hung_up(socket: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    // Without waiting.
    event::poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

impl Stream for TcpStream {
    fn has_unread(&mut self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }

    fn has_hung_up(&self) -> bool {
        has_hung_up(self)
    }
}

impl Stream for UnixStream {
    fn has_unread(&mut self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }

    fn has_hung_up(&self) -> bool {
        has_hung_up(self)
    }
}

impl<S: Stream> Stream for Box<S> {
    fn has_unread(&mut self) -> bool {
        (**self).has_unread()
    }

    fn has_hung_up(&self) -> bool {
        (**self).has_hung_up()
    }

    fn certificate_name(&self) -> Option<String> {
        (**self).certificate_name()
    }
}
