//! A folder that looks like `/sys`, for tests of devices that few machines have.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

pub(super) struct Sys(TempDir);

impl Sys {
    pub fn new() -> Sys {
        Sys(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, path: &str, content: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn folder(&self, path: &str) {
        fs::create_dir_all(self.path().join(path)).unwrap();
    }

    /// Adds a whole device, `devices/NAME`.
    pub fn disk(&self, name: &str, number: (u32, u32), sectors: u64) {
        self.device(name, name, number, sectors);
    }

    /// Adds a partition, `devices/DISK/NAME`.
    pub fn partition(&self, disk: &str, name: &str, number: (u32, u32), sectors: u64) {
        self.device(&format!("{disk}/{name}"), name, number, sectors);
        self.file(&format!("devices/{disk}/{name}/partition"), "1\n");
    }

    /// Makes `upper` lie on `lower`, a path below `devices`.
    pub fn slave(&self, upper: &str, lower: &str) {
        let lower = self.path().join("devices").join(lower);
        let name = lower.file_name().unwrap().to_str().unwrap();
        self.link(&lower, &format!("devices/{upper}/slaves/{name}"));
    }

    fn device(&self, path: &str, name: &str, (major, minor): (u32, u32), sectors: u64) {
        let number = format!("{major}:{minor}");
        self.file(&format!("devices/{path}/size"), &format!("{sectors}\n"));
        self.file(&format!("devices/{path}/dev"), &format!("{number}\n"));
        let folder = self.path().join("devices").join(path);
        self.link(&folder, &format!("dev/block/{number}"));
        self.link(&folder, &format!("class/block/{name}"));
    }

    fn link(&self, to: &Path, from: &str) {
        let from = self.path().join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        if !from.exists() {
            symlink(to, from).unwrap();
        }
    }
}
