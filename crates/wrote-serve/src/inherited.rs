//! Sockets that a service manager has bound and passes on, as sd_listen_fds(3) describes.

use crate::config::{Listen, Socket};
use listenfd::ListenFd;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};

/// The host of a URL that stands for a socket's name: `tcp://fd:NAME`.
const BY_NAME: &str = "fd:";

/// The sockets that were passed on and not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    sockets: Vec<(String, Passed)>,
}

/// A socket that was passed on.
#[derive(Debug)]
pub(crate) enum Passed {
    Tcp(TcpListener),
    Unix(UnixListener),
    Udp(UdpSocket),
    UnixDatagram(UnixDatagram),
}

impl Inherited {
    /// Takes the sockets that the environment names, and removes them from it, so that no child
    /// takes them, too.
    pub(crate) fn from_env() -> io::Result<Inherited> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut fds = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..fds.len() {
            let name = names.next().unwrap_or_default().to_owned();
            let socket = match fds.take_tcp_listener(index) {
                Ok(socket) => socket.map(Passed::Tcp),
                Err(_) => match fds.take_unix_listener(index) {
                    Ok(socket) => socket.map(Passed::Unix),
                    Err(_) => match fds.take_udp_socket(index) {
                        Ok(socket) => socket.map(Passed::Udp),
                        Err(_) => fds.take_unix_datagram(index)?.map(Passed::UnixDatagram),
                    },
                },
            };
            if let Some(socket) = socket {
                socket.set_nonblocking()?;
                sockets.push((name, socket));
            }
        }
        Ok(Inherited { sockets })
    }

    /// Takes the socket of a listener: by the name in its URL, or by its address.
    pub(crate) fn take(&mut self, listen: &Listen) -> io::Result<Option<Passed>> {
        let name = name(&listen.socket);
        let is_it = |(known, passed): &(String, Passed)| match name {
            Some(name) => known == name && passed.is_kind_of(&listen.socket),
            None => passed.is_at(&listen.socket),
        };
        match (self.sockets.iter().position(is_it), name) {
            (Some(index), _) => Ok(Some(self.sockets.swap_remove(index).1)),
            (None, None) => Ok(None),
            (None, Some(name)) => {
                let text = format!("no such socket named '{name}' was passed (FileDescriptorName)");
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
        }
    }

    /// Returns the names of the sockets that no listener has taken.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &str> {
        self.sockets.iter().map(|(name, _)| name.as_str())
    }
}

impl Passed {
    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Passed::Tcp(socket) => socket.set_nonblocking(true),
            Passed::Unix(socket) => socket.set_nonblocking(true),
            Passed::Udp(socket) => socket.set_nonblocking(true),
            Passed::UnixDatagram(socket) => socket.set_nonblocking(true),
        }
    }

    fn is_kind_of(&self, socket: &Socket) -> bool {
        matches!(
            (self, socket),
            (Passed::Tcp(_), Socket::Tcp(_))
                | (Passed::Unix(_), Socket::Unix(_))
                | (Passed::Udp(_), Socket::Udp(_))
                | (Passed::UnixDatagram(_), Socket::UnixDatagram(_))
        )
    }

    fn is_at(&self, socket: &Socket) -> bool {
        let is_one = |address: &str, own: io::Result<SocketAddr>| {
            let mut known = address.to_socket_addrs().into_iter().flatten();
            own.is_ok_and(|own| known.any(|address| address == own))
        };
        match (self, socket) {
            (Passed::Tcp(own), Socket::Tcp(address)) => is_one(address, own.local_addr()),
            (Passed::Udp(own), Socket::Udp(address)) => is_one(address, own.local_addr()),
            (Passed::Unix(own), Socket::Unix(path)) => {
                own.local_addr().is_ok_and(|own| own.as_pathname() == Some(path))
            }
            (Passed::UnixDatagram(own), Socket::UnixDatagram(path)) => {
                own.local_addr().is_ok_and(|own| own.as_pathname() == Some(path))
            }
            _ => false,
        }
    }
}

/// Returns the name by which a URL asks for a socket. A number is the port of a host named `fd`.
fn name(socket: &Socket) -> Option<&str> {
    let address = match socket {
        Socket::Tcp(address) | Socket::Udp(address) => address.as_str(),
        Socket::Unix(path) | Socket::UnixDatagram(path) => path.to_str()?,
    };
    address.strip_prefix(BY_NAME).filter(|name| name.parse::<u16>().is_err())
}
