//! Creates missing folders for logs and sockets.

use rustix::fs::{Access, access};
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The mode of folders before the umask.
const MODE: u32 = 0o750;

/// Creates the parent folders of `path`.
pub(crate) fn make_parents(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent != Path::new("") => {
            DirBuilder::new().recursive(true).mode(MODE).create(parent)
        }
        _ => Ok(()),
    }
}

/// Checks whether `path` can be used as a folder, without creating it. Returns a warning if this
/// user may not write there, as the server may run as another.
pub(crate) fn check(path: &Path) -> Result<Option<String>, String> {
    let named = |place: &Path| match place {
        empty if empty == Path::new("") => Path::new(".").to_owned(),
        place => place.to_owned(),
    };
    let mut places = path.ancestors().map(named);
    let place = places.find(|place| place.symlink_metadata().is_ok());
    let place = place.unwrap_or_else(|| Path::new("/").to_owned());
    let shown = place.display();
    match place.metadata() {
        Ok(metadata) if !metadata.is_dir() => return Err(format!("{shown}: is not a folder")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(format!("{shown}: is a link that leads nowhere"));
        }
        _ => {}
    }
    let access = access(&place, Access::WRITE_OK | Access::EXEC_OK);
    Ok(access.err().map(|error| format!("{shown}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_made_is_told_by_what_stands_in_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        assert_eq!(check(folder.path()), Ok(None));
        assert_eq!(check(&at("a/b/c")), Ok(None));
        assert!(check(Path::new("of this folder")).is_ok());
        assert!(!at("a").exists());
        for name in ["file", "file/b"] {
            let told = check(&at(name)).unwrap_err();
            assert!(told.ends_with("file: is not a folder"), "{told}");
        }
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        assert!(check(&at("link/a")).unwrap_err().ends_with("leads nowhere"));
        make_parents(&at("a/b/c")).unwrap();
        assert!(at("a/b").is_dir() && !at("a/b/c").exists());
    }
}
