//! A folder's content as data: it can be created on disk, and compared with another tree.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Permissions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The content of a folder: each entry's kind and mode, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<PathBuf, (Entry, Option<u32>)>);

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A folder.
    Folder,
    /// A symbolic link and its target.
    Link(PathBuf),
    /// A file's content.
    File(Bytes),
}

/// A file's content, which several trees may share, with its hash once computed.
#[derive(Clone, Debug, Default)]
pub struct Bytes(Arc<(Vec<u8>, OnceLock<u64>)>);

impl Bytes {
    /// Returns a hash of the content.
    pub fn hash(&self) -> u64 {
        *self.0.1.get_or_init(|| xxh3_64(&self.0.0))
    }

    /// Returns the content for modification, as a copy if it is shared.
    pub fn to_mut(&mut self) -> &mut Vec<u8> {
        let (bytes, hash) = Arc::make_mut(&mut self.0);
        hash.take();
        bytes
    }
}

impl<B: Into<Vec<u8>>> From<B> for Bytes {
    fn from(bytes: B) -> Bytes {
        Bytes(Arc::new((bytes.into(), OnceLock::new())))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.0
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Eq for Bytes {}

impl Tree {
    /// Returns a file's content; `None` for any other path.
    pub fn file(&self, path: &Path) -> Option<&[u8]> {
        match self.0.get(path) {
            Some((Entry::File(bytes), _)) => Some(bytes),
            _ => None,
        }
    }

    /// Creates this content in an empty folder.
    ///
    /// # Errors
    ///
    /// The errors of the kernel.
    pub fn make(&self, folder: &Path) -> io::Result<()> {
        self.make_by(folder, &mut |path, bytes| fs::write(path, &**bytes))
    }

    /// Creates this content in an empty folder, writing each file by `put`.
    ///
    /// # Errors
    ///
    /// The errors of the kernel.
    pub fn make_by(
        &self,
        folder: &Path,
        put: &mut dyn FnMut(&Path, &Bytes) -> io::Result<()>,
    ) -> io::Result<()> {
        for (path, (entry, mode)) in &self.0 {
            let path = folder.join(path);
            match entry {
                Entry::Folder => fs::create_dir(&path)?,
                Entry::Link(to) => std::os::unix::fs::symlink(to, &path)?,
                Entry::File(bytes) => put(&path, bytes)?,
            }
            if let (Some(mode), Entry::File(_)) = (mode, entry) {
                fs::set_permissions(&path, Permissions::from_mode(*mode))?;
            }
        }
        // Modes are set last and inner entries first, because a mode may forbid creating entries.
        for (path, (entry, mode)) in self.0.iter().rev() {
            if let (Some(mode), Entry::Folder) = (mode, entry) {
                fs::set_permissions(folder.join(path), Permissions::from_mode(*mode))?;
            }
        }
        Ok(())
    }

    /// Returns a hash of the paths and the content.
    pub fn signature(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        for (path, (entry, _)) in &self.0 {
            hash.update(path.as_os_str().as_encoded_bytes());
            match entry {
                Entry::Folder => hash.update(&[0]),
                Entry::Link(to) => hash.update(to.as_os_str().as_encoded_bytes()),
                Entry::File(bytes) => hash.update(&bytes.hash().to_le_bytes()),
            }
        }
        hash.digest()
    }

    /// Describes how the files differ from those in `whole`.
    pub fn losses(&self, whole: &Tree) -> Vec<String> {
        let paths: HashSet<&PathBuf> = self.0.keys().chain(whole.0.keys()).collect();
        let mut losses: Vec<String> = paths
            .into_iter()
            .filter(|path| self.0.get(*path).map(|of| &of.0) != whole.0.get(*path).map(|of| &of.0))
            .map(|path| format!("{} {}", path.display(), self.loss(whole, path)))
            .collect();
        losses.sort();
        losses
    }

    fn loss(&self, whole: &Tree, path: &Path) -> &'static str {
        match (self.file(path), whole.file(path)) {
            _ if !self.0.contains_key(path) => "is missing",
            _ if !whole.0.contains_key(path) => "is still there",
            (Some([]), _) => "is empty",
            (Some(bytes), Some(_)) if bytes.iter().all(|byte| *byte == 0) => "has zeros",
            (Some(bytes), Some(all)) if all.starts_with(bytes) => "is truncated",
            _ => "differs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_by_its_kind() {
        let file = |bytes: &[u8]| (Entry::File(bytes.into()), None);
        let tree = |entries: &[(&str, (Entry, Option<u32>))]| {
            Tree(entries.iter().map(|(path, entry)| (path.into(), entry.clone())).collect())
        };
        let whole =
            ["cut", "empty", "gone", "other", "same", "zeros"].map(|path| (path, file(b"ab")));
        let whole = tree(&whole);
        let left = tree(&[
            ("cut", file(b"a")),
            ("empty", file(b"")),
            ("old", (Entry::Folder, None)),
            ("other", file(b"ba")),
            ("same", file(b"ab")),
            ("zeros", file(b"\0\0")),
        ]);
        let losses = [
            "cut is truncated",
            "empty is empty",
            "gone is missing",
            "old is still there",
            "other differs",
            "zeros has zeros",
        ];
        assert_eq!(left.losses(&whole), losses);
        assert_ne!(left.signature(), whole.signature());
        let link = |to: &str| tree(&[("l", (Entry::Link(to.into()), None))]);
        assert_ne!(link("a").signature(), link("b").signature());
        assert_eq!(link("a").signature(), link("a").signature());
    }

    #[test]
    fn a_state_is_made_in_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let tree = Tree(BTreeMap::from([
            ("in".into(), (Entry::Folder, Some(0o500))),
            ("in/file".into(), (Entry::File(b"x".into()), Some(0o640))),
            ("link".into(), (Entry::Link("in/file".into()), None)),
        ]));
        tree.make(place.path()).unwrap();
        assert_eq!(fs::read(place.path().join("link")).unwrap(), b"x");
        let mode =
            |path| fs::metadata(place.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("in"), mode("in/file")), (0o500, 0o640));
        fs::set_permissions(place.path().join("in"), Permissions::from_mode(0o700)).unwrap();
    }
}
