//! The repository's root, and cargo and git in it.

use crate::failure::Failure;
use crate::run::{HANG, Show, output, run};
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

/// Builds the command with its server, and the program that tries other ways, in release; returns
/// the path of the command.
pub fn release_wrote() -> Result<PathBuf, Failure> {
    let words = ["-p", "wrote-cli", "-p", "trial", "--features", "wrote-cli/serve"];
    // The `lto` that cargo chooses for programs which use the library.
    release(&[&words[..], &["--config", "profile.release.lto=false"]].concat(), "wrote")
}

/// Builds `program` of a lab in release and returns its path.
///
/// The labs' programs, and `wrote` as the README's first command builds it, are built by one
/// command: cargo chooses the features of their dependencies together, and builds them once.
pub fn release_lab(program: &str) -> Result<PathBuf, Failure> {
    let labs = ["wrote-cli", "log-sim", "power-cut", "damage", "soak"];
    release(&labs.map(|package| ["-p", package]).concat(), program)
}

fn release(words: &[&str], program: &str) -> Result<PathBuf, Failure> {
    let mut command = cargo(&["build", "--release"]);
    run(command.args(words), HANG, Show::Live)?.success("the build of the release")?;
    Ok(target().join("release").join(program))
}
