//! Clients that tests of the server call: unpacked beside the build, since the packages of rsyslog
//! and syslog-ng cannot be installed together.

use crate::failure::{Failure, Tried};
use crate::packages;
use crate::repository::target;
use crate::run::{HANG, Show, check_interrupted, run};
use std::path::Path;
use std::process::Command;

/// The Debian packages, with the libraries that a machine without them lacks.
const PACKAGES: [&str; 7] = [
    "rsyslog",
    "rsyslog-relp",
    "librelp0",
    "libestr0",
    "libfastjson4",
    "syslog-ng-core",
    // Its promtool judges the server's metrics.
    "prometheus",
];
/// The file that lists the packages which were unpacked.
const LIST: &str = "packages";

/// Unpacks the clients into `target/clients`, unless they are there. Without `install` the step is
/// skipped where they are not.
pub fn provide(install: bool) -> Result<(), Failure> {
    let whole = target().join("clients");
    let list = PACKAGES.join("\n");
    if std::fs::read_to_string(whole.join(LIST)).is_ok_and(|unpacked| unpacked == list) {
        return Ok(());
    }
    if !install {
        let names = PACKAGES.join(" ");
        return Err(Failure::Skipped(format!("{} has not all of: {names}", whole.display())));
    }
    std::fs::create_dir_all(target()).tried(target().display())?;
    let unfinished = tempfile::tempdir_in(target()).tried(target().display())?;
    let (packages, root) = (unfinished.path().join("packages"), unfinished.path().join("root"));
    std::fs::create_dir(&packages).tried(packages.display())?;
    download(&packages).or_else(|_| {
        // apt's lists may be old, and these versions gone from the archive.
        check_interrupted()?;
        packages::update()?;
        download(&packages)
    })?;
    for package in std::fs::read_dir(&packages).tried(packages.display())? {
        let package = package.tried(packages.display())?.path();
        let mut command = Command::new("dpkg-deb");
        command.arg("-x").arg(&package).arg(&root);
        run(&mut command, HANG, Show::Live)?.success("dpkg-deb")?;
    }
    std::fs::write(root.join(LIST), list).tried(root.display())?;
    if whole.exists() {
        // Of a list before this one.
        std::fs::remove_dir_all(&whole).tried(whole.display())?;
    }
    // It appears as a whole.
    std::fs::rename(&root, &whole).tried(whole.display())
}

fn download(folder: &Path) -> Result<(), Failure> {
    let mut command = Command::new("apt-get");
    // Otherwise apt as root downloads as another user, who cannot write here.
    command.args(["-q", "-o", "APT::Sandbox::User=root", "download"]).args(PACKAGES);
    command.current_dir(folder);
    run(&mut command, HANG, Show::Live)?.success("apt-get download").map(drop)
}
