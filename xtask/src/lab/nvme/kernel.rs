//! The guest's kernel, unpacked from its Debian package, and its modules.

use crate::failure::{Failure, Tried};
use crate::packages::program;
use crate::run::output;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unpacked part of the package, a sixth of it: the kernel and the modules that may be needed.
const PARTS: &[&str] = &[
    "*/vmlinuz-*",
    "*/modules.builtin*",
    "*/modules.order",
    "*/kernel/arch/*",
    "*/kernel/block/*",
    "*/kernel/crypto/*",
    "*/kernel/drivers/block/*",
    "*/kernel/drivers/nvme/*",
    "*/kernel/fs/*",
    "*/kernel/lib/*",
];

/// A module that the guest needs.
#[derive(Debug)]
struct Module {
    /// The name by `modinfo`, with `_` for `-`.
    name: &'static str,
    /// Parameters of `insmod`.
    parameters: &'static str,
    /// Whether the kernel may lack it. Newer kernels have checksums built in, which modules request
    /// by the algorithm's name.
    optional: bool,
}

const fn module(name: &'static str, parameters: &'static str) -> Module {
    Module { name, parameters, optional: false }
}

const fn checksum(name: &'static str) -> Module {
    Module { name, parameters: "", optional: true }
}

/// The guest's modules, in loading order.
const MODULES: &[Module] = &[
    checksum("crc32c_generic"),
    checksum("crct10dif_generic"),
    checksum("crc64_rocksoft_generic"),
    module("ext4", ""),
    module("xfs", ""),
    module("nvme", "poll_queues=2"),
    // Its blocks are in memory, so that written blocks can be read.
    module("null_blk", "poll_queues=2 nr_devices=1 gb=1 memory_backed=1"),
];

/// An unpacked kernel.
#[derive(Debug)]
pub struct Kernel {
    /// The file to boot.
    pub image: PathBuf,
    /// The files of [`MODULES`] and of their dependencies, each after its dependencies, with the
    /// parameters of `insmod`. Files may be compressed.
    pub modules: Vec<(PathBuf, &'static str)>,
}

impl Kernel {
    /// Unpacks the Debian `package` into `folder`.
    pub fn unpack(package: &Path, folder: &Path) -> Result<Kernel, Failure> {
        unpack(package, folder, PARTS)?;
        let image = only(&folder.join("boot"), "vmlinuz-")?;
        // Newer releases have everything below /usr.
        let places = ["lib/modules", "usr/lib/modules"].map(|place| folder.join(place));
        let place = places.iter().find(|place| place.is_dir()).unwrap_or(&places[0]);
        let modules = only(place, "")?;
        // An installation runs depmod too: it lists each module's dependencies.
        let base = place.ancestors().nth(2).unwrap_or(folder);
        let release = modules.file_name().unwrap_or_default();
        output(program("depmod").arg("--basedir").arg(base).arg(release), "depmod")?;
        // What a module would like to have is not needed, and may not run on the emulated CPU.
        let wishes = modules.join("modules.softdep");
        std::fs::remove_file(&wishes).tried(wishes.display())?;
        Ok(Kernel { image, modules: load_order(MODULES, base, release)? })
    }
}

/// Lists the files to load for the modules `wanted` of the kernel `release` below `base`.
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
        // A module that is built in has no such line. The last one has the parameters.
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

/// Unpacks the members of a Debian package that match `patterns`; each pattern matches some.
pub fn unpack(package: &Path, folder: &Path, patterns: &[&str]) -> Result<(), Failure> {
    let script = r#"package=$1 folder=$2; shift 2
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --wildcards -- "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(package).arg(folder).args(patterns);
    output(&mut command, &package.display().to_string()).map(drop)
}

/// Returns the only entry of `folder` whose name begins with `prefix`.
fn only(folder: &Path, prefix: &str) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(folder).tried(folder.display())?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let fits = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    };
    let found: Vec<PathBuf> = names.filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        many => {
            let (folder, count) = (folder.display(), many.len());
            Err(Failure::Failed(format!("{folder}: {count} of {prefix}*, not one")))
        }
    }
}
