//! The search for programs.

use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// The folders in which programs are searched, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    folders: Vec<PathBuf>,
}

impl Search {
    /// The folders of `PATH`, and then `~/.local/bin`, where pip and many installers put programs.
    /// Relative folders are left out: their programs depend on the working folder.
    pub(super) fn of_environment() -> Search {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let folders = std::env::split_paths(&path).chain(home.map(|home| home.join(".local/bin")));
        Search::of(folders.collect())
    }

    pub(super) fn of(mut folders: Vec<PathBuf>) -> Search {
        folders.retain(|folder| folder.is_absolute());
        Search { folders }
    }

    /// Returns the program's path: `name` itself if it is one. `None` without such a program, or if
    /// its path is not UTF-8.
    pub(super) fn find(&self, name: &str) -> Option<String> {
        let paths = self.folders.iter().map(|folder| folder.join(name));
        let alone = name.contains('/').then(|| PathBuf::from(name));
        let mut paths = alone.iter().cloned().chain(paths.filter(|_| alone.is_none()));
        paths.find(|path| is_program(path))?.into_os_string().into_string().ok()
    }
}

/// Reports missing programs: `zig: not found in PATH nor in ~/.local/bin`.
pub(super) fn not_found(names: &[String]) -> String {
    format!("{}: not found in PATH nor in ~/.local/bin", names.join(", "))
}

/// Returns whether a path is a file that we may run.
fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
