//! A small value in a separate file, which a crash leaves old or new.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};

/// The file of one value, as JSON.
pub struct Saved {
    path: PathBuf,
}

impl Saved {
    /// Names the file; it may be missing.
    pub fn new(folder: &Path, name: &str) -> Saved {
        Saved { path: folder.join(name) }
    }

    /// Returns the last saved value, or `None`.
    pub fn load<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        match wrote::read(&self.path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Saves a value: it survives a power loss when the future is ready. A crash before that leaves
    /// the old value or the new.
    pub async fn save<T: Serialize>(&self, value: &T) -> io::Result<()> {
        let (path, bytes) = (self.path.clone(), serde_json::to_vec(value)?);
        blocking(move || Ok(wrote::write(path, bytes)?)).await
    }
}

/// Calls `work` on a thread that may wait for the disk.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
