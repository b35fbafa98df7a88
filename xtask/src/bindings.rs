//! `bindings/`, a separate workspace: the library for other languages, tried as their users would.

use crate::check::{STRICT, step};
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages::provide;
use lab::tools::programs::cargo_tests;
use lab::tools::report::Report;
use lab::tools::repository::{cargo, root, target};
use lab::tools::run::{HANG, Show, output, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The manifest of the workspace.
pub const MANIFEST: &str = "bindings/Cargo.toml";

/// Builds libwrote without optimizations, and the example of its README against it, and runs that.
pub fn smoke() -> Result<(), Failure> {
    let words = ["build", "--locked", "-p", "wrote-c", "--manifest-path", MANIFEST];
    run(&mut cargo(&words), HANG, Show::Live)?.success("the build of libwrote")?;
    let folder = tempfile::tempdir_in(target()).tried(target().display())?;
    let folder = folder.path();
    let source = example("bindings/c/README.md", "c")?;
    std::fs::write(folder.join("save.c"), source).tried("the example")?;
    let library = libraries().join("libwrote.so");
    // Programs ask for the library by this name.
    let name = folder.join("libwrote.so.0");
    std::fs::copy(&library, &name).tried(library.display())?;
    let mut cc = Command::new("cc");
    cc.current_dir(folder).args(["-Wall", "-Werror", "-I"]).arg(root().join("bindings/c/include"));
    output(cc.args(["save.c", "libwrote.so.0", "-Wl,-rpath,$ORIGIN", "-o", "save"]), "cc")?;
    let said = output(Command::new("./save").current_dir(folder), "the example")?;
    let saved = std::fs::read_to_string(folder.join("settings.ini")).tried("settings.ini")?;
    match (&said[..], &saved[..]) {
        ("record 0 is durable\n", "colour = green\n") => Ok(()),
        _ => Err(Failure::Failed(format!("the example printed {said:?} and saved {saved:?}"))),
    }
}

/// Runs the campaign: lints and tests of every binding.
pub fn check(report: &mut Report, install: bool) -> Result<(), Failure> {
    report
        .step("Debian packages of the bindings", || provide(&["cc", "c++", "valgrind"], install))?;
    report.step("example of libwrote", smoke)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--manifest-path", MANIFEST];
    step(report, "clippy of the bindings", &[&clippy[..], &STRICT].concat())?;
    report.step("tests of the bindings", || {
        let words = ["test", "--workspace", "--no-fail-fast", "--manifest-path", MANIFEST];
        cargo_tests(&mut cargo(&words))
    })
}

/// Returns the folder into which cargo builds the bindings.
fn libraries() -> PathBuf {
    let own = || root().join(Path::new(MANIFEST).with_file_name("target"));
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(own, PathBuf::from).join("debug")
}

/// Returns the first block of `language` in a document of the repository.
fn example(document: &str, language: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(root().join(document)).tried(document)?;
    let block = text.split_once(&format!("```{language}\n")).and_then(|(_, rest)| {
        let (block, _) = rest.split_once("```\n")?;
        Some(block.to_owned())
    });
    block.ok_or_else(|| Failure::Failed(format!("{document}: no example in {language}")))
}
