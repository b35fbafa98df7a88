//! The control groups' limits on a device and on CPUs, and the stops due to these limits.

use std::fs;
use std::path::{Path, PathBuf};
use wrote_result::document::Limit;

/// How often a CPU limit stopped this process, or another process of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttled {
    /// The number of periods (0.1 s by default) with a stop.
    pub periods: u64,
    /// The total time for which CPUs were stopped, in seconds.
    pub stopped_s: f64,
}

impl Throttled {
    pub(super) fn since(&self, earlier: &Throttled) -> Throttled {
        Throttled {
            periods: self.periods.saturating_sub(earlier.periods),
            stopped_s: (self.stopped_s - earlier.stopped_s).max(0.0),
        }
    }
}

/// The limits in version 1 of control groups. Each has a file, with a line `MAJOR:MINOR VALUE` for
/// each limited device (the kernel's `Documentation/admin-guide/cgroup-v1/blkio-controller.rst`).
const OF_DEVICE: [(&str, &str); 4] = [
    ("read_bytes_per_s", "blkio.throttle.read_bps_device"),
    ("write_bytes_per_s", "blkio.throttle.write_bps_device"),
    ("read_iops", "blkio.throttle.read_iops_device"),
    ("write_iops", "blkio.throttle.write_iops_device"),
];

/// The limits in version 2 of control groups. They are in one file, with a line `MAJOR:MINOR
/// KEY=VALUE ..` for each device (`Documentation/admin-guide/cgroup-v2.rst`).
const KEYS: [(&str, &str); 4] = [
    ("read_bytes_per_s", "rbps"),
    ("write_bytes_per_s", "wbps"),
    ("read_iops", "riops"),
    ("write_iops", "wiops"),
];

/// Returns all limits on these devices, followed by those on CPUs.
pub(crate) fn limits(root: &Path, devices: &[(u32, u32)]) -> Vec<Limit> {
    let mut all = Vec::new();
    if let Some(groups) = groups(root, "blkio", "io") {
        match groups.version {
            // In version 1, a group's limits do not apply to its descendants.
            Version::One => of_devices(root, &groups.folders[0], devices, &mut all),
            Version::Two => {
                groups.folders.iter().for_each(|folder| io_max(root, folder, devices, &mut all));
            }
        }
    }
    let cpu = groups(root, "cpu", "cpu");
    for folder in cpu.iter().flat_map(|groups| &groups.folders) {
        all.extend(cpus(root, folder));
    }
    all
}

fn of_devices(root: &Path, folder: &Path, devices: &[(u32, u32)], all: &mut Vec<Limit>) {
    for (of, file) in OF_DEVICE {
        for value in lines(folder, file, devices) {
            all.extend(value.parse().ok().map(|most| limit(of, most, root, &folder.join(file))));
        }
    }
}

fn io_max(root: &Path, folder: &Path, devices: &[(u32, u32)], all: &mut Vec<Limit>) {
    for values in lines(folder, "io.max", devices) {
        for (of, key) in KEYS {
            let value =
                values.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
            // `max` means no limit.
            let most = value.and_then(|value| value.parse().ok());
            all.extend(most.map(|most| limit(of, most, root, &folder.join("io.max"))));
        }
    }
}

/// Returns the lines of a file that concern these devices, without the device numbers.
fn lines(folder: &Path, file: &str, devices: &[(u32, u32)]) -> Vec<String> {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let line = |line: &str| {
        let (number, rest) = line.split_once(' ')?;
        let (major, minor) = number.split_once(':')?;
        let number = (major.parse().ok()?, minor.parse().ok()?);
        devices.contains(&number).then(|| rest.trim().to_owned())
    };
    text.lines().filter_map(line).collect()
}

fn limit(of: &str, most: f64, root: &Path, file: &Path) -> Limit {
    let from = Path::new("/").join(file.strip_prefix(root).unwrap_or(file));
    Limit { of: of.into(), most, from: from.display().to_string() }
}

/// Returns the limit on the number of CPUs that a group may use: its quota of CPU time divided by
/// the period. `None` if there is no limit.
pub(crate) fn cpus(root: &Path, folder: &Path) -> Option<Limit> {
    let number = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        text.trim().parse::<f64>().ok()
    };
    let (quota, period, file) = match fs::read_to_string(folder.join("cpu.max")) {
        Ok(text) => {
            let mut words = text.split_whitespace().map(str::parse::<f64>);
            // `max 100000` means no limit.
            (words.next()?.ok()?, words.next()?.ok()?, "cpu.max")
        }
        // -1 means no limit.
        Err(_) => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?, "cpu.cfs_quota_us"),
    };
    let is_limit = quota > 0.0 && period > 0.0;
    is_limit.then(|| limit("cpus", quota / period, root, &folder.join(file)))
}

/// Returns the maximum memory that this process's groups may use; `None` if there is no limit.
pub(crate) fn memory_bytes(root: &Path) -> Option<u64> {
    let Groups { version, folders } = groups(root, "memory", "memory")?;
    let file = match version {
        Version::One => "memory.limit_in_bytes",
        Version::Two => "memory.max",
    };
    let of = |folder: &PathBuf| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    // `max` means no limit, as does a number above the machine's memory.
    folders.iter().filter_map(of).min()
}

/// Returns how often this process's groups have been stopped so far; `None` if no group is visible.
pub(super) fn throttled(root: &Path) -> Option<Throttled> {
    let Groups { folders, .. } = groups(root, "cpu", "cpu")?;
    let of = |sum: Throttled, folder: &Path| {
        let text = fs::read_to_string(folder.join("cpu.stat")).unwrap_or_default();
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        // The unit is nanoseconds in version 1, and microseconds in version 2.
        let stopped_s = value("throttled_time") as f64 / 1e9 + value("throttled_usec") as f64 / 1e6;
        Throttled {
            periods: sum.periods + value("nr_throttled"),
            stopped_s: sum.stopped_s + stopped_s,
        }
    };
    Some(folders.iter().fold(Throttled::default(), |sum, folder| of(sum, folder)))
}

/// The version of the control groups that a controller belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// The folders of the groups that limit this process through one controller: the process's own
/// group, followed by its visible ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    pub version: Version,
    pub folders: Vec<PathBuf>,
}

/// Returns the groups of this process under a controller, which may have different names in version
/// 1 and version 2: `blkio` became `io`.
///
/// Reads `/proc/self/cgroup` and `/proc/self/mountinfo`. Returns `None` if no hierarchy has the
/// controller, if the hierarchy is not mounted, or if the process's group is outside the mount.
pub fn groups(root: &Path, one: &str, two: &str) -> Option<Groups> {
    let own = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let line = |wanted: &dyn Fn(&str) -> bool| {
        // `7:blkio:/jail`; in version 2, `0::/jail`.
        own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(controllers).then_some(path)
        })
    };
    // A controller belongs to only one hierarchy.
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
    /// The folder of the hierarchy at which the mount begins.
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

    /// Returns the folder of the group at `path` of the hierarchy, followed by the folders of its
    /// ancestors; `None` if the group is outside this mount.
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

    const ONE: &str = "/sys/fs/cgroup/blkio";
    const CPU: &str = "sys/fs/cgroup/cpu";

    /// Returns a process in the group `/jail` of version 1, which has limits.
    fn version_one() -> Tree {
        let fake = Tree::new();
        fake.file("proc/self/cgroup", "7:blkio:/jail\n1:cpu:/jail\n0::/\n");
        fake.file(
            "proc/self/mountinfo",
            "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
             32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
        );
        fake.folder("sys/fs/cgroup/blkio/jail");
        fake.folder("sys/fs/cgroup/cpu/jail");
        fake
    }

    /// Returns a process in the group `/a/b` of version 2.
    fn version_two() -> Tree {
        let fake = Tree::new();
        fake.file("proc/self/cgroup", "0::/a/b\n");
        fake.file("proc/self/mountinfo", "30 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
        fake.file("sys/fs/cgroup/cgroup.controllers", "cpu io\n");
        fake.folder("sys/fs/cgroup/a/b");
        fake
    }

    fn told(fake: &Tree, devices: &[(u32, u32)]) -> Vec<(String, f64, String)> {
        let limits = limits(fake.path(), devices).into_iter();
        limits.map(|limit| (limit.of, limit.most, limit.from)).collect()
    }

    #[test]
    fn memory_is_limited_by_the_least_of_the_groups_that_hold_the_process() {
        let fake = version_two();
        fake.file("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        assert_eq!(memory_bytes(fake.path()), None);
        fake.file("sys/fs/cgroup/a/b/memory.max", "max\n");
        fake.file("sys/fs/cgroup/a/memory.max", "536870912\n");
        assert_eq!(memory_bytes(fake.path()), Some(512 << 20));
    }

    #[test]
    fn a_limit_of_version_1_is_that_of_the_own_group_and_of_the_devices_that_are_asked_about() {
        let fake = version_one();
        let file = "blkio.throttle.write_bps_device";
        fake.file(&format!("sys/fs/cgroup/blkio/jail/{file}"), "8:0 1048576\n254:0 5000000\n");
        fake.file("sys/fs/cgroup/blkio/jail/blkio.throttle.read_iops_device", "254:0 200\n");
        // In version 1, groups do not inherit limits.
        fake.file(&format!("sys/fs/cgroup/blkio/{file}"), "254:0 7\n");
        let from = |file: &str| format!("{ONE}/jail/{file}");
        assert_eq!(
            told(&fake, &[(254, 0)]),
            [
                ("write_bytes_per_s".into(), 5e6, from(file)),
                ("read_iops".into(), 200.0, from("blkio.throttle.read_iops_device")),
            ]
        );
        assert_eq!(told(&fake, &[(259, 1)]), []);
        assert_eq!(told(&fake, &[]), []);
    }

    #[test]
    fn limits_of_version_2_are_those_of_all_groups_that_the_own_one_lies_in() {
        let fake = version_two();
        fake.file("sys/fs/cgroup/a/b/io.max", "8:0 rbps=max wbps=9000000 riops=max wiops=120\n");
        fake.file("sys/fs/cgroup/a/io.max", "8:0 rbps=77 wbps=max riops=max wiops=max\n");
        let (inner, outer) = ("/sys/fs/cgroup/a/b/io.max", "/sys/fs/cgroup/a/io.max");
        assert_eq!(
            told(&fake, &[(8, 0), (8, 1)]),
            [
                ("write_bytes_per_s".into(), 9e6, inner.into()),
                ("write_iops".into(), 120.0, inner.into()),
                ("read_bytes_per_s".into(), 77.0, outer.into()),
            ]
        );
    }

    #[test]
    fn a_limit_on_cpus_is_told_in_cpus_and_no_limit_is_not() {
        let one = version_one();
        one.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        one.file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        one.file("sys/fs/cgroup/cpu/jail/cpu.cfs_quota_us", "25000\n");
        one.file("sys/fs/cgroup/cpu/jail/cpu.cfs_period_us", "50000\n");
        let from = "/sys/fs/cgroup/cpu/jail/cpu.cfs_quota_us".to_owned();
        assert_eq!(told(&one, &[]), [("cpus".to_owned(), 0.5, from)]);
        let two = version_two();
        two.file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        two.file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        assert_eq!(told(&two, &[]), [("cpus".to_owned(), 1.5, "/sys/fs/cgroup/a/cpu.max".into())]);
    }

    #[test]
    fn how_long_a_group_was_stopped_is_told_in_both_versions() {
        let one = version_one();
        one.file(
            &format!("{CPU}/jail/cpu.stat"),
            "nr_periods 9\nnr_throttled 4\nthrottled_time 1500000000\n",
        );
        assert_eq!(throttled(one.path()), Some(Throttled { periods: 4, stopped_s: 1.5 }));
        let two = version_two();
        two.file("sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 2\nthrottled_usec 250000\n");
        let later = throttled(two.path()).unwrap();
        assert_eq!(later, Throttled { periods: 2, stopped_s: 0.25 });
        assert_eq!(later.since(&later), Throttled::default());
        assert_eq!(throttled(Tree::new().path()), None);
    }

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
