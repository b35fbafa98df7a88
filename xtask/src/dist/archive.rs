//! The archive: a folder laid out for `/usr/local`.

use super::files::FILES;
use super::{VERSION, program};
use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::root;
use lab::tools::run::output;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unit for systemd as the Debian package installs it, from the repository's root.
pub const UNIT: &str = "crates/wrote-cli/debian/wrote.service";
/// Files of the repository in `share/doc/wrote`.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Makes the archive of `program` in `folder`. Every file gets the time `date_s`.
pub fn make(program: &Path, folder: &Path, date_s: &str) -> Result<PathBuf, Failure> {
    let stem = format!("wrote-{VERSION}-{}-linux", std::env::consts::ARCH);
    let tree = tempfile::tempdir_in(folder).tried(folder.display())?;
    let whole = tree.path().join(&stem);
    copy(program, &whole.join("bin/wrote"), 0o755)?;
    for (_, path) in FILES {
        copy(&program::folder()?.join(path), &whole.join(path), 0o644)?;
    }
    for document in DOCUMENTS {
        copy(&root().join(document), &whole.join("share/doc/wrote").join(document), 0o644)?;
    }
    let unit = whole.join("lib/systemd/system/wrote.service");
    copy(&root().join(UNIT), &unit, 0o644)?;
    let text = std::fs::read_to_string(&unit).tried(unit.display())?;
    let text = text.replace("=/usr/bin/wrote ", "=/usr/local/bin/wrote ");
    std::fs::write(&unit, text).tried(unit.display())?;
    let archive = folder.join(format!("{stem}.tar.gz"));
    tar(tree.path(), &[&stem], &archive, date_s)?;
    Ok(archive)
}

/// Packs `names` of `folder` into `archive`, compressed where that is a `.gz`. It contains nothing
/// of this machine: no users, times or folder order. Not every machine can unpack xz.
pub fn tar(folder: &Path, names: &[&str], archive: &Path, date_s: &str) -> Result<(), Failure> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{date_s}")).arg("--mode=u+rwX,go=rX");
    if archive.extension().is_some_and(|extension| extension == "gz") {
        tar.args(["--use-compress-program", "gzip -9 --no-name"]);
    }
    output(tar.arg("-cf").arg(archive).arg("-C").arg(folder).args(names), "tar").map(drop)
}

/// Gives every file of a tree the time `date_s`.
pub fn give_times(tree: &Path, date_s: &str) -> Result<(), Failure> {
    let mut touch = Command::new("find");
    touch.arg(tree).args(["-exec", "touch", "--no-dereference", "--date"]);
    output(touch.arg(format!("@{date_s}")).args(["{}", "+"]), "touch").map(drop)
}

/// Copies a file, creating its folder.
pub fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    let parent = to.parent().unwrap_or(to);
    std::fs::create_dir_all(parent).tried(parent.display())?;
    std::fs::copy(from, to).tried(from.display())?;
    std::fs::set_permissions(to, Permissions::from_mode(mode)).tried(to.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_lists_every_file_of_the_archive() {
        let manifest = root().join("crates/wrote-cli/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("a manifest");
        for (_, path) in FILES {
            assert!(manifest.contains(&format!("\"target/release/{path}")), "{path}");
        }
    }
}
