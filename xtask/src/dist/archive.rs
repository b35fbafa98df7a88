//! The archive: a folder laid out for `/usr/local`.

use super::files::FILES;
use super::{VERSION, name, program};
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
    let mut tar = Command::new("tar");
    // Nothing of this machine gets into it: no users, no times, no order of a folder. Not every
    // machine can unpack xz.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{date_s}")).args(["--mode=u+rwX,go=rX", "--use-compress-program"]);
    tar.arg("gzip -9 --no-name").arg("-cf").arg(&archive).arg("-C").arg(tree.path());
    output(tar.arg(name(&whole)), "tar")?;
    Ok(archive)
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
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
