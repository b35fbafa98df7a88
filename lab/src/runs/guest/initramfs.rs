//! The guest's kernel, unpacked from its Debian package, and its initial file system, an archive of
//! a shell, modules, programs and the plan.

use super::Guest;
use super::cache::{Cached, entries};
use crate::tools::failure::{Failure, Tried};
use crate::tools::packages::program;
use crate::tools::repository::{copy, make_parent};
use crate::tools::run::output;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{create_dir_all, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const INIT: &str = include_str!("../../../guest/init.sh");

/// The parts of the package that are unpacked, a sixth of it: the kernel, and the modules that may
/// be needed.
const PARTS: &[&str] = &[
    "*/vmlinuz-*",
    "*/modules.builtin*",
    "*/modules.order",
    "*/kernel/arch/*",
    "*/kernel/block/*",
    "*/kernel/crypto/*",
    "*/kernel/drivers/block/*",
    "*/kernel/drivers/md/*",
    "*/kernel/drivers/nvme/*",
    "*/kernel/fs/*",
    "*/kernel/lib/*",
];

/// A module that the guest needs.
#[derive(Debug)]
pub struct Module {
    /// The name as in `modinfo`, with `_` in place of `-`.
    name: &'static str,
    /// The parameters for `insmod`.
    parameters: &'static str,
    /// Whether the kernel may lack the module. Newer kernels have checksums built in, which modules
    /// request by the algorithm's name.
    optional: bool,
}

/// Describes a module that the guest needs, with parameters for `insmod`.
pub const fn module(name: &'static str, parameters: &'static str) -> Module {
    Module { name, parameters, optional: false }
}

/// Describes a module that provides a checksum, which may be built into the kernel.
pub const fn checksum(name: &'static str) -> Module {
    Module { name, parameters: "", optional: true }
}

/// An unpacked kernel.
#[derive(Debug)]
pub struct Kernel {
    /// The kernel image to boot.
    pub image: PathBuf,
    /// The files of the wanted modules and their dependencies, with parameters for `insmod`. Each
    /// file follows its dependencies. Files may be compressed.
    modules: Vec<(PathBuf, &'static str)>,
}

impl Kernel {
    /// Unpacks the Debian `package` into `folder`, and finds the modules `wanted`.
    pub fn unpack(package: &Path, wanted: &[Module], folder: &Path) -> Result<Kernel, Failure> {
        unpack(package, folder, PARTS)?;
        let image = only(&folder.join("boot"), "vmlinuz-")?;
        // Newer releases have everything in /usr.
        let places = ["lib/modules", "usr/lib/modules"].map(|place| folder.join(place));
        let place = places.iter().find(|place| place.is_dir()).unwrap_or(&places[0]);
        let modules = only(place, "")?;
        // An installation would also run depmod, which lists each module's dependencies.
        let base = place.ancestors().nth(2).unwrap_or(folder);
        let release = modules.file_name().unwrap_or_default();
        output(program("depmod").arg("--basedir").arg(base).arg(release), "depmod")?;
        // Optional dependencies are not needed, and may not run on the emulated CPU.
        let wishes = modules.join("modules.softdep");
        std::fs::remove_file(&wishes).tried(wishes.display())?;
        Ok(Kernel { image, modules: load_order(wanted, base, release)? })
    }
}

/// Returns the files to load for the modules `wanted` of the kernel `release` below `base`.
fn load_order(
    wanted: &[Module],
    base: &Path,
    release: &OsStr,
) -> Result<Vec<(PathBuf, &'static str)>, Failure> {
    let mut order: Vec<(PathBuf, &str)> = Vec::new();
    for Module { name, parameters, optional } in wanted {
        let mut modprobe = program("modprobe");
        modprobe.args(["-C", "/dev/null", "--show-depends", "-S"]).arg(release);
        modprobe.arg("-d").arg(base).arg(name).args(parameters.split_whitespace());
        let listed = match output(&mut modprobe, "modprobe") {
            Err(Failure::Failed(_)) if *optional => continue,
            listed => listed?,
        };
        // A built-in module has no such line. The last line contains the parameters.
        for line in listed.lines().filter_map(|line| line.strip_prefix("insmod ")) {
            let own = line.strip_suffix(parameters);
            let file = PathBuf::from(own.unwrap_or(line).trim_end());
            if !order.iter().any(|(loaded, _)| *loaded == file) {
                order.push((file, own.map_or("", |_| parameters)));
            }
        }
    }
    Ok(order)
}

/// Unpacks the files of a Debian package that match `patterns`. Fails if a pattern matches none.
fn unpack(package: &Path, folder: &Path, patterns: &[&str]) -> Result<(), Failure> {
    let script = r#"package=$1 folder=$2; shift 2
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --wildcards -- "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(package).arg(folder).args(patterns);
    output(&mut command, &package.display().to_string()).map(drop)
}

/// Returns the only entry of `folder` whose name begins with `prefix`. Fails if there is not
/// exactly one.
fn only(folder: &Path, prefix: &str) -> Result<PathBuf, Failure> {
    match entries(folder, prefix)?.as_slice() {
        [one] => Ok(one.clone()),
        many => {
            let (folder, count) = (folder.display(), many.len());
            Err(Failure::Failed(format!("{folder}: {count} of {prefix}*, not one")))
        }
    }
}

/// Creates the archive in `folder`, and returns its path.
pub fn make(
    folder: &Path,
    cached: &Cached,
    kernel: &Kernel,
    guest: &Guest,
) -> Result<PathBuf, Failure> {
    let tree = folder.join("tree");
    put(&tree.join("init"), INIT)?;
    set_permissions(tree.join("init"), PermissionsExt::from_mode(0o755)).tried("init")?;
    busybox(cached, folder, &tree)?;
    modules(kernel, &tree)?;
    for (name, file) in guest.programs {
        copy(file, &tree.join("lab").join(name))?;
    }
    guest.tools.iter().try_for_each(|tool| bundle(tool, &tree))?;
    put(&tree.join("guest"), &guest.script)?;
    put(&tree.join("plan"), &plan(guest))?;
    archive(&tree, folder)
}

fn busybox(cached: &Cached, folder: &Path, tree: &Path) -> Result<(), Failure> {
    let unpacked = folder.join("busybox");
    create_dir_all(&unpacked).tried(unpacked.display())?;
    unpack(&cached.busybox, &unpacked, &["*bin/busybox"])?;
    // Newer releases have everything in /usr.
    let places = ["bin", "usr/bin"].map(|place| unpacked.join(place).join("busybox"));
    let program = places.iter().find(|place| place.exists()).unwrap_or(&places[0]);
    copy(program, &tree.join("bin/busybox"))
}

/// Adds the modules in uncompressed form, and the commands that load them.
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

/// Copies a program of the host into the tree, and its libraries to their original paths.
fn bundle(tool: &Path, tree: &Path) -> Result<(), Failure> {
    copy(tool, &tree.join("lab").join(tool.file_name().unwrap_or_default()))?;
    let said = output(Command::new("ldd").arg(tool), "ldd")?;
    for library in libraries(&said) {
        let relative = library.strip_prefix("/").unwrap_or(library);
        copy(library, &tree.join(relative))?;
    }
    Ok(())
}

/// Returns the files named in the output of ldd, such as `libm.so.6 => /lib/libm.so.6 (0x7f)`.
fn libraries(said: &str) -> impl Iterator<Item = &Path> {
    said.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(Path::new)
}

fn plan(guest: &Guest) -> String {
    let mut plan = String::new();
    for planned in guest.plan {
        let _ = writeln!(plan, "{}\t{}", planned.name, planned.command);
    }
    plan
}

/// Archives the tree in the format of the kernel's
/// `Documentation/driver-api/early-userspace/buffer-format.rst`.
fn archive(tree: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("initramfs");
    let script = r#"cd "$1" && find . -print0 | cpio --quiet --null -o -H newc -F "$2""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(tree).arg(&path);
    output(&mut command, "cpio").map(|_| path)
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    make_parent(path)?;
    std::fs::write(path, text).tried(path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_a_program_are_its_loader_and_what_it_names() {
        let said = "\tlinux-vdso.so.1 (0x7ffd)\n\tlibm.so.6 => /lib/libm.so.6 (0x7f00)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f01)\n";
        let libraries: Vec<_> = libraries(said).collect();
        assert_eq!(libraries, ["/lib/libm.so.6", "/lib64/ld-linux-x86-64.so.2"].map(Path::new));
        assert_eq!(super::libraries("\tstatically linked\n").count(), 0);
    }
}
