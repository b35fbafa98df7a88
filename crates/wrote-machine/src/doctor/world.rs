//! Everything that the checks look at: files below a root, and what only system calls tell.

use super::file::{self, FileFacts};
use super::shell::quoted;
use super::stack::Stack;
use crate::target::device_of;
use std::fs;
use std::path::{Path, PathBuf};
use wrote::device::Target;
use wrote_result::Error;
use wrote_result::doctor::Evidence;

/// What the checks look at. In tests the root is a folder that was made for the purpose.
#[derive(Clone, Debug)]
pub(super) struct World {
    /// Below it lie `proc`, `sys` and `etc`.
    pub root: PathBuf,
    /// What lies under the path.
    pub target: Target,
    /// The devices below; empty where there is none, or none that can be seen.
    pub stack: Stack,
    /// Whether io_uring may be used, or what the kernel said.
    pub io_uring: Result<(), String>,
    /// Inodes of the file system: all, and those that are free. All is 0 where it makes them as it
    /// goes.
    pub inodes: (u64, u64),
    /// Where the machine swaps to.
    pub swaps: Vec<Swap>,
    /// What the path itself is, and what the file system keeps of it.
    pub file: FileFacts,
}

/// A file or device that memory is swapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Swap {
    /// As `/proc/swaps` names it.
    pub path: String,
    /// How much of it is in use, in KiB.
    pub used_kib: u64,
    /// The whole disks that it lies on.
    pub disks: Vec<String>,
}

impl World {
    /// The world as it is, seen from `path`.
    pub fn of(path: &Path) -> Result<World, Error> {
        let target = wrote::device::examine(path)?;
        let inodes = rustix::fs::statvfs(&target.path)
            .map_or((0, 0), |space| (space.f_files, space.f_favail));
        let mut world = World {
            root: "/".into(),
            stack: Stack::default(),
            io_uring: wrote::engine::Engine::probe_io_uring(),
            inodes,
            swaps: Vec::new(),
            file: file::look(&target.path),
            target,
        };
        if let Some(device) = device_of(&world.target) {
            world.stack = Stack::of(&world, &device.name);
        }
        world.swaps = world.swaps_in_use();
        Ok(world)
    }

    /// A file below the root.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// A file's text without the space around it; `None` where it is missing or empty, or where the
    /// kernel does not give it.
    pub fn text(&self, file: &str) -> Option<String> {
        let bytes = fs::read(self.path(file)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The same, with the name of the file as it is on the machine.
    pub fn see(&self, file: &str) -> Option<Evidence> {
        Some(Evidence::new(format!("/{file}"), self.text(file)?))
    }

    /// A file that holds a number.
    pub fn number(&self, file: &str) -> Option<i64> {
        self.see(file)?.number()
    }

    /// The names in a folder, in order; none where there is no such folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The value of a line `name: value` or `name value` of a file in `/proc`.
    pub fn line(&self, file: &str, name: &str) -> Option<Evidence> {
        let text = self.text(file)?;
        let of_line = |line: &str| Some(line.strip_prefix(name)?.trim().to_owned());
        // Columns are kept apart by one space each.
        let value = text.lines().find_map(of_line)?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Evidence::new(format!("/{file}, {}", name.trim_end_matches(':')), value))
    }

    /// Whether this mount option is in effect.
    pub fn is_mounted_with(&self, option: &str) -> bool {
        self.target.mount_options.iter().any(|known| known == option)
    }

    /// The value of the mount option `name=value`.
    pub fn mount_value(&self, name: &str) -> Option<&str> {
        let options = &self.target.mount_options;
        options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// The kernel's version, major and minor; `None` where it does not say.
    pub fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.text("proc/sys/kernel/osrelease")?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// How to find out what something costs here, by these scenarios of `wrote bench`.
    pub fn measure(&self, scenarios: &str) -> String {
        let folder = match &self.target.path {
            path if self.file.is_folder => quoted(&path.to_string_lossy()),
            path if self.file.is_file => {
                quoted(&path.parent().unwrap_or(Path::new("/")).to_string_lossy())
            }
            _ => "FOLDER".into(),
        };
        format!(
            "What it costs here was not measured: run wrote bench {folder} --only {scenarios} before \
             and after."
        )
    }

    fn swaps_in_use(&self) -> Vec<Swap> {
        let text = self.text("proc/swaps").unwrap_or_default();
        let lines = text.lines().skip(1);
        lines
            .filter_map(|line| {
                let mut fields = line.split_whitespace();
                // Spaces in the name are escaped as in /proc/mounts.
                let path = fields.next()?.replace("\\040", " ");
                let used_kib = fields.nth(2)?.parse().ok()?;
                let disks = self.disks_below(Path::new(&path));
                Some(Swap { path, used_kib, disks })
            })
            .collect()
    }

    fn disks_below(&self, path: &Path) -> Vec<String> {
        let device = wrote::device::device_at(path);
        let stack = device.map(|device| Stack::of(self, &device.name)).unwrap_or_default();
        stack.disks.into_iter().map(|disk| disk.name).collect()
    }
}
