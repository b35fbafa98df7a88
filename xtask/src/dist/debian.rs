//! The Debian package, which `crates/wrote-cli/Cargo.toml` describes.

use super::program::{PROFILE, triple};
use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::cargo;
use lab::tools::run::{HANG, Show, run};
use std::path::{Path, PathBuf};

/// Makes the package of the built program in `folder`. Every file gets the time `date_s`.
pub fn make(cargo_deb: &Path, folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let into = tempfile::tempdir_in(folder).tried(folder.display())?;
    // cargo finds the subcommand by `PATH`.
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let tools = cargo_deb.parent().unwrap_or(cargo_deb).to_owned();
    let paths = [tools].into_iter().chain(std::env::split_paths(&paths));
    let mut command = cargo(&["deb", "-p", "wrote-cli", "--profile", PROFILE, "--locked"]);
    command.args(["--no-build", "--no-strip", "--target", &triple(), "--output"]).arg(into.path());
    command.env("PATH", std::env::join_paths(paths).tried("PATH")?);
    command.env("SOURCE_DATE_EPOCH", date_s);
    run(&mut command, HANG, Show::Live)?.success("cargo deb")?;
    let mut made = std::fs::read_dir(into.path()).tried(into.path().display())?;
    let made = made.next().ok_or_else(|| Failure::Failed("cargo deb made no package".into()))?;
    let made = made.tried(into.path().display())?;
    let package = folder.join(made.file_name());
    std::fs::rename(made.path(), &package).tried(package.display())?;
    Ok(package)
}
