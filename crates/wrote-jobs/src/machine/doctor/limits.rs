//! Checks of the limits that control groups set on this process's writes and CPU time.

use super::shell::quoted;
use super::world::World;
use crate::machine::watch::cpus;
use crate::machine::watch::limits::{Groups, Version, groups};
use std::path::Path;
use wrote_result::doctor::{Check, Evidence};
use wrote_result::units;

/// Checks the limits on a device; none if this process's groups are not visible.
pub(super) fn disk_limit(world: &World, device: &str) -> Option<Check> {
    let groups = groups(world.root.folder(), "blkio", "io")?;
    let number = world.root.text(&format!("sys/block/{device}/dev"))?;
    let limits = limits_on(world, &groups, &number);
    Some(if limits.is_empty() {
        world.say("disk-limit.fine", &[])
    } else {
        limited(world, &number, limits)
    })
}

/// Returns the limits in each file on the device `MAJOR:MINOR`.
fn limits_on(world: &World, groups: &Groups, number: &str) -> Vec<Evidence> {
    let see = |file: String| world.root.line(&file, &format!("{number} "));
    match groups.version {
        // A group's limits do not apply to its descendants.
        Version::One => ["write_bps", "write_iops", "read_bps", "read_iops"]
            .into_iter()
            .filter_map(|what| {
                see(file(world, &groups.folders[0], &format!("blkio.throttle.{what}_device")))
            })
            .collect(),
        // `8:0 rbps=max wbps=1048576 riops=max wiops=max`
        Version::Two => groups
            .folders
            .iter()
            .filter_map(|folder| see(file(world, folder, "io.max")))
            .filter(|found| found.value.split_whitespace().any(|limit| !limit.ends_with("=max")))
            .collect(),
    }
}

/// Returns the path of a file of a group, below the root.
fn file(world: &World, folder: &Path, name: &str) -> String {
    let folder = folder.strip_prefix(world.root.folder()).unwrap_or(folder);
    folder.join(name).to_string_lossy().into_owned()
}

fn limited(world: &World, number: &str, limits: Vec<Evidence>) -> Check {
    let first = &limits[0];
    let file = first.from.split(',').next().unwrap_or_default().to_owned();
    let is_second = file.ends_with("/io.max");
    let told = match first.value.parse::<u64>() {
        Ok(bytes_per_s) if file.contains("_bps_") => units::rate(bytes_per_s as f64),
        Ok(operations) => format!("{operations} operations/s"),
        Err(_) => first.value.clone(),
    };
    let quoted = quoted(&file);
    let off = if is_second {
        format!("echo '{number} rbps=max wbps=max riops=max wiops=max' > {quoted}")
    } else {
        format!("echo '{number} 0' > {quoted}")
    };
    world.say("disk-limit.limited", &[("limit", &told), ("command", &off)]).found(limits)
}

pub(super) fn cpu_limit(world: &World) -> Option<Check> {
    let groups = groups(world.root.folder(), "cpu", "cpu")?;
    let limits = groups.folders.iter().filter_map(|folder| cpus(world.root.folder(), folder));
    let least = limits.min_by(|one, other| one.most.total_cmp(&other.most));
    let found = |from: &str| world.root.see(from.trim_start_matches('/'));
    let Some((cpus, found)) = least.and_then(|least| Some((least.most, found(&least.from)?)))
    else {
        return Some(world.say("cpu-limit.fine", &[]));
    };
    let cpus = format!("{cpus:.1}");
    let check = world.say("cpu-limit.limited", &[("cpus", &cpus), ("file", &found.from)]);
    Some(check.found([found]))
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, checks_of, command, only, state};
    use super::*;
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["disk-limit", "cpu-limit"])
    }

    fn fake(cgroup: &str) -> Fake {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        fake.file("sys/block/sda/dev", "8:0");
        fake.file("proc/self/cgroup", cgroup);
        fake.file(
            "proc/self/mountinfo",
            "30 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
             32 1 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             38 1 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio",
        );
        fake.file("sys/fs/cgroup/cgroup.controllers", "cpu io");
        fake
    }

    #[test]
    fn a_limit_of_a_group_above_holds_for_this_process() {
        let fake = fake("0::/box/inner");
        fake.file("sys/fs/cgroup/box/inner/io.max", "8:16 rbps=max wbps=1 riops=max wiops=max");
        assert_eq!(state(&checks(&fake.world("sda")), "disk-limit"), Some(State::Fine));
        fake.file("sys/fs/cgroup/box/io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max");
        let found = checks(&fake.world("sda"));
        let check = only(&found, "disk-limit");
        assert_eq!((check.state, check.device.as_deref()), (State::Advice, Some("sda")));
        assert!(check.evidence[0].from.starts_with("/sys/fs/cgroup/box/io.max"));
        assert!(command(check).starts_with("echo '8:0 rbps=max"), "{check:?}");
    }

    #[test]
    fn a_limit_that_says_max_limits_nothing() {
        let fake = fake("0::/");
        fake.file("sys/fs/cgroup/io.max", "8:0 rbps=max wbps=max riops=max wiops=max");
        assert_eq!(state(&checks(&fake.world("sda")), "disk-limit"), Some(State::Fine));
    }

    #[test]
    fn a_throttle_of_the_first_version_is_named_in_bytes_a_second() {
        let fake = fake("7:blkio:/box\n1:cpu,cpuacct:/\n0::/");
        fake.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
        fake.file("sys/fs/cgroup/blkio/box/blkio.throttle.write_bps_device", "8:0 50000000");
        let found = checks(&fake.world("sda"));
        let check = only(&found, "disk-limit");
        assert!(check.text.contains("50.0 MB/s"), "{check:?}");
        let file = "/sys/fs/cgroup/blkio/box/blkio.throttle.write_bps_device";
        assert_eq!(command(check), format!("echo '8:0 0' > {file}"));
    }

    #[test]
    fn a_throttle_of_the_first_version_does_not_hold_for_the_groups_below() {
        let fake = fake("7:blkio:/box/inner");
        fake.file("sys/fs/cgroup/blkio/box/inner/cgroup.procs", "1");
        fake.file("sys/fs/cgroup/blkio/box/blkio.throttle.write_bps_device", "8:0 50000000");
        assert_eq!(state(&checks(&fake.world("sda")), "disk-limit"), Some(State::Fine));
    }

    #[test]
    fn a_group_that_is_a_containers_root_is_found_where_it_is_mounted() {
        let fake = fake("0::/docker/abc");
        let mount = "30 1 0:30 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        fake.file("proc/self/mountinfo", mount);
        fake.file("sys/fs/cgroup/io.max", "8:0 rbps=max wbps=7 riops=max wiops=max");
        assert_eq!(state(&checks(&fake.world("sda")), "disk-limit"), Some(State::Advice));
    }

    #[test]
    fn the_name_of_a_unit_is_quoted() {
        let fake = fake(r"0::/a\x2db.slice");
        let file = r"sys/fs/cgroup/a\x2db.slice/io.max";
        fake.file(file, "8:0 rbps=max wbps=7 riops=max wiops=max");
        let found = checks(&fake.world("sda"));
        assert!(command(only(&found, "disk-limit")).ends_with(&format!("> '/{file}'")));
    }

    #[test]
    fn of_groups_that_cannot_be_seen_nothing_is_said() {
        let fake = fake("0::/../other");
        assert!(checks(&fake.world("sda")).is_empty());
    }

    #[test]
    fn the_least_cpu_time_of_all_groups_counts() {
        let fake = fake("0::/box/inner");
        fake.file("sys/fs/cgroup/box/inner/cpu.max", "max 100000");
        assert_eq!(state(&checks(&fake.world("sda")), "cpu-limit"), Some(State::Fine));
        fake.file("sys/fs/cgroup/box/cpu.max", "150000 100000");
        let found = checks(&fake.world("sda"));
        assert!(only(&found, "cpu-limit").text.contains("1.5 CPUs"), "{found:?}");
    }

    #[test]
    fn a_quota_of_the_first_version_counts_and_minus_one_does_not() {
        let fake = fake("1:cpu,cpuacct:/box");
        fake.file("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1");
        fake.file("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
        assert_eq!(state(&checks(&fake.world("sda")), "cpu-limit"), Some(State::Fine));
        fake.file("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000");
        assert_eq!(state(&checks(&fake.world("sda")), "cpu-limit"), Some(State::Advice));
    }

    #[test]
    fn without_control_groups_nothing_is_said() {
        assert!(checks(&Fake::new().world_without_device()).is_empty());
    }
}
