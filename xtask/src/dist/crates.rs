//! The crates that make up the command, packaged as for crates.io.

use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::{cargo, files, root, target};
use lab::tools::run::{HANG, Show, output, run};
use std::process::Command;

use super::VERSION;

/// The files that every package contains in addition to its sources.
const BESIDE: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Packages every crate, checks that it contains the licences, and builds the command from the
/// packages alone, as a user of crates.io would. Nothing is published.
pub fn package() -> Result<(), Failure> {
    let names = names()?;
    // Building each package separately, with its own dependencies, would take several times as
    // long.
    let mut command = cargo(&["package", "--locked", "--allow-dirty", "--no-verify"]);
    command.args(names.iter().flat_map(|name| ["-p", name]));
    run(&mut command, HANG, Show::Live)?.success("cargo package")?;
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    let folder = folder.path();
    for name in &names {
        let stem = format!("{name}-{VERSION}");
        let package = target().join("package").join(format!("{stem}.crate"));
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&package).arg("-C").arg(folder);
        output(&mut tar, "tar")?;
        let is_there = |file: &&str| folder.join(&stem).join(file).is_file();
        if let Some(file) = BESIDE.iter().find(|file| !is_there(file)) {
            return Err(Failure::Failed(format!("{} has no {file}", package.display())));
        }
    }
    std::fs::write(folder.join("Cargo.toml"), workspace(&names)).tried("the workspace")?;
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).tried("Cargo.lock")?;
    let mut command = cargo(&["build", "-p", "wrote-cli"]);
    // Most dependencies have already been built in that folder.
    command.env("CARGO_TARGET_DIR", target());
    command.current_dir(folder);
    run(&mut command, HANG, Show::Live)?.success("the build from the packages").map(drop)
}

/// Returns the manifest of a workspace of unpacked packages, which override those on crates.io.
fn workspace(names: &[String]) -> String {
    let folders = names.iter().map(|name| format!("\"{name}-{VERSION}\""));
    let members = folders.collect::<Vec<_>>().join(", ");
    let patch = |name: &String| format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n");
    let patches = names.iter().map(patch).collect::<String>();
    let resolver = "[workspace]\nresolver = \"3\"\n";
    format!("{resolver}members = [{members}]\n\n[patch.crates-io]\n{patches}")
}

/// Installs `wrote` into a temporary root, with the command line from the README, and runs it.
pub fn install() -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    let folder = folder.path();
    let words = ["install", "--locked", "--path", "crates/wrote-cli", "--features", "serve"];
    let mut command = cargo(&words);
    run(command.arg("--no-track").arg("--root").arg(folder), HANG, Show::Live)?
        .success("cargo install")?;
    let version = output(Command::new(folder.join("bin/wrote")).arg("--version"), "wrote")?;
    if version.starts_with(&format!("wrote {VERSION}")) {
        return Ok(());
    }
    Err(Failure::Failed(format!("the installed program says: {}", version.trim())))
}

/// Returns the names of the crates in `crates`, which are their folders' names.
fn names() -> Result<Vec<String>, Failure> {
    let manifests = files(&["crates/*/Cargo.toml"])?.into_iter();
    let name = |path: String| Some(path.strip_prefix("crates/")?.split_once('/')?.0.to_owned());
    Ok(manifests.filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_of_the_command_has_its_readme_and_its_licences() {
        let names = names().expect("crates");
        assert!(names.contains(&"wrote-cli".to_owned()));
        for name in names {
            let folder = root().join("crates").join(&name);
            for file in BESIDE {
                assert!(folder.join(file).is_file(), "{name} has no {file}");
            }
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
            for key in ["description", "license", "keywords", "categories", "rust-version"] {
                let is_there = manifest.lines().any(|line| line.starts_with(key));
                assert!(is_there, "{name} has no {key}");
            }
        }
    }
}
