//! `wrote` with ranks, IOR and mdtest, built where their source is given. It is a separate file, as
//! each peer that must be built is.

use lab::tools::failure::{Failure, Tried};
use lab::tools::packages::{self, MPI};
use lab::tools::repository::{cargo, target};
use lab::tools::run::{HANG, Show, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

/// The folder of the source of github.com/hpc/ior.
const SOURCE: &str = "WROTE_IOR_SOURCE";
/// Returns the folder of the programs, by the names that the commands use.
pub fn folder() -> PathBuf {
    target().join("mpi/peers")
}

/// Builds `wrote` with its ranks, and IOR with mdtest where their source is given.
pub fn build() -> Result<(), Failure> {
    let Some(source) = std::env::var_os(SOURCE).map(PathBuf::from) else {
        let text = format!("{SOURCE} names no folder with the source of github.com/hpc/ior");
        return Err(Failure::Skipped(text));
    };
    packages::install(MPI)?;
    let place = target().join("mpi");
    let mut command = cargo(&["build", "--release", "-p", "wrote-cli", "--features", "mpi"]);
    run(command.env("CARGO_TARGET_DIR", &place), HANG, Show::Live)?.success("cargo build")?;
    let built = source.join("src");
    if !built.join("mdtest").is_file() {
        packages::install(&["autoreconf", "automake", "libtoolize", "pkg-config", "make"])?;
        let build = "./bootstrap && ./configure CC=mpicc >/dev/null && make >/dev/null";
        let mut command = Command::new("sh");
        command.args(["-c", build]).current_dir(&source);
        run(&mut command, HANG, Show::Errors)?.success("the build of IOR")?;
    }
    fs::create_dir_all(folder()).tried(folder().display())?;
    let wrote = place.join("release/wrote");
    for (program, name) in
        [(wrote, "wrote-mpi"), (built.join("ior"), "ior"), (built.join("mdtest"), "mdtest")]
    {
        let program = std::path::absolute(&program).tried(program.display())?;
        let link = folder().join(name);
        // Of an earlier measurement.
        let _ = fs::remove_file(&link);
        symlink(&program, &link).tried(link.display())?;
    }
    Ok(())
}
