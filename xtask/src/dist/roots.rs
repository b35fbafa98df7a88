//! Installs and runs the packed files in clean roots.

use super::bindings::{Bindings, libraries};
use super::program::FILES;
use super::{Packed, VERSION, name};
use crate::bindings::{C, PYTHON, compile_example};
use lab::runs::rows;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::report::Report;
use lab::tools::repository::{self, target};
use lab::tools::run::{HANG, Show, output, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The programs that create a root and run commands in it.
const PROGRAMS: &[&str] = &["mmdebstrap", "unshare", "systemd-nspawn"];
/// The release of Debian in the root. Its systemd checks the unit, and its Python runs the Python
/// package.
const SUITE: &str = "bookworm";
const INCLUDED: &str = "systemd,python3";
/// The maximum exposure of the unit according to `systemd-analyze security`, in tenths: 0 is a
/// service that may do nothing, and 100 one without any restriction.
const EXPOSURE_MAX: &str = "20";

/// Installs and runs each of `packed` in a clean root.
pub fn check(report: &mut Report, packed: &Packed, install: bool) -> Result<(), Failure> {
    let name = "dist: clean root of Debian";
    if !rustix::process::geteuid().is_root() {
        return report.skip(name, "a root is made and entered by root alone".to_owned());
    }
    report.step("dist: program in an empty root", || alone(&packed.program))?;
    report.step("dist: OCI image by an unprivileged user", || image(&packed.image, install))?;
    let debian = report.make(name, || debian(install))?;
    let Some(debian) = debian else { return Ok(()) };
    report.step("dist: archive in a clean root", || archive(&packed.archive, &debian))?;
    report.step("dist: Debian package in a clean root", || package(&packed.debian, &debian))?;
    report.step("dist: service under systemd", || service(&packed.debian, &debian))?;
    report.step("dist: bindings in a clean root", || bindings(&packed.bindings, &debian))
}

/// A temporary root, removed when it is dropped. Writes to its file system must be measurable.
struct Root(TempDir);

impl Root {
    fn new() -> Result<Root, Failure> {
        tempfile::tempdir_in(target()).map(Root).tried("a temporary root")
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `words` in the root, isolated from other processes, and returns its output.
    fn run(&self, words: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc=/proc"]);
        command.arg("--root").arg(self.path()).args(["--wd", "/"]).args(words);
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin");
        output(&mut command, &words.join(" "))
    }

    fn shell(&self, script: &str) -> Result<String, Failure> {
        self.run(&["/bin/sh", "-e", "-u", "-c", script])
    }

    /// Measures a disk and a log with `program`, and checks that it includes the server.
    fn try_out(&self, program: &str) -> Result<(), Failure> {
        let version = self.run(&[program, "--version"])?;
        if !version.starts_with(&format!("wrote {VERSION}")) {
            return Err(Failure::Failed(format!("the version is {}", version.trim())));
        }
        let url = "tcp://127.0.0.1:0";
        self.run(&[program, "serve", "/data/events", "--listen", url, "--check"])?;
        let only = "ladder,append/log-always";
        let words = ["--only", only, "--size", "16M", "--runs", "1", "--format", "json"];
        let result = self.run(&[&[program, "bench", "/data"][..], &words].concat())?;
        let rows = rows(&result)?;
        eprintln!("{} rows were measured", rows.len());
        let is_there = |start: &&str| {
            let mut names = rows.iter().filter_map(|row| row["name"].as_str());
            names.any(|name| name.starts_with(start))
        };
        match ["stream/", "small/", "append/"].iter().find(|start| !is_there(start)) {
            None => Ok(()),
            Some(start) => Err(Failure::Failed(format!("no row of {start} was measured"))),
        }
    }
}

/// Runs the program in a root that contains nothing else except `/dev/null`, which proves that it
/// needs no library.
fn alone(program: &Path) -> Result<(), Failure> {
    let root = Root::new()?;
    for folder in ["data", "dev", "proc"] {
        std::fs::create_dir(root.path().join(folder)).tried(folder)?;
    }
    let mut null = Command::new("mknod");
    output(null.arg(root.path().join("dev/null")).args(["c", "1", "3"]), "mknod")?;
    std::fs::copy(program, root.path().join("wrote")).tried(program.display())?;
    root.try_out("/wrote")
}

/// Unpacks the image as an ordinary user, and runs its program in the image's root, with the
/// arguments of the Kubernetes Job in the documents. Neither a daemon nor a container runtime,
/// which would require control groups, is needed.
fn image(image: &Path, install: bool) -> Result<(), Failure> {
    packages::provide(&["umoci", "setpriv", "unshare"], install)?;
    let root = Root::new()?;
    output(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(root.path()), "tar")?;
    let mut chown = Command::new("chown");
    output(chown.args(["-R", &format!("{USER}:{USER}")]).arg(root.path()), "chown")?;
    let by_user = |line: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).args(line.split(' '));
        command.current_dir(root.path()).env("XDG_RUNTIME_DIR", root.path());
        output(&mut command, line)
    };
    by_user(&format!("umoci unpack --rootless --image .:{VERSION} bundle"))?;
    by_user("mkdir bundle/rootfs/proc")?;
    let words = job_words(&std::fs::read_to_string(repository::root().join(JOB)).tried(JOB)?)?;
    let result = by_user(&format!(
        "unshare --map-root-user --mount --pid --fork --kill-child --mount-proc=/proc --root \
         bundle/rootfs /usr/bin/wrote {words} --runs 1",
    ))?;
    match rows(&result)?.iter().any(|row| row["name"] == "sqlite/wal-full") {
        true => Ok(()),
        false => Err(Failure::Failed("no row of sqlite was measured".to_owned())),
    }
}

/// The page with the Kubernetes Job.
const JOB: &str = "docs/fit.md";

/// Returns the arguments of the page's Job, but with a program without published rules, so that the
/// exit code does not depend on the disk.
fn job_words(page: &str) -> Result<String, Failure> {
    let (_, job) = page.split_once(&format!("/wrote:{VERSION}\n")).unwrap_or_default();
    let words =
        job.trim_start().strip_prefix("args: [fit, etcd, ").and_then(|rest| rest.split_once(']'));
    let none = || Failure::Failed(format!("{JOB} has no Job of {VERSION} that fits etcd"));
    words.map(|(words, _)| format!("fit sqlite {}", words.replace(',', ""))).ok_or_else(none)
}

/// The ID of an ordinary user that owns no files.
const USER: &str = "65534";

/// Creates a root of Debian with its essential packages, unless it exists, and returns the path of
/// the archive that contains it.
fn debian(install: bool) -> Result<PathBuf, Failure> {
    packages::provide(PROGRAMS, install)?;
    let folder = target().join("roots");
    std::fs::create_dir_all(&folder).tried(folder.display())?;
    let whole = folder.join(format!("{SUITE}-{INCLUDED}.tar"));
    if whole.is_file() {
        return Ok(whole);
    }
    if !install {
        return Err(Failure::Skipped(format!("{} is missing", whole.display())));
    }
    let unfinished = folder.join("unfinished.tar");
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=essential"]).arg(format!("--include={INCLUDED}"));
    command.arg(SUITE).arg(&unfinished);
    run(&mut command, HANG, Show::Live)?.success("mmdebstrap")?;
    std::fs::rename(&unfinished, &whole).tried(whole.display())?;
    Ok(whole)
}

/// Unpacks the root of Debian, and adds an empty folder for data.
fn unpacked(debian: &Path) -> Result<Root, Failure> {
    let root = Root::new()?;
    output(Command::new("tar").arg("-xf").arg(debian).arg("-C").arg(root.path()), "tar")?;
    let data = root.path().join("data");
    std::fs::create_dir(&data).tried(data.display())?;
    Ok(root)
}

fn archive(archive: &Path, debian: &Path) -> Result<(), Failure> {
    let root = unpacked(debian)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(root.path().join("usr/local"));
    output(tar.arg("--strip-components=1"), "tar")?;
    root.shell("test $(command -v wrote) = /usr/local/bin/wrote")?;
    root.try_out("wrote")?;
    for (_, path) in FILES {
        root.shell(&format!("test -s /usr/local/{path}"))?;
    }
    // A statically linked program resolves names according to the root's settings.
    root.shell(NAMED)?;
    root.shell(&judged("/usr/local/lib/systemd/system/wrote.service")).map(drop)
}

/// A script that serves a log at a host name.
const NAMED: &str = include_str!("roots/named.sh");

/// Returns a script that fails if systemd finds a fault in `unit`, or if the service is not
/// confined enough.
fn judged(unit: &str) -> String {
    format!(
        "systemd-analyze --man=no --recursive-errors=no verify {unit} 2>/tmp/faults ||
             cat /tmp/faults >&2
         if grep wrote.service /tmp/faults >&2; then exit 1; fi
         systemd-analyze --offline=true --threshold={EXPOSURE_MAX} security {unit} >/tmp/exposure
         tail -n 1 /tmp/exposure >&2"
    )
}

fn installed(package: &Path, debian: &Path) -> Result<Root, Failure> {
    let root = unpacked(debian)?;
    let inside = format!("/{}", name(package));
    std::fs::copy(package, root.path().join(&inside[1..])).tried(package.display())?;
    root.shell(&format!("dpkg --install {inside} && rm {inside}"))?;
    Ok(root)
}

fn package(package: &Path, debian: &Path) -> Result<(), Failure> {
    let root = installed(package, debian)?;
    root.shell("test $(command -v wrote) = /usr/bin/wrote && dpkg --verify wrote")?;
    root.try_out("wrote")?;
    root.shell(NAMED)?;
    root.shell(&judged("/lib/systemd/system/wrote.service"))?;
    // Installing the package does not start the service; that is left to the administrator.
    root.shell("test ! -e /etc/systemd/system/multi-user.target.wants/wrote.service")?;
    root.shell(
        "dpkg --listfiles wrote | while read -r path; do test -d \"$path\" || echo \"$path\"; done \
         >/tmp/files
         grep -q ^/usr/share/man/man1/wrote.1.gz /tmp/files
         dpkg --purge wrote
         while read -r path; do test ! -e \"$path\" || exit 1; done </tmp/files",
    )?;
    Ok(())
}

/// Installs the library and the wheel in a root without a compiler, and runs the examples there.
/// Debian's Node.js is too old for the npm package.
fn bindings(packed: &Bindings, debian: &Path) -> Result<(), Failure> {
    let root = installed(&packed.library, debian)?;
    let data = root.path().join("data");
    let headers = tempfile::tempdir_in(root.path()).tried("a folder of the root")?;
    for package in [&packed.library, &packed.development] {
        let mut extract = Command::new("dpkg-deb");
        output(extract.arg("--extract").arg(package).arg(headers.path()), "dpkg-deb")?;
    }
    let include = headers.path().join("usr/include");
    compile_example(headers.path(), &include, &headers.path().join(libraries()))?;
    std::fs::copy(headers.path().join("save"), data.join("save")).tried("the example")?;
    C.judge(&data, &root.shell("dpkg --verify libwrote0; cd /data; ./save")?)?;
    root.shell(&format!("dpkg --purge libwrote0; test ! -e /{}/libwrote.so.0", libraries()))?;
    std::fs::remove_dir_all(data.join("events")).tried("the log of the example")?;
    std::fs::copy(&packed.wheel, data.join("wrote.whl")).tried(packed.wheel.display())?;
    PYTHON.put(&data)?;
    let site = "cd /data; python3 -m zipfile -e wrote.whl site; PYTHONPATH=site python3 example.py";
    PYTHON.judge(&data, &root.shell(site)?)
}

/// The time limit for the script in the root, which normally takes seconds.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// The service's configuration, with one log.
const CONFIG: &str = include_str!("roots/wrote.toml");

/// The script that tests the service and its confinement.
const PROBE: &str = include_str!("roots/probe.sh");

/// The unit that runs the script and then shuts down the root.
const PROBE_UNIT: &str = include_str!("roots/probe.service");

/// Boots a root with the package under systemd, and tests its service there.
fn service(package: &Path, debian: &Path) -> Result<(), Failure> {
    let root = installed(package, debian)?;
    for (file, text) in [
        ("etc/wrote.toml", CONFIG),
        ("probe.sh", PROBE),
        ("etc/systemd/system/probe.service", PROBE_UNIT),
    ] {
        std::fs::write(root.path().join(file), text).tried(file)?;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    // systemd-nspawn requires a /run in memory, which not every machine has.
    command.args(["mount -t tmpfs tmpfs /run && exec systemd-nspawn \"$@\"", "sh"]);
    command.args(["--quiet", "--register=no", "--keep-unit", "--machine=wrote"]);
    // The root has no network except its own loopback interface.
    command.args(["--private-network", "--console=read-only", "--directory"]).arg(root.path());
    command.args(["/lib/systemd/systemd", "--unit=probe.service"]);
    let booted = run(&mut command, LIMIT, Show::Quiet)?;
    let said = |file: &str| std::fs::read_to_string(root.path().join(file)).unwrap_or_default();
    if said("probe.out").ends_with("the service is fine\n") {
        return Ok(());
    }
    eprintln!("{}{}{}{}", booted.stdout, booted.stderr, said("probe.out"), said("probe.err"));
    Err(Failure::Failed("the service failed: see above".into()))
}
