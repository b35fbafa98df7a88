//! `cargo xtask toolchains`: the compilers and interpreters of every language that `wrote langs` runs.

mod fetch;
mod launcher;

use crate::failure::{Failure, Tried};
use crate::packages::{self, Package, package};
use crate::report::{Outcome, Report};
use crate::run::check_interrupted;
use fetch::Registry;
use launcher::Launcher;
use rustix::fs::{Access, access};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Install the compilers and interpreters that `wrote langs` runs, where they are missing.
///
/// Debian's packages come by apt-get, as root, or by sudo where it asks for no password. What Debian does not
/// have is fetched by mvn or pip3 into ~/.local/share/wrote/toolchains (below XDG_DATA_HOME where that is
/// set), with links in ~/.local/bin, where `wrote langs` looks after PATH. A program that is there
/// already, in whatever version, is left as it is.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install nothing: name what is missing.
    #[arg(long)]
    no_install: bool,
}

/// What Debian has. The compiler of Rust is there: it built this program.
const DEBIAN: &[Package] = &[
    package("cc", "build-essential"),
    package("c++", "build-essential"),
    package("go", "golang-go"),
    package("java", "default-jdk-headless"),
    package("javac", "default-jdk-headless"),
    package("python3", "python3"),
    package("ruby", "ruby"),
    package("node", "nodejs"),
];

/// What Debian does not have, in the versions that the programs in `langs/` are written for.
const FETCHED: &[Toolchain] = &[
    Toolchain {
        name: "kotlin",
        version: "2.2.21",
        registry: Registry::Maven { group: "org.jetbrains.kotlin", artifact: "kotlin-compiler" },
        launchers: &[Launcher {
            program: "kotlinc",
            command: "java -cp '{folder}/lib/*' org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
        }],
    },
    // The long-term support version. Java runs what it compiles: its own runner, the program `scala` of this
    // version, reads the files that are named to the program.
    Toolchain {
        name: "scala",
        version: "3.3.7",
        registry: Registry::Maven { group: "org.scala-lang", artifact: "scala3-compiler_3" },
        launchers: &[Launcher {
            program: "scalac",
            command: "java -cp '{folder}/lib/*' dotty.tools.dotc.Main -usejavacp",
        }],
    },
    // Its standard library changes from version to version.
    Toolchain {
        name: "zig",
        version: "0.17.1",
        registry: Registry::PyPi { package: "ziglang" },
        launchers: &[Launcher { program: "zig", command: "'{folder}/ziglang/zig'" }],
    },
];

/// A toolchain that a registry has.
#[derive(Debug)]
struct Toolchain {
    name: &'static str,
    version: &'static str,
    registry: Registry,
    /// What it is called by.
    launchers: &'static [Launcher],
}

impl Display for Toolchain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.name, self.version)
    }
}

impl Toolchain {
    /// Whether all its programs are there: the user's own, or ours in this version.
    fn is_there(&self, places: &Places) -> bool {
        self.is_the_users(places) || self.is_ours(places)
    }

    /// Whether the user has one of its programs: theirs and ours of two versions would not fit together.
    fn is_the_users(&self, places: &Places) -> bool {
        self.launchers.iter().any(|launcher| launcher.is_the_users(places))
    }

    fn is_ours(&self, places: &Places) -> bool {
        let folder = self.folder(places);
        folder.is_dir() && self.launchers.iter().all(|launcher| launcher.is_made(&folder, places))
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.toolchains.join(format!("{}-{}", self.name, self.version))
    }

    /// Fetches it where that is not done yet, and makes its launchers.
    fn install(&self, places: &Places) -> Result<(), Failure> {
        let folder = self.folder(places);
        if !folder.is_dir() {
            eprintln!("xtask: installing {self}");
            packages::install(&[self.registry.client()])?;
            // A registry may be busy for a moment: once more, then it is an error.
            self.registry.fetch(self.version, &folder).or_else(|failure| {
                check_interrupted()?;
                eprintln!("xtask: {failure}; once more");
                self.registry.fetch(self.version, &folder)
            })?;
        }
        self.launchers.iter().try_for_each(|launcher| launcher.make(&folder, places))
    }
}

/// Where programs are looked for and put.
#[derive(Debug)]
struct Places {
    /// Where the shell looks.
    path: Vec<PathBuf>,
    /// `~/.local/bin`: where `wrote langs` looks besides, and launchers are made.
    launchers: PathBuf,
    /// Where toolchains are put, a folder each.
    toolchains: PathBuf,
}

impl Places {
    fn of_the_user() -> Result<Places, Failure> {
        let home = std::env::home_dir().ok_or("there is none").tried("home folder")?;
        let data = std::env::var_os("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .unwrap_or_else(|| home.join(".local/share"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        Ok(Places {
            path: std::env::split_paths(&path).collect(),
            launchers: home.join(".local/bin"),
            toolchains: data.join("wrote/toolchains"),
        })
    }

    /// Every file that is run by the name of `program`: what may not be run is passed over, as by the shell.
    fn programs<'a>(&'a self, program: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let folders = self.path.iter().map(PathBuf::as_path).chain([self.launchers.as_path()]);
        folders.map(move |folder: &Path| folder.join(program)).filter(|file| is_run(file))
    }
}

fn is_run(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Installs what is missing, and says of each language's toolchain what became of it.
pub fn toolchains(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    step(&mut report, !arguments.no_install)?;
    report.finish()
}

/// The same for a report that may hold more: what is missing is installed (`install`), else skipped by name.
pub fn step(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("toolchains of Debian", || debian(install))?;
    for toolchain in FETCHED {
        report.step(&format!("toolchain {toolchain}"), || fetched(toolchain, install))?;
    }
    Ok(())
}

fn debian(install: bool) -> Result<Outcome, Failure> {
    if install {
        return packages::install(DEBIAN).map(|()| Outcome::Passed);
    }
    match packages::missing(DEBIAN).as_slice() {
        [] => Ok(Outcome::Passed),
        missing => Ok(Outcome::Skipped(packages::describe(missing))),
    }
}

fn fetched(toolchain: &Toolchain, install: bool) -> Result<Outcome, Failure> {
    let places = Places::of_the_user()?;
    if toolchain.is_there(&places) {
        return Ok(Outcome::Passed);
    }
    if !install {
        return Ok(Outcome::Skipped("missing; cargo xtask toolchains installs it".to_owned()));
    }
    toolchain.install(&places)?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests;
