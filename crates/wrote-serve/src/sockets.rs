//! The sockets that a service manager passes (sd_listen_fds(3)), and the files of Unix sockets.

use crate::config::{Listen, Socket};
use crate::files;
use listenfd::ListenFd;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use socket2::Type;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A socket that a service manager has bound.
pub(crate) type Passed = socket2::Socket;

/// The passed sockets that no listener has taken yet, with their names.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    sockets: Vec<(String, Passed)>,
}

impl Inherited {
    /// Takes the sockets that the environment names, and clears those variables so that child
    /// processes do not use the sockets, too.
    pub(crate) fn from_env() -> io::Result<Inherited> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut fds = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..fds.len() {
            let name = names.next().unwrap_or_default().to_owned();
            let taken = fds
                .take_tcp_listener(index)
                .map(|socket| socket.map(Passed::from))
                .or_else(|_| Ok(fds.take_unix_listener(index)?.map(Passed::from)))
                .or_else(|_: io::Error| Ok(fds.take_udp_socket(index)?.map(Passed::from)))
                .or_else(|_: io::Error| {
                    fds.take_unix_datagram(index).map(|it| it.map(Passed::from))
                })?;
            if let Some(socket) = taken {
                socket.set_nonblocking(true)?;
                sockets.push((name, socket));
            }
        }
        Ok(Inherited { sockets })
    }

    /// Returns whether there is another socket with this listener's name.
    pub(crate) fn has_more_of(&self, listen: &Listen) -> bool {
        listen.socket.passed_name().is_some() && self.place(listen).is_some()
    }

    fn place(&self, listen: &Listen) -> Option<usize> {
        let name = listen.socket.passed_name();
        self.sockets.iter().position(|(known, passed)| match name {
            Some(name) => known == name && is_kind_of(passed, &listen.socket),
            None => is_at(passed, &listen.socket),
        })
    }

    /// Takes a listener's next socket, which is found by the name in its URL or by its address.
    /// Returns `None` if no passed socket has this address, and an error if none has this name.
    pub(crate) fn take(&mut self, listen: &Listen) -> io::Result<Option<Passed>> {
        match (self.place(listen), listen.socket.passed_name()) {
            (Some(index), _) => Ok(Some(self.sockets.remove(index).1)),
            (None, None) => Ok(None),
            (None, Some(name)) => {
                let text = format!("no such socket named '{name}' was passed (FileDescriptorName)");
                Err(io::Error::new(ErrorKind::NotFound, text))
            }
        }
    }

    /// Returns the names of the sockets that no listener took.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &str> {
        self.sockets.iter().map(|(name, _)| name.as_str())
    }
}

fn is_kind_of(passed: &Passed, wanted: &Socket) -> bool {
    let kind = match wanted {
        Socket::Tcp(_) | Socket::Unix(_) => Type::STREAM,
        Socket::Udp(_) | Socket::UnixDatagram(_) => Type::DGRAM,
    };
    let is_unix = passed.local_addr().is_ok_and(|own| own.is_unix());
    is_unix == wanted.path().is_some() && passed.r#type().is_ok_and(|own| own == kind)
}

fn is_at(passed: &Passed, wanted: &Socket) -> bool {
    let Ok(own) = passed.local_addr() else { return false };
    let is_it = match wanted {
        Socket::Tcp(address) | Socket::Udp(address) => {
            let mut known = address.to_socket_addrs().into_iter().flatten();
            known.any(|address| own.as_socket() == Some(address))
        }
        Socket::Unix(path) | Socket::UnixDatagram(path) => own.as_pathname() == Some(path),
    };
    is_it && is_kind_of(passed, wanted)
}

/// The length of the queue of connections to be accepted. If it overflows, for example after a
/// restart, clients retry after a second or more. The kernel limits the length to `somaxconn`
/// (`listen(2)`).
pub(crate) const BACKLOG: i32 = 4096;

/// The file of a bound socket, which is removed when dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The file's device and inode: if another process has replaced the file, it is not removed.
    identity: (u64, u64),
}

impl SocketFile {
    /// Binds a socket at `path`, and listens if `kind` is `STREAM`. If a mode is given, sets the
    /// mode of the socket's file. Replaces the file of a socket that is no longer open; any other
    /// file is an error (W7). The socket never blocks.
    pub(crate) fn bind<S: From<OwnedFd>>(
        path: &Path,
        mode: Option<u32>,
        kind: SocketType,
    ) -> io::Result<(S, SocketFile)> {
        files::make_parents(path)?;
        if let Ok(metadata) = fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                let kind = ErrorKind::AlreadyExists;
                return Err(io::Error::new(kind, "a file that is not a socket exists there"));
            }
            // A datagram socket can be used for the test: the kernel looks for the owning process
            // before it compares socket types.
            let connected = UnixDatagram::unbound()?.connect(path);
            if connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                fs::remove_file(path)?;
            }
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        if let Some(mode) = mode {
            // The file is created with this mode minus the umask, so that it is never open to more
            // users.
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
            // If the file can't be removed, the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::Bound;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

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
            let passed = Passed::from(socket());
            passed.set_nonblocking(true).unwrap();
            (name.to_owned(), passed)
        });
        let address = |passed: &Passed| {
            passed.local_addr().unwrap().as_socket().expect("it is of TCP").to_string()
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
