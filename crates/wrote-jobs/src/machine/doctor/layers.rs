//! Checks of the layers between the file system and the disks: loop devices, RAID and encryption,
//! and whether TRIM reaches the disks.

use super::stack::{Disk, DiskKind};
use super::texts::{Values, say, set_queue};
use super::world::World;
use wrote_result::doctor::{Check, Evidence};
use wrote_result::quoted;

pub(super) fn loop_device(world: &World, disk: &Disk) -> Option<Check> {
    let folder = format!("sys/block/{}/loop", disk.name);
    let file = world.root.see(&format!("{folder}/backing_file"))?;
    let direct = world.root.see(&format!("{folder}/dio"))?;
    let is_direct = direct.number() == Some(1);
    let key = if is_direct { "loop-device.direct" } else { "loop-device.cached" };
    let device = quoted(&[format!("/dev/{}", disk.name)]);
    let check = say(world, key, &[("file", &file.value), ("device", &device)]);
    Some(check.found([file, direct]))
}

pub(super) fn raid(world: &World, layer: &str) -> Option<Check> {
    let see = |file: &str| world.root.see(&format!("sys/block/{layer}/md/{file}"));
    let level = see("level")?;
    let (degraded, action) = (see("degraded"), see("sync_action"));
    let missing = degraded.as_ref().and_then(Evidence::number).unwrap_or(0);
    let doing = action.as_ref().map_or("idle", |action| action.value.as_str());
    let name = &level.value;
    let check = if missing > 0 {
        let values: &Values = &[("name", name), ("missing", &missing), ("layer", &layer)];
        say(world, "raid.degraded", values)
    } else if doing != "idle" {
        say(world, "raid.working", &[("name", name), ("doing", &doing), ("layer", &layer)])
    } else if matches!(name.as_str(), "raid4" | "raid5" | "raid6") {
        let chunk = see("chunk_size").and_then(|chunk| chunk.number()).unwrap_or(0) / 1024;
        let check = say(world, "raid.parity", &[("name", name), ("chunk", &chunk)]);
        check.found(see("chunk_size")).found(see("stripe_cache_size"))
    } else {
        say(world, "raid.fine", &[("name", name)])
    };
    Some(check.found([level]).found(degraded).found(action))
}

pub(super) fn encryption(world: &World, layer: &str) -> Option<Check> {
    let uuid = encrypted(world, layer)?;
    let name = world.root.text(&format!("sys/block/{layer}/dm/name"));
    let name = name.unwrap_or_else(|| layer.to_owned());
    let quoted = quoted(&[&name]);
    Some(say(world, "encryption.on", &[("name", &name), ("quoted", &quoted)]).found([uuid]))
}

/// The timers of systemd and the jobs of cron that trim all file systems, usually once a week.
const TIMERS: [&str; 3] = [
    "etc/systemd/system/timers.target.wants/fstrim.timer",
    "etc/cron.weekly/fstrim",
    "etc/cron.daily/fstrim",
];

/// Checks whether TRIM works on the device that the file system uses; `None` if the device's queue
/// is not visible.
pub(super) fn trim(world: &World) -> Option<Check> {
    let top = world.stack.top.as_deref()?;
    let queue = |file: &str| world.root.see(&format!("sys/block/{top}/queue/{file}"));
    let (most, granularity) = (queue("discard_max_bytes")?, queue("discard_granularity"));
    let hardware = queue("discard_max_hw_bytes");
    let number = |seen: Option<&Evidence>| seen.and_then(Evidence::number).unwrap_or(0);
    let kinds: Vec<DiskKind> = world.stack.disks.iter().map(|disk| disk.kind).collect();
    let used = used_by(world);
    let (key, seen) = if number(Some(&most)) > 0 {
        match (used, world.target.filesystem.as_str()) {
            (_, "none") => ("trim.device", None),
            (Some(evidence), _) => ("trim.used", Some(evidence)),
            (None, _) => ("trim.untold", Some(nothing_seen())),
        }
    } else if number(hardware.as_ref()) > 0 {
        ("trim.off", None)
    } else if kinds.iter().all(|kind| *kind == DiskKind::Turning) {
        ("trim.turning", None)
    } else if !kinds.iter().any(|kind| matches!(kind, DiskKind::Nvme | DiskKind::Solid)) {
        ("trim.none", None)
    } else if world.stack.layers.iter().any(|layer| encrypted(world, layer).is_some()) {
        ("trim.encrypted", None)
    } else {
        ("trim.flash", None)
    };
    let value = hardware.as_ref().map_or("", |hardware| &hardware.value);
    let trim = say(world, key, &[("command", &set_queue(top, "discard_max_bytes", value))]);
    Some(trim.of(top).found(seen).found([most]).found(granularity).found(hardware))
}

/// Returns evidence of the mechanism that trims the file system; `None` if none is visible.
fn used_by(world: &World) -> Option<Evidence> {
    let options = &world.target.mount_options;
    let mounted = options.iter().find(|option| is_discard(option));
    if let Some(option) = mounted {
        return Some(Evidence::new("/proc/self/mountinfo", option.clone()));
    }
    // A link to the unit suffices, even if the unit itself is outside this root.
    let timer = TIMERS.iter().find(|timer| world.root.path(timer).symlink_metadata().is_ok())?;
    Some(Evidence::new(format!("/{timer}"), "is there"))
}

/// Returns whether the option is `discard`, `discard=async` or `discard=sync`, but not `nodiscard`.
pub(super) fn is_discard(option: &str) -> bool {
    option == "discard" || option.starts_with("discard=")
}

fn nothing_seen() -> Evidence {
    let looked_at = TIMERS.map(|timer| format!("/{timer}"));
    Evidence::new(looked_at.join(", "), "not there")
}

/// Returns the evidence that a layer encrypts; `None` if it does not.
fn encrypted(world: &World, layer: &str) -> Option<Evidence> {
    let uuid = world.root.see(&format!("sys/block/{layer}/dm/uuid"))?;
    uuid.value.starts_with("CRYPT-").then_some(uuid)
}

#[cfg(test)]
mod layers_tests {
    use super::*;
    use crate::machine::doctor::fake::{Fake, checks_of, command, only};
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["loop-device", "raid", "encryption"])
    }

    fn looped(direct: &str) -> Check {
        let fake = Fake::new();
        fake.disk("loop3", &[]);
        fake.file("sys/block/loop3/loop/backing_file", "/images/a b");
        fake.file("sys/block/loop3/loop/dio", direct);
        only(&checks(&fake.world("loop3")), "loop-device").clone()
    }

    fn array(files: &[(&str, &str)]) -> Check {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        fake.disk("md0", &[]);
        fake.slave("md0", "sda");
        for (file, content) in files {
            fake.file(&format!("sys/block/md0/md/{file}"), content);
        }
        only(&checks(&fake.world("md0")), "raid").clone()
    }

    #[test]
    fn a_loop_device_that_writes_through_the_page_cache_is_named() {
        let cached = looped("0");
        assert_eq!(cached.state, State::Advice);
        assert_eq!(command(&cached), "losetup --direct-io=on /dev/loop3");
        assert_eq!(looped("1").state, State::Fine);
    }

    #[test]
    fn an_array_without_one_of_its_disks_is_a_risk() {
        let whole = [("level", "raid1"), ("degraded", "0"), ("sync_action", "idle")];
        assert_eq!(array(&whole).state, State::Fine);
        assert_eq!(array(&[("level", "raid1"), ("degraded", "1")]).state, State::Risk);
    }

    #[test]
    fn an_array_at_work_and_one_with_parity_are_named() {
        let busy = array(&[("level", "raid1"), ("degraded", "0"), ("sync_action", "resync")]);
        assert_eq!(busy.state, State::Advice);
        assert!(busy.text.contains("resync"));
        let parity =
            array(&[("level", "raid5"), ("chunk_size", "524288"), ("sync_action", "idle")]);
        assert_eq!(parity.state, State::Advice);
        assert!(parity.change.unwrap().how.unwrap().contains("512 KiB"));
    }

    #[test]
    fn an_encrypted_device_is_named_and_a_plain_volume_is_not() {
        let of = |uuid: &str| {
            let fake = Fake::new();
            fake.disk("sda", &[]);
            fake.disk("dm-0", &[]);
            fake.slave("dm-0", "sda");
            fake.file("sys/block/dm-0/dm/uuid", uuid);
            fake.file("sys/block/dm-0/dm/name", "data");
            checks(&fake.world("dm-0"))
        };
        let found = of("CRYPT-LUKS2-00ff-data");
        let check = only(&found, "encryption");
        assert_eq!((check.state, check.device.as_deref()), (State::Advice, Some("dm-0")));
        assert!(command(check).ends_with("--perf-no_write_workqueue data"));
        assert!(of("LVM-abc").is_empty());
    }
}

#[cfg(test)]
mod trim_tests {
    use super::*;
    use crate::machine::doctor::checks;
    use crate::machine::doctor::fake::{Fake, command, only, state};
    use wrote_result::doctor::State;

    const TAKES: [(&str, &str); 2] =
        [("discard_max_bytes", "2147450880"), ("discard_max_hw_bytes", "2147450880")];

    fn fake(disk: &str, queue: &[(&str, &str)]) -> Fake {
        let fake = Fake::new();
        fake.disk(disk, queue);
        fake
    }

    #[test]
    fn a_disk_that_nobody_tells_of_free_blocks_is_named() {
        let fake = fake("nvme0n1", &TAKES);
        let trim = only(&checks(&fake.world("nvme0n1")), "trim").clone();
        assert_eq!(trim.state, State::Advice);
        assert_eq!(command(&trim), "systemctl enable --now fstrim.timer");
        fake.file(TIMERS[0], "");
        assert_eq!(state(&checks(&fake.world("nvme0n1")), "trim"), Some(State::Fine));
    }

    #[test]
    fn a_mount_with_discard_tells_the_disk() {
        let fake = fake("nvme0n1", &TAKES);
        let mut world = fake.world("nvme0n1");
        world.target.mount_options.push("discard=async".into());
        assert_eq!(state(&checks(&world), "trim"), Some(State::Fine));
        world.target.mount_options = vec!["nodiscard".into()];
        assert_eq!(state(&checks(&world), "trim"), Some(State::Advice));
    }

    #[test]
    fn a_trim_that_was_switched_off_is_named_with_the_value_that_switches_it_on() {
        let off = [("discard_max_bytes", "0"), ("discard_max_hw_bytes", "4096000")];
        let trim = only(&checks(&fake("sda", &off).world("sda")), "trim").clone();
        assert_eq!(trim.state, State::Advice);
        assert_eq!(command(&trim), "echo 4096000 > /sys/block/sda/queue/discard_max_bytes");
    }

    #[test]
    fn flash_without_trim_is_named_and_a_disk_that_turns_is_not() {
        let never = [("discard_max_bytes", "0"), ("rotational", "0")];
        assert_eq!(state(&checks(&fake("sda", &never).world("sda")), "trim"), Some(State::Advice));
        let turns = [("discard_max_bytes", "0"), ("rotational", "1")];
        assert_eq!(state(&checks(&fake("sda", &turns).world("sda")), "trim"), Some(State::Fine));
        assert_eq!(state(&checks(&fake("vda", &never).world("vda")), "trim"), Some(State::Fine));
    }
}
