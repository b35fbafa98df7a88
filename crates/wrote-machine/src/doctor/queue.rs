//! Checks of each disk's queue: its scheduler, its throttle, its limits.

use super::shell::set;
use super::stack::{Disk, DiskKind};
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

const QUEUE_DOC: &str = "kernel: Documentation/ABI/stable/sysfs-block";

/// Reports where the queue is hidden; its other checks are then absent.
pub(super) fn hidden(world: &World, disk: &Disk) -> Option<Check> {
    if is_visible(world, disk) {
        return None;
    }
    let folder = format!("/sys/block/{}/queue", disk.name);
    let because = format!("{folder} is not there, or can't be read from here");
    Some(Check::unknown("how requests reach the disk can't be told", because))
}

fn is_visible(world: &World, disk: &Disk) -> bool {
    let files = ["logical_block_size", "rotational"];
    files.iter().any(|file| disk.queue(&world.root, file).is_some())
}

/// A number of a queue, with its rating.
pub(super) struct Knob {
    file: &'static str,
    /// The text if the number is fine; `Err` if another one is advised.
    judge: fn(i64, &Disk) -> Result<String, String>,
    costs: &'static str,
    /// The scenarios that measure the cost.
    measured: Option<&'static str>,
    advised: &'static str,
    risk: &'static str,
}

pub(super) const MERGES: Knob = Knob {
    file: "nomerges",
    judge: |nomerges, _| match nomerges {
        0 => Ok("neighbouring requests are merged".into()),
        1 => Err("neighbouring requests are merged only in the simplest case (nomerges)".into()),
        _ => Err("neighbouring requests are never merged (nomerges)".into()),
    },
    costs: "Writes that lie side by side reach the disk one by one: more commands for the same \
                bytes.",
    measured: Some("stream,small"),
    advised: "0",
    risk: "a little CPU time for each request, to look for its neighbours",
};

pub(super) const DEPTH: Knob = Knob {
    file: "nr_requests",
    judge: |requests, disk| match requests {
        _ if requests >= REQUESTS_MIN || disk.kind == DiskKind::Memory => {
            Ok(format!("{requests} requests may wait for the disk (nr_requests)"))
        }
        _ => Err(format!("only {requests} requests may be on their way at once (nr_requests)")),
    },
    costs: "Whatever depth a program asks for, it gets no more.",
    measured: Some("peak,rand"),
    advised: "128",
    risk: "without a scheduler the kernel refuses more than the disk itself takes; a longer \
               queue can make single requests wait longer",
};

pub(super) const COMPLETION: Knob = Knob {
    file: "rq_affinity",
    judge: |affinity, _| match affinity {
        0 => {
            Err("requests are completed on whatever CPU the interrupt came to (rq_affinity)".into())
        }
        _ => Ok("requests are completed near the CPU that sent them (rq_affinity)".into()),
    },
    costs: "Caches that are cold when the program continues; the kernel's documentation speaks \
                of a significant part of the CPU cycles for some loads, without a figure.",
    measured: Some("rand"),
    advised: "1",
    risk: "one more interrupt between CPUs for a request that was completed elsewhere",
};

pub(super) const READ_AHEAD: Knob = Knob {
    file: "read_ahead_kb",
    judge: |ahead_kib, _| match ahead_kib {
        READ_AHEAD_KIB.. => Ok(format!("{ahead_kib} KiB are read ahead (read_ahead_kb)")),
        _ => Err(format!("only {ahead_kib} KiB are read ahead of a program (read_ahead_kb)")),
    },
    costs: "Nothing of a write. Reads in order through the page cache wait for the disk more \
                often; direct reads do not.",
    measured: Some("ways"),
    advised: "128",
    risk: "programs that read here and there make the disk read what they do not want",
};

pub(super) const STATISTICS: Knob = Knob {
    file: "iostats",
    judge: |iostats, _| match iostats {
        0 => Err("the block layer does not count what reaches the disk (iostats)".into()),
        _ => Ok("the block layer counts what reaches the disk (iostats)".into()),
    },
    costs: "No speed, but what is known: wrote bench can't tell bytes that reached the disk \
                from bytes in memory, and iostat shows nothing.",
    measured: None,
    advised: "1",
    risk: "a little CPU time for each request",
};

impl Knob {
    pub(super) fn check(&self, world: &World, disk: &Disk) -> Option<Check> {
        let found = disk.queue(&world.root, self.file)?;
        let check = match (self.judge)(found.number()?, disk) {
            Ok(text) => return Some(Check::fine(text).found([found])),
            Err(text) => Check::advice(text).costs(self.costs),
        };
        let check = match self.measured {
            Some(scenarios) => check.measured(&world.measure(scenarios)),
            None => check,
        };
        let change = set(disk, self.file, self.advised, self.risk);
        Some(check.found([found]).change(change).source(QUEUE_DOC))
    }
}

pub(super) fn scheduler(world: &World, disk: &Disk) -> Option<Check> {
    let found = disk.queue(&world.root, "scheduler")?;
    let chosen = found.chosen().to_owned();
    let zoned = disk.queue(&world.root, "zoned").is_some_and(|zoned| zoned.value != "none");
    let check = match (disk.kind, chosen.as_str()) {
        (_, "mq-deadline") if zoned => {
            Check::fine("mq-deadline keeps the writes of a zoned disk in order")
        }
        (DiskKind::Turning, "none") => idle_scheduler(disk),
        (DiskKind::Turning, _) => Check::fine(format!("{chosen} on a disk that turns")),
        (_, "none") => Check::fine("none: requests go straight to the disk"),
        (DiskKind::Solid, "mq-deadline" | "kyber") => {
            Check::fine(format!("{chosen} on a disk of flash"))
        }
        (kind, _) => needless_scheduler(world, disk, kind, &chosen),
    };
    Some(check.found([found]).source("kernel: Documentation/block/switching-sched.rst"))
}

fn idle_scheduler(disk: &Disk) -> Check {
    let risk = "a little CPU time for each request";
    Check::advice("none on a disk that turns: its head takes requests as they come")
        .costs(
            "Seeks: the disk sorts only what fits into its own queue, 32 requests on SATA. How \
             much that is depends on the load and was not measured.",
        )
        .change(set(disk, "scheduler", "mq-deadline", risk))
}

fn needless_scheduler(world: &World, disk: &Disk, kind: DiskKind, chosen: &str) -> Check {
    let why = match kind {
        DiskKind::Nvme | DiskKind::Solid => "which has no head to move",
        DiskKind::Virtual => "whose host orders requests again",
        DiskKind::Loop => "whose file's own disk orders requests again",
        DiskKind::Memory | DiskKind::Turning => "which gains nothing by it",
    };
    let text = format!("{chosen} sorts the requests of a {}, {why}", kind.noun());
    let costs = format!(
        "CPU time and a lock for each request: on fast NVMe disks schedulers cost up to 63 % of \
         the throughput (Ren et al., ICPE 2024). {}",
        world.measure("peak,rand")
    );
    let risk = "the kernel no longer shares the disk fairly: where many programs share the disk, \
                one that writes much can delay the reads of others (Kyber and BFQ had 99 % lower \
                P99 then, same paper)";
    Check::advice(text).costs(costs).change(set(disk, "scheduler", "none", risk)).source(
        "Ren, Doekemeijer, Tehrany, Trivedi: BFQ, Multiqueue-Deadline, or Kyber? ICPE 2024, \
             doi:10.1145/3629526.3645053",
    )
}

pub(super) fn throttling(world: &World, disk: &Disk) -> Option<Check> {
    if !is_visible(world, disk) {
        return None;
    }
    let found = disk.queue(&world.root, "wbt_lat_usec");
    let Some(target_us) = found.as_ref().and_then(Evidence::number).filter(|us| *us > 0) else {
        let text = "background writes are not throttled (wbt is off)";
        return Some(Check::fine(text).found(found));
    };
    let yields = format!(
        "background writes give way when reads take longer than {target_us} us (wbt_lat_usec)"
    );
    let check = if target_us < THROTTLE_US {
        Check::advice(format!("{yields}: sooner than the kernel's own 2000 us"))
    } else {
        Check::fine(yields)
    };
    let risk = "reads wait behind the writes that the page cache sends in the background";
    check
        .found(found)
        .costs(
            "Only writes through the page cache, and only while a process reads; direct writes \
             and those of an fsync are not throttled.",
        )
        .measured(&world.measure("stream"))
        .change(set(disk, "wbt_lat_usec", "0", risk))
        .source(QUEUE_DOC)
        .source("kernel: block/blk-wbt.c")
        .into()
}

pub(super) fn transfer(world: &World, disk: &Disk) -> Option<Check> {
    let (found, most) =
        (disk.queue(&world.root, "max_sectors_kb")?, disk.queue(&world.root, "max_hw_sectors_kb")?);
    let (set_kib, hardware_kib) = (found.number()?, most.number()?);
    let optimal_kib = disk.queue_number(&world.root, "optimal_io_size").unwrap_or(0) / 1024;
    let wanted_kib = hardware_kib.min(TRANSFER_KIB);
    // The driver of SCSI disks takes the disk's preferred size (`drivers/scsi/sd.c`).
    if set_kib >= wanted_kib || set_kib == optimal_kib {
        let text = format!("a request may be {set_kib} KiB long (max_sectors_kb)");
        return Some(Check::fine(text).found([found, most]));
    }
    // All pieces but the last have the greatest length.
    let pieces = 1024_u64.div_ceil(set_kib.max(1).unsigned_abs());
    let text = format!(
        "a request may be {set_kib} KiB long, and the disk takes {hardware_kib} KiB \
         (max_sectors_kb)"
    );
    let risk = "longer requests make what waits behind them wait longer";
    Check::advice(text)
        .found([found, most])
        .costs(format!("A write of 1 MiB becomes {pieces} requests."))
        .measured(&world.measure("stream,peak"))
        .change(set(disk, "max_sectors_kb", &wanted_kib.to_string(), risk))
        .source(QUEUE_DOC)
        .into()
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
