//! The input of the checks: files below a root, and results of system calls.

use super::file_facts::FileFacts;
use super::root::Root;
use super::shell::quoted;
use super::stack::Stack;
use crate::machine::target::device_of;
use std::path::Path;
use wrote::device::Target;
use wrote_result::Error;

/// The input of the checks. Tests make their own root.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub root: Root,
    /// The file system and device under the path.
    pub target: Target,
    /// The devices below; empty if none is visible.
    pub stack: Stack,
    /// Whether io_uring may be used, or the kernel's refusal.
    pub io_uring: Result<(), String>,
    /// Inodes of the file system: all, and free ones. All is 0 if it makes them on demand.
    pub inodes: (u64, u64),
    pub swaps: Vec<Swap>,
    pub file: FileFacts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Swap {
    /// Its name in `/proc/swaps`.
    pub path: String,
    pub used_kib: u64,
    /// The whole disks below it.
    pub disks: Vec<String>,
}

impl World {
    /// Examines the world from `path`.
    pub fn of(path: &Path) -> Result<World, Error> {
        crate::machine::access::examined(path)?;
        let target = wrote::device::examine(path)?;
        let inodes = rustix::fs::statvfs(&target.path)
            .map_or((0, 0), |space| (space.f_files, space.f_favail));
        let root = Root::new("/");
        Ok(World {
            stack: device_of(&target).map_or_else(Stack::default, |of| Stack::of(&root, &of.name)),
            io_uring: wrote::engine::Engine::probe_io_uring(),
            inodes,
            swaps: swaps(&root),
            file: FileFacts::of(&target.path),
            target,
            root,
        })
    }

    /// Returns whether this mount option is in effect.
    pub fn is_mounted_with(&self, option: &str) -> bool {
        self.target.mount_options.iter().any(|known| known == option)
    }

    /// Returns the value of the mount option `name=value`.
    pub fn mount_value(&self, name: &str) -> Option<&str> {
        let options = &self.target.mount_options;
        options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the kernel's version, major and minor; `None` where unknown.
    pub fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.root.text("proc/sys/kernel/osrelease")?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Suggests these scenarios of `wrote bench`, which measure the cost here.
    pub fn measure(&self, scenarios: &str) -> String {
        let folder = match &self.target.path {
            path if self.file.is_folder => quoted(&path.to_string_lossy()),
            path if self.file.is_file => {
                quoted(&path.parent().unwrap_or(Path::new("/")).to_string_lossy())
            }
            _ => "FOLDER".into(),
        };
        format!(
            "What it costs here was not measured: run wrote bench {folder} --only {scenarios} \
             before and after."
        )
    }
}

fn swaps(root: &Root) -> Vec<Swap> {
    let text = root.text("proc/swaps").unwrap_or_default();
    let swap = |line: &str| {
        let mut fields = line.split_whitespace();
        // The kernel escapes spaces, as in /proc/mounts.
        let path = fields.next()?.replace("\\040", " ");
        let used_kib = fields.nth(2)?.parse().ok()?;
        let disks = disks_below(root, Path::new(&path));
        Some(Swap { path, used_kib, disks })
    };
    text.lines().skip(1).filter_map(swap).collect()
}

fn disks_below(root: &Root, path: &Path) -> Vec<String> {
    let device = wrote::device::device_at(path);
    let stack = device.map(|device| Stack::of(root, &device.name)).unwrap_or_default();
    stack.disks.into_iter().map(|disk| disk.name).collect()
}
