//! Clients that tests of the server and of pages call, and peers, next to the build.
//!
//! They are programs of Debian packages that cannot be installed together, clients of Redis in
//! Python, Go and Node.js, and the modules that look at pages in a browser.

use crate::tools::failure::{Failure, Tried};
use crate::tools::packages;
use crate::tools::report::Report;
use crate::tools::repository::{root, target};
use crate::tools::run::{HANG, Show, run, twice};
use std::path::Path;
use std::process::Command;

/// The Debian packages of the tests' clients, including libraries that may be missing.
const CLIENTS: [&str; 6] = [
    "rsyslog",
    "rsyslog-relp",
    "librelp0",
    "libestr0",
    "libfastjson4",
    // Its promtool checks the server's metrics.
    "prometheus",
];
/// The packages of syslog-ng, which only `peers` measures.
const SYSLOG_NG: [&str; 5] = ["syslog-ng-core", "libivykis0", "libpcre3", "libnet1", "libwrap0"];
/// The folders of `target` into which they are unpacked.
const FOLDERS: [&str; 2] = ["clients", "syslog-ng"];
/// The file that lists the unpacked packages.
const LIST: &str = "packages";

/// The client of Redis in Python, in a fixed version.
const REDIS_PY: &str = "redis==8.1.0";
/// An S3 server in Python, in a fixed version.
const MOTO: &str = "moto[s3,server]==5.2.5";
/// The compiler of TypeScript, and the types of Node.js, in fixed versions.
const TYPESCRIPT: [&str; 2] = ["typescript@5.9.3", "@types/node@20.19.8"];
/// The clients of Redis in Node.js, in fixed versions.
const NODE_REDIS: [&str; 2] = ["ioredis@6.0.0", "redis@6.3.1"];
/// The folder of the client of Redis in Go.
const GO_REDIS: &str = "crates/wrote-serve/tests/it/clients/go-redis";

/// The folder of the program that looks at pages, and the files that name its modules.
const PAGES: &str = "crates/wrote-cli/tests/pages";
const PAGES_FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// Provides every client, one step each. If a registry does not answer, its client is skipped.
pub fn provide(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("clients of Debian", || unpacked(FOLDERS[0], &CLIENTS, install))?;
    report.step("client redis-py", || python(REDIS_PY, "redis-py", install))?;
    report.step("client go-redis", || go_redis(install))?;
    report.step("clients ioredis and node-redis", || node("node-redis", &NODE_REDIS, install))?;
    report.step("modules for pages", || pages(install))
}

/// Makes the folder `whole` by `make`, unless it is there. It appears as a whole, and replaces one
/// that `is_there` refuses; a failure leaves nothing.
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

/// Returns the command that installs a package of Python into a folder of its own.
pub fn pip(package: &str, folder: &Path) -> Command {
    let mut command = Command::new("pip3");
    command.args(["install", "-q", "--disable-pip-version-check", package, "--target"]);
    // The folder is the user's, so pip's warning to root does not apply.
    command.arg(folder).env("PIP_ROOT_USER_ACTION", "ignore");
    command
}

/// Installs the modules that look at pages into `target/pages`, unless installed.
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

/// Installs an S3 server into `target/moto`, unless installed.
pub fn moto(install: bool) -> Result<(), Failure> {
    python(MOTO, "moto", install)
}

/// Installs the packer of Python's wheels into `target/maturin`, unless it is there.
pub fn maturin(install: bool) -> Result<(), Failure> {
    python("maturin==1.16.0", "maturin", install)
}

/// Installs the compiler of TypeScript and the types of Node.js into `target/typescript`, unless
/// they are there.
pub fn typescript(install: bool) -> Result<(), Failure> {
    node("typescript", &TYPESCRIPT, install)
}

/// Installs packages of Node.js into a folder of `target`, unless installed.
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

/// Installs a package of Python into a folder of `target`, unless installed.
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

/// Runs a command that needs a registry, which may be unreachable.
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

/// Unpacks Debian packages into the folder `name` of `target`, unless it has them. Without
/// `install` the step is skipped if it does not.
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

/// Prepares an unpacked program, and returns the folder of its modules, which ends with `modules`.
pub fn program(path: &str, modules: &str) -> Result<(Command, String), Failure> {
    let roots = FOLDERS.map(|folder| target().join(folder));
    let root = roots.iter().find(|root| root.join(path).exists()).unwrap_or(&roots[0]);
    let architecture = format!("{}-linux-gnu", std::env::consts::ARCH);
    let libraries = ["lib", "usr/lib"].map(|folder| root.join(folder).join(&architecture));
    // syslog-ng's own stand next to its modules, rsyslog's modules in the architecture's folder.
    let folders = [libraries[1].clone(), root.join("usr/lib")].map(|folder| folder.join(modules));
    let modules = folders.iter().find(|folder| folder.is_dir());
    let modules = modules.ok_or_else(|| Failure::Failed(format!("no modules of {path}")))?;
    let own = root.join("usr/lib/syslog-ng");
    let libraries = libraries.iter().chain([&own]);
    let mut command = Command::new(root.join(path));
    command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).tried("paths")?);
    Ok((command, modules.display().to_string()))
}
