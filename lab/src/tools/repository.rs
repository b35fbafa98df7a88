//! The repository's root, and cargo and git in it.

use crate::tools::failure::{Failure, Tried};
use crate::tools::run::{HANG, Show, run};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the repository's root.
pub fn root() -> PathBuf {
    // The package may have moved since it was built; cargo names its folder of today.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Returns the absolute path of cargo's target folder.
pub fn target() -> PathBuf {
    let own = || root().join("target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, PathBuf::from);
    // It fails in a folder that was removed alone.
    std::path::absolute(&target).unwrap_or(target)
}

/// Lists the files below `paths`, from the root; an empty `paths` means all. In a path, `*` stands
/// for any letters, slashes too. What `.gitignore` names is left out, with or without git: an
/// unpacked archive has no history.
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

/// Returns whether a line of `.gitignore`, a path from the root or the beginning of names, covers
/// `path`.
fn is_ignored(line: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match line.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => line.strip_prefix('/') == Some(path),
    }
}

/// Replaces an old folder by an empty one.
pub fn fresh(folder: PathBuf) -> Result<PathBuf, Failure> {
    if folder.exists() {
        std::fs::remove_dir_all(&folder).tried(folder.display())?;
    }
    std::fs::create_dir(&folder).tried(folder.display())?;
    Ok(folder)
}

/// Creates the folder of a file.
pub fn make_parent(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder).tried(folder.display())
}

/// Copies a file, creating its folder.
pub fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_parent(to)?;
    std::fs::copy(from, to).map(drop).tried(from.display())
}

/// Prepares the cargo that runs this program, in the repository's root, with `arguments`.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// Builds `program`, the command or the labs', in release, and returns its path.
///
/// The labs' program, and `wrote` as the README's first command builds it, are built by one
/// command: cargo chooses the features of their dependencies together, and builds them once.
pub fn release(program: &str) -> Result<PathBuf, Failure> {
    let mut command = cargo(&["build", "--release", "-p", "wrote-cli", "-p", "lab"]);
    command.args(["--features", "lab/verbs"]);
    run(&mut command, HANG, Show::Live)?.success("the build of the release")?;
    Ok(target().join("release").join(program))
}
