//! Tests that harmful settings of the machine are reported, and that usual settings are not.

use super::*;
use crate::machine::doctor::fake::{Fake, checks_of, command, only, state};
use wrote_result::doctor::State;

fn checks(world: &World) -> Vec<Check> {
    checks_of(world, &["dirty-pages", "cpu-governor", "clock-source"])
}

/// Returns a machine with 16 GiB of available memory and the kernel's default settings.
fn usual() -> Fake {
    let fake = Fake::new();
    for (file, content) in [
        ("dirty_writeback_centisecs", "500"),
        ("dirty_expire_centisecs", "3000"),
        ("dirty_ratio", "20"),
        ("dirty_bytes", "0"),
        ("laptop_mode", "0"),
    ] {
        fake.file(&format!("proc/sys/vm/{file}"), content);
    }
    fake.file("proc/meminfo", "MemTotal: 20000000 kB\nMemAvailable:   16777216 kB");
    fake.file(&format!("{CLOCK}/current_clocksource"), "tsc");
    fake.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil");
    fake.disk("sda", &[]);
    fake
}

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";

fn all(fake: &Fake) -> Vec<Check> {
    let world = fake.world("sda");
    checks(&world)
}

#[test]
fn a_machine_as_the_kernel_sets_it_up_is_fine() {
    let checks = all(&usual());
    assert_eq!(checks.len(), 3, "{checks:?}");
    assert!(checks.iter().all(|check| check.state == State::Fine), "{checks:?}");
    let dirty = only(&checks, "dirty-pages");
    assert!(dirty.text.contains("3.44 GB"), "20 % of 16 GiB: {dirty:?}");
}

#[test]
fn each_setting_that_holds_back_is_named() {
    use State::{Advice, Risk};
    for (file, content, id, state) in [
        ("proc/sys/vm/dirty_writeback_centisecs", "0", "dirty-pages", Risk),
        ("proc/sys/vm/dirty_expire_centisecs", "60000", "dirty-pages", Risk),
        ("proc/sys/vm/laptop_mode", "5", "dirty-pages", Advice),
        ("proc/sys/vm/dirty_ratio", "80", "dirty-pages", Advice),
        ("proc/sys/vm/dirty_bytes", "1000000", "dirty-pages", Advice),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet",
            "clock-source",
            Advice,
        ),
        (
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "powersave",
            "cpu-governor",
            Advice,
        ),
    ] {
        let fake = usual();
        fake.file(file, content);
        let checks = all(&fake);
        let worse: Vec<&Check> = checks.iter().filter(|check| check.state != State::Fine).collect();
        assert_eq!(worse.len(), 1, "{file}: {checks:?}");
        assert_eq!((worse[0].id.as_str(), worse[0].state), (id, state), "{file}");
        assert_eq!(worse[0].evidence[0].from, format!("/{file}"));
        assert!(worse[0].change.is_some() && worse[0].costs.is_some(), "{:?}", worse[0]);
    }
}

#[test]
fn a_limit_in_bytes_counts_before_one_in_percent() {
    let fake = usual();
    fake.file("proc/sys/vm/dirty_ratio", "80");
    fake.file("proc/sys/vm/dirty_bytes", "500000000");
    assert_eq!(state(&all(&fake), "dirty-pages"), Some(State::Fine));
}

#[test]
fn powersave_of_a_driver_that_raises_the_clock_by_itself_is_fine() {
    let fake = usual();
    fake.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
    fake.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate");
    assert_eq!(state(&all(&fake), "cpu-governor"), Some(State::Fine));
}

#[test]
fn a_slow_clock_is_answered_with_the_faster_one_that_there_is() {
    let fake = usual();
    fake.file(&format!("{CLOCK}/current_clocksource"), "acpi_pm");
    fake.file(&format!("{CLOCK}/available_clocksource"), "hpet acpi_pm");
    assert!(only(&all(&fake), "clock-source").change.as_ref().unwrap().commands.is_empty());
    fake.file(&format!("{CLOCK}/available_clocksource"), "tsc hpet acpi_pm");
    let checks = all(&fake);
    assert_eq!(
        command(only(&checks, "clock-source")),
        format!("echo tsc > /{CLOCK}/current_clocksource")
    );
}

#[test]
fn a_machine_that_shows_nothing_is_not_judged() {
    let world = Fake::new().world_without_device();
    assert!(checks(&world).is_empty());
}
