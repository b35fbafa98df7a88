//! Checks of each whole disk: its scheduler, write throttling, requests and cache, and the
//! alignment of its partitions.

use super::stack::{Disk, DiskKind, Partition};
use super::texts::{Values, say, set_queue};
use super::world::World;
use wrote_result::doctor::{Check, Evidence};
use wrote_result::units;

/// The kernel's default for a disk that accepts longer requests (`BLK_DEF_MAX_SECTORS_CAP` until
/// Linux 6.15).
const TRANSFER_KIB: i64 = 1280;

/// Returns a check which reports that the disk's queue is hidden; `None` if it is visible. There
/// are no other checks of a hidden queue.
pub(super) fn hidden(world: &World, disk: &Disk) -> Option<Check> {
    let check = || say(world, "queue.hidden", &[("disk", &disk.name)]);
    (!is_visible(world, disk)).then(check)
}

fn is_visible(world: &World, disk: &Disk) -> bool {
    let files = ["logical_block_size", "rotational"];
    files.iter().any(|file| disk.queue(&world.root, file).is_some())
}

pub(super) fn scheduler(world: &World, disk: &Disk) -> Option<Check> {
    let found = disk.queue(&world.root, "scheduler")?;
    let chosen = found.chosen().to_owned();
    let zoned = disk.queue(&world.root, "zoned").is_some_and(|zoned| zoned.value != "none");
    let key = match (disk.kind, chosen.as_str()) {
        (_, "mq-deadline") if zoned => "scheduler.zoned",
        (DiskKind::Turning, "none") => "scheduler.idle",
        (DiskKind::Turning, _) => "scheduler.turning",
        (_, "none") => "scheduler.none",
        (DiskKind::Solid, "mq-deadline" | "kyber") => "scheduler.flash",
        _ => "scheduler.needless",
    };
    let why = match disk.kind {
        DiskKind::Nvme | DiskKind::Solid => "which has no head to move",
        DiskKind::Virtual => "whose host orders requests again",
        DiskKind::Loop => "whose file's own disk orders requests again",
        DiskKind::Memory | DiskKind::Turning => "which gains nothing by it",
    };
    let (noun, disk) = (disk.kind.noun(), &disk.name);
    let values: &Values = &[("scheduler", &chosen), ("noun", &noun), ("why", &why), ("disk", disk)];
    Some(say(world, key, values).found([found]))
}

pub(super) fn transfer(world: &World, disk: &Disk) -> Option<Check> {
    let (found, most) =
        (disk.queue(&world.root, "max_sectors_kb")?, disk.queue(&world.root, "max_hw_sectors_kb")?);
    let (set, hardware) = (found.number()?, most.number()?);
    let optimal = disk.queue_number(&world.root, "optimal_io_size").unwrap_or(0) / 1024;
    let wanted = hardware.min(TRANSFER_KIB);
    // All pieces except the last have the maximum length.
    let pieces = 1024_u64.div_ceil(set.max(1).unsigned_abs());
    // The driver for SCSI disks uses the disk's preferred size (`drivers/scsi/sd.c`).
    let is_fine = set >= wanted || set == optimal;
    let key = if is_fine { "transfer-size.fine" } else { "transfer-size.short" };
    let values: &Values = &[
        ("set", &set),
        ("hardware", &hardware),
        ("pieces", &pieces),
        ("wanted", &wanted),
        ("disk", &disk.name),
    ];
    Some(say(world, key, values).found([found, most]))
}

pub(super) fn write_cache(world: &World, disk: &Disk) -> Option<Check> {
    if disk.kind == DiskKind::Memory {
        return None;
    }
    let found = disk.queue(&world.root, "write_cache")?;
    let own = own_word(world, disk);
    let write_cache = judge_cache(world, disk, &found, own.as_ref());
    Some(write_cache.found([found]).found(own))
}

/// Returns what the disk itself reports about its cache, according to its driver:
/// `scsi_disk/*/cache_type` for SCSI and SATA disks, and `cache_type` for virtio disks. `None` for
/// other disks.
fn own_word(world: &World, disk: &Disk) -> Option<Evidence> {
    let folder = format!("sys/block/{}/device/scsi_disk", disk.name);
    let scsi = world.root.names(&folder).into_iter().next();
    scsi.and_then(|address| world.root.see(&format!("{folder}/{address}/cache_type")))
        .or_else(|| world.root.see(&format!("sys/block/{}/cache_type", disk.name)))
}

fn judge_cache(world: &World, disk: &Disk, found: &Evidence, own: Option<&Evidence>) -> Check {
    let own_is_volatile = own.map(|own| own.value.starts_with("write back"));
    let read_only = || world.root.number(&format!("sys/block/{}/ro", disk.name));
    let is_loop = disk.kind == DiskKind::Loop && read_only() == Some(0);
    let write_back = set_queue(&disk.name, "write_cache", "write back");
    let forced =
        |why: &str| say(world, "write-cache.forced", &[("why", &why), ("command", &write_back)]);
    match (found.value.as_str(), own_is_volatile) {
        ("write back", Some(false)) => say(world, "write-cache.needless", &[("disk", &disk.name)]),
        ("write back", _) => {
            let fua = disk.queue_number(&world.root, "fua") == Some(1);
            let fua = if fua { "; it takes writes with FUA" } else { "" };
            say(world, "write-cache.flushed", &[("fua", &fua)])
        }
        ("write through", Some(true)) => forced("the disk says that its cache is volatile"),
        ("write through", None) if is_loop => {
            forced("the file of a loop device is flushed only when its device is")
        }
        ("write through", Some(false)) => say(world, "write-cache.none", &[]),
        ("write through", None) => {
            let command = match disk.kind {
                DiskKind::Nvme => format!("nvme id-ctrl /dev/{} | grep vwc", disk.name),
                _ => format!("hdparm -W /dev/{}", disk.name),
            };
            say(world, "write-cache.untold", &[("command", &command)])
        }
        (other, _) => say(world, "write-cache.strange", &[("said", &format!("{other:?}"))]),
    }
}

/// The unit of `start`, which is 512 bytes on every disk.
const SECTOR_BYTES: u64 = 512;
/// The block size of nearly every file system, the page size of flash, and the sector size of hard
/// disks that report 512 bytes for old programs.
const BLOCK_BYTES: u64 = 4096;

pub(super) fn alignment(world: &World, partition: &Partition) -> Check {
    let Partition { name, disk } = partition;
    let start = world.root.see(&format!("sys/block/{disk}/{name}/start"));
    let Some(start_bytes) = start.as_ref().and_then(Evidence::unsigned) else {
        return say(world, "alignment.unknown", &[("disk", disk), ("name", name)]);
    };
    let start_bytes = start_bytes * SECTOR_BYTES;
    let queue = |file: &str| world.root.see(&format!("sys/block/{disk}/queue/{file}"));
    let bytes = |seen: &Option<Evidence>| seen.as_ref().and_then(Evidence::unsigned).unwrap_or(0);
    let (physical, optimal) = (queue("physical_block_size"), queue("optimal_io_size"));
    let offset = world.root.see(&format!("sys/block/{disk}/{name}/alignment_offset"));
    let block_bytes = bytes(&physical).max(BLOCK_BYTES);
    let optimal_bytes = bytes(&optimal);
    let key = if !start_bytes.is_multiple_of(block_bytes) || bytes(&offset) != 0 {
        "alignment.block"
    // Some USB bridges report 65,535 sectors, which is not an alignment.
    } else if optimal_bytes > 0
        && optimal_bytes.is_multiple_of(block_bytes)
        && !start_bytes.is_multiple_of(optimal_bytes)
    {
        "alignment.stripe"
    } else {
        "alignment.fine"
    };
    let (block, best) = (units::block_size(block_bytes), units::block_size(optimal_bytes));
    let alignment =
        say(world, key, &[("start", &start_bytes), ("block", &block), ("optimal", &best)]);
    alignment.found(start).found(physical).found(optimal).found(offset)
}

#[cfg(test)]
mod queue_tests {
    use super::*;
    use crate::machine::doctor::fake::{Fake, checks_of, command, only, state};
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["scheduler", "transfer-size", "queue"])
    }

    /// The queue of a disk as a recent kernel configures it.
    const USUAL: [(&str, &str); 5] = [
        ("logical_block_size", "512"),
        ("scheduler", "[none] mq-deadline kyber"),
        ("max_sectors_kb", "1280"),
        ("max_hw_sectors_kb", "2048"),
        ("rotational", "0"),
    ];

    fn checked(name: &str, changed: &[(&str, &str)]) -> Vec<Check> {
        let fake = Fake::new();
        fake.disk(name, &USUAL);
        fake.disk(name, changed);
        checks(&fake.world(name))
    }

    #[test]
    fn a_disk_as_the_kernel_sets_it_up_is_fine() {
        let checks = checked("nvme0n1", &[]);
        assert_eq!(checks.len(), 2, "{checks:?}");
        assert!(checks.iter().all(|check| check.state == State::Fine), "{checks:?}");
        assert!(checks.iter().all(|check| check.device.as_deref() == Some("nvme0n1")));
    }

    #[test]
    fn a_scheduler_is_judged_by_what_the_disk_is() {
        let judged = |name: &str, scheduler: &str, rotational: &str| {
            let checks = checked(name, &[("scheduler", scheduler), ("rotational", rotational)]);
            only(&checks, "scheduler").clone()
        };
        let nvme = judged("nvme0n1", "none [mq-deadline] kyber bfq", "0");
        assert_eq!(nvme.state, State::Advice);
        assert_eq!(command(&nvme), "echo none > /sys/block/nvme0n1/queue/scheduler");
        assert_eq!(nvme.evidence[0].from, "/sys/block/nvme0n1/queue/scheduler");
        let lasting = nvme.change.unwrap().lasting.unwrap();
        assert!(lasting.contains("KERNEL==\"nvme0n1\", ATTR{queue/scheduler}=\"none\""));
        assert_eq!(judged("vda", "none [bfq]", "1").state, State::Advice);
        assert_eq!(judged("loop3", "none [mq-deadline]", "0").state, State::Advice);
        assert_eq!(judged("sda", "none [mq-deadline]", "0").state, State::Fine);
        assert_eq!(judged("sda", "none mq-deadline [bfq]", "0").state, State::Advice);
        assert_eq!(judged("sda", "none [mq-deadline]", "1").state, State::Fine);
        let turning = judged("sda", "[none] mq-deadline", "1");
        assert_eq!(turning.state, State::Advice);
        assert_eq!(command(&turning), "echo mq-deadline > /sys/block/sda/queue/scheduler");
    }

    #[test]
    fn a_write_of_1_mib_becomes_as_many_requests_as_it_takes() {
        for (set, told) in [("512", "2 requests"), ("768", "2 requests"), ("120", "9 requests")] {
            let checks = checked("nvme0n1", &[("max_sectors_kb", set)]);
            let costs = only(&checks, "transfer-size").costs.clone().unwrap();
            assert!(costs.contains(told), "{costs}");
        }
    }

    #[test]
    fn a_zoned_disk_keeps_the_scheduler_that_it_needs() {
        let changed = [("scheduler", "none [mq-deadline]"), ("zoned", "host-managed")];
        assert_eq!(state(&checked("nvme0n1", &changed), "scheduler"), Some(State::Fine));
    }

    #[test]
    fn a_setting_that_holds_back_is_named_with_the_command_that_changes_it() {
        let checks = checked("nvme0n1", &[("max_sectors_kb", "64")]);
        let worse: Vec<&Check> = checks.iter().filter(|check| check.state != State::Fine).collect();
        assert_eq!(worse.len(), 1, "{checks:?}");
        assert_eq!((worse[0].id.as_str(), worse[0].state), ("transfer-size", State::Advice));
        let wanted = "echo 1280 > /sys/block/nvme0n1/queue/max_sectors_kb";
        assert_eq!(command(worse[0]), wanted);
        assert_eq!(worse[0].evidence[0].value, "64");
        assert!(worse[0].costs.is_some() && !worse[0].sources.is_empty(), "{:?}", worse[0]);
    }

    #[test]
    fn requests_as_long_as_the_disk_itself_likes_are_fine() {
        let chosen = [("max_sectors_kb", "512"), ("optimal_io_size", "524288")];
        assert_eq!(state(&checked("sda", &chosen), "transfer-size"), Some(State::Fine));
        let small = [("max_sectors_kb", "124"), ("max_hw_sectors_kb", "124")];
        assert_eq!(state(&checked("sda", &small), "transfer-size"), Some(State::Fine));
    }

    #[test]
    fn a_hidden_queue_is_reported_once() {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        let checks = checks(&fake.world("sda"));
        assert_eq!(checks.len(), 1);
        assert_eq!((checks[0].id.as_str(), checks[0].state), ("queue", State::Unknown));
        assert!(checks[0].because.as_ref().unwrap().contains("/sys/block/sda/queue"));
    }
}

#[cfg(test)]
mod cache_tests {
    use super::*;
    use crate::machine::doctor::checks;
    use crate::machine::doctor::fake::{Fake, command, only};
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

#[cfg(test)]
mod partition_tests {
    use super::*;
    use crate::machine::doctor::fake::{Fake, checks_of, only};
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["alignment"])
    }

    fn checked(start: u64, queue: &[(&str, &str)], offset: &str) -> Check {
        let fake = Fake::new();
        fake.disk("sda", queue);
        fake.partition("sda", "sda1", start);
        fake.file("sys/block/sda/sda1/alignment_offset", offset);
        only(&checks(&fake.world("sda1")), "alignment").clone()
    }

    #[test]
    fn a_partition_that_begins_inside_a_block_is_named() {
        let dos = checked(63, &[("physical_block_size", "512")], "0");
        assert_eq!((dos.state, dos.device.as_deref()), (State::Advice, Some("sda1")));
        assert!(dos.text.contains("byte 32256"), "{dos:?}");
        assert!(dos.change.unwrap().commands.is_empty(), "no command here can be pasted safely");
        let large = checked(2048 + 8, &[("physical_block_size", "16384")], "0");
        assert_eq!(large.state, State::Advice);
        assert_eq!(checked(2048, &[("physical_block_size", "4096")], "3584").state, State::Advice);
    }

    #[test]
    fn a_partition_that_begins_inside_a_stripe_is_named() {
        assert_eq!(checked(2048, &[("optimal_io_size", "1572864")], "0").state, State::Advice);
        assert_eq!(checked(2048, &[("optimal_io_size", "524288")], "0").state, State::Fine);
        let bridge = checked(2048, &[("optimal_io_size", "33553920")], "0");
        assert_eq!(bridge.state, State::Fine, "65535 sectors are no stripe");
    }

    #[test]
    fn a_partition_that_begins_where_a_block_does_is_fine() {
        assert_eq!(checked(2048, &[("physical_block_size", "4096")], "0").state, State::Fine);
        assert_eq!(checked(8, &[], "0").state, State::Fine);
    }

    #[test]
    fn a_whole_disk_has_no_partition_to_look_at() {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        assert!(checks(&fake.world("sda")).is_empty());
    }
}
