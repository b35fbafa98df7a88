//! Where programs are looked for.

use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// The folders in which programs are looked for, the first first.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    folders: Vec<PathBuf>,
}

impl Search {
    /// Those of `PATH`, and then `~/.local/bin`, where pip and many installers put programs. Folders that are
    /// named from the working folder are left out: what is found there depends on where one stands.
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

    /// The program's path: `name` itself where that is one. None where there is no such program, or its path
    /// is not UTF-8.
    pub(super) fn find(&self, name: &str) -> Option<String> {
        let mut paths = self.folders.iter().map(|folder| folder.join(name));
        // An absolute name takes the place of the folder.
        let found = match name.contains('/') {
            true => Some(PathBuf::from(name)).filter(|path| is_program(path)),
            false => paths.find(|path| is_program(path)),
        };
        found?.into_os_string().into_string().ok()
    }
}

/// `zig: not found in PATH nor in ~/.local/bin`, of one or several programs.
pub(super) fn not_found(names: &[String]) -> String {
    format!("{}: not found in PATH nor in ~/.local/bin", names.join(", "))
}

/// Whether it is a file that we may run.
fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
