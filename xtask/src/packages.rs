//! Programs that tests and measurements call, and their Debian packages.

use crate::failure::{Failure, Tried};
use crate::run::{HANG, Show, check_interrupted, output, run, twice};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// A program and its Debian package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// The program.
    pub program: &'static str,
    /// The package.
    pub name: &'static str,
}

/// Names `program` and its package `name`.
pub const fn package(program: &'static str, name: &'static str) -> Package {
    Package { program, name }
}

/// Programs for `cargo xtask peers`. Every Debian has coreutils, and with it `dd` and `cp`. A
/// package of `cc` alone would lack the C library's headers.
pub const PEERS: &[Package] = &[
    package("fio", "fio"),
    package("valgrind", "valgrind"),
    package("taskset", "util-linux"),
    package("rsync", "rsync"),
    package("cc", "build-essential"),
    package("redis-server", "redis-server"),
];

/// Programs for the labs, except those in [`GUEST`]. An ordinary user mounts a FUSE file system by
/// the first; the others make disks that lose their power.
pub const LABS: &[Package] = &[
    package("fusermount3", "fuse3"),
    package("losetup", "mount"),
    package("mkfs.btrfs", "btrfs-progs"),
    package("mkfs.ext4", "e2fsprogs"),
    package("mkfs.xfs", "xfsprogs"),
];

/// Programs that make and run the guest of `cargo xtask lab nvme`.
pub const GUEST: &[Package] = &[
    package("qemu-system-x86_64", "qemu-system-x86"),
    package("depmod", "kmod"),
    package("cpio", "cpio"),
    package("xz", "xz-utils"),
    package("mkfs.ext4", "e2fsprogs"),
    package("mkfs.xfs", "xfsprogs"),
];

/// Programs for the tests and labs, except those in [`GUEST`].
pub const TESTS: &[Package] = &[
    package("fio", "fio"),
    package("cc", "build-essential"),
    package("mkfs.xfs", "xfsprogs"),
    package("mkfs.btrfs", "btrfs-progs"),
    package("mkfs.ext4", "e2fsprogs"),
    package("sfdisk", "fdisk"),
    package("fusermount3", "fuse3"),
    package("losetup", "mount"),
    package("unshare", "util-linux"),
    package("python3", "python3"),
    package("jsonschema", "python3-jsonschema"),
    package("redis-server", "redis-server"),
    package("zsh", "zsh"),
    package("fish", "fish"),
];

/// Debian's folders of the administrator's programs, as a tail of `PATH`.
const ADMINISTRATOR_FOLDERS: &str = ":/usr/local/sbin:/usr/sbin:/sbin";

/// Installs each package whose program is missing; the failure names those still missing.
pub fn install(packages: &[Package]) -> Result<(), Failure> {
    let wanted = missing(packages);
    if wanted.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = wanted.iter().map(|package| package.name).collect();
    eprintln!("xtask: installing {}", names.join(" "));
    let result = twice(|| apt(&names));
    check_interrupted()?;
    let still = missing(&wanted);
    if still.is_empty() {
        return Ok(());
    }
    let because = match result {
        Ok(()) => "apt-get installed them, and they are not found".to_owned(),
        Err(failure) => failure.to_string(),
    };
    Err(Failure::Failed(format!("{}: {because}", describe(&still))))
}

/// Installs the packages if `install` is set, or skips the step where one is missing.
pub fn provide(packages: &[Package], install: bool) -> Result<(), Failure> {
    if install { self::install(packages) } else { require(packages, Failure::Skipped) }
}

/// Ends in `failure` where the program of a package is missing, and names each.
pub fn require(packages: &[Package], failure: fn(String) -> Failure) -> Result<(), Failure> {
    match missing(packages).as_slice() {
        [] => Ok(()),
        missing => Err(failure(describe(missing))),
    }
}

/// Returns the packages whose program is missing.
fn missing(packages: &[Package]) -> Vec<Package> {
    let folders = folders();
    let is_in = |folder: &Path, program: &str| folder.join(program).is_file();
    let found = |program| std::env::split_paths(&folders).any(|folder| is_in(&folder, program));
    packages.iter().copied().filter(|package| !found(package.program)).collect()
}

/// Prepares a program that may be one of the administrator's.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    // Failures are recognised by their words, which depend on the locale.
    command.env("PATH", folders()).env("LC_ALL", "C");
    command
}

/// Makes a file of `size_bytes` with a file system of type `kind`; `options` are those of its mkfs.
pub fn image(path: &Path, size_bytes: u64, kind: &str, options: &[&str]) -> Result<(), Failure> {
    File::create_new(path).and_then(|file| file.set_len(size_bytes)).tried(path.display())?;
    let mkfs = format!("mkfs.{kind}");
    output(program(&mkfs).arg("-q").args(options).arg(path), &mkfs).map(drop)
}

/// Returns a `PATH` with the administrator's programs.
fn folders() -> OsString {
    let mut folders = std::env::var_os("PATH").unwrap_or_default();
    folders.push(ADMINISTRATOR_FOLDERS);
    folders
}

/// Returns "missing: mkfs.xfs (Debian package xfsprogs), …".
fn describe(packages: &[Package]) -> String {
    let each = packages
        .iter()
        .map(|Package { program, name }| format!("{program} (Debian package {name})"));
    format!("missing: {}", each.collect::<Vec<_>>().join(", "))
}

/// Updates apt's lists of packages.
pub fn update() -> Result<(), Failure> {
    apt_get(&["update"])
}

fn apt(names: &[&str]) -> Result<(), Failure> {
    update()?;
    apt_get(&[&["install", "-y", "--no-install-recommends"], names].concat())
}

/// Runs `apt-get` as root; other users need a sudo that asks for no password.
fn apt_get(arguments: &[&str]) -> Result<(), Failure> {
    let root = rustix::process::geteuid().is_root();
    let mut command = Command::new(if root { "env" } else { "sudo" });
    if !root {
        command.args(["-n", "env"]);
    }
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
    // Another process may be installing packages.
    command.args(["-o", "DPkg::Lock::Timeout=120"]).args(arguments);
    let what = format!("apt-get {}", arguments.join(" "));
    run(&mut command, HANG, Show::Live)?.success(&what).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_that_are_not_there_are_missing() {
        let nowhere = package("no-such-program", "no-such-package");
        assert_eq!(missing(&[package("sh", "dash"), nowhere]), [nowhere]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let packages = [package("mkfs.xfs", "xfsprogs"), package("fio", "fio")];
        assert_eq!(
            describe(&packages),
            "missing: mkfs.xfs (Debian package xfsprogs), fio (Debian package fio)"
        );
    }

    #[test]
    fn nothing_is_installed_where_nothing_is_missing() {
        assert!(install(&[package("sh", "no-such-package")]).is_ok());
    }
}
