//! `cargo xtask dist`: packs the program `wrote` for machines without a compiler.

mod bindings;
mod crates;
mod program;
mod roots;

use bindings::Bindings;

use crate::tools::{self, CARGO_DEB};
use lab::tools::failure::{Failure, Tried};
use lab::tools::report::Report;
use lab::tools::repository::{fresh, root, target};
use lab::tools::run::output;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file with the checksums of the packed files, next to them.
const SUMS: &str = "SHA256SUMS";
/// The version of every crate of this workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Pack the program as an archive, as a Debian package and as an OCI image, and the bindings as
/// Debian packages, a wheel and an npm archive, with checksums, into `target/packed`.
///
/// The program is linked statically. The files contain no path, user or time of this machine.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install no tool; fail if one is missing
    #[arg(long)]
    no_install: bool,
}

/// The packed files.
struct Packed {
    /// The program on its own.
    program: PathBuf,
    archive: PathBuf,
    debian: PathBuf,
    image: PathBuf,
    bindings: Bindings,
}

/// Builds the packed files, and prints the size of each.
pub fn dist(arguments: &Arguments) -> Result<(), Failure> {
    let packed = pack(!arguments.no_install)?;
    let program = [&packed.program, &packed.archive, &packed.debian, &packed.image];
    for path in program.into_iter().chain(packed.bindings.files()) {
        let bytes = path.metadata().tried(path.display())?.len();
        eprintln!("{:>8.1} MB  {}", bytes as f64 / 1e6, path.display());
    }
    print!("{}", std::fs::read_to_string(folder().join(SUMS)).tried(SUMS)?);
    Ok(())
}

/// Runs the campaign: packs everything, and installs and runs the packed files, most of them in
/// otherwise empty roots.
pub fn check(report: &mut Report, install: bool) -> Result<(), Failure> {
    let Some(packed) = report.make("dist: archive, Debian package and image", || pack(install))?
    else {
        // The report already contains the reason.
        return Ok(());
    };
    report.step("dist: examples of the bindings", || bindings::check(&packed.bindings))?;
    roots::check(report, &packed, install)
}

/// Runs the campaign of the crates: packages each crate, builds the command from the packages, and
/// installs it with cargo.
pub fn check_crates(report: &mut Report) -> Result<(), Failure> {
    report.step("crates: packages", crates::package)?;
    report.step("crates: cargo install", crates::install)
}

fn pack(install: bool) -> Result<Packed, Failure> {
    let cargo_deb = tools::provide(&CARGO_DEB, install)?;
    let folder = fresh(folder())?;
    let program = program::build()?;
    program::make_files(&program)?;
    let date = date_s()?;
    let archive = program::make_archive(&program, &folder, &date)?;
    let debian = program::make_debian(&cargo_deb, &folder, &date)?;
    let image = program::make_image(&program, &folder, &date)?;
    let bindings = bindings::make(&folder, &date, install)?;
    let mut sums = Command::new("sha256sum");
    let files = [&archive, &debian, &image].into_iter().chain(bindings.files());
    sums.current_dir(&folder).args(files.map(|path| name(path)));
    std::fs::write(folder.join(SUMS), output(&mut sums, "sha256sum")?).tried(SUMS)?;
    Ok(Packed { program, archive, debian, image, bindings })
}

/// Returns the SHA-256 of a file, in hexadecimal digits.
fn hashed(file: &Path) -> Result<String, Failure> {
    let sum = output(Command::new("sha256sum").arg(file), "sha256sum")?;
    Ok(sum.split(' ').next().unwrap_or_default().to_owned())
}

fn folder() -> PathBuf {
    target().join("packed")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the time of the commit, in seconds since 1970. It becomes the modification time of every
/// packed file, so that a commit always yields the same bytes.
fn date_s() -> Result<String, Failure> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["log", "-1", "--format=%ct"]);
    Ok(output(&mut git, "git log")?.trim().to_owned())
}
