//! The program: linked statically, stripped, and without the paths of this machine.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{cargo, root, target};
use lab::tools::run::{Show, run};
use std::path::PathBuf;
use std::time::Duration;

/// The profile in `Cargo.toml`.
pub const PROFILE: &str = "dist";
/// How long the build may take: all code is optimized together, at the end by one thread.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Returns the build target. If the target is named, cargo builds macros and build scripts without
/// the program's flags, which do not suit them.
pub fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Returns the folder of the built program.
pub fn folder() -> Result<PathBuf, Failure> {
    let folder = target().join(triple()).join(PROFILE);
    std::path::absolute(&folder).tried(folder.display())
}

/// Builds the program and returns its path.
pub fn build() -> Result<PathBuf, Failure> {
    let triple = triple();
    let words = ["build", "--locked", "-p", "wrote-cli", "--features", "serve"];
    let mut command = cargo(&words);
    command.args(["--profile", PROFILE, "--target", &triple]);
    let folders = folders()?;
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
    command.env(variable, format!("-Ctarget-feature=+crt-static {}", renamed(&folders, RUST)));
    // From the C code of aws-lc, which is not in this repository.
    let foreign = folders.into_iter().filter(|(_, name)| *name != ROOT).collect::<Vec<_>>();
    let own = std::env::var("CFLAGS").unwrap_or_default();
    command.env("CFLAGS", format!("{own} {}", renamed(&foreign, C)).trim());
    run(&mut command, LIMIT, Show::Live)?.success("the build of the program")?;
    Ok(folder()?.join("wrote"))
}

/// Returns the flags of rustc that keep the paths of this machine out of a library.
pub fn renamed_rust() -> Result<String, Failure> {
    Ok(renamed(&folders()?, RUST))
}

/// Compiler flags that replace paths in the program.
const RUST: &str = "--remap-path-prefix";
const C: &str = "-ffile-prefix-map";
/// The name of the repository's root.
const ROOT: &str = "/wrote";

/// Returns the folders whose paths would appear in the program's messages, with a name for each. Of
/// nested folders the last one wins, so each follows its parent.
fn folders() -> Result<Vec<(PathBuf, &'static str)>, Failure> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.ok_or_else(|| Failure::Failed("neither CARGO_HOME nor HOME is set".into()))?;
    let folders = [(home, "/cargo"), (target(), "/target"), (root(), ROOT)];
    let absolute = |(path, name): (PathBuf, _)| Ok((std::path::absolute(path)?, name));
    let folders = folders.into_iter().map(absolute).collect::<std::io::Result<Vec<_>>>();
    let mut folders = folders.tried("a folder of the build")?;
    folders.sort_by_key(|(path, _)| path.components().count());
    Ok(folders)
}

fn renamed(folders: &[(PathBuf, &str)], flag: &str) -> String {
    let flags = folders.iter().map(|(path, name)| format!("{flag}={}={name}", path.display()));
    flags.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_gets_its_name() {
        let folders = [(PathBuf::from("/home/me/wrote"), "/wrote"), ("/t".into(), "/target")];
        assert_eq!(
            renamed(&folders, RUST),
            "--remap-path-prefix=/home/me/wrote=/wrote --remap-path-prefix=/t=/target"
        );
    }
}
