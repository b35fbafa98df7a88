//! The repository's root, and cargo and git in it.

use crate::tools::failure::Failure;
use crate::tools::run::{HANG, Show, output, run};
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

/// Returns cargo's target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Lists the files that git knows or would add below `paths`; an empty `paths` means all.
pub fn files(paths: &[&str]) -> Result<Vec<String>, Failure> {
    let mut list = Command::new("git");
    list.current_dir(root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = output(list.arg("--").args(paths), "git ls-files")?;
    // The removal of a file may not be committed yet.
    let files = list.split_terminator('\0').filter(|file| root().join(file).exists());
    Ok(files.map(str::to_owned).collect())
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
