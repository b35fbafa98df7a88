//! Whether a path can be examined, and whether files can be created there, tried without creating
//! one.

use rustix::fs::{AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;
use wrote_result::Error;

pub use rustix::fs::Access;

/// File systems where only the kernel creates files. Their folders look writable to root.
const OF_THE_KERNEL: [&str; 10] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "proc",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Returns the metadata of a path that a user named, links followed.
///
/// # Errors
///
/// [`Error::Usage`] if it does not exist, else [`Error::Failed`]; both in one line.
pub fn examined(path: &Path) -> Result<Metadata, Error> {
    std::fs::metadata(path).map_err(|error| unexamined(path, &error))
}

/// Returns the line for a path that a user named and the kernel could not examine or read.
pub fn unexamined(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => Error::Usage(format!("{shown}: does not exist")),
        ErrorKind::NotADirectory => Error::Usage(format!("{shown}: a part of it is a file")),
        _ => Error::Failed(format!("{shown}: can't be examined: {error}")),
    }
}

/// Fails if no file can be created in an existing folder, as far as that is known beforehand.
pub fn check_new(folder: &Path) -> io::Result<()> {
    let filesystem = wrote::device::examine(folder).map(|target| target.filesystem);
    match filesystem {
        Ok(name) if OF_THE_KERNEL.contains(&name.as_str()) => {
            Err(io::Error::other(format!("only the kernel makes files in {name}")))
        }
        _ => check(folder, Access::WRITE_OK | Access::EXEC_OK),
    }
}

/// Fails if the kernel refuses this access: by permissions, a mount or file system that is
/// read-only, or the attribute `i` (`faccessat2(2)`, `chattr(1)`).
pub fn check(path: &Path, access: Access) -> io::Result<()> {
    let refused = match accessat(CWD, path, access, AtFlags::EACCESS) {
        // Old containers answer this to every newer system call.
        Err(Errno::PERM) => accessat(CWD, path, access, AtFlags::empty()),
        result => result,
    };
    match refused {
        Err(errno @ (Errno::ACCESS | Errno::ROFS | Errno::PERM)) => Err(errno.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_can_be_created_in_a_file_system_of_the_kernel() {
        for (folder, name) in [("/proc", "proc"), ("/proc/self/fd", "proc"), ("/sys", "sysfs")] {
            let error = check_new(Path::new(folder)).unwrap_err().to_string();
            assert_eq!(error, format!("only the kernel makes files in {name}"));
        }
        check_new(tempfile::tempdir().unwrap().path()).unwrap();
    }

    #[test]
    fn a_path_that_leads_nowhere_is_wrong_usage() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(examined(&file).unwrap().is_file());
        for (path, because) in [
            (folder.path().join("missing"), "does not exist"),
            (file.join("below"), "a part of it is a file"),
        ] {
            let error = examined(&path).unwrap_err();
            assert!(matches!(error, Error::Usage(_)), "{error:?}");
            assert_eq!(error.to_string(), format!("{}: {because}", path.display()));
        }
    }
}
