//! Checks of a disk's kind and of its driver's abilities: spinning disks, polled queues.

use super::shell::set;
use super::stack::{Disk, DiskKind};
use super::world::World;
use wrote_result::doctor::{Change, Check};

pub(super) fn rotational(world: &World, disk: &Disk) -> Option<Check> {
    let found = disk.queue(&world.root, "rotational")?;
    let turns = found.number()? == 1;
    let wrong = turns && matches!(disk.kind, DiskKind::Nvme | DiskKind::Virtual | DiskKind::Memory);
    let check = match (turns, wrong) {
        (true, true) => {
            let text = format!("the kernel treats this {} as a spinning disk", disk.kind.noun());
            let risk = if disk.kind == DiskKind::Virtual {
                "none where the host keeps it on flash, which the guest can't see; where it lies \
                 on disks that turn, seeks are avoided less"
            } else {
                "none"
            };
            Check::advice(text)
                .costs(
                    "Choices made for seeks: writeback throttling waits for 75 ms instead of 2 ms \
                     (block/blk-wbt.c), BFQ idles for the next request of a program \
                     (block/bfq-iosched.c), Btrfs leaves its ssd option off (btrfs(5)).",
                )
                .measured(&world.measure("ladder"))
                .change(set(disk, "rotational", "0", risk))
        }
        (true, false) if disk.kind == DiskKind::Loop => {
            Check::fine("said to turn, as the disk of the loop device's file may")
        }
        (true, false) => Check::fine("a disk that turns"),
        (false, _) => Check::fine("taken for a disk that does not turn"),
    };
    Some(check.found([found]).source("kernel: Documentation/ABI/stable/sysfs-block, rotational"))
}

pub(super) fn poll_queues(world: &World, disk: &Disk) -> Option<Check> {
    let found = disk.queue(&world.root, "io_poll")?;
    let parameter = world.root.see("sys/module/nvme/parameters/poll_queues");
    if found.number()? != 0 {
        let text = "the disk has poll queues: io_uring can poll for completions";
        return Some(Check::fine(text).found([found]));
    }
    if disk.kind != DiskKind::Nvme {
        let text = "no poll queues: completions come by interrupts";
        return Some(Check::fine(text).found([found]));
    }
    Check::advice("no poll queues, which its driver could make")
        .found([found])
        .found(parameter)
        .costs(
            "Nothing of programs that wait for interrupts, as almost all do. A program that polls \
             saves the interrupt and pays with a CPU; what that gains was not measured here: with \
             poll queues, wrote bench --only peak tries both.",
        )
        .change(
            Change::run(
                "echo 'options nvme poll_queues=2' > /etc/modprobe.d/nvme-poll.conf",
                "queues for polling are taken from those that serve interrupts",
            )
            .lasting(
                "it takes effect when the module is loaded: where the initial RAM disk does that, \
                 make it anew, or put nvme.poll_queues=2 on the kernel's command line",
            ),
        )
        .source(
            "kernel: drivers/nvme/host/pci.c, poll_queues; io_uring_setup(2), IORING_SETUP_IOPOLL",
        )
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::checks;
    use super::super::fake::{Fake, command, only, state};
    use super::*;
    use wrote_result::doctor::State;

    fn checked(name: &str, queue: &[(&str, &str)]) -> Vec<Check> {
        let fake = Fake::new();
        fake.disk(name, queue);
        fake.file("sys/module/nvme/parameters/poll_queues", "0");
        checks(&fake.world(name))
    }

    #[test]
    fn a_virtual_disk_that_is_said_to_turn_is_named() {
        let checks = checked("vda", &[("rotational", "1")]);
        let check = only(&checks, "rotational");
        assert_eq!(check.state, State::Advice);
        assert_eq!(command(check), "echo 0 > /sys/block/vda/queue/rotational");
    }

    #[test]
    fn a_disk_that_turns_or_says_that_it_does_not_is_fine() {
        for (name, rotational) in [("sda", "1"), ("vda", "0"), ("nvme0n1", "0"), ("loop0", "1")] {
            let checks = checked(name, &[("rotational", rotational)]);
            assert_eq!(state(&checks, "rotational"), Some(State::Fine), "{name}");
        }
    }

    #[test]
    fn only_an_nvme_disk_can_be_given_poll_queues() {
        let checks = checked("nvme0n1", &[("io_poll", "0")]);
        let nvme = only(&checks, "poll-queues");
        assert_eq!(nvme.state, State::Advice);
        assert_eq!(nvme.evidence[1].from, "/sys/module/nvme/parameters/poll_queues");
        assert_eq!(
            state(&checked("nvme0n1", &[("io_poll", "1")]), "poll-queues"),
            Some(State::Fine)
        );
        assert_eq!(state(&checked("vda", &[("io_poll", "0")]), "poll-queues"), Some(State::Fine));
    }
}
