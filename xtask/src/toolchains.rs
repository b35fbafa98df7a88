//! `cargo xtask toolchains`: installs the toolchain of every language that `wrote langs` runs.

mod fetch;
mod launcher;

use crate::failure::{Failure, Tried};
use crate::packages::{self, Package, package};
use crate::report::Report;
use crate::run::twice;
use fetch::Registry;
use launcher::Launcher;
use rustix::fs::{Access, access};
use std::fmt::Display;
use std::path::PathBuf;

/// Install the compilers and interpreters that `wrote langs` runs, where they are missing.
///
/// apt-get installs Debian's packages, as root or by a sudo that asks for no password. mvn and pip3
/// fetch the rest into ~/.local/share/wrote/toolchains (below XDG_DATA_HOME if set), with links in
/// ~/.local/bin, which `wrote langs` searches after PATH. A program that is already there stays, in
/// any version.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install nothing, and name the missing toolchains.
    #[arg(long)]
    no_install: bool,
}

/// Debian's toolchains. The compiler of Rust is there: it built this program.
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

/// Other toolchains, in the versions for which the programs in `langs/` are written.
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
    // The long-term support version. Java runs the compiled program: the runner `scala` of this
    // version reads the files that are the program's arguments.
    Toolchain {
        name: "scala",
        version: "3.3.7",
        registry: Registry::Maven { group: "org.scala-lang", artifact: "scala3-compiler_3" },
        launchers: &[Launcher {
            program: "scalac",
            command: "java -cp '{folder}/lib/*' dotty.tools.dotc.Main -usejavacp",
        }],
    },
    // The standard library changes from version to version.
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
    /// The programs that call it.
    launchers: &'static [Launcher],
}

impl Display for Toolchain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.name, self.version)
    }
}

impl Toolchain {
    /// Whether the user has one of its programs, or all are ours in this version. Programs of two
    /// versions would not fit together.
    fn is_there(&self, places: &Places) -> bool {
        let (launchers, folder) = (self.launchers, self.folder(places));
        launchers.iter().any(|launcher| launcher.is_the_users(places))
            || folder.is_dir() && launchers.iter().all(|one| one.is_made(&folder, places))
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.toolchains.join(format!("{}-{}", self.name, self.version))
    }

    /// Fetches it unless it is there, and makes its launchers.
    fn install(&self, places: &Places) -> Result<(), Failure> {
        let folder = self.folder(places);
        if !folder.is_dir() {
            eprintln!("xtask: installing {self}");
            packages::install(&[self.registry.client()])?;
            twice(|| self.registry.fetch(self.version, &folder))?;
        }
        self.launchers.iter().try_for_each(|launcher| launcher.make(&folder, places))
    }
}

/// Folders of programs.
#[derive(Debug)]
struct Places {
    /// The folders of `PATH`.
    path: Vec<PathBuf>,
    /// `~/.local/bin`: holds the launchers; `wrote langs` searches it after `PATH`.
    launchers: PathBuf,
    /// Holds a folder for each toolchain.
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

    /// Lists every executable file of the name `program`, in the shell's order.
    fn programs<'a>(&'a self, program: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let folders = self.path.iter().chain([&self.launchers]);
        let is_run = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        folders.map(move |folder| folder.join(program)).filter(is_run)
    }
}

/// Installs missing toolchains, and reports each.
pub fn toolchains(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    step(&mut report, !arguments.no_install)?;
    report.finish()
}

/// Adds the steps to `report`. A missing toolchain is skipped unless `install` is set.
pub fn step(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("toolchains of Debian", || packages::provide(DEBIAN, install))?;
    for toolchain in FETCHED {
        report.step(&format!("toolchain {toolchain}"), || fetched(toolchain, install))?;
    }
    Ok(())
}

fn fetched(toolchain: &Toolchain, install: bool) -> Result<(), Failure> {
    let places = Places::of_the_user()?;
    match toolchain.is_there(&places) {
        true => Ok(()),
        false if install => toolchain.install(&places),
        false => Err(Failure::Skipped("missing; cargo xtask toolchains installs it".to_owned())),
    }
}

#[cfg(test)]
mod tests;
