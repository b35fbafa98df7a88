//! `cargo xtask toolchains`: installs the toolchain of every language that `wrote langs` runs,
//! using the registries' ordinary clients and the user's settings.

use lab::tools::clients;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::report::Report;
use lab::tools::run::{Finished, HANG, Show, run, twice};
use rustix::fs::{Access, access};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Install the compilers and interpreters that `wrote langs` runs, if they are missing.
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

/// Debian's toolchains. Rust's compiler is not listed, because it built this program.
const DEBIAN: &[&str] = &["cc", "c++", "go", "java", "javac", "python3", "ruby", "node"];

/// The other toolchains, one per line.
const FETCHED: &str = include_str!("toolchains.txt");

/// A toolchain from a registry, and its launcher, which consists of a short script and a link to
/// the script.
///
/// The script is in `bin` in the toolchain's folder, next to `lib`, as in the toolchain's own
/// distribution, so that a program that follows the link finds the library. The link's target
/// identifies the launcher as ours; other programs are never overwritten.
struct Toolchain {
    name: &'static str,
    version: &'static str,
    /// The registry's client: `mvn` or `pip3`.
    client: &'static str,
    /// An artifact of Maven Central, fetched with its dependencies, or a Python package.
    package: &'static str,
    /// The name of the program that the launcher runs.
    program: &'static str,
    /// A shell command, in which `{folder}` is the toolchain's folder. The arguments are appended.
    command: &'static str,
}

/// Reads the list of toolchains.
fn fetched() -> impl Iterator<Item = Toolchain> {
    let lines = FETCHED.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut words = line.splitn(6, ' ');
        let mut next = || words.next();
        let (name, version, client) = (next()?, next()?, next()?);
        let (package, program, command) = (next()?, next()?, next()?);
        Some(Toolchain { name, version, client, package, program, command })
    })
}

impl Toolchain {
    fn name(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Returns whether the user has such a program, or our launcher for this version exists.
    fn is_there(&self, places: &Places) -> bool {
        let script = self.script(places);
        places.programs(self.program).any(|file| !places.is_ours(&file))
            || fs::read_link(self.link(places)).is_ok_and(|target| target == script)
                && fs::read_to_string(script).is_ok_and(|text| text == self.text(places))
    }

    /// Fetches the toolchain unless it is installed, and creates the launcher, replacing an older
    /// one of ours.
    fn install(&self, places: &Places) -> Result<(), Failure> {
        let (folder, script, link) = (self.folder(places), self.script(places), self.link(places));
        if !folder.is_dir() {
            eprintln!("xtask: installing {}", self.name());
            packages::install(&[self.client])?;
            twice(|| self.fetch(&folder))?;
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

    /// Fetches the toolchain into the new `folder`. After a failure, no folder is left.
    fn fetch(&self, folder: &Path) -> Result<(), Failure> {
        let Toolchain { client, package, version, .. } = self;
        clients::installed(folder, true, Path::is_dir, |whole| {
            let mut command = match package.split_once(':') {
                Some((group, artifact)) => {
                    let project = whole.join("pom.xml");
                    fs::write(&project, pom(group, artifact, version)).tried(project.display())?;
                    maven(&project, &whole.join("lib"))
                }
                None => {
                    let mut pip = clients::pip(&format!("{package}=={version}"), whole);
                    pip.args(["--no-deps", "--no-compile"]);
                    pip
                }
            };
            let mut finished = run(&mut command, HANG, Show::Live)?;
            first_error(&finished).inspect(|error| finished.stderr.clone_from(error));
            finished.success(&format!("{client}, {package} {version}")).map(drop)
        })
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
        // A quote in the folder's name would end the quoted string in the command.
        let folder = self.folder(places).display().to_string().replace('\'', r"'\''");
        format!("#!/bin/sh\nexec {} \"$@\"\n", self.command.replace("{folder}", &folder))
    }
}

/// The folders that contain programs.
struct Places {
    path: Vec<PathBuf>,
    /// `~/.local/bin`, which contains the launchers. `wrote langs` searches it after `PATH`.
    launchers: PathBuf,
    /// The folder that contains a folder for each toolchain.
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

    /// Returns all executable files with the name `program`, in the order in which the shell
    /// searches for them.
    fn programs<'a>(&'a self, program: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let folders = self.path.iter().chain([&self.launchers]);
        let is_run = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        folders.map(move |folder| folder.join(program)).filter(is_run)
    }

    fn is_ours(&self, file: &Path) -> bool {
        fs::read_link(file).is_ok_and(|target| target.starts_with(&self.toolchains))
    }

    /// Creates the link. An existing link is replaced atomically, because another process may be
    /// using it.
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

/// Adds the steps to `report`. Without `install`, a missing toolchain is skipped.
pub fn step(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("toolchains of Debian", || packages::provide(DEBIAN, install))?;
    for toolchain in fetched() {
        report.step(&format!("toolchain {}", toolchain.name()), || {
            let places = Places::of_the_user()?;
            match toolchain.is_there(&places) {
                true => Ok(()),
                false if install => toolchain.install(&places),
                false => {
                    Err(Failure::Skipped("missing; cargo xtask toolchains installs it".into()))
                }
            }
        })?;
    }
    Ok(())
}

/// Maven's plugin, with a fixed version.
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// Returns the command that copies the dependencies of `project` into `folder`. The version numbers
/// are removed from the names of the jars, because kotlinc looks for its parts under names such as
/// `lib/kotlin-stdlib.jar`.
fn maven(project: &Path, folder: &Path) -> Command {
    let mut command = Command::new("mvn");
    command.args(["-B", "-q", "-Dstyle.color=never", "-f"]).arg(project).arg(MAVEN_COPY);
    command.args(["-DincludeScope=runtime", "-Dmdep.stripVersion=true"]);
    command.arg(format!("-DoutputDirectory={}", folder.display()));
    command
}

/// Returns a project that depends on one artifact.
fn pom(group: &str, artifact: &str, version: &str) -> String {
    let project = include_str!("toolchains.xml").replace("{group}", group);
    project.replace("{artifact}", artifact).replace("{version}", version)
}

/// Returns the first error. The last lines of Maven's and pip's output only refer to their
/// documentation.
fn first_error(finished: &Finished) -> Option<String> {
    let lines = finished.stdout.lines().chain(finished.stderr.lines());
    let mut errors = lines.filter(|line| line.starts_with("[ERROR]") || line.starts_with("ERROR:"));
    errors.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const ZIG: Toolchain = Toolchain {
        name: "zig",
        version: "1.0",
        client: "pip3",
        package: "no-such-package",
        program: "zig",
        command: "echo '{folder}/zig'",
    };

    /// Creates a home folder with the fetched toolchain of [`ZIG`], with or without launchers.
    fn home(launchers: bool) -> (TempDir, Places) {
        let home = tempfile::tempdir().expect("a folder");
        let places = Places {
            path: vec![home.path().join("bin")],
            launchers: home.path().join(".local/bin"),
            toolchains: home.path().join("toolchains"),
        };
        fs::create_dir_all(ZIG.folder(&places)).expect("a folder");
        fs::create_dir_all(&places.path[0]).expect("a folder");
        if launchers {
            ZIG.install(&places).expect("nothing to fetch");
        }
        (home, places)
    }

    fn program(file: &Path) {
        fs::write(file, "the user's").expect("written");
        fs::set_permissions(file, Permissions::from_mode(0o755)).expect("the mode is set");
    }

    #[test]
    fn a_toolchain_is_there_once_its_launchers_are() {
        let (_home, places) = home(false);
        assert!(!ZIG.is_there(&places));
        ZIG.install(&places).expect("nothing to fetch");
        assert!(ZIG.is_there(&places));
        fs::remove_file(places.launchers.join("zig")).expect("made");
        assert!(!ZIG.is_there(&places));
    }

    #[test]
    fn launchers_without_their_toolchain_are_not_enough() {
        let (_home, places) = home(true);
        fs::remove_dir_all(ZIG.folder(&places)).expect("made");
        assert!(!ZIG.is_there(&places));
    }

    #[test]
    fn a_launcher_runs_its_command_with_its_arguments() {
        let (_home, places) = home(true);
        let output =
            std::process::Command::new(places.launchers.join("zig")).args(["a b", "c"]).output();
        let said = String::from_utf8(output.expect("a shell").stdout).expect("text");
        assert_eq!(said, format!("{}/zig a b c\n", ZIG.folder(&places).display()));
    }

    #[test]
    fn a_folder_may_have_a_quote_in_its_name() {
        let (home, mut places) = home(false);
        places.toolchains = home.path().join("it's here");
        fs::create_dir_all(ZIG.folder(&places)).expect("a folder");
        ZIG.install(&places).expect("nothing to fetch");
        let output = std::process::Command::new(places.launchers.join("zig")).output();
        let said = String::from_utf8(output.expect("a shell").stdout).expect("text");
        assert_eq!(said, format!("{}/zig\n", ZIG.folder(&places).display()));
    }

    #[test]
    fn a_program_of_the_users_is_taken_for_the_toolchain() {
        let (_home, places) = home(false);
        program(&places.path[0].join("zig"));
        assert!(ZIG.is_there(&places));
    }

    #[test]
    fn a_file_that_may_not_be_run_is_no_toolchain() {
        let (_home, places) = home(false);
        fs::write(places.path[0].join("zig"), "notes on Zig").expect("written");
        assert!(!ZIG.is_there(&places));
    }

    #[test]
    fn a_program_of_the_users_is_never_written_over() {
        let (_home, places) = home(true);
        let file = places.launchers.join("zig");
        fs::remove_file(&file).expect("made");
        program(&file);
        assert!(ZIG.is_there(&places));
        let failure = ZIG.install(&places).expect_err("the user's");
        assert_eq!(failure.to_string(), format!("{}: not made by us", file.display()));
        assert_eq!(fs::read_to_string(&file).expect("there"), "the user's");
    }

    #[test]
    fn a_link_of_the_users_is_never_led_elsewhere() {
        let (home, places) = home(true);
        let file = places.launchers.join("zig");
        fs::remove_file(&file).expect("made");
        std::os::unix::fs::symlink(home.path().join("nowhere"), &file).expect("linked");
        assert!(ZIG.install(&places).is_err());
        assert_eq!(fs::read_link(&file).expect("a link"), home.path().join("nowhere"));
    }

    #[test]
    fn a_launcher_of_an_older_version_is_made_anew() {
        let (_home, places) = home(true);
        let newer = Toolchain { version: "2.0", ..ZIG };
        fs::create_dir_all(newer.folder(&places)).expect("a folder");
        assert!(!newer.is_there(&places));
        newer.install(&places).expect("nothing to fetch");
        assert!(newer.is_there(&places));
    }

    #[test]
    fn every_launcher_of_the_list_leads_into_its_folder() {
        assert_eq!(fetched().count(), 3);
        for toolchain in fetched() {
            assert!(toolchain.command.contains("'{folder}/"), "{}", toolchain.program);
        }
    }

    fn failed(stdout: &str, stderr: &str) -> Finished {
        Finished {
            trouble: Some("exit code 1".to_owned()),
            exit_code: Some(1),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn the_first_error_is_the_reason() {
        let maven = failed("[WARNING] x\n[ERROR] no such artifact\n[ERROR] [Help 1] read\n", "");
        assert_eq!(first_error(&maven).as_deref(), Some("[ERROR] no such artifact"));
        let pip = failed("", "ERROR: no such version\nERROR: nothing found\n");
        assert_eq!(first_error(&pip).as_deref(), Some("ERROR: no such version"));
        assert_eq!(first_error(&failed("", "killed")), None);
    }

    #[test]
    fn a_client_that_fails_leaves_no_folder() {
        let here = tempfile::tempdir().expect("a folder");
        let folder = here.path().join("nothing-1");
        // pip3 refuses this version before it contacts a registry. If pip3 is missing, that is a
        // failure, too.
        let wrong = Toolchain { version: "not a version", ..ZIG };
        assert!(wrong.fetch(&folder).is_err());
        assert_eq!(std::fs::read_dir(here.path()).expect("the folder").count(), 0);
    }
}
