//! Checks of the machine as a whole: its page cache, swap, CPUs, clock and kernel.

use super::shell::{quoted, sysctl};
use super::world::World;
use crate::host::SLOW_CLOCKS;
use wrote_result::doctor::{Change, Check, Evidence};
use wrote_result::units;

/// Above this amount of dirty memory a flush can take long on any disk.
const DIRTY_BYTES_MAX: u64 = 10_000_000_000;
/// Below this limit of dirty memory, writers are throttled all the time.
const DIRTY_BYTES_MIN: u64 = 64_000_000;
/// The greatest age of dirty data that is fine. The kernel's default is 30 s; it checks every 5 s.
const EXPIRE_S_MAX: u64 = 120;
/// Drivers whose `powersave` still raises the clock under load.
const DYNAMIC_DRIVERS: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];
/// The kernel that introduced STATX_DIOALIGN and IORING_SETUP_DEFER_TASKRUN.
const KERNEL_MIN: (u32, u32) = (6, 1);
/// Features of later kernels for writers.
const LATER: [((u32, u32), &str); 2] =
    [((6, 13), "writes of files that are never torn (RWF_ATOMIC)"), ((6, 14), "RWF_DONTCACHE")];

const VM_DOC: &str = "kernel: Documentation/admin-guide/sysctl/vm.rst";

pub(super) fn dirty_pages(world: &World) -> Option<Check> {
    let see = |name: &str| world.root.see(&format!("proc/sys/vm/{name}"));
    let positive = |name: &str| see(name).filter(|found| found.number().unwrap_or(0) > 0);
    let (round, expire) = (see("dirty_writeback_centisecs")?, see("dirty_expire_centisecs")?);
    if round.number() == Some(0) {
        return Check::risk(
            "no data is written out by itself: unsynced data stays in memory alone",
        )
        .found([round])
        .costs("No speed. A crash loses all that was written since memory last ran short.")
        .change(sysctl(
            "vm.dirty_writeback_centisecs",
            "500",
            "a disk that rests is woken every few seconds",
        ))
        .source(VM_DOC)
        .into();
    }
    let expire_s = expire.unsigned().unwrap_or(0) / 100;
    if expire_s > EXPIRE_S_MAX {
        let text = format!("unsynced data may stay in memory alone for {expire_s} s");
        return Check::risk(text)
            .found([expire])
            .costs("No speed. A crash loses what is younger than that.")
            .change(sysctl(
                "vm.dirty_expire_centisecs",
                "3000",
                "a disk that rests is woken more often",
            ))
            .source(VM_DOC)
            .into();
    }
    if let Some(laptop) = positive("laptop_mode") {
        return Check::advice("laptop mode: writes are held back until the disk is awake anyway")
            .found([laptop])
            .costs("Writes come in bursts, and a crash loses more unsynced data.")
            .change(sysctl("vm.laptop_mode", "0", "a disk that turns rests less"))
            .source("kernel: Documentation/admin-guide/laptops/laptop-mode.rst")
            .into();
    }
    let available = world.root.line("proc/meminfo", "MemAvailable:")?;
    let available_kib: u64 = available.value.split_whitespace().next()?.parse().ok()?;
    let (limit_bytes, limit) = match positive("dirty_bytes") {
        Some(bytes) => (bytes.unsigned()?, bytes),
        None => {
            let ratio = see("dirty_ratio")?;
            (available_kib * 1024 / 100 * ratio.unsigned()?, ratio)
        }
    };
    let shown = units::bytes(limit_bytes);
    let check = if limit_bytes > DIRTY_BYTES_MAX {
        let text = format!(
            "up to {shown} of written data may wait in memory before a writer is held back"
        );
        Check::advice(text)
            .costs(
                "Nothing of direct writes. Through the page cache, the flush after such a pile \
                 waits for all of it, and so does the sync of the file system.",
            )
            .measured(&world.measure("stream"))
            .change(sysctl(
                "vm.dirty_bytes",
                "1000000000",
                "programs that write in bursts are held back sooner; it replaces dirty_ratio",
            ))
    } else if limit_bytes < DIRTY_BYTES_MIN {
        let text =
            format!("a writer through the page cache is held back once {shown} wait in memory");
        Check::advice(text)
            .costs("The page cache can't gather much.")
            .measured(&world.measure("stream"))
            .change(sysctl("vm.dirty_bytes", "1000000000", "a crash loses more unsynced data"))
    } else {
        let text = format!(
            "up to {shown} of written data may wait in memory before a writer is held back, and \
             for {expire_s} s before it is written out"
        );
        Check::fine(text)
    };
    Some(check.found([limit, available, expire, round]).source(VM_DOC))
}

pub(super) fn swap(world: &World) -> Option<Check> {
    if world.stack.disks.is_empty() {
        return None;
    }
    let on_ours = |name: &String| world.stack.disks.iter().any(|disk| disk.name == *name);
    let shared: Vec<_> = world.swaps.iter().filter(|swap| swap.disks.iter().any(on_ours)).collect();
    let Some(used) = shared.iter().find(|swap| swap.used_kib > 0) else {
        let text = if shared.is_empty() {
            "no swap on this disk"
        } else {
            "swap on this disk, and none of it in use"
        };
        return Some(Check::fine(text));
    };
    let size = units::bytes(used.used_kib * 1024);
    let path = quoted(&used.path);
    Check::advice(format!("{size} of memory are swapped to this disk ({})", used.path))
        .found([Evidence::new("/proc/swaps", format!("{} {} KiB used", used.path, used.used_kib))])
        .costs(
            "While memory is short, pages go to and fro on the disk that is written to. How much \
             that takes is not known from here: vmstat 1 shows it (si, so).",
        )
        .change(
            Change::run(
                format!("swapoff {path}"),
                "what is swapped must fit into memory, else processes are killed",
            )
            .lasting("its line in /etc/fstab; better, put swap on another disk"),
        )
        .source("proc_swaps(5); swapoff(8)")
        .into()
}

pub(super) fn huge_pages(world: &World) -> Option<Check> {
    let free = world.root.line("proc/meminfo", "HugePages_Free:");
    let transparent = world.root.see("sys/kernel/mm/transparent_hugepage/enabled");
    let set_aside = free.as_ref().and_then(Evidence::number).unwrap_or(0) > 0;
    let check = match transparent.as_ref().map(Evidence::chosen) {
        _ if set_aside => Check::fine("huge pages are set aside for buffers"),
        Some("always" | "madvise") => Check::fine("buffers may lie in huge pages"),
        Some("never") => Check::advice("buffers lie in pages of 4 KiB: huge pages are off")
            .costs(
                "More work for each buffer that is registered or pinned, and requests of more \
                 pieces.",
            )
            .measured(&world.measure("peak"))
            .change(
                Change::run(
                    "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
                    "none for programs that do not ask for huge pages (madvise(2), MADV_HUGEPAGE)",
                )
                .lasting("transparent_hugepage=madvise on the kernel's command line"),
            ),
        _ => return None,
    };
    check
        .found(transparent)
        .found(free)
        .source("kernel: Documentation/admin-guide/mm/transhuge.rst")
        .into()
}

pub(super) fn governor(world: &World) -> Option<Check> {
    let folder = "sys/devices/system/cpu";
    let cpus = world.root.names(folder).into_iter().filter(|name| {
        name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok())
    });
    let mut saving: Vec<Evidence> = Vec::new();
    let mut any = None;
    for cpu in cpus {
        let Some(found) = world.root.see(&format!("{folder}/{cpu}/cpufreq/scaling_governor"))
        else {
            continue;
        };
        let driver =
            world.root.text(&format!("{folder}/{cpu}/cpufreq/scaling_driver")).unwrap_or_default();
        if found.value == "powersave" && !DYNAMIC_DRIVERS.contains(&driver.as_str()) {
            saving.push(found.clone());
        }
        any = Some(found);
    }
    let Some(first) = saving.first().cloned() else {
        let any = any?;
        let text = format!("the CPUs' clocks are governed by {}", any.value);
        return Some(Check::fine(text).found([any]));
    };
    let count = saving.len();
    let text = format!("powersave keeps {count} of the CPUs at their lowest clock");
    Check::advice(text)
        .found([first])
        .costs("Everything that a CPU does for a write takes longer; small operations most.")
        .measured(&world.measure("rand"))
        .change(
            Change::run(
                "echo schedutil | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
                "more power and heat under load",
            )
            .lasting("cpufreq.default_governor=schedutil on the kernel's command line"),
        )
        .source("kernel: Documentation/admin-guide/pm/cpufreq.rst")
        .into()
}

pub(super) fn clock_source(world: &World) -> Option<Check> {
    let folder = "sys/devices/system/clocksource/clocksource0";
    let found = world.root.see(&format!("{folder}/current_clocksource"))?;
    let available = world.root.see(&format!("{folder}/available_clocksource"));
    if !SLOW_CLOCKS.contains(&found.value.as_str()) {
        let text = format!("time comes from {}", found.value);
        return Some(Check::fine(text).found([found]));
    }
    let list = available.as_ref().map_or("", |available| available.value.as_str());
    let better = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"]
        .into_iter()
        .find(|clock| list.split_whitespace().any(|known| known == *clock));
    let text = format!("time comes from {}, a device that is slow to read", found.value);
    let change = match better {
        Some(clock) => Change::run(
            format!("echo {clock} > /{folder}/current_clocksource"),
            "the kernel left this clock aside, perhaps because it found it unsteady: see dmesg",
        )
        .lasting(format!("clocksource={clock} on the kernel's command line")),
        None => Change::how(
            "the kernel offers no faster clock: dmesg says why it dropped the others",
            "none",
        ),
    };
    Check::advice(text)
        .found([found])
        .found(available)
        .costs(
            "Each look at the clock is a read of that device, which programs that time every \
             operation do twice for each; wrote bench measures what one look takes \
             (clock_read_ns).",
        )
        .measured(&world.measure("rand"))
        .change(change)
        .source("clock_gettime(2); vdso(7); kernel: Documentation/timers/timekeeping.rst")
        .into()
}

pub(super) fn kernel(world: &World) -> Option<Check> {
    let found = world.root.see("proc/sys/kernel/osrelease")?;
    let version = world.kernel()?;
    let missing: Vec<String> = LATER
        .iter()
        .filter(|((major, minor), _)| version < (*major, *minor))
        .map(|((major, minor), what)| format!("{what} came with {major}.{minor}"))
        .collect();
    let release = &found.value;
    let check = if version < KERNEL_MIN {
        Check::advice(format!("Linux {release}: before 6.1"))
            .costs(
                "No word from the kernel what direct writes must be aligned to (STATX_DIOALIGN), \
                 and io_uring interrupts its thread for completions (DEFER_TASKRUN): both came \
                 with 6.1.",
            )
            .measured(&world.measure("rand"))
            .change(Change::how("start a later kernel", "whatever a new kernel brings"))
    } else if missing.is_empty() {
        Check::fine(format!("Linux {release} has all that wrote can use"))
    } else {
        Check::fine(format!("Linux {release}; {}", missing.join("; ")))
    };
    Some(check.found([found]).source("statx(2), io_uring_setup(2), pwritev2(2)"))
}

#[cfg(test)]
mod tests;
