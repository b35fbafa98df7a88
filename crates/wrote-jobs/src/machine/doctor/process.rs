//! Checks of this process: whether it may use io_uring and lock memory, and which limits its
//! control groups set.

use super::texts::{Values, say};
use super::world::World;
use crate::machine::watch::cpus;
use crate::machine::watch::limits::{groups, limits};
use wrote_result::doctor::{Check, Evidence};
use wrote_result::document::Limit;
use wrote_result::{quoted, units};

/// The size of the buffers that `wrote bench` registers for its stream: 64 of 512 KiB. The peak
/// scenario registers up to four times as much, and a `Log` or a `Writer` registers 8 MiB.
const REGISTERED_BYTES: u64 = 64 * (512 << 10);
/// The recommended limit, with room for the largest of these buffers.
const LOCKED_KIB: u64 = 128 << 10;
/// The number of `CAP_IPC_LOCK` in capabilities(7).
const CAP_IPC_LOCK: u32 = 14;
/// The filter mode of seccomp(2).
const SECCOMP_FILTER: i64 = 2;

/// The kernel version that introduced io_uring.
const KERNEL_MIN: (u32, u32) = (5, 1);

pub(super) fn io_uring(world: &World) -> Check {
    let Err(said) = &world.io_uring else {
        return say(world, "io-uring.fine", &[]);
    };
    let disabled = world.root.see("proc/sys/kernel/io_uring_disabled");
    let seccomp = world.root.line("proc/self/status", "Seccomp:");
    let level = disabled.as_ref().and_then(Evidence::number).unwrap_or(0);
    let is_old = world.kernel().is_some_and(|version| version < KERNEL_MIN);
    let is_filtered = seccomp.as_ref().and_then(Evidence::number) == Some(SECCOMP_FILTER);
    let is_missing = said.contains("os error 38");
    let key = match () {
        () if level > 0 => "io-uring.disabled",
        () if is_missing && is_old => "io-uring.old",
        () if is_missing => "io-uring.missing",
        () if is_filtered => "io-uring.seccomp",
        () => "io-uring.unknown",
    };
    let found = match () {
        () if level > 0 => [disabled, world.root.see("proc/sys/kernel/io_uring_group")],
        () if is_missing => [world.root.see("proc/sys/kernel/osrelease"), seccomp],
        () => [seccomp, None],
    };
    let whom = if level == 1 { "to all but root and its group" } else { "to all" };
    let check = say(world, key, &[("whom", &whom), ("said", said)]);
    let refusal = Evidence::new("io_uring_setup(2)", said.clone());
    check.found(found.into_iter().flatten()).found([refusal])
}

pub(super) fn locked_memory(world: &World) -> Option<Check> {
    let found = world.root.line("proc/self/limits", "Max locked memory")?;
    let mut fields = found.value.split_whitespace();
    let (soft, hard) = (fields.next()?, fields.next()?);
    let capabilities = world.root.line("proc/self/status", "CapEff:");
    let has_capability = capabilities
        .as_ref()
        .and_then(|capabilities| u64::from_str_radix(&capabilities.value, 16).ok())
        .is_some_and(|set| set >> CAP_IPC_LOCK & 1 == 1);
    let is_hard = hard.parse::<u64>().is_ok_and(|hard_bytes| hard_bytes < LOCKED_KIB << 10);
    // `unlimited` is not a number.
    let soft_bytes = soft.parse::<u64>();
    let key = match soft_bytes {
        _ if has_capability => "locked-memory.capable",
        Err(_) => "locked-memory.unlimited",
        Ok(REGISTERED_BYTES..) => "locked-memory.fine",
        Ok(_) if is_hard => "locked-memory.hard",
        Ok(_) => "locked-memory.soft",
    };
    let may = units::block_size(soft_bytes.unwrap_or(0));
    let needed = units::block_size(REGISTERED_BYTES);
    let values: &Values =
        &[("may", &may), ("needed", &needed), ("hard", &hard), ("limit", &LOCKED_KIB)];
    let check = say(world, key, values);
    Some(check.found([found]).found(capabilities))
}

/// Checks the control groups' limits on a device; `None` if this process's groups are not visible.
pub(super) fn disk_limit(world: &World, device: &str) -> Option<Check> {
    groups(world.root.folder(), "blkio", "io")?;
    let number = world.root.text(&format!("sys/block/{device}/dev"))?;
    let (major, minor) = number.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let limits = limits(world.root.folder(), &[device]);
    let limits: Vec<Limit> = limits.into_iter().filter(|limit| limit.of != "cpus").collect();
    let Some(first) = limits.first() else { return Some(say(world, "disk-limit.fine", &[])) };
    let shown = |limit: &Limit| match limit.of.ends_with("iops") {
        true => format!("{:.0} operations/s", limit.most),
        false => units::rate(limit.most),
    };
    let file = quoted(&[&first.from]);
    let off = if first.from.ends_with("/io.max") {
        format!("echo '{number} rbps=max wbps=max riops=max wiops=max' > {file}")
    } else {
        format!("echo '{number} 0' > {file}")
    };
    let check = say(world, "disk-limit.limited", &[("limit", &shown(first)), ("command", &off)]);
    let found = |limit: &Limit| Evidence::new(&limit.from, format!("{}: {}", limit.of, limit.most));
    Some(check.found(limits.iter().map(found)))
}

pub(super) fn cpu_limit(world: &World) -> Option<Check> {
    let groups = groups(world.root.folder(), "cpu", "cpu")?;
    let limits = groups.folders.iter().filter_map(|folder| cpus(world.root.folder(), folder));
    let least = limits.min_by(|one, other| one.most.total_cmp(&other.most));
    let found = |from: &str| world.root.see(from.trim_start_matches('/'));
    let Some((cpus, found)) = least.and_then(|least| Some((least.most, found(&least.from)?)))
    else {
        return Some(say(world, "cpu-limit.fine", &[]));
    };
    let cpus = format!("{cpus:.1}");
    let check = say(world, "cpu-limit.limited", &[("cpus", &cpus), ("file", &found.from)]);
    Some(check.found([found]))
}

#[cfg(test)]
mod process_tests {
    use super::*;
    use crate::machine::doctor::checks;
    use crate::machine::doctor::fake::{Fake, command, only};
    use wrote_result::doctor::State;

    fn ring(said: &str, files: &[(&str, &str)]) -> Check {
        let fake = Fake::new();
        for (file, content) in files {
            fake.file(file, content);
        }
        let mut world = fake.world_without_device();
        world.io_uring = Err(said.into());
        only(&checks(&world), "io-uring").clone()
    }

    const REFUSED: &str = "io_uring_setup: Operation not permitted (os error 1)";
    const FILTER: (&str, &str) =
        ("proc/self/status", "Name:\twrote\nSeccomp:\t2\nSeccomp_filters:\t1");

    #[test]
    fn the_cause_that_forbids_io_uring_is_named_by_its_evidence() {
        let by_all = ring(REFUSED, &[("proc/sys/kernel/io_uring_disabled", "2"), FILTER]);
        assert_eq!(by_all.state, State::Advice);
        assert!(by_all.text.contains("kernel.io_uring_disabled forbids it to all"));
        assert_eq!(command(&by_all), "sysctl -w kernel.io_uring_disabled=0");
        let by_group = ring(REFUSED, &[("proc/sys/kernel/io_uring_disabled", "1")]);
        assert!(by_group.text.contains("all but root"));
        let by_filter = ring(REFUSED, &[("proc/sys/kernel/io_uring_disabled", "0"), FILTER]);
        assert!(by_filter.text.contains("seccomp"), "{by_filter:?}");
        let missing = "io_uring_setup: Function not implemented (os error 38)";
        let by_age = ring(missing, &[("proc/sys/kernel/osrelease", "4.19.0-25-amd64")]);
        assert!(by_age.text.contains("older than Linux 5.1"), "{by_age:?}");
        let unsaid = ring(missing, &[("proc/sys/kernel/osrelease", "6.18.1"), FILTER]);
        assert!(unsaid.text.contains("built without it, or a seccomp"), "{unsaid:?}");
    }

    #[test]
    fn a_refusal_that_nothing_explains_is_unknown() {
        let check = ring(REFUSED, &[("proc/self/status", "Seccomp:\t0")]);
        assert_eq!(check.state, State::Unknown);
        assert!(check.because.unwrap().contains("Operation not permitted"));
    }

    #[test]
    fn io_uring_that_works_is_fine() {
        let checks = checks(&Fake::new().world_without_device());
        assert_eq!(only(&checks, "io-uring").state, State::Fine);
    }

    fn locked(soft: &str, hard: &str, capabilities: &str) -> Check {
        let fake = Fake::new();
        let limits = format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max locked memory         {soft}              {hard}              bytes     "
        );
        fake.file("proc/self/limits", &limits);
        fake.file("proc/self/status", &format!("CapEff:\t{capabilities}"));
        only(&checks(&fake.world_without_device()), "locked-memory").clone()
    }

    #[test]
    fn too_little_memory_to_lock_is_named() {
        let few = locked("8388608", "unlimited", "0000000000000000");
        assert_eq!(few.state, State::Advice);
        assert_eq!(command(&few), "ulimit -l 131072");
        assert!(few.text.contains("8 MiB") && few.text.contains("32 MiB"), "{few:?}");
        let bound = locked("8388608", "8388608", "0000000000000000");
        assert!(bound.change.unwrap().commands.is_empty(), "it could not be raised that far");
    }

    #[test]
    fn enough_memory_no_limit_or_the_privilege_is_fine() {
        assert_eq!(locked("33554432", "33554432", "0").state, State::Fine);
        assert_eq!(locked("unlimited", "unlimited", "0").state, State::Fine);
        assert_eq!(locked("65536", "65536", "000001ffffffffff").state, State::Fine);
    }
}

#[cfg(test)]
mod limits_tests {
    use super::*;
    use crate::machine::doctor::fake::{Fake, checks_of, command, only, state};
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
        let file = r#""/sys/fs/cgroup/a\\x2db.slice/io.max""#;
        assert!(command(only(&found, "disk-limit")).ends_with(&format!("> {file}")));
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
