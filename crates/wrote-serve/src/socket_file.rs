//! The file of a Unix socket: created on bind, removed at the end.

use crate::folders;
use std::fs::{self, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The file of a bound socket, removed when dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode: if another process has replaced the file, it stays.
    identity: (u64, u64),
}

impl SocketFile {
    /// Binds a socket at `path`, whose file gets this mode if given. Replaces the file of a socket
    /// that is no longer open; any other file is an error (W7).
    pub(crate) fn bind<'p, S>(
        path: &'p Path,
        mode: Option<u32>,
        bind: impl FnOnce(&'p Path) -> Result<S>,
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
        let socket = bind(path)?;
        let identity = identity(path)?;
        let file = SocketFile { path: path.to_owned(), identity };
        if let Some(mode) = mode {
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        Ok((socket, file))
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

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_or_another_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        let (living, file) = SocketFile::bind(&path, None, UnixListener::bind).unwrap();
        let error = SocketFile::bind(&path, None, UnixDatagram::bind).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let error = SocketFile::bind(&path, None, UnixListener::bind).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop((living, file));
        assert!(!path.exists());

        fs::write(&path, "kept").unwrap();
        let error = SocketFile::bind(&path, None, UnixListener::bind).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn what_another_process_put_in_its_place_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (socket, file) = SocketFile::bind(&path, None, UnixDatagram::bind).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop((socket, file));
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }
}
