//! Checks of each disk's queue: its scheduler, its throttle, its limits.

use super::stack::{Disk, DiskKind};
use super::texts::Values;
use super::world::World;
use wrote_result::doctor::{Check, Evidence};

/// A queue of fewer requests limits even a SATA disk.
const REQUESTS_MIN: i64 = 32;
/// The kernel's default for a disk that accepts more (`BLK_DEF_MAX_SECTORS_CAP` until Linux 6.15).
const TRANSFER_KIB: i64 = 1280;
/// The kernel's default for a disk that does not spin (`block/blk-wbt.c`).
const THROTTLE_US: i64 = 2000;
/// The kernel's default of read-ahead (`VM_READAHEAD_PAGES`).
const READ_AHEAD_KIB: i64 = 128;

/// Reports where the queue is hidden; its other checks are then absent.
pub(super) fn hidden(world: &World, disk: &Disk) -> Option<Check> {
    let check = || world.say("queue.hidden", &[("disk", &disk.name)]);
    (!is_visible(world, disk)).then(check)
}

fn is_visible(world: &World, disk: &Disk) -> bool {
    let files = ["logical_block_size", "rotational"];
    files.iter().any(|file| disk.queue(&world.root, file).is_some())
}

/// Checks one number of a queue; `key` has the texts for it.
fn number(
    world: &World,
    disk: &Disk,
    file: &str,
    key: impl Fn(i64) -> &'static str,
) -> Option<Check> {
    let found = disk.queue(&world.root, file)?;
    let number = found.number()?;
    let values: &Values = &[("number", &number), ("disk", &disk.name)];
    Some(world.say(key(number), values).found([found]))
}

pub(super) fn merges(world: &World, disk: &Disk) -> Option<Check> {
    number(world, disk, "nomerges", |nomerges| match nomerges {
        0 => "merges.fine",
        1 => "merges.few",
        _ => "merges.never",
    })
}

pub(super) fn depth(world: &World, disk: &Disk) -> Option<Check> {
    number(world, disk, "nr_requests", |requests| match disk.kind {
        DiskKind::Memory => "queue-depth.fine",
        _ if requests >= REQUESTS_MIN => "queue-depth.fine",
        _ => "queue-depth.few",
    })
}

pub(super) fn completion(world: &World, disk: &Disk) -> Option<Check> {
    let key = |affinity| if affinity == 0 { "completion-cpu.any" } else { "completion-cpu.fine" };
    number(world, disk, "rq_affinity", key)
}

pub(super) fn read_ahead(world: &World, disk: &Disk) -> Option<Check> {
    let is_fine = |ahead_kib| ahead_kib >= READ_AHEAD_KIB;
    let key = |kib| if is_fine(kib) { "read-ahead.fine" } else { "read-ahead.little" };
    number(world, disk, "read_ahead_kb", key)
}

pub(super) fn statistics(world: &World, disk: &Disk) -> Option<Check> {
    let key = |iostats| if iostats == 0 { "statistics.off" } else { "statistics.fine" };
    number(world, disk, "iostats", key)
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
    Some(world.say(key, values).found([found]))
}

pub(super) fn throttling(world: &World, disk: &Disk) -> Option<Check> {
    if !is_visible(world, disk) {
        return None;
    }
    let found = disk.queue(&world.root, "wbt_lat_usec");
    let target = found.as_ref().and_then(Evidence::number).unwrap_or(0);
    let key = match target {
        ..=0 => "write-throttling.off",
        1..THROTTLE_US => "write-throttling.soon",
        THROTTLE_US.. => "write-throttling.on",
    };
    Some(world.say(key, &[("target", &target), ("disk", &disk.name)]).found(found))
}

pub(super) fn transfer(world: &World, disk: &Disk) -> Option<Check> {
    let (found, most) =
        (disk.queue(&world.root, "max_sectors_kb")?, disk.queue(&world.root, "max_hw_sectors_kb")?);
    let (set, hardware) = (found.number()?, most.number()?);
    let optimal = disk.queue_number(&world.root, "optimal_io_size").unwrap_or(0) / 1024;
    let wanted = hardware.min(TRANSFER_KIB);
    // All pieces but the last have the greatest length.
    let pieces = 1024_u64.div_ceil(set.max(1).unsigned_abs());
    // The driver of SCSI disks takes the disk's preferred size (`drivers/scsi/sd.c`).
    let is_fine = set >= wanted || set == optimal;
    let key = if is_fine { "transfer-size.fine" } else { "transfer-size.short" };
    let values: &Values = &[
        ("set", &set),
        ("hardware", &hardware),
        ("pieces", &pieces),
        ("wanted", &wanted),
        ("disk", &disk.name),
    ];
    Some(world.say(key, values).found([found, most]))
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, checks_of, command, only, state};
    use super::*;
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(
            world,
            &[
                "scheduler",
                "write-throttling",
                "merges",
                "queue-depth",
                "transfer-size",
                "completion-cpu",
                "read-ahead",
                "statistics",
                "queue",
            ],
        )
    }

    /// A disk as configured by a recent kernel.
    const USUAL: [(&str, &str); 11] = [
        ("logical_block_size", "512"),
        ("scheduler", "[none] mq-deadline kyber"),
        ("wbt_lat_usec", "2000"),
        ("nomerges", "0"),
        ("nr_requests", "1023"),
        ("max_sectors_kb", "1280"),
        ("max_hw_sectors_kb", "2048"),
        ("rq_affinity", "1"),
        ("read_ahead_kb", "128"),
        ("iostats", "1"),
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
        assert_eq!(checks.len(), 8, "{checks:?}");
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
    fn each_setting_that_holds_back_is_named_with_the_command_that_changes_it() {
        for (id, file, bad, good) in [
            ("write-throttling", "wbt_lat_usec", "500", "0"),
            ("merges", "nomerges", "2", "0"),
            ("merges", "nomerges", "1", "0"),
            ("queue-depth", "nr_requests", "4", "128"),
            ("transfer-size", "max_sectors_kb", "64", "1280"),
            ("completion-cpu", "rq_affinity", "0", "1"),
            ("read-ahead", "read_ahead_kb", "4", "128"),
            ("statistics", "iostats", "0", "1"),
        ] {
            let checks = checked("nvme0n1", &[(file, bad)]);
            let worse: Vec<&Check> =
                checks.iter().filter(|check| check.state != State::Fine).collect();
            assert_eq!(worse.len(), 1, "{file}: {checks:?}");
            assert_eq!((worse[0].id.as_str(), worse[0].state), (id, State::Advice));
            let wanted = format!("echo {good} > /sys/block/nvme0n1/queue/{file}");
            assert_eq!(command(worse[0]), wanted);
            assert_eq!(worse[0].evidence[0].value, bad);
            assert!(worse[0].costs.is_some() && !worse[0].sources.is_empty(), "{:?}", worse[0]);
        }
    }

    #[test]
    fn a_throttle_that_is_off_or_unknown_to_the_kernel_throttles_nothing() {
        assert_eq!(
            state(&checked("sda", &[("wbt_lat_usec", "0")]), "write-throttling"),
            Some(State::Fine)
        );
        assert_eq!(
            state(&checked("sda", &[("wbt_lat_usec", "")]), "write-throttling"),
            Some(State::Fine)
        );
        assert_eq!(
            state(&checked("sda", &[("wbt_lat_usec", "75000")]), "write-throttling"),
            Some(State::Fine)
        );
    }

    #[test]
    fn requests_as_long_as_the_disk_itself_likes_are_fine() {
        let chosen = [("max_sectors_kb", "512"), ("optimal_io_size", "524288")];
        assert_eq!(state(&checked("sda", &chosen), "transfer-size"), Some(State::Fine));
        let small = [("max_sectors_kb", "124"), ("max_hw_sectors_kb", "124")];
        assert_eq!(state(&checked("sda", &small), "transfer-size"), Some(State::Fine));
    }

    #[test]
    fn where_there_is_no_queue_to_look_at_that_is_said_once() {
        let fake = Fake::new();
        fake.disk("sda", &[]);
        let checks = checks(&fake.world("sda"));
        assert_eq!(checks.len(), 1);
        assert_eq!((checks[0].id.as_str(), checks[0].state), ("queue", State::Unknown));
        assert!(checks[0].because.as_ref().unwrap().contains("/sys/block/sda/queue"));
    }
}
