//! `cargo xtask toolchains`: installs the toolchain of every language that `wrote langs` runs.

mod fetch;

use fetch::Registry;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::report::Report;
use lab::tools::run::twice;
use rustix::fs::{Access, access};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Install the compilers and interpreters that `wrote langs` runs, where they are missing.
///
/// apt-get installs Debian's packages, as root or by sudo without a password. mvn and pip3 fetch
/// the rest into ~/.local/share/wrote/toolchains (below XDG_DATA_HOME if set), with links in
/// ~/.local/bin, which `wrote langs` searches after PATH. A program that is already there stays, in
/// any version.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install nothing, and name the missing toolchains.
    #[arg(long)]
    no_install: bool,
}

/// Debian's toolchains. Rust's compiler is installed: it built this program.
const DEBIAN: &[&str] = &["cc", "c++", "go", "java", "javac", "python3", "ruby", "node"];

/// Other toolchains, in the versions for which the programs in `langs/` are written.
const FETCHED: &[Toolchain] = &[
    Toolchain {
        name: "kotlin",
        version: "2.2.21",
        registry: Registry::Maven { group: "org.jetbrains.kotlin", artifact: "kotlin-compiler" },
        program: "kotlinc",
        command: "java -cp '{folder}/lib/*' org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
    },
    // The long-term support version. Java runs the compiled program: the runner `scala` of this
    // version reads the files that are the program's arguments.
    Toolchain {
        name: "scala",
        version: "3.3.7",
        registry: Registry::Maven { group: "org.scala-lang", artifact: "scala3-compiler_3" },
        program: "scalac",
        command: "java -cp '{folder}/lib/*' dotty.tools.dotc.Main -usejavacp",
    },
    // The standard library changes from version to version.
    Toolchain {
        name: "zig",
        version: "0.17.1",
        registry: Registry::PyPi { package: "ziglang" },
        program: "zig",
        command: "'{folder}/ziglang/zig'",
    },
];

/// A toolchain from a registry, and its launcher: a short script, and the link that leads to it.
///
/// The script is in the toolchain's folder, in `bin` beside `lib`, as in the toolchain's own
/// distribution: a program that follows the link finds the library. The link's target identifies it
/// as ours; other programs are never overwritten.
struct Toolchain {
    name: &'static str,
    version: &'static str,
    registry: Registry,
    /// The name of the program that the launcher replaces.
    program: &'static str,
    /// A shell command; `{folder}` is the toolchain's folder, and the arguments come after.
    command: &'static str,
}

impl Toolchain {
    fn name(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Whether the user has such a program, or ours is made in this version.
    fn is_there(&self, places: &Places) -> bool {
        let script = self.script(places);
        places.programs(self.program).any(|file| !places.is_ours(&file))
            || fs::read_link(self.link(places)).is_ok_and(|target| target == script)
                && fs::read_to_string(script).is_ok_and(|text| text == self.text(places))
    }

    /// Fetches it unless installed, and replaces our older launcher.
    fn install(&self, places: &Places) -> Result<(), Failure> {
        let (folder, script, link) = (self.folder(places), self.script(places), self.link(places));
        if !folder.is_dir() {
            eprintln!("xtask: installing {}", self.name());
            packages::install(&[self.registry.client()])?;
            twice(|| self.registry.fetch(self.version, &folder))?;
        }
        if link.symlink_metadata().is_ok() && !places.is_ours(&link) {
            return Err(Failure::Failed(format!("{}: not made by us", link.display())));
        }
        fs::create_dir_all(folder.join("bin"))
            .and_then(|()| fs::write(&script, self.text(places)))
            .and_then(|()| fs::set_permissions(&script, Permissions::from_mode(0o755)))
            .tried(script.display())?;
        places.lead(&link, &script).tried(link.display())
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.toolchains.join(format!("{}-{}", self.name, self.version))
    }

    fn script(&self, places: &Places) -> PathBuf {
        self.folder(places).join("bin").join(self.program)
    }

    fn link(&self, places: &Places) -> PathBuf {
        places.launchers.join(self.program)
    }

    fn text(&self, places: &Places) -> String {
        // A quote in the folder's name would end the command's quotes.
        let folder = self.folder(places).display().to_string().replace('\'', r"'\''");
        format!("#!/bin/sh\nexec {} \"$@\"\n", self.command.replace("{folder}", &folder))
    }
}

/// Folders of programs.
struct Places {
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

    fn is_ours(&self, file: &Path) -> bool {
        fs::read_link(file).is_ok_and(|target| target.starts_with(&self.toolchains))
    }

    /// Replaces an old link atomically, because another process may be calling it.
    fn lead(&self, link: &Path, script: &Path) -> std::io::Result<()> {
        fs::create_dir_all(&self.launchers)?;
        let work = tempfile::Builder::new().prefix(".linking-").tempdir_in(&self.launchers)?;
        let new = work.path().join("new");
        symlink(script, &new)?;
        fs::rename(new, link)
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
        report.step(&format!("toolchain {}", toolchain.name()), || fetched(toolchain, install))?;
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
