//! The packages of the bindings: `libwrote0` and `libwrote-dev` for Debian, a wheel for Python, and
//! an archive for npm.

use super::program::{PROFILE, copy, give_times, renamed_rust, take_out};
use super::{VERSION, name};
use crate::bindings::{MANIFEST, npm_package, run_node_example, run_python_example};
use lab::tools::clients;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages;
use lab::tools::repository::{cargo, root, target};
use lab::tools::run::{HANG, Show, output, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packed files.
pub struct Bindings {
    pub library: PathBuf,
    pub development: PathBuf,
    pub wheel: PathBuf,
    pub npm: PathBuf,
}

impl Bindings {
    /// Returns the paths of all files.
    pub fn files(&self) -> [&PathBuf; 4] {
        let Bindings { library, development, wheel, npm } = self;
        [library, development, wheel, npm]
    }
}

/// Builds the packages in `folder`. The modification time of their files is `date_s`, except in the
/// npm archive.
pub fn make(folder: &Path, date_s: &str, install: bool) -> Result<Bindings, Failure> {
    let flags = renamed_rust()?;
    let words = ["build", "--locked", "--profile", PROFILE, "-p", "wrote-c", "-p", "wrote-node"];
    let mut build = cargo(&words);
    build.args(["--manifest-path", MANIFEST]).env("RUSTFLAGS", &flags);
    run(&mut build, HANG, Show::Live)?.success("the build of libwrote")?;
    Ok(Bindings {
        library: library(folder, date_s)?,
        development: development(folder, date_s)?,
        wheel: wheel(folder, date_s, &flags, install)?,
        npm: npm(folder, install)?,
    })
}

fn library(folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let tree = tempfile::tempdir_in(folder).tried(folder.display())?;
    let place = tree.path().join(libraries());
    copy(&built("libwrote.so"), &place.join("libwrote.so.0"), 0o644)?;
    let control = "Section: libs\nMulti-Arch: same\nDepends: libc6 (>= 2.34), libgcc-s1\n\
        Description: Files and logs that say what each write survives\n";
    debian(tree.path(), "libwrote0", control, folder, date_s)
}

fn development(folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let tree = tempfile::tempdir_in(folder).tried(folder.display())?;
    let place = tree.path().join(libraries());
    copy(&built("libwrote.a"), &place.join("libwrote.a"), 0o644)?;
    let own = root().join("bindings/c");
    copy(&own.join("wrote.pc"), &place.join("pkgconfig/wrote.pc"), 0o644)?;
    for header in ["wrote.h", "wrote.hpp"] {
        let to = tree.path().join("usr/include").join(header);
        copy(&own.join("include").join(header), &to, 0o644)?;
    }
    std::os::unix::fs::symlink("libwrote.so.0", place.join("libwrote.so")).tried("libwrote.so")?;
    let control = format!(
        "Section: libdevel\nMulti-Arch: same\nDepends: libwrote0 (= {VERSION}-1), libc6-dev\n\
         Description: Files and logs that say what each write survives (for C and C++)\n"
    );
    debian(tree.path(), "libwrote-dev", &control, folder, date_s)
}

/// Packs a tree, together with the licences and the README, as the Debian package `package`.
fn debian(
    tree: &Path,
    package: &str,
    control: &str,
    folder: &Path,
    date_s: &str,
) -> Result<PathBuf, Failure> {
    let documents = tree.join("usr/share/doc").join(package);
    copy(&root().join("bindings/c/README.md"), &documents.join("README.md"), 0o644)?;
    copy(&root().join("LICENSE-MIT"), &documents.join("copyright"), 0o644)?;
    copy(&root().join("LICENSE-APACHE"), &documents.join("LICENSE-APACHE"), 0o644)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"), "dpkg")?;
    let architecture = architecture.trim();
    let head = format!(
        "Package: {package}\nVersion: {VERSION}-1\nArchitecture: {architecture}\n\
         Maintainer: The wrote authors\nPriority: optional\n"
    );
    std::fs::create_dir(tree.join("DEBIAN")).tried(package)?;
    std::fs::write(tree.join("DEBIAN/control"), head + control).tried(package)?;
    give_times(tree, date_s)?;
    let packed = folder.join(format!("{package}_{VERSION}-1_{architecture}.deb"));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", "--build"]).arg(tree).arg(&packed);
    output(pack.env("SOURCE_DATE_EPOCH", date_s), "dpkg-deb")?;
    Ok(packed)
}

/// Builds the wheel with maturin, which also checks which Linux distributions the wheel's name may
/// claim to support.
fn wheel(folder: &Path, date_s: &str, flags: &str, install: bool) -> Result<PathBuf, Failure> {
    clients::maturin(install)?;
    let into = tempfile::tempdir_in(folder).tried(folder.display())?;
    let mut build = Command::new(target().join("maturin/bin/maturin"));
    build.current_dir(root().join("bindings/python")).env("RUSTFLAGS", flags);
    build.args(["build", "--locked", "--profile", PROFILE, "--out"]).arg(into.path());
    build.env("SOURCE_DATE_EPOCH", date_s);
    run(&mut build, HANG, Show::Live)?.success("maturin")?;
    take_out(into.path(), folder)
}

/// Packs the npm package. npm gives every file the same fixed time.
fn npm(folder: &Path, install: bool) -> Result<PathBuf, Failure> {
    packages::provide(&["node", "npm"], install)?;
    let tree = tempfile::tempdir_in(folder).tried(folder.display())?;
    npm_package(tree.path(), &crate::bindings::libraries(PROFILE))?;
    let mut pack = Command::new("npm");
    pack.current_dir(tree.path()).args(["pack", "--silent", "--pack-destination"]).arg(folder);
    let name = output(&mut pack, "npm pack")?;
    Ok(folder.join(name.trim()))
}

/// Installs the wheel and the npm archive into temporary folders, and runs each README's example
/// with only that package. The other packages are tested in the clean root of Debian.
pub fn check(packed: &Bindings) -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    let folder = folder.path();
    let site = folder.join("site");
    let mut pip = Command::new("pip3");
    pip.args(["install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]);
    pip.env("PIP_ROOT_USER_ACTION", "ignore").arg("--target").arg(&site);
    output(pip.arg(&packed.wheel), &format!("pip3 install {}", name(&packed.wheel)))?;
    run_python_example(folder, &site)?;
    // The other example left its log in this folder.
    let folder = folder.join("node");
    std::fs::create_dir(&folder).tried("a temporary folder")?;
    let mut npm = Command::new("npm");
    npm.current_dir(&folder).args(["install", "--offline", "--no-audit", "--no-fund", "--silent"]);
    output(npm.arg("--ignore-scripts").arg(&packed.npm), "npm install")?;
    run_node_example(&folder)
}

fn built(file: &str) -> PathBuf {
    crate::bindings::libraries(PROFILE).join(file)
}

/// Returns Debian's folder for libraries on this processor.
pub fn libraries() -> String {
    format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH)
}
