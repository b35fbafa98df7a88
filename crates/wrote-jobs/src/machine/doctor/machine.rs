//! Checks of the machine as a whole: its page cache, CPUs and clock.

use super::texts::say;
use super::world::World;
use crate::machine::host::SLOW_CLOCKS;
use wrote_result::doctor::Check;
use wrote_result::units;

/// The amount of dirty memory above which a flush can take a long time on any disk.
const DIRTY_BYTES_MAX: u64 = 10_000_000_000;
/// The limit of dirty memory below which writers are throttled all the time.
const DIRTY_BYTES_MIN: u64 = 64_000_000;
/// The maximum age of dirty data that is acceptable. The kernel's default is 30 s, and it checks
/// every 5 s.
const EXPIRE_S_MAX: u64 = 120;
/// The drivers whose `powersave` governor still raises the clock rate under load.
const DYNAMIC_DRIVERS: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

pub(super) fn dirty_pages(world: &World) -> Option<Check> {
    let see = |name: &str| world.root.see(&format!("proc/sys/vm/{name}"));
    let positive = |name: &str| see(name).filter(|found| found.number().unwrap_or(0) > 0);
    let (round, expire) = (see("dirty_writeback_centisecs")?, see("dirty_expire_centisecs")?);
    if round.number() == Some(0) {
        return Some(say(world, "dirty-pages.never", &[]).found([round]));
    }
    let expire_s = expire.unsigned().unwrap_or(0) / 100;
    if expire_s > EXPIRE_S_MAX {
        return Some(say(world, "dirty-pages.late", &[("expire", &expire_s)]).found([expire]));
    }
    if let Some(laptop) = positive("laptop_mode") {
        return Some(say(world, "dirty-pages.laptop", &[]).found([laptop]));
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
    let key = match limit_bytes {
        ..DIRTY_BYTES_MIN => "dirty-pages.few",
        DIRTY_BYTES_MIN..=DIRTY_BYTES_MAX => "dirty-pages.fine",
        _ => "dirty-pages.many",
    };
    let shown = units::bytes(limit_bytes);
    let check = say(world, key, &[("limit", &shown), ("expire", &expire_s)]);
    Some(check.found([limit, available, expire, round]))
}

pub(super) fn governor(world: &World) -> Option<Check> {
    let folder = "sys/devices/system/cpu";
    let is_cpu = |name: &String| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
    let (mut saving, mut any) = (Vec::new(), None);
    for cpu in world.root.names(folder).into_iter().filter(is_cpu) {
        let file = |name: &str| format!("{folder}/{cpu}/cpufreq/{name}");
        let Some(found) = world.root.see(&file("scaling_governor")) else { continue };
        let driver = world.root.text(&file("scaling_driver")).unwrap_or_default();
        if found.value == "powersave" && !DYNAMIC_DRIVERS.contains(&driver.as_str()) {
            saving.push(found.clone());
        }
        any = Some(found);
    }
    let count = saving.len();
    let key = if count > 0 { "cpu-governor.powersave" } else { "cpu-governor.fine" };
    let found = saving.into_iter().next().or(any)?;
    let check = say(world, key, &[("governor", &found.value), ("count", &count)]);
    Some(check.found([found]))
}

pub(super) fn clock_source(world: &World) -> Option<Check> {
    let folder = "sys/devices/system/clocksource/clocksource0";
    let found = world.root.see(&format!("{folder}/current_clocksource"))?;
    if !SLOW_CLOCKS.contains(&found.value.as_str()) {
        return Some(say(world, "clock-source.fine", &[("clock", &found.value)]).found([found]));
    }
    let available = world.root.see(&format!("{folder}/available_clocksource"));
    let list = available.as_ref().map_or("", |available| available.value.as_str());
    let better = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"]
        .into_iter()
        .find(|clock| list.split_whitespace().any(|known| known == *clock));
    let key = if better.is_some() { "clock-source.slow" } else { "clock-source.only" };
    let better = better.unwrap_or_default();
    let check = say(world, key, &[("clock", &found.value), ("better", &better)]);
    Some(check.found([found]).found(available))
}

#[cfg(test)]
mod tests;
