//! A simulated `/sys`, for testing devices that few machines have. It is a separate file because
//! the tests of several modules use it.

use fixtures::Tree;
use std::ops::Deref;

pub(super) struct Sys(Tree);

impl Deref for Sys {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.0
    }
}

impl Sys {
    pub fn new() -> Sys {
        Sys(Tree::new())
    }

    /// Adds a whole disk, `devices/NAME`.
    pub fn disk(&self, name: &str, number: (u32, u32), sectors: u64) {
        self.device(name, name, number, sectors);
    }

    /// Adds a partition, `devices/DISK/NAME`.
    pub fn partition(&self, disk: &str, name: &str, number: (u32, u32), sectors: u64) {
        self.device(&format!("{disk}/{name}"), name, number, sectors);
        self.file(&format!("devices/{disk}/{name}/partition"), "1\n");
    }

    /// Stacks `upper` on `lower`, a path below `devices`.
    pub fn slave(&self, upper: &str, lower: &str) {
        let name = lower.rsplit('/').next().unwrap();
        self.link(&format!("devices/{upper}/slaves/{name}"), &format!("devices/{lower}"));
    }

    fn device(&self, path: &str, name: &str, (major, minor): (u32, u32), sectors: u64) {
        let (number, folder) = (format!("{major}:{minor}"), format!("devices/{path}"));
        self.file(&format!("{folder}/size"), &format!("{sectors}\n"));
        self.file(&format!("{folder}/dev"), &format!("{number}\n"));
        self.link(&format!("dev/block/{number}"), &folder);
        self.link(&format!("class/block/{name}"), &folder);
    }
}
