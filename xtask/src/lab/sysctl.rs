//! Changes a kernel setting for a while and restores it.

use std::io;
use std::path::{Path, PathBuf};

/// A changed setting below `/proc/sys`; dropping it restores the value.
#[derive(Debug)]
pub struct Sysctl {
    path: PathBuf,
    before: String,
}

impl Sysctl {
    /// Sets `path` to `value`.
    pub fn set(path: &Path, value: &str) -> io::Result<Sysctl> {
        let before = std::fs::read_to_string(path)?.trim().to_owned();
        // The guard comes first: it also restores after a write that took effect and failed.
        let sysctl = Sysctl { path: path.to_owned(), before };
        std::fs::write(path, value)?;
        Ok(sysctl)
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(&self.path, &self.before) {
            let (path, before) = (self.path.display(), &self.before);
            eprintln!("xtask: {path} could not be set back to {before}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_put_back() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "0\n").expect("written");
        let sysctl = Sysctl::set(file.path(), "2").expect("set");
        assert_eq!(std::fs::read_to_string(file.path()).expect("there"), "2");
        drop(sysctl);
        assert_eq!(std::fs::read_to_string(file.path()).expect("there"), "0");
    }

    #[test]
    fn a_setting_that_is_not_there_is_an_error() {
        assert!(Sysctl::set(Path::new("/proc/sys/kernel/no_such_setting"), "2").is_err());
    }
}
