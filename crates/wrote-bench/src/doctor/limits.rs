//! What the control groups of this process let it write, and compute.

use super::check::{Change, Check, Evidence};
use super::world::World;
use crate::units;

/// The checks of this room.
pub(super) fn checks(world: &World) -> Vec<Check> {
    if world.text("proc/self/cgroup").is_none() {
        return Vec::new();
    }
    let mut checks = disk_limits(world);
    checks.push(cpu_limit(world));
    checks
}

/// The folders of the groups that hold this process, from its own up to the root, for a controller; those
/// of version 2 where `controller` is empty.
fn groups(world: &World, controller: &str) -> Vec<String> {
    let lines = world.text("proc/self/cgroup").unwrap_or_default();
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = controllers.split(',').any(|known| known == controller);
        is_it.then(|| path.trim_matches('/').to_owned())
    };
    let Some(path) = lines.lines().find_map(of_line) else { return Vec::new() };
    let root = match controller {
        "" if world.path("sys/fs/cgroup/unified").exists() => "sys/fs/cgroup/unified".to_owned(),
        "" => "sys/fs/cgroup".to_owned(),
        _ => format!("sys/fs/cgroup/{controller}"),
    };
    let mut groups = Vec::new();
    let mut rest = path.as_str();
    while !rest.is_empty() {
        groups.push(format!("{root}/{rest}"));
        rest = rest.rsplit_once('/').map_or("", |(above, _)| above);
    }
    groups.push(root);
    groups
}

/// Limits on the disks below, and on what lies above them.
fn disk_limits(world: &World) -> Vec<Check> {
    let disks = world.stack.disks.iter().map(|disk| &disk.name);
    let devices = disks.chain(&world.stack.layers);
    devices
        .filter_map(|device| {
            let number = world.text(&format!("sys/block/{device}/dev"))?;
            let limits = limits_on(world, &number);
            let check = if limits.is_empty() {
                Check::fine("disk-limit", "no control group limits this process on the disk")
            } else {
                limited(&number, limits)
            };
            Some(check.of(device))
        })
        .collect()
}

/// What each file says of the device `MAJOR:MINOR`.
fn limits_on(world: &World, number: &str) -> Vec<Evidence> {
    let mut limits = Vec::new();
    for group in groups(world, "") {
        let file = format!("{group}/io.max");
        // `8:0 rbps=max wbps=1048576 riops=max wiops=max`
        limits.extend(
            world.line(&file, &format!("{number} ")).filter(|found| {
                found.value.split_whitespace().any(|limit| !limit.ends_with("=max"))
            }),
        );
    }
    for group in groups(world, "blkio") {
        for what in ["write_bps", "write_iops", "read_bps", "read_iops"] {
            let file = format!("{group}/blkio.throttle.{what}_device");
            limits.extend(world.line(&file, &format!("{number} ")));
        }
    }
    limits
}

fn limited(number: &str, limits: Vec<Evidence>) -> Check {
    let first = &limits[0];
    let file = first.from.split(',').next().unwrap_or_default().to_owned();
    let is_second = file.ends_with("/io.max");
    let told = match first.value.parse::<u64>() {
        Ok(bytes_per_s) if file.contains("_bps_") => units::rate(bytes_per_s as f64),
        Ok(operations) => format!("{operations} operations/s"),
        Err(_) => first.value.clone(),
    };
    let off = if is_second {
        format!("echo '{number} rbps=max wbps=max riops=max wiops=max' > {file}")
    } else {
        format!("echo '{number} 0' > {file}")
    };
    Check::advice("disk-limit", format!("a control group limits this process on the disk: {told}"))
        .found(limits)
        .costs(
            "Nothing here is faster than that, however it is written; of cgroup version 1 only direct \
             writes and reads are held back, and what the page cache writes later is not.",
        )
        .change(
            Change::run(off)
                .lasting("where the group is made: IOWriteBandwidthMax= of systemd, --device-write-bps of Docker")
                .risk("someone set it so that this process leaves the disk to others"),
        )
        .source("kernel: Documentation/admin-guide/cgroup-v2.rst, io.max; cgroup-v1/blkio-controller.rst")
}

fn cpu_limit(world: &World) -> Check {
    const ID: &str = "cpu-limit";
    let second = groups(world, "").into_iter().filter_map(|group| {
        let found = world.see(&format!("{group}/cpu.max"))?;
        let (quota, period) = found.value.split_once(' ')?;
        share(quota.parse().ok()?, period.parse().ok()?).map(|share| (share, found.clone()))
    });
    let first = groups(world, "cpu").into_iter().filter_map(|group| {
        let found = world.see(&format!("{group}/cpu.cfs_quota_us"))?;
        let period = world.number(&format!("{group}/cpu.cfs_period_us"))?;
        share(found.number()?, period).map(|share| (share, found))
    });
    let least = second.chain(first).min_by(|(one, _), (other, _)| one.total_cmp(other));
    let Some((cpus, found)) = least else {
        return Check::fine(ID, "no control group limits the CPU time of this process");
    };
    let text = format!("a control group gives this process the time of {cpus:.1} CPUs");
    let change = Change::how(format!("write max (version 2) or -1 (version 1) to {}", found.from));
    Check::advice(ID, text)
        .found([found])
        .costs(format!(
            "When the time is used up, every thread stands still until the next period, mostly 100 ms: \
             that is seen in P99, and limits how many operations a second can be done. {}",
            world.measure("rand")
        ))
        .change(
            change
                .lasting("where the group is made: CPUQuota= of systemd, --cpus of Docker")
                .risk("someone set it so that this process leaves the CPUs to others"),
        )
        .source("kernel: Documentation/scheduler/sched-bwc.rst")
}

/// CPUs; a quota of -1 is none.
fn share(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::super::fake::{Fake, command, only, state};
    use super::*;

    fn fake(cgroup: &str) -> Fake {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        fake.file("sys/block/sda/dev", "8:0");
        fake.file("proc/self/cgroup", cgroup);
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
        fake.file("sys/fs/cgroup/blkio/box/blkio.throttle.write_bps_device", "8:0 50000000");
        let found = checks(&fake.world("sda"));
        let check = only(&found, "disk-limit");
        assert!(check.text.contains("50.0 MB/s"), "{check:?}");
        let file = "/sys/fs/cgroup/blkio/box/blkio.throttle.write_bps_device";
        assert_eq!(command(check), format!("echo '8:0 0' > {file}"));
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
