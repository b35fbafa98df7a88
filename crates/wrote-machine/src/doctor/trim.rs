//! The check that free blocks are reported to the disk.

use super::shell::set_queue;
use super::stack::DiskKind;
use super::world::World;
use wrote_result::doctor::{Change, Check, Evidence};

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
    let check = if number(Some(&most)) > 0 {
        match (used_by(world), world.target.filesystem.as_str()) {
            (_, "none") => Check::fine("the device takes TRIM"),
            (Some(evidence), _) => {
                Check::fine("the device takes TRIM, and learns of free blocks").found([evidence])
            }
            (None, _) => untold(world),
        }
    } else if number(hardware.as_ref()) > 0 {
        switched_off(world, top, hardware.as_ref())
    } else if kinds.iter().all(|kind| *kind == DiskKind::Turning) {
        Check::fine("a disk that turns needs no TRIM")
    } else if kinds.iter().any(|kind| matches!(kind, DiskKind::Nvme | DiskKind::Solid)) {
        no_trim(world)
    } else {
        Check::fine("the device takes no TRIM: its provider keeps all written blocks")
    };
    let source = "kernel: Documentation/ABI/stable/sysfs-block, discard_max_bytes; fstrim(8)";
    Some(check.of(top).found([most]).found(granularity).found(hardware).source(source))
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

fn untold(world: &World) -> Check {
    let looked_at: Vec<String> = TIMERS.iter().map(|timer| format!("/{timer}")).collect();
    Check::advice("the device takes TRIM, but nothing was found that tells it of free blocks",
    )
    .found([Evidence::new(looked_at.join(", "), "not there")])
    .costs(
        "A disk of flash that takes deleted data for data has fewer erased blocks in reserve, and \
         slows down under long writes; a thin volume never shrinks.",
    )
    .measured(&world.measure("sustained"))
    .change(
        Change::run(
            "systemctl enable --now fstrim.timer",
            "the disk is busy for a while each week; deleted data can't be brought back",
        )
        .lasting("the same command; without systemd, fstrim --fstab from cron each week"),
    )
}

fn switched_off(world: &World, top: &str, hardware: Option<&Evidence>) -> Check {
    let most = hardware.map_or_else(String::new, |hardware| hardware.value.clone());
    Check::advice("the device could take TRIM, but discard_max_bytes is set to 0")
        .costs("Nothing tells it of free blocks.")
        .measured(&world.measure("sustained"))
        .change(
            Change::run(
                set_queue(top, "discard_max_bytes", &most),
                "it may have been set because this disk's TRIM is slow or broken",
            )
            .lasting("take out the udev rule or script that sets it to 0"),
        )
}

fn no_trim(world: &World) -> Check {
    let is_encrypted = world.stack.layers.iter().any(|layer| {
        let uuid = world.root.text(&format!("sys/block/{layer}/dm/uuid"));
        uuid.is_some_and(|uuid| uuid.starts_with("CRYPT-"))
    });
    let check = Check::advice("flash that is never told of free blocks: no TRIM reaches it")
        .costs("It slows down under long writes once every block was written.")
        .measured(&world.measure("sustained"));
    let risk = "a person with the disk sees which blocks are free (crypttab(5))";
    if is_encrypted {
        check.change(Change::how("the option discard in /etc/crypttab lets TRIM through", risk))
    } else {
        check.change(Change::how(
            "leave a part of the disk without a partition, after a secure erase: the disk keeps \
             it in reserve",
            "a secure erase destroys what is on the disk",
        ))
    }
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
