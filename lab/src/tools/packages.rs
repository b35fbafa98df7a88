//! Programs that tests and measurements run, and their Debian packages.

use crate::tools::failure::{Failure, Tried};
use crate::tools::run::{HANG, Show, check_interrupted, output, run, twice};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Debian packages of programs whose package has a different name. The package called `cc`
/// would lack the headers of the C library.
const PACKAGES: &[(&str, &str)] = &[
    ("autoreconf", "autoconf"),
    ("c++", "build-essential"),
    ("cc", "build-essential"),
    ("depmod", "kmod"),
    ("ldd", "libc-bin"),
    ("etcd", "etcd-server"),
    ("fusermount3", "fuse3"),
    ("go", "golang-go"),
    ("java", "default-jdk-headless"),
    ("javac", "default-jdk-headless"),
    ("jsonschema", "python3-jsonschema"),
    ("libtoolize", "libtool"),
    ("losetup", "mount"),
    ("mariadbd", "mariadb-server"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mpicc", "libopenmpi-dev"),
    ("mpirun", "openmpi-bin"),
    ("mvn", "maven"),
    ("node", "nodejs"),
    ("pgbench", "postgresql"),
    ("pip3", "python3-pip"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("setpriv", "util-linux"),
    ("sfdisk", "fdisk"),
    ("systemd-nspawn", "systemd-container"),
    ("taskset", "util-linux"),
    ("unshare", "util-linux"),
    ("xz", "xz-utils"),
];

/// The programs for `cargo xtask peers`. Every Debian system has coreutils, which contain `dd` and
/// `cp`.
pub const PEERS: &[&str] = &["fio", "taskset", "rsync", "cc", "redis-server"];

/// The programs for the labs, except in guests. An ordinary user mounts a FUSE file system with the
/// first one; the others create disks for simulated power losses.
pub const LABS: &[&str] = &["fusermount3", "losetup", "mkfs.btrfs", "mkfs.ext4", "mkfs.xfs"];

/// The programs that build and start ranks. The bindings also need clang's library and headers.
pub const MPI: &[&str] = &["mpirun", "mpicc", "clang"];

/// The programs that create and run the guest of `cargo xtask lab nvme`.
pub const NVME: &[&str] = &["qemu-system-x86_64", "depmod", "cpio", "xz", "mkfs.ext4", "mkfs.xfs"];

/// The programs that create and run the guests of `cargo xtask lab log-writes` and `lab
/// faulty-disk`.
pub const DEVICE_MAPPER: &[&str] = &[
    "qemu-system-x86_64",
    "depmod",
    "cpio",
    "xz",
    "ldd",
    "dmsetup",
    "losetup",
    "mkfs.btrfs",
    "mkfs.ext4",
    "mkfs.xfs",
];

/// The additional programs for the tests.
pub const TESTS: &[&str] = &[
    "fio",
    "cc",
    "curl",
    "sfdisk",
    "unshare",
    "python3",
    "sqlite3",
    "jsonschema",
    "redis-server",
    "zsh",
    "fish",
    "chromium",
    "node",
    "rsync",
    "vim",
];

fn package(program: &'static str) -> &'static str {
    PACKAGES.iter().find(|(known, _)| *known == program).map_or(program, |(_, package)| package)
}

/// Debian's folders of programs for the administrator, to be appended to `PATH`.
const ADMINISTRATOR_FOLDERS: &str = ":/usr/local/sbin:/usr/sbin:/sbin";

/// Installs the packages of missing programs. The failure names the programs that are still
/// missing.
pub fn install(programs: &[&'static str]) -> Result<(), Failure> {
    let wanted = missing(programs);
    if wanted.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = wanted.iter().map(|program| package(program)).collect();
    eprintln!("xtask: installing {}", names.join(" "));
    let result = twice(|| {
        apt_get(&["update"])?;
        apt_get(&[&["install", "-y", "--no-install-recommends"], &names[..]].concat())
    });
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

/// Installs the programs if `install` is set. Otherwise, skips the step if one of them is missing.
pub fn provide(programs: &[&'static str], install: bool) -> Result<(), Failure> {
    if install { self::install(programs) } else { require(programs, Failure::Skipped) }
}

/// Fails with `failure`, which names all missing programs, unless there are none.
pub fn require(programs: &[&'static str], failure: fn(String) -> Failure) -> Result<(), Failure> {
    match missing(programs).as_slice() {
        [] => Ok(()),
        missing => Err(failure(describe(missing))),
    }
}

/// Returns whether all programs are installed.
pub fn are_there(programs: &[&'static str]) -> bool {
    missing(programs).is_empty()
}

fn missing(programs: &[&'static str]) -> Vec<&'static str> {
    programs.iter().copied().filter(|program| file(program).is_none()).collect()
}

/// Returns the path of a program, which may be in one of the administrator's folders; `None` if it
/// is not installed.
fn file(program: &str) -> Option<PathBuf> {
    let folders = folders();
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// Returns the paths of programs. Fails if one of them is not installed.
pub fn files(programs: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let missing = |program: &str| Failure::Failed(format!("{program} is not installed"));
    programs.iter().map(|program| file(program).ok_or_else(|| missing(program))).collect()
}

/// Prepares a program, which may be in one of the administrator's folders.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    // Failures are recognised by their texts, which depend on the locale.
    command.env("PATH", folders()).env("LC_ALL", "C");
    command
}

/// Creates a file of `size_bytes` that contains a file system of type `kind`; `options` are passed
/// to its mkfs.
pub fn image(path: &Path, size_bytes: u64, kind: &str, options: &[&str]) -> Result<(), Failure> {
    File::create_new(path).and_then(|file| file.set_len(size_bytes)).tried(path.display())?;
    let mkfs = format!("mkfs.{kind}");
    output(program(&mkfs).arg("-q").args(options).arg(path), &mkfs).map(drop)
}

/// Returns a `PATH` that includes the administrator's folders.
fn folders() -> OsString {
    let mut folders = std::env::var_os("PATH").unwrap_or_default();
    folders.push(ADMINISTRATOR_FOLDERS);
    folders
}

/// Returns text such as "missing: mkfs.xfs (Debian package xfsprogs), …".
fn describe(programs: &[&'static str]) -> String {
    let words = |program: &&'static str| format!("{program} (Debian package {})", package(program));
    format!("missing: {}", programs.iter().map(words).collect::<Vec<_>>().join(", "))
}

/// Downloads Debian packages into a folder without installing them. apt's lists may be so old that
/// the archive no longer has their versions. In that case, the lists are updated and `names` is
/// called again.
pub fn download(
    names: impl Fn() -> Result<Vec<String>, Failure>,
    folder: &Path,
) -> Result<(), Failure> {
    let download = || {
        let names = names()?;
        let mut command = Command::new("apt-get");
        // Without this option, apt as root downloads as another user, who cannot write here.
        command.args(["-q", "-o", "APT::Sandbox::User=root", "download"]).args(&names);
        let what = format!("apt-get download {}", names.join(" "));
        run(command.current_dir(folder), HANG, Show::Live)?.success(&what).map(drop)
    };
    download().or_else(|_| {
        check_interrupted()?;
        apt_get(&["update"])?;
        download()
    })
}

/// Runs `apt-get` as root. Other users need sudo without a password.
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
        assert_eq!(missing(&["sh", "no-such-program"]), ["no-such-program"]);
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        assert_eq!(
            describe(&["mkfs.xfs", "fio"]),
            "missing: mkfs.xfs (Debian package xfsprogs), fio (Debian package fio)"
        );
    }

    #[test]
    fn nothing_is_installed_where_nothing_is_missing() {
        assert!(install(&["sh"]).is_ok());
    }
}
