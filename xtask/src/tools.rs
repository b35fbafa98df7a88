//! Tools that cargo installs into `target/tools`, each with a fixed version.
//!
//! The file is short because cargo does the work.

use lab::tools::failure::Failure;
use lab::tools::repository::{cargo, target};
use lab::tools::run::{HANG, Show, run, twice};
use std::path::PathBuf;
use std::process::Command;

/// A program from crates.io.
pub struct Tool {
    /// The name of the crate and of its program.
    name: &'static str,
    version: &'static str,
    /// The features to enable instead of the default ones.
    features: &'static str,
}

/// The tool that builds a book from Markdown pages, without the features for its server and its
/// watcher.
pub const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4", features: "search" };

/// The tool that builds Debian packages. It compresses with the program `xz` instead of a library.
pub const CARGO_DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0", features: "" };

/// Returns the path of `tool`. If it is missing, builds it, which takes some minutes; without
/// `install`, skips the step instead.
pub fn provide(tool: &Tool, install: bool) -> Result<PathBuf, Failure> {
    let folder = target().join("tools");
    let program = folder.join("bin").join(tool.name);
    if is_there(&program, tool.version) {
        return Ok(program);
    }
    if !install {
        let (name, version) = (tool.name, tool.version);
        return Err(Failure::Skipped(format!("missing: {name} {version} in {}", folder.display())));
    }
    let build = folder.join("build");
    let fetched = twice(|| {
        let mut command = cargo(&["install", tool.name, "--version", tool.version, "--locked"]);
        command.args(["--no-default-features", "--features", tool.features, "--root"]).arg(&folder);
        command.env("CARGO_TARGET_DIR", &build);
        run(&mut command, HANG, Show::Live)?.success("cargo install")
    });
    // The build folder is many times larger than the program.
    let _ = std::fs::remove_dir_all(&build);
    fetched.map(|_| program)
}

fn is_there(program: &PathBuf, version: &str) -> bool {
    let said = Command::new(program).arg("--version").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim().ends_with(version))
}
