//! The guest's initial file system: an archive of a shell, modules, test programs and their plan.

use super::GuestProgram;
use super::cache::Cached;
use super::kernel::{Kernel, unpack};
use crate::failure::{Failure, Tried};
use crate::run::output;
use std::fmt::Write as _;
use std::fs::{create_dir_all, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const INIT: &str = include_str!("../../../../lab/nvme/init.sh");

/// Makes the archive below `folder` and returns its path.
pub fn make(
    folder: &Path,
    cached: &Cached,
    kernel: &Kernel,
    programs: &[GuestProgram],
) -> Result<PathBuf, Failure> {
    let tree = folder.join("tree");
    put(&tree.join("init"), INIT)?;
    set_permissions(tree.join("init"), PermissionsExt::from_mode(0o755)).tried("init")?;
    busybox(cached, folder, &tree)?;
    modules(kernel, &tree)?;
    tests(programs, &tree)?;
    archive(&tree, folder)
}

fn busybox(cached: &Cached, folder: &Path, tree: &Path) -> Result<(), Failure> {
    let unpacked = folder.join("busybox");
    create_dir_all(&unpacked).tried(unpacked.display())?;
    unpack(&cached.busybox, &unpacked, &["*bin/busybox"])?;
    // Newer releases have everything below /usr.
    let places = ["bin", "usr/bin"].map(|place| unpacked.join(place).join("busybox"));
    let program = places.iter().find(|place| place.exists()).unwrap_or(&places[0]);
    copy(program, &tree.join("bin/busybox"))
}

/// Adds the modules, not compressed, and the commands that load them.
fn modules(kernel: &Kernel, tree: &Path) -> Result<(), Failure> {
    let mut load = String::new();
    for (module, parameters) in &kernel.modules {
        let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = tree.join("modules").join(&name);
        copy(module, &file)?;
        let plain = name.strip_suffix(".xz");
        if plain.is_some() {
            output(Command::new("xz").arg("--decompress").arg(&file), &name)?;
        }
        let _ = writeln!(load, "insmod /modules/{} {}", plain.unwrap_or(&name), parameters);
    }
    put(&tree.join("modules/load"), &load)
}

fn tests(programs: &[GuestProgram], tree: &Path) -> Result<(), Failure> {
    let mut plan = String::new();
    for (program, tests) in programs {
        copy(&program.file, &tree.join("tests").join(&program.target))?;
        for test in tests {
            let _ = writeln!(plan, "{} {test}", program.target);
        }
    }
    put(&tree.join("tests/plan"), &plan)
}

/// Archives the tree in the kernel's format (the kernel's
/// `Documentation/driver-api/early-userspace/buffer-format.rst`).
fn archive(tree: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("initramfs");
    let script = r#"cd "$1" && find . -print0 | cpio --quiet --null -o -H newc -F "$2""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(tree).arg(&path);
    output(&mut command, "cpio").map(|_| path)
}

fn parent(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    create_dir_all(folder).tried(folder.display())
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    parent(path)?;
    std::fs::write(path, text).tried(path.display())
}

fn copy(source: &Path, target: &Path) -> Result<(), Failure> {
    parent(target)?;
    std::fs::copy(source, target).map(|_| ()).tried(source.display())
}
