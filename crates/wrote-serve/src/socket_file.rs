//! The file of a Unix socket: created on bind, removed at the end.

use crate::folders;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::fs::{self, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

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
    ) -> Result<(S, SocketFile)> {
        folders::make_parents(path)?;
        if let Ok(metadata) = fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                let kind = ErrorKind::AlreadyExists;
                return Err(Error::new(kind, "a file that is not a socket is there"));
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

fn is_refused(error: Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

fn identity(path: &Path) -> Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn bind(path: &Path, kind: SocketType) -> Result<(OwnedFd, SocketFile)> {
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
    fn what_another_process_put_in_its_place_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (socket, file) = bind(&path, SocketType::DGRAM).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop((socket, file));
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }
}
