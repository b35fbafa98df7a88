//! Tools that cargo installs into `target/tools`, each in a fixed version.
//!
//! The room is short: cargo does the work.

use lab::tools::failure::Failure;
use lab::tools::repository::{cargo, target};
use lab::tools::run::{HANG, Show, run, twice};
use std::path::PathBuf;
use std::process::Command;

/// A program from crates.io.
pub struct Tool {
    /// The crate, and its program.
    name: &'static str,
    version: &'static str,
    /// Its features, without the default ones.
    features: &'static str,
}

/// Makes a book of Markdown pages. Its server and its watch for changes are left out.
pub const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4", features: "search" };

/// Builds Debian packages, compressing with the `xz` program instead of the library.
pub const CARGO_DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0", features: "" };

/// Returns the path of `tool`, building it if it is missing, which takes some minutes. Without
/// `install` the step is then skipped.
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
    // It is many times larger than the program.
    let _ = std::fs::remove_dir_all(&build);
    fetched.map(|_| program)
}

fn is_there(program: &PathBuf, version: &str) -> bool {
    let said = Command::new(program).arg("--version").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim().ends_with(version))
}
