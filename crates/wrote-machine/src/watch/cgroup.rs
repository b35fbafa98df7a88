//! The control groups of this process, as folders (cgroups(7)).

use std::fs;
use std::path::{Path, PathBuf};

/// The hierarchy of control groups that a controller is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// The folders of the control groups through which one controller limits this process: its own,
/// then its ancestors as far as they are visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    pub version: Version,
    pub folders: Vec<PathBuf>,
}

/// Returns the groups of this process under a controller: `blkio` in version 1 is `io` in version
/// 2.
///
/// From `/proc/self/cgroup` and `/proc/self/mountinfo`. `None` where no hierarchy has the
/// controller, where it is not mounted here, or where the process's group is outside of the mount.
pub fn groups(root: &Path, one: &str, two: &str) -> Option<Groups> {
    let own = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let line = |wanted: &dyn Fn(&str) -> bool| {
        // `7:blkio:/jail`, in version 2 `0::/jail`.
        own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(controllers).then_some(path)
        })
    };
    // A controller is in one hierarchy only.
    if let Some(path) = line(&|controllers| controllers.split(',').any(|known| known == one)) {
        let found = mounts.lines().filter_map(Mount::parse);
        let mut found = found.filter(|mount| mount.kind == "cgroup" && mount.has(one));
        let folders = found.find_map(|mount| mount.folders(root, path))?;
        return Some(Groups { version: Version::One, folders });
    }
    let path = line(&str::is_empty)?;
    let found = mounts.lines().filter_map(Mount::parse);
    let mut found = found.filter(|mount| mount.kind == "cgroup2");
    let folders = found.find_map(|mount| mount.folders(root, path))?;
    let has = |folder: &PathBuf| {
        let told = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        told.split_whitespace().any(|known| known == two)
    };
    folders.iter().any(has).then_some(Groups { version: Version::Two, folders })
}

struct Mount<'a> {
    /// The mounted folder of the hierarchy.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' ').skip(3), after.split(' '));
        Some(Mount {
            root: before.next()?,
            point: before.next()?,
            kind: after.next()?,
            options: after.nth(1).unwrap_or(""),
        })
    }

    fn has(&self, controller: &str) -> bool {
        self.options.split(',').any(|known| known == controller)
    }

    /// Returns the folder of the group at `path` of the hierarchy, and those of its ancestors.
    fn folders(&self, root: &Path, path: &str) -> Option<Vec<PathBuf>> {
        let within = Path::new(path).strip_prefix(self.root).ok()?;
        // `/../other` is a group outside of this process's namespace (cgroup_namespaces(7)).
        if within.components().any(|part| part == std::path::Component::ParentDir) {
            return None;
        }
        let point = root.join(self.point.trim_start_matches('/'));
        let folders: Vec<PathBuf> = within.ancestors().map(|path| point.join(path)).collect();
        folders[0].is_dir().then_some(folders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::Tree;

    const MOUNTS: &str = "22 1 0:21 / / rw - ext4 /dev/sda rw\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
        41 31 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn fake(own: &str, mounts: &str) -> Tree {
        let fake = Tree::new();
        fake.file("proc/self/cgroup", own);
        fake.file("proc/self/mountinfo", mounts);
        fake
    }

    fn found(fake: &Tree, one: &str, two: &str) -> Option<(Version, Vec<String>)> {
        let groups = groups(fake.path(), one, two)?;
        let shown = |folder: &PathBuf| fake.shown(folder);
        Some((groups.version, groups.folders.iter().map(shown).collect()))
    }

    #[test]
    fn a_group_is_found_in_the_hierarchy_of_its_controller_with_all_that_it_lies_in() {
        let fake = fake("7:blkio:/jail/inner\n2:cpu,cpuacct:/\n0::/\n", MOUNTS);
        fake.folder("sys/fs/cgroup/blkio/jail/inner");
        fake.folder("sys/fs/cgroup/cpu,cpuacct");
        let folders =
            ["/jail/inner", "/jail", ""].map(|path| format!("/sys/fs/cgroup/blkio{path}"));
        assert_eq!(found(&fake, "blkio", "io"), Some((Version::One, folders.to_vec())));
        let cpu = vec!["/sys/fs/cgroup/cpu,cpuacct".to_owned()];
        assert_eq!(found(&fake, "cpu", "cpu"), Some((Version::One, cpu)));
    }

    #[test]
    fn of_the_second_version_what_is_mounted_may_be_a_part_of_the_hierarchy() {
        let mounts = "30 1 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let fake = fake("0::/docker/abc/inner\n", mounts);
        fake.file("sys/fs/cgroup/cgroup.controllers", "cpu io\n");
        fake.folder("sys/fs/cgroup/inner");
        let folders = ["/sys/fs/cgroup/inner", "/sys/fs/cgroup"].map(String::from).to_vec();
        assert_eq!(found(&fake, "blkio", "io"), Some((Version::Two, folders)));
        assert_eq!(found(&fake, "memory", "memory"), None, "no such controller");
    }

    #[test]
    fn a_group_that_can_not_be_seen_from_here_is_none() {
        let outside = fake("7:blkio:/../other\n", MOUNTS);
        outside.folder("sys/fs/cgroup/blkio");
        assert_eq!(found(&outside, "blkio", "io"), None);
        let gone = fake("7:blkio:/jail\n", MOUNTS);
        assert_eq!(found(&gone, "blkio", "io"), None, "its folder is not there");
        let elsewhere = fake("7:blkio:/jail\n", "38 31 0:35 /other /x rw - cgroup c rw,blkio\n");
        elsewhere.folder("x");
        assert_eq!(found(&elsewhere, "blkio", "io"), None, "another part is mounted");
        assert_eq!(found(&Tree::new(), "blkio", "io"), None);
    }
}
