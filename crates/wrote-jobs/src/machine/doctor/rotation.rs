//! Checks of a disk's kind and of its driver's abilities: spinning disks, polled queues.

use super::stack::{Disk, DiskKind};
use super::world::World;
use wrote_result::doctor::Check;

pub(super) fn rotational(world: &World, disk: &Disk) -> Option<Check> {
    let found = disk.queue(&world.root, "rotational")?;
    let key = match (found.number()? == 1, disk.kind) {
        (true, DiskKind::Virtual) => "rotational.virtual",
        (true, DiskKind::Nvme | DiskKind::Memory) => "rotational.wrong",
        (true, DiskKind::Loop) => "rotational.loop",
        (true, _) => "rotational.turns",
        (false, _) => "rotational.still",
    };
    let noun = disk.kind.noun();
    Some(world.say(key, &[("noun", &noun), ("disk", &disk.name)]).found([found]))
}

pub(super) fn poll_queues(world: &World, disk: &Disk) -> Option<Check> {
    let found = disk.queue(&world.root, "io_poll")?;
    let key = match (found.number()?, disk.kind) {
        (0, DiskKind::Nvme) => "poll-queues.possible",
        (0, _) => "poll-queues.none",
        _ => "poll-queues.there",
    };
    let parameter = world.root.see("sys/module/nvme/parameters/poll_queues");
    let parameter = parameter.filter(|_| key == "poll-queues.possible");
    Some(world.say(key, &[]).found([found]).found(parameter))
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
