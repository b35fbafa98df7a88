//! Client programs for tests of the server and of pages, and servers to compare with, installed
//! next to the build.
//!
//! They are programs from Debian packages that cannot be installed together, Redis clients in
//! Python, Go and Node.js, and the modules that check pages in a browser.

use crate::tools::failure::{Failure, Tried};
use crate::tools::packages;
use crate::tools::report::Report;
use crate::tools::repository::{root, target};
use crate::tools::run::{HANG, Show, run, twice};
use std::path::Path;
use std::process::Command;

/// The Debian packages of the tests' clients, including libraries that the system may lack.
const CLIENTS: [&str; 6] = [
    "rsyslog",
    "rsyslog-relp",
    "librelp0",
    "libestr0",
    "libfastjson4",
    // Its promtool checks the server's metrics.
    "prometheus",
];
/// The packages of syslog-ng, which is measured only by `peers`.
const SYSLOG_NG: [&str; 5] = ["syslog-ng-core", "libivykis0", "libpcre3", "libnet1", "libwrap0"];
/// The folders in `target` into which the packages are unpacked.
const FOLDERS: [&str; 2] = ["clients", "syslog-ng"];
/// The file that lists the unpacked packages.
const LIST: &str = "packages";

/// The Redis client for Python, in a fixed version.
const REDIS_PY: &str = "redis==8.1.0";
/// An S3 server in Python, in a fixed version.
const MOTO: &str = "moto[s3,server]==5.2.5";
/// The TypeScript compiler and the types of Node.js, in fixed versions.
const TYPESCRIPT: [&str; 2] = ["typescript@5.9.3", "@types/node@20.19.8"];
/// The Redis clients for Node.js, in fixed versions.
const NODE_REDIS: [&str; 2] = ["ioredis@6.0.0", "redis@6.3.1"];
/// The folder of the Redis client for Go.
const GO_REDIS: &str = "crates/wrote-serve/tests/it/clients/go-redis";

/// The folder of the program that checks pages, and the files that name its modules.
const PAGES: &str = "crates/wrote-cli/tests/pages";
const PAGES_FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// Provides all clients, each in its own step. If a registry does not answer, its client is
/// skipped.
pub fn provide(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("clients of Debian", || unpacked(FOLDERS[0], &CLIENTS, install))?;
    report.step("client redis-py", || python(REDIS_PY, "redis-py", install))?;
    report.step("client go-redis", || go_redis(install))?;
    report.step("clients ioredis and node-redis", || node("node-redis", &NODE_REDIS, install))?;
    report.step("modules for pages", || pages(install))
}

/// Creates the folder `whole` by `make`, unless `is_there` accepts the existing one. The folder
/// appears only once it is complete, and replaces an existing one. A failure leaves nothing behind.
pub fn installed(
    whole: &Path,
    install: bool,
    is_there: impl Fn(&Path) -> bool,
    make: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if is_there(whole) {
        return Ok(());
    }
    if !install {
        return Err(Failure::Skipped(format!("{} is missing or old", whole.display())));
    }
    let parent = whole.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(parent).tried(parent.display())?;
    let unfinished = tempfile::tempdir_in(parent).tried(parent.display())?;
    let made = unfinished.path().join("made");
    std::fs::create_dir(&made).tried(made.display())?;
    make(&made)?;
    if whole.is_dir() {
        std::fs::remove_dir_all(whole).tried(whole.display())?;
    }
    std::fs::rename(&made, whole).tried(whole.display())
}

/// Returns the command that installs a Python package into a separate folder.
pub fn pip(package: &str, folder: &Path) -> Command {
    let mut command = Command::new("pip3");
    command.args(["install", "-q", "--disable-pip-version-check", package, "--target"]);
    // The folder belongs to the user, so pip's warning about root does not apply.
    command.arg(folder).env("PIP_ROOT_USER_ACTION", "ignore");
    command
}

/// Installs the modules that check pages into `target/pages`, unless they are installed.
pub fn pages(install: bool) -> Result<(), Failure> {
    let from = root().join(PAGES);
    let lock = |folder: &Path| std::fs::read_to_string(folder.join("package-lock.json")).ok();
    let is_there = |whole: &Path| lock(&from).is_some() && lock(&from) == lock(whole);
    installed(&target().join("pages"), install, is_there, |folder| {
        packages::install(&["node", "npm"])?;
        for file in PAGES_FILES {
            std::fs::copy(from.join(file), folder.join(file)).tried(file)?;
        }
        fetched(|| {
            let mut command = Command::new("npm");
            command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
            command.current_dir(folder);
            command
        })
    })
}

/// Installs an S3 server into `target/moto`, unless it is installed.
pub fn moto(install: bool) -> Result<(), Failure> {
    python(MOTO, "moto", install)
}

/// Installs the builder of Python wheels into `target/maturin`, unless it is installed.
pub fn maturin(install: bool) -> Result<(), Failure> {
    python("maturin==1.16.0", "maturin", install)
}

/// Installs the TypeScript compiler and the types of Node.js into `target/typescript`, unless they
/// are installed.
pub fn typescript(install: bool) -> Result<(), Failure> {
    node("typescript", &TYPESCRIPT, install)
}

/// Installs Node.js packages into a folder of `target`, unless they are installed.
fn node(name: &str, node_packages: &[&str], install: bool) -> Result<(), Failure> {
    installed(&target().join(name), install, Path::is_dir, |folder| {
        packages::install(&["node", "npm"])?;
        fetched(|| {
            let mut command = Command::new("npm");
            command.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
            command.arg(folder).args(node_packages);
            command
        })
    })
}

/// Installs a Python package into a folder of `target`, unless it is installed.
fn python(package: &str, name: &str, install: bool) -> Result<(), Failure> {
    installed(&target().join(name), install, Path::is_dir, |folder| {
        packages::install(&["pip3"])?;
        fetched(|| pip(package, folder))
    })
}

/// Builds `target/go-redis`.
fn go_redis(install: bool) -> Result<(), Failure> {
    packages::provide(&["go"], install)?;
    let go = |words: &[&str]| {
        let mut command = Command::new("go");
        command.args(words).current_dir(root().join(GO_REDIS));
        command
    };
    fetched(|| go(&["mod", "download"]))?;
    let mut build = go(&["build", "-buildvcs=false", "-o"]);
    build.arg(std::path::absolute(target().join("go-redis")).tried("target/go-redis")?);
    run(&mut build, HANG, Show::Live)?.success("go build").map(drop)
}

/// Runs a command that needs a registry. If the registry is unreachable, the step is skipped.
fn fetched(command: impl Fn() -> Command) -> Result<(), Failure> {
    let name = command().get_program().display().to_string();
    let fetched = twice(|| run(&mut command(), HANG, Show::Live)?.success(&name));
    match fetched {
        Err(Failure::Failed(because)) => Err(Failure::Skipped(because)),
        fetched => fetched.map(drop),
    }
}

/// Provides the servers that `peers` measures: rsyslog and syslog-ng.
pub fn servers() -> Result<(), Failure> {
    unpacked(FOLDERS[0], &CLIENTS, true)?;
    unpacked(FOLDERS[1], &SYSLOG_NG, true)
}

/// Unpacks Debian packages into the folder `name` of `target`, unless it already contains them. If
/// it does not and `install` is not set, the step is skipped.
fn unpacked(name: &str, wanted: &[&str], install: bool) -> Result<(), Failure> {
    let list = wanted.join("\n");
    let is_there = |whole: &Path| {
        std::fs::read_to_string(whole.join(LIST)).is_ok_and(|unpacked| unpacked == list)
    };
    installed(&target().join(name), install, is_there, |root| {
        let unfinished = tempfile::tempdir_in(target()).tried(target().display())?;
        let unfinished = unfinished.path();
        let names = || Ok(wanted.iter().map(|&name| name.to_owned()).collect());
        packages::download(names, unfinished)?;
        for package in std::fs::read_dir(unfinished).tried(unfinished.display())? {
            let package = package.tried(unfinished.display())?.path();
            let mut command = Command::new("dpkg-deb");
            command.arg("-x").arg(&package).arg(root);
            run(&mut command, HANG, Show::Live)?.success("dpkg-deb")?;
        }
        std::fs::write(root.join(LIST), &list).tried(root.display())
    })
}

/// Prepares an unpacked program. Also returns the folder of its modules, whose path ends with
/// `modules`.
pub fn program(path: &str, modules: &str) -> Result<(Command, String), Failure> {
    let roots = FOLDERS.map(|folder| target().join(folder));
    let root = roots.iter().find(|root| root.join(path).exists()).unwrap_or(&roots[0]);
    let architecture = format!("{}-linux-gnu", std::env::consts::ARCH);
    let libraries = ["lib", "usr/lib"].map(|folder| root.join(folder).join(&architecture));
    // syslog-ng's libraries are next to its modules, and rsyslog's modules are in the
    // architecture's folder.
    let folders = [libraries[1].clone(), root.join("usr/lib")].map(|folder| folder.join(modules));
    let modules = folders.iter().find(|folder| folder.is_dir());
    let modules = modules.ok_or_else(|| Failure::Failed(format!("no modules of {path}")))?;
    let own = root.join("usr/lib/syslog-ng");
    let libraries = libraries.iter().chain([&own]);
    let mut command = Command::new(root.join(path));
    command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).tried("paths")?);
    Ok((command, modules.display().to_string()))
}
