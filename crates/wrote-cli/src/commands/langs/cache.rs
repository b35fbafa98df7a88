//! Where programs are built, and found again by later runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wrote_result::Error;

/// The folder that programs are built in.
#[derive(Debug)]
pub(super) enum Cache {
    /// It stays there for later runs.
    Kept(PathBuf),
    /// It is removed when this is dropped.
    ForThisRun(TempDir),
}

impl Cache {
    /// `$XDG_CACHE_HOME/wrote`, or `~/.cache/wrote` (XDG Base Directory Specification, 0.8). Where
    /// the user has no home, a new folder: a name that others know in a folder that all may write
    /// in is one under which they could leave a program for this user to run.
    pub(super) fn of_user() -> Result<Cache, Error> {
        let variable = |name| std::env::var_os(name);
        if let Some(path) = kept(variable("XDG_CACHE_HOME"), variable("HOME")) {
            return Ok(Cache::Kept(path));
        }
        let made = tempfile::Builder::new().prefix("wrote-").tempdir();
        made.map(Cache::ForThisRun).map_err(|error| {
            let temporary = std::env::temp_dir();
            Error::Failed(format!(
                "no folder to build programs in: {}: {error}",
                temporary.display()
            ))
        })
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Cache::Kept(path) => path,
            Cache::ForThisRun(folder) => folder.path(),
        }
    }
}

/// The folder by the two variables. A relative path in either is as none: the specification has
/// such a `XDG_CACHE_HOME` ignored, and a relative home names another folder from wherever one
/// stands.
fn kept(cache_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute =
        |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(cache_home).or_else(|| Some(absolute(home)?.join(".cache")))?;
    Some(folder.join("wrote"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_specification_has_it() {
        let at = |cache_home: Option<&str>, home: Option<&str>| {
            kept(cache_home.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(at(Some("/c"), Some("/home/me")), Some("/c/wrote".into()));
        assert_eq!(at(None, Some("/home/me")), Some("/home/me/.cache/wrote".into()));
        for ignored in ["", "relative", "./c"] {
            assert_eq!(at(Some(ignored), Some("/me")), Some("/me/.cache/wrote".into()));
            assert_eq!(at(Some(ignored), Some(ignored)), None);
        }
        assert_eq!(at(None, None), None);
    }
}
