//! Sockets bound and passed by a service manager, as sd_listen_fds(3) describes.

use crate::config::{Listen, Socket};
use listenfd::ListenFd;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};

/// The host of a URL that refers to a socket by name: `tcp://fd:NAME`.
const BY_NAME: &str = "fd:";

/// Passed sockets that have not been taken.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    sockets: Vec<(String, Passed)>,
}

/// A passed socket.
#[derive(Debug)]
pub(crate) enum Passed {
    Tcp(TcpListener),
    Unix(UnixListener),
    Udp(UdpSocket),
    UnixDatagram(UnixDatagram),
}

impl Inherited {
    /// Takes the sockets that the environment names, and clears those variables so that child
    /// processes do not use them too.
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

    /// Returns whether another socket has this listener's name.
    pub(crate) fn has_more_of(&self, listen: &Listen) -> bool {
        name(&listen.socket).is_some() && self.place(listen).is_some()
    }

    fn place(&self, listen: &Listen) -> Option<usize> {
        let name = name(&listen.socket);
        self.sockets.iter().position(|(known, passed)| match name {
            Some(name) => known == name && passed.is_kind_of(&listen.socket),
            None => passed.is_at(&listen.socket),
        })
    }

    /// Takes a listener's next socket, by the name in its URL or by its address.
    pub(crate) fn take(&mut self, listen: &Listen) -> io::Result<Option<Passed>> {
        match (self.place(listen), name(&listen.socket)) {
            (Some(index), _) => Ok(Some(self.sockets.remove(index).1)),
            (None, None) => Ok(None),
            (None, Some(name)) => {
                let text = format!("no such socket named '{name}' was passed (FileDescriptorName)");
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
        }
    }

    /// Returns the names of sockets that no listener took.
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

/// Returns the socket name in a URL. A number is a port of the host `fd`.
pub(crate) fn name(socket: &Socket) -> Option<&str> {
    let address = match socket {
        Socket::Tcp(address) | Socket::Udp(address) => address.as_str(),
        Socket::Unix(path) | Socket::UnixDatagram(path) => path.to_str()?,
    };
    address.strip_prefix(BY_NAME).filter(|name| name.parse::<u16>().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::Bound;

    #[test]
    fn all_sockets_of_a_name_are_those_of_its_listener() {
        let socket = || TcpListener::bind("127.0.0.1:0").unwrap();
        let sockets = ["relp", "other", "relp"].map(|name| {
            let passed = Passed::Tcp(socket());
            passed.set_nonblocking().unwrap();
            (name.to_owned(), passed)
        });
        let address = |passed: &Passed| match passed {
            Passed::Tcp(socket) => socket.local_addr().unwrap().to_string(),
            _ => panic!("it is of TCP"),
        };
        let wanted = [address(&sockets[0].1), address(&sockets[2].1)].map(Socket::Tcp);
        let mut inherited = Inherited { sockets: sockets.into() };
        let listen: Listen = "relp://fd:relp".parse().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bound = runtime.block_on(Bound::bind_all(&listen, &mut inherited)).unwrap();
        let found: Vec<_> = bound.iter().map(|bound| bound.listen(&listen).socket).collect();
        assert_eq!(found, wanted);
        assert!(inherited.rest().eq(["other"]));
        assert!(runtime.block_on(Bound::bind_all(&listen, &mut inherited)).is_err());
    }
}
