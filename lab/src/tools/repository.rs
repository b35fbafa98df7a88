//! The repository's root, and commands of cargo in it.

use crate::tools::failure::{Failure, Tried};
use crate::tools::run::{HANG, Show, run};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the repository's root.
pub fn root() -> PathBuf {
    // The package may have moved after it was built, but cargo provides its current folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Returns the absolute path of cargo's target folder.
pub fn target() -> PathBuf {
    let own = || root().join("target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, PathBuf::from);
    // This fails if the current folder was removed.
    std::path::absolute(&target).unwrap_or(target)
}

/// Returns the files below `paths`, as paths from the root; if `paths` is empty, returns all files.
/// In a path, `*` matches any characters, including slashes. Files that `.gitignore` names are left
/// out, even without git, because an unpacked archive has no history.
pub fn files(paths: &[&str]) -> Result<Vec<String>, Failure> {
    let ignored = std::fs::read_to_string(root().join(".gitignore")).tried(".gitignore")?;
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).tried(&folder)? {
            let entry = entry.tried(&folder)?;
            let path = format!("{folder}{}", entry.file_name().to_string_lossy());
            if path == ".git" || ignored.lines().any(|line| is_ignored(line, &path)) {
                continue;
            }
            match entry.file_type().tried(&path)?.is_dir() {
                true => folders.push(path + "/"),
                false => files.push(path),
            }
        }
    }
    let is_below = |file: &str, path: &str| match path.split_once('*') {
        Some((begin, end)) => {
            begin.len() + end.len() <= file.len() && file.starts_with(begin) && file.ends_with(end)
        }
        None => file == path || file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')),
    };
    files.retain(|file| paths.is_empty() || paths.iter().any(|path| is_below(file, path)));
    files.sort();
    Ok(files)
}

/// Returns whether a line of `.gitignore`, which is a path from the root or the beginning of names,
/// matches `path`.
fn is_ignored(line: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match line.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => line.strip_prefix('/') == Some(path),
    }
}

/// Creates an empty folder, removing an existing one.
pub fn fresh(folder: PathBuf) -> Result<PathBuf, Failure> {
    if folder.exists() {
        std::fs::remove_dir_all(&folder).tried(folder.display())?;
    }
    std::fs::create_dir(&folder).tried(folder.display())?;
    Ok(folder)
}

/// Creates the folder that contains a file.
pub fn make_parent(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder).tried(folder.display())
}

/// Copies a file, and creates the folder of the copy.
pub fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_parent(to)?;
    std::fs::copy(from, to).map(drop).tried(from.display())
}

/// Prepares a call of the cargo that runs this program, in the repository's root.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// Builds `program`, which is `wrote` or `lab`, in release mode, and returns its path.
///
/// The labs' program, and `wrote` as in the README's first command, are built by a single command.
/// cargo then chooses the features of their dependencies together, and builds these only once.
pub fn release(program: &str) -> Result<PathBuf, Failure> {
    let mut command = cargo(&["build", "--release", "-p", "wrote-cli", "-p", "lab"]);
    command.args(["--features", "lab/verbs"]);
    run(&mut command, HANG, Show::Live)?.success("the build of the release")?;
    Ok(target().join("release").join(program))
}
