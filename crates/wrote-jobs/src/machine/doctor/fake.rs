//! A folder that imitates a machine's root, for tests.

use super::stack::Root;
use super::stack::Stack;
use super::world::FileFacts;
use super::world::World;
use fixtures::Tree;
use wrote::device::BlockDevice;
use wrote_result::doctor::{Check, State};

/// The imitated root.
pub(super) struct Fake(Tree);

impl Fake {
    pub fn new() -> Fake {
        Fake(Tree::new())
    }

    pub fn file(&self, path: &str, content: &str) {
        self.0.file(path, &format!("{content}\n"));
    }

    /// Adds a whole disk, or a layer, with these files in its queue.
    pub fn disk(&self, name: &str, queue: &[(&str, &str)]) {
        self.file(&format!("sys/block/{name}/size"), "1000000");
        for (file, content) in queue {
            self.file(&format!("sys/block/{name}/queue/{file}"), content);
        }
        self.0.link(&format!("sys/class/block/{name}"), &format!("sys/block/{name}"));
    }

    /// Adds a partition that begins at sector `start`, in units of 512 bytes.
    pub fn partition(&self, disk: &str, name: &str, start: u64) {
        let folder = format!("sys/block/{disk}/{name}");
        self.file(&format!("{folder}/partition"), "1");
        self.file(&format!("{folder}/start"), &start.to_string());
        self.0.link(&format!("sys/class/block/{name}"), &folder);
    }

    /// Stacks device `upper` on device `lower`.
    pub fn slave(&self, upper: &str, lower: &str) {
        let link = format!("sys/block/{upper}/slaves/{lower}");
        self.0.link(&link, &format!("sys/class/block/{lower}"));
    }

    /// Returns the world as seen from a folder of an ext4 file system on this device.
    pub fn world(&self, device: &str) -> World {
        let mut world = self.world_on(Ok(block_device(device)));
        world.stack = Stack::of(&world.root, device);
        world
    }

    /// Returns the world as seen from a folder without a block device.
    pub fn world_without_device(&self) -> World {
        self.world_on(Err("strange has none".into()))
    }

    fn world_on(&self, device: Result<BlockDevice, String>) -> World {
        let mut target = crate::sample::place(100_000_000_000, 50_000_000_000);
        (target.path, target.mount_point) = ("/mnt/data".into(), "/mnt/data".into());
        target.mount_options = vec!["rw".into(), "relatime".into()];
        target.device = device;
        World {
            root: Root::new(self.0.path()),
            target,
            stack: Stack::default(),
            io_uring: Ok(()),
            inodes: (1000, 900),
            file: FileFacts { is_folder: true, ..FileFacts::default() },
            example: None,
        }
    }
}

/// Returns a world with these mount options, in addition to `rw`.
pub(super) fn mounted(filesystem: &str, options: &[&str]) -> (Fake, World) {
    let fake = Fake::new();
    fake.disk("sda", &[]);
    let mut world = fake.world("sda");
    world.target.filesystem = filesystem.into();
    world.target.has_journal = (filesystem == "ext4").then_some(true);
    world.target.mount_options =
        ["rw"].iter().chain(options).map(|&option| option.to_owned()).collect();
    (fake, world)
}

pub(super) fn only<'a>(checks: &'a [Check], id: &str) -> &'a Check {
    let of: Vec<&Check> = checks.iter().filter(|check| check.id == id).collect();
    assert_eq!(of.len(), 1, "{id}: {checks:?}");
    of[0]
}

/// Returns the state of the only check with this id; `None` if there is no such check.
pub(super) fn state(checks: &[Check], id: &str) -> Option<State> {
    let mut of = checks.iter().filter(|check| check.id == id);
    let state = of.next().map(|check| check.state);
    assert!(of.next().is_none(), "{id} twice: {checks:?}");
    state
}

pub(super) fn command(check: &Check) -> &str {
    let change = check.change.as_ref().unwrap_or_else(|| panic!("nothing to change: {check:?}"));
    change.commands.first().unwrap_or_else(|| panic!("no command: {check:?}"))
}

fn block_device(name: &str) -> BlockDevice {
    let mut device = BlockDevice::default();
    (device.name, device.major) = (name.into(), 8);
    device.capacity_bytes = 512_000_000;
    (device.scheduler, device.nr_requests) = ("none".into(), 64);
    (device.logical_block_bytes, device.physical_block_bytes) = (512, 512);
    device.write_cache = "write back".into();
    device
}

/// Returns only the checks with these ids.
pub(super) fn checks_of(world: &World, ids: &[&str]) -> Vec<Check> {
    let mut checks = super::checks(world);
    checks.retain(|check| ids.contains(&check.id.as_str()));
    checks
}
