//! The guest's kernel, unpacked from its Debian package, and its modules.

use crate::failure::{Failure, Tried};
use crate::packages::program;
use crate::run::output;
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
pub struct Module {
    /// The name by `modinfo`, with `_` for `-`.
    pub name: &'static str,
    /// Parameters of `insmod`.
    pub parameters: &'static str,
    /// Whether the kernel may lack it. Newer kernels have checksums built in, which modules request
    /// by the algorithm's name.
    pub optional: bool,
}

const fn module(name: &'static str, parameters: &'static str) -> Module {
    Module { name, parameters, optional: false }
}

const fn checksum(name: &'static str) -> Module {
    Module { name, parameters: "", optional: true }
}

/// The guest's modules, in loading order.
pub const MODULES: &[Module] = &[
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
    /// The folder of its modules; its name is the release.
    modules: PathBuf,
}

/// A module's file, which may be compressed, and its parameters.
pub type Loaded = (PathBuf, &'static str);

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
        Ok(Kernel { image, modules })
    }

    /// Returns the files of [`MODULES`] and of their dependencies, each after its dependencies.
    pub fn load_order(&self) -> Result<Vec<Loaded>, Failure> {
        let read = |name: &str| {
            let path = self.modules.join(name);
            std::fs::read_to_string(&path).tried(path.display())
        };
        let mut order = load_order(MODULES, &read("modules.dep")?, &read("modules.builtin")?)?;
        order.iter_mut().for_each(|(file, _)| *file = self.modules.join(&*file));
        Ok(order)
    }
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

/// Returns the order by `modules.dep(5)`: lines `file: needed files`, with the first to load last.
fn load_order(wanted: &[Module], dep: &str, builtin: &str) -> Result<Vec<Loaded>, Failure> {
    let lines: Vec<(&str, &str)> = dep.lines().filter_map(|line| line.split_once(':')).collect();
    let mut order: Vec<Loaded> = Vec::new();
    for Module { name, parameters, optional } in wanted {
        let Some((file, needs)) = lines.iter().find(|(file, _)| module_name(file) == *name) else {
            if *optional || builtin.lines().any(|file| module_name(file) == *name) {
                continue;
            }
            return Err(Failure::Failed(format!("the kernel has no module {name}")));
        };
        let needed = needs.split_whitespace().rev().map(|file| (file, ""));
        for (file, parameters) in needed.chain([(*file, *parameters)]) {
            if !order.iter().any(|(loaded, _)| loaded == Path::new(file)) {
                order.push((file.into(), parameters));
            }
        }
    }
    Ok(order)
}

/// Returns the name of a module's file: `kernel/crypto/crc32c-intel.ko.xz` is `crc32c_intel`.
fn module_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko
kernel/fs/jbd2/jbd2.ko:
kernel/lib/crc16.ko:
kernel/drivers/nvme/host/nvme.ko.xz: kernel/drivers/nvme/host/nvme-core.ko.xz kernel/lib/crc16.ko
";

    fn order(wanted: &[Module], builtin: &str) -> Result<Vec<(String, String)>, String> {
        let order = load_order(wanted, DEP, builtin).map_err(|failure| failure.to_string())?;
        let text = |(file, parameters): Loaded| {
            (module_name(&file.to_string_lossy()), parameters.to_owned())
        };
        Ok(order.into_iter().map(text).collect())
    }

    #[test]
    fn a_module_is_loaded_once_and_after_all_that_it_needs() {
        let wanted = [module("ext4", ""), module("nvme", "poll_queues=2")];
        let expected = [
            ("jbd2", ""),
            ("crc16", ""),
            ("ext4", ""),
            ("nvme_core", ""),
            ("nvme", "poll_queues=2"),
        ];
        let expected = expected.map(|(name, parameters)| (name.to_owned(), parameters.to_owned()));
        assert_eq!(order(&wanted, ""), Ok(expected.to_vec()));
    }

    #[test]
    fn a_module_that_is_built_in_or_optional_is_not_missed_and_another_is_named() {
        assert_eq!(order(&[module("xfs", "")], "kernel/fs/xfs/xfs.ko\n"), Ok(Vec::new()));
        assert_eq!(order(&[checksum("crc32c_generic")], ""), Ok(Vec::new()));
        let missing = order(&[module("xfs", "")], "kernel/fs/xfs_other.ko\n");
        assert_eq!(missing, Err("the kernel has no module xfs".into()));
    }
}
