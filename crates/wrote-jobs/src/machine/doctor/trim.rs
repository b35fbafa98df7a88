//! The check that free blocks are reported to the disk.

use super::shell::set_queue;
use super::stack::DiskKind;
use super::world::World;
use wrote_result::doctor::{Check, Evidence};

/// Timers of systemd and jobs of cron; either trims all file systems, mostly weekly.
const TIMERS: [&str; 3] = [
    "etc/systemd/system/timers.target.wants/fstrim.timer",
    "etc/cron.weekly/fstrim",
    "etc/cron.daily/fstrim",
];

/// Checks the device that the file system uses.
pub(super) fn check(world: &World) -> Option<Check> {
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
    } else if is_encrypted(world) {
        ("trim.encrypted", None)
    } else {
        ("trim.flash", None)
    };
    let value = hardware.as_ref().map_or("", |hardware| &hardware.value);
    let check = world.say(key, &[("command", &set_queue(top, "discard_max_bytes", value))]);
    Some(check.of(top).found(seen).found([most]).found(granularity).found(hardware))
}

/// Returns the mechanism that trims, if it is visible.
fn used_by(world: &World) -> Option<Evidence> {
    let options = &world.target.mount_options;
    let mounted = options.iter().find(|option| is_discard(option));
    if let Some(option) = mounted {
        return Some(Evidence::new("/proc/self/mountinfo", option.clone()));
    }
    // A link to a unit outside of this root still counts.
    let timer = TIMERS.iter().find(|timer| world.root.path(timer).symlink_metadata().is_ok())?;
    Some(Evidence::new(format!("/{timer}"), "is there"))
}

/// Returns whether it is `discard`, `discard=async` or `discard=sync`, but not `nodiscard`.
pub(super) fn is_discard(option: &str) -> bool {
    option == "discard" || option.starts_with("discard=")
}

fn nothing_seen() -> Evidence {
    let looked_at = TIMERS.map(|timer| format!("/{timer}"));
    Evidence::new(looked_at.join(", "), "not there")
}

fn is_encrypted(world: &World) -> bool {
    world.stack.layers.iter().any(|layer| {
        let uuid = world.root.text(&format!("sys/block/{layer}/dm/uuid"));
        uuid.is_some_and(|uuid| uuid.starts_with("CRYPT-"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::checks;
    use super::super::fake::{Fake, command, only, state};
    use super::*;
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
        let check = only(&checks(&fake.world("nvme0n1")), "trim").clone();
        assert_eq!(check.state, State::Advice);
        assert_eq!(command(&check), "systemctl enable --now fstrim.timer");
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
        let check = only(&checks(&fake("sda", &off).world("sda")), "trim").clone();
        assert_eq!(check.state, State::Advice);
        assert_eq!(command(&check), "echo 4096000 > /sys/block/sda/queue/discard_max_bytes");
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
