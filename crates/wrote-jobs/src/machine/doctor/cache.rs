//! Compares the kernel's view of each disk's cache with the disk's own.

use super::shell::set_queue;
use super::stack::{Disk, DiskKind};
use super::world::World;
use wrote_result::doctor::{Check, Evidence};

pub(super) fn check(world: &World, disk: &Disk) -> Option<Check> {
    if disk.kind == DiskKind::Memory {
        return None;
    }
    let found = disk.queue(&world.root, "write_cache")?;
    let own = own_word(world, disk);
    let check = judge(world, disk, &found, own.as_ref());
    Some(check.found([found]).found(own))
}

/// Returns the disk's own report of its cache, as its driver read it: for SCSI and SATA disks
/// `scsi_disk/*/cache_type`, for virtio disks `cache_type`.
fn own_word(world: &World, disk: &Disk) -> Option<Evidence> {
    let folder = format!("sys/block/{}/device/scsi_disk", disk.name);
    let scsi = world.root.names(&folder).into_iter().next();
    scsi.and_then(|address| world.root.see(&format!("{folder}/{address}/cache_type")))
        .or_else(|| world.root.see(&format!("sys/block/{}/cache_type", disk.name)))
}

fn judge(world: &World, disk: &Disk, found: &Evidence, own: Option<&Evidence>) -> Check {
    let own_is_volatile = own.map(|own| own.value.starts_with("write back"));
    let read_only = || world.root.number(&format!("sys/block/{}/ro", disk.name));
    let is_loop = disk.kind == DiskKind::Loop && read_only() == Some(0);
    let write_back = set_queue(&disk.name, "write_cache", "write back");
    let forced =
        |why: &str| world.say("write-cache.forced", &[("why", &why), ("command", &write_back)]);
    match (found.value.as_str(), own_is_volatile) {
        ("write back", Some(false)) => world.say("write-cache.needless", &[("disk", &disk.name)]),
        ("write back", _) => {
            let fua = disk.queue_number(&world.root, "fua") == Some(1);
            let fua = if fua { "; it takes writes with FUA" } else { "" };
            world.say("write-cache.flushed", &[("fua", &fua)])
        }
        ("write through", Some(true)) => forced("the disk says that its cache is volatile"),
        ("write through", None) if is_loop => {
            forced("the file of a loop device is flushed only when its device is")
        }
        ("write through", Some(false)) => world.say("write-cache.none", &[]),
        ("write through", None) => {
            let command = match disk.kind {
                DiskKind::Nvme => format!("nvme id-ctrl /dev/{} | grep vwc", disk.name),
                _ => format!("hdparm -W /dev/{}", disk.name),
            };
            world.say("write-cache.untold", &[("command", &command)])
        }
        (other, _) => world.say("write-cache.strange", &[("said", &format!("{other:?}"))]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks;
    use super::super::fake::{Fake, command, only};
    use super::*;
    use wrote_result::doctor::State;

    fn judged(name: &str, queue: &str, own: Option<(&str, &str)>) -> Check {
        let fake = Fake::new();
        fake.disk(name, &[("write_cache", queue)]);
        fake.file(&format!("sys/block/{name}/ro"), "0");
        if let Some((file, word)) = own {
            fake.file(&format!("sys/block/{name}/{file}"), word);
        }
        only(&checks(&fake.world(name)), "write-cache").clone()
    }

    const SCSI: &str = "device/scsi_disk/0:0:0:0/cache_type";

    #[test]
    fn flushes_that_are_kept_from_a_volatile_cache_are_a_risk() {
        let scsi = judged("sda", "write through", Some((SCSI, "write back")));
        assert_eq!(scsi.state, State::Risk);
        assert_eq!(command(&scsi), "echo \"write back\" > /sys/block/sda/queue/write_cache");
        let scsi = judged("sda", "write through", Some((SCSI, "write back, no read (daft)")));
        assert_eq!(scsi.state, State::Risk);
        let virtio = judged("vda", "write through", Some(("cache_type", "write back")));
        assert_eq!(virtio.state, State::Risk);
        assert_eq!(judged("loop0", "write through", None).state, State::Risk);
    }

    #[test]
    fn a_cache_that_the_kernel_and_the_disk_agree_on_is_fine() {
        assert_eq!(judged("sda", "write back", Some((SCSI, "write back"))).state, State::Fine);
        assert_eq!(judged("sda", "write through", Some((SCSI, "none"))).state, State::Fine);
        assert_eq!(judged("nvme0n1", "write back", None).state, State::Fine);
        assert_eq!(judged("loop0", "write back", None).state, State::Fine);
    }

    #[test]
    fn flushes_of_a_cache_that_is_not_volatile_cost_speed_alone() {
        let scsi = judged("sda", "write back", Some((SCSI, "write through")));
        assert_eq!(scsi.state, State::Advice);
    }

    #[test]
    fn a_disk_that_does_not_say_is_unknown_with_the_command_that_asks_it() {
        let nvme = judged("nvme0n1", "write through", None);
        assert_eq!(nvme.state, State::Unknown);
        assert!(nvme.because.is_some());
        assert_eq!(command(&nvme), "nvme id-ctrl /dev/nvme0n1 | grep vwc");
    }
}
