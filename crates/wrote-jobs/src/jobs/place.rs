//! The kind of file that the path of a job's file leads to.

use crate::machine::target::{check_file_system, unexamined};
use crate::spec::JobSpec;
use std::io::{self, Seek};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use wrote_result::Error;

/// Returns one name for all paths that lead to a file, whether it exists or not. Hard links to the
/// file have different names.
pub fn file_key(path: &Path) -> PathBuf {
    let of_folder = || Some(std::fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?));
    let key = std::fs::canonicalize(path).ok().or_else(of_folder);
    key.unwrap_or_else(|| path.to_owned())
}

/// Returns the folder that contains the last component of the path.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The maximum number of links that are followed to a file, as in the kernel
/// (`path_resolution(7)`).
const LINKS_MAX: usize = 40;

/// Returns the path that a link leads to if no file exists there yet; `None` for any other path.
pub fn where_link_leads(path: &Path) -> Option<PathBuf> {
    if path.exists() || !path.is_symlink() {
        return None;
    }
    let mut place = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&place) else { return Some(place) };
        place = folder_of(&place).join(target);
    }
    None
}

/// The identity that all names of a file share, including hard links. For a file that does not
/// exist yet, its future path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// An existing file, by the numbers of its device and inode.
    There(u64, u64),
    /// A file that does not exist yet.
    Coming(PathBuf),
}

impl Identity {
    pub fn of(path: &Path) -> Identity {
        match std::fs::metadata(path) {
            Ok(found) => Identity::There(found.dev(), found.ino()),
            Err(_) => Identity::Coming(file_key(path)),
        }
    }
}

/// The kind of file that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing. The file can be created, along with the folders above it.
    Missing,
    File {
        len_bytes: u64,
    },
    Device {
        len_bytes: u64,
    },
}

impl Kind {
    /// Refuses a job that would write to a device or overwrite a file without permission.
    pub fn check_write(
        self,
        path: &Path,
        spec: &JobSpec,
        overwrite: bool,
        devices: bool,
    ) -> Result<(), Error> {
        let what = match self {
            Kind::Device { .. } if !devices => "is a block device, which jobs may only read",
            Kind::File { .. } if !overwrite => {
                "exists and would be overwritten; --overwrite allows it"
            }
            _ => return Ok(()),
        };
        let refused = || Error::Usage(format!("{}: {what}", path.display()));
        if spec.order.rw.write { Err(refused()) } else { Ok(()) }
    }
}

/// Returns the kind of file that a path leads to. Refuses anything but a regular file or a block
/// device.
pub fn kind(path: &Path) -> Result<Kind, Error> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.ancestors().skip(1).find(|folder| folder.exists());
            let Some(Err(because)) = folder.map(check_file_system) else {
                return Ok(Kind::Missing);
            };
            return Err(Error::Usage(format!("{}: does not exist, and {because}", path.display())));
        }
        Err(error) => return Err(unexamined(path, &error)),
    };
    if metadata.is_file() {
        return Ok(Kind::File { len_bytes: metadata.len() });
    }
    if metadata.file_type().is_block_device() {
        let end = std::fs::File::open(path).and_then(|mut file| file.seek(io::SeekFrom::End(0)));
        let right = "only root and the group that owns a disk may open it";
        let refused = |error| Error::Failed(format!("{}: open: {error}; {right}", path.display()));
        return Ok(Kind::Device { len_bytes: end.map_err(refused)? });
    }
    let shown = path.display();
    if path == Path::new("/dev/null") {
        let what = "discards what is written: name a file, or leave out filename";
        return Err(Error::Usage(format!("{shown}: {what}")));
    }
    Err(Error::Usage(format!("{shown}: is neither a file nor a block device")))
}

/// Returns the number of bytes in the blocks allocated to a file; 0 if the file does not exist.
pub fn allocated_bytes(path: &Path) -> u64 {
    // The unit is 512 bytes, whatever the file system's block size (`stat(2)`).
    std::fs::metadata(path).map_or(0, |metadata| metadata.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_file_are_one_whether_it_is_there_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let [direct, around] = ["file", "./x/../file"].map(|name| folder.path().join(name));
        std::fs::create_dir(folder.path().join("x")).unwrap();
        assert_eq!(file_key(&direct), file_key(&around));
        std::fs::write(&direct, "").unwrap();
        assert_eq!(file_key(&direct), file_key(&around));
        std::os::unix::fs::symlink(&direct, folder.path().join("link")).unwrap();
        assert_eq!(file_key(&folder.path().join("link")), file_key(&direct));
    }

    #[test]
    fn files_and_nothing_are_told_apart_and_all_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert_eq!(kind(&file).unwrap(), Kind::Missing);
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(kind(&file).unwrap(), Kind::File { len_bytes: 5 });
        let refusal = |path: &Path| kind(path).unwrap_err().to_string();
        assert!(refusal(folder.path()).contains("neither a file nor a block device"));
        assert!(refusal(Path::new("/dev/zero")).contains("neither a file nor a block device"));
        assert!(refusal(Path::new("/dev/null")).contains("discards what is written"));
        assert_eq!(kind(&folder.path().join("no/such/file")).unwrap(), Kind::Missing);
        for (path, name) in [("/proc/no/such", "proc"), ("/dev/nosuch", "/dev")] {
            let because = format!("does not exist, and only the kernel creates files in {name}");
            assert_eq!(refusal(Path::new(path)), format!("{path}: {because}"));
        }
        assert!(refusal(&file.join("below/it")).ends_with(": a part of the path is a file"));
    }
}
