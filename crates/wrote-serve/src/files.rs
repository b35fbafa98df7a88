//! The operator's files, the folders of logs and sockets, and the number of descriptors available
//! for connections.

use crate::Error;
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit};
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use wrote_result::units;

/// The maximum size of a file. A device or log that was named by mistake may be endless.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a file. The error is a single line that begins with the path.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    let shown = path.display();
    match read {
        Err(error) => Err(format!("{shown}: {error}")),
        Ok(_) if bytes.len() as u64 > BYTES_MAX => {
            let most = units::bytes(BYTES_MAX);
            Err(format!("{shown}: is longer than {most}, the limit for such a file"))
        }
        Ok(_) => Ok(bytes),
    }
}

/// The mode of folders before the umask is applied.
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

/// Checks whether `path` can be used as a folder, without creating it. If this user may not write
/// there, returns a warning rather than an error, because the server may run as another user.
pub(crate) fn check_folder(path: &Path) -> Result<Option<String>, String> {
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

/// The number of descriptors reserved per log beyond those open at the start: for the next segment
/// while another is removed, shipped or prepared, and for files that are being reopened.
const PER_LOG: u64 = 16;
/// The number of descriptors reserved per reader: for a segment, and for its engine's ring and
/// event.
const PER_READER: u64 = 3;
/// The number of descriptors reserved for operators' connections, a connection being accepted per
/// listener, and the files of a reload.
const OTHERS: u64 = 32;

/// Returns the maximum number of connections, given the number of descriptors that are open now.
/// The remaining descriptors are reserved for logs and readers, because a log that cannot open its
/// next segment fails.
///
/// # Errors
///
/// If not even one connection would fit.
pub(crate) fn connections_max(logs: usize, readers: usize) -> Result<usize, Error> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(usize::MAX) };
    let kept = PER_LOG * logs as u64 + PER_READER * readers as u64 + OTHERS;
    let needed = open() + kept;
    match limit.checked_sub(needed) {
        None | Some(0) => Err(Error::Config(format!(
            "the limit of open files is {limit}, but the server needs {needed} even without a \
             connection: raise it (ulimit -n, LimitNOFILE)"
        ))),
        Some(left) => Ok(usize::try_from(left).unwrap_or(usize::MAX)),
    }
}

/// Returns the number of open descriptors, or an estimate if /proc is missing.
fn open() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(64, |files| files.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_made_is_told_by_what_stands_in_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        assert_eq!(check_folder(folder.path()), Ok(None));
        assert_eq!(check_folder(&at("a/b/c")), Ok(None));
        assert!(check_folder(Path::new("of this folder")).is_ok());
        assert!(!at("a").exists());
        for name in ["file", "file/b"] {
            let told = check_folder(&at(name)).unwrap_err();
            assert!(told.ends_with("file: is not a folder"), "{told}");
        }
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        assert!(check_folder(&at("link/a")).unwrap_err().ends_with("leads nowhere"));
        make_parents(&at("a/b/c")).unwrap();
        assert!(at("a/b").is_dir() && !at("a/b/c").exists());
    }
}
