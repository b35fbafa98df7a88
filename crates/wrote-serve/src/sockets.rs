//! Sockets that a service manager passes (sd_listen_fds(3)), and the files of Unix sockets.

use crate::config::{Listen, Socket};
use crate::files;
use listenfd::ListenFd;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

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
        listen.socket.passed_name().is_some() && self.place(listen).is_some()
    }

    fn place(&self, listen: &Listen) -> Option<usize> {
        let name = listen.socket.passed_name();
        self.sockets.iter().position(|(known, passed)| match name {
            Some(name) => known == name && passed.is_kind_of(&listen.socket),
            None => passed.is_at(&listen.socket),
        })
    }

    /// Takes a listener's next socket, by the name in its URL or by its address.
    pub(crate) fn take(&mut self, listen: &Listen) -> io::Result<Option<Passed>> {
        match (self.place(listen), listen.socket.passed_name()) {
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

/// The queue of connections to accept. If it overflows, as after a restart, clients retry after a
/// second or more. The kernel limits it to `somaxconn` (`listen(2)`).
pub(crate) const BACKLOG: i32 = 4096;

/// The file of a bound socket, removed when dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode: if another process has replaced the file, it stays.
    identity: (u64, u64),
}

impl SocketFile {
    /// Binds a socket at `path`, whose file gets this mode if given, and listens if `kind` is
    /// `STREAM`. Replaces the file of a socket that is no longer open; any other file is an error
    /// (W7). The socket never blocks.
    pub(crate) fn bind<S: From<OwnedFd>>(
        path: &Path,
        mode: Option<u32>,
        kind: SocketType,
    ) -> io::Result<(S, SocketFile)> {
        files::make_parents(path)?;
        if let Ok(metadata) = fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                let kind = ErrorKind::AlreadyExists;
                return Err(io::Error::new(kind, "a file that is not a socket is there"));
            }
            // The kernel looks for the owning process before it compares socket types.
            if UnixDatagram::unbound()?.connect(path).is_err_and(is_refused) {
                fs::remove_file(path)?;
            }
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        if let Some(mode) = mode {
            // Its file is made with this mode, less the umask: it is never open to more users.
            fchmod(&socket, Mode::from_raw_mode(mode))?;
        }
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        let identity = identity(path)?;
        let file = SocketFile { path: path.to_owned(), identity };
        if let Some(mode) = mode {
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        if kind == SocketType::STREAM {
            rustix::net::listen(&socket, BACKLOG)?;
        }
        Ok((S::from(socket), file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // The next server replaces a file that can't be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_refused(error: io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::Bound;

    fn bind(path: &Path, kind: SocketType) -> io::Result<(OwnedFd, SocketFile)> {
        SocketFile::bind(path, None, kind)
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_or_another_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        let (living, file) = bind(&path, SocketType::STREAM).unwrap();
        for kind in [SocketType::DGRAM, SocketType::STREAM] {
            let error = bind(&path, kind).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddrInUse);
        }
        drop((living, file));
        assert!(!path.exists());

        fs::write(&path, "kept").unwrap();
        let error = bind(&path, SocketType::STREAM).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn a_file_that_another_process_put_in_its_place_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (socket, file) = bind(&path, SocketType::DGRAM).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop((socket, file));
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }

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
