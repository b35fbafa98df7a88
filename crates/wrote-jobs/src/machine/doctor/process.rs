//! Checks of this process's permissions: io_uring, and locked memory.

use super::texts::Values;
use super::world::World;
use wrote_result::doctor::{Check, Evidence};
use wrote_result::units;

/// The buffers that `wrote bench` registers for its stream: 64 of 512 KiB. The peak takes up to
/// four times that, a `Log` and a `Writer` 8 MiB.
const REGISTERED_BYTES: u64 = 64 * (512 << 10);
/// The advised limit: room for the largest of these.
const LOCKED_KIB: u64 = 128 << 10;
/// `CAP_IPC_LOCK` of capabilities(7), by its number.
const CAP_IPC_LOCK: u32 = 14;
/// The mode of seccomp(2) with a filter.
const SECCOMP_FILTER: i64 = 2;

/// The kernel that introduced io_uring.
const KERNEL_MIN: (u32, u32) = (5, 1);

pub(super) fn io_uring(world: &World) -> Check {
    let Err(said) = &world.io_uring else {
        return world.say("io-uring.fine", &[]);
    };
    let disabled = world.root.see("proc/sys/kernel/io_uring_disabled");
    let seccomp = world.root.line("proc/self/status", "Seccomp:");
    let level = disabled.as_ref().and_then(Evidence::number).unwrap_or(0);
    let is_old = world.kernel().is_some_and(|version| version < KERNEL_MIN);
    let is_filtered = seccomp.as_ref().and_then(Evidence::number) == Some(SECCOMP_FILTER);
    let is_missing = said.contains("os error 38");
    let key = match () {
        () if level > 0 => "io-uring.disabled",
        () if is_missing && is_old => "io-uring.old",
        () if is_missing => "io-uring.missing",
        () if is_filtered => "io-uring.seccomp",
        () => "io-uring.unknown",
    };
    let found = match () {
        () if level > 0 => [disabled, world.root.see("proc/sys/kernel/io_uring_group")],
        () if is_missing => [world.root.see("proc/sys/kernel/osrelease"), seccomp],
        () => [seccomp, None],
    };
    let whom = if level == 1 { "to all but root and its group" } else { "to all" };
    let check = world.say(key, &[("whom", &whom), ("said", said)]);
    let refusal = Evidence::new("io_uring_setup(2)", said.clone());
    check.found(found.into_iter().flatten()).found([refusal])
}

pub(super) fn locked_memory(world: &World) -> Option<Check> {
    let found = world.root.line("proc/self/limits", "Max locked memory")?;
    let mut fields = found.value.split_whitespace();
    let (soft, hard) = (fields.next()?, fields.next()?);
    let capabilities = world.root.line("proc/self/status", "CapEff:");
    let has_capability = capabilities
        .as_ref()
        .and_then(|capabilities| u64::from_str_radix(&capabilities.value, 16).ok())
        .is_some_and(|set| set >> CAP_IPC_LOCK & 1 == 1);
    let is_hard = hard.parse::<u64>().is_ok_and(|hard_bytes| hard_bytes < LOCKED_KIB << 10);
    // `unlimited` is not a number.
    let soft_bytes = soft.parse::<u64>();
    let key = match soft_bytes {
        _ if has_capability => "locked-memory.capable",
        Err(_) => "locked-memory.unlimited",
        Ok(REGISTERED_BYTES..) => "locked-memory.fine",
        Ok(_) if is_hard => "locked-memory.hard",
        Ok(_) => "locked-memory.soft",
    };
    let may = units::block_size(soft_bytes.unwrap_or(0));
    let needed = units::block_size(REGISTERED_BYTES);
    let values: &Values =
        &[("may", &may), ("needed", &needed), ("hard", &hard), ("limit", &LOCKED_KIB)];
    let check = world.say(key, values);
    Some(check.found([found]).found(capabilities))
}

#[cfg(test)]
mod tests {
    use super::super::checks;
    use super::super::fake::{Fake, command, only};
    use super::*;
    use wrote_result::doctor::State;

    fn ring(said: &str, files: &[(&str, &str)]) -> Check {
        let fake = Fake::new();
        for (file, content) in files {
            fake.file(file, content);
        }
        let mut world = fake.world_without_device();
        world.io_uring = Err(said.into());
        only(&checks(&world), "io-uring").clone()
    }

    const REFUSED: &str = "io_uring_setup: Operation not permitted (os error 1)";
    const FILTER: (&str, &str) =
        ("proc/self/status", "Name:\twrote\nSeccomp:\t2\nSeccomp_filters:\t1");

    #[test]
    fn what_forbids_io_uring_is_named_by_its_evidence() {
        let by_all = ring(REFUSED, &[("proc/sys/kernel/io_uring_disabled", "2"), FILTER]);
        assert_eq!(by_all.state, State::Advice);
        assert!(by_all.text.contains("kernel.io_uring_disabled forbids it to all"));
        assert_eq!(command(&by_all), "sysctl -w kernel.io_uring_disabled=0");
        let by_group = ring(REFUSED, &[("proc/sys/kernel/io_uring_disabled", "1")]);
        assert!(by_group.text.contains("all but root"));
        let by_filter = ring(REFUSED, &[("proc/sys/kernel/io_uring_disabled", "0"), FILTER]);
        assert!(by_filter.text.contains("seccomp"), "{by_filter:?}");
        let missing = "io_uring_setup: Function not implemented (os error 38)";
        let by_age = ring(missing, &[("proc/sys/kernel/osrelease", "4.19.0-25-amd64")]);
        assert!(by_age.text.contains("older than Linux 5.1"), "{by_age:?}");
        let unsaid = ring(missing, &[("proc/sys/kernel/osrelease", "6.18.1"), FILTER]);
        assert!(unsaid.text.contains("built without it, or a seccomp"), "{unsaid:?}");
    }

    #[test]
    fn a_refusal_that_nothing_explains_is_unknown() {
        let check = ring(REFUSED, &[("proc/self/status", "Seccomp:\t0")]);
        assert_eq!(check.state, State::Unknown);
        assert!(check.because.unwrap().contains("Operation not permitted"));
    }

    #[test]
    fn io_uring_that_works_is_fine() {
        let checks = checks(&Fake::new().world_without_device());
        assert_eq!(only(&checks, "io-uring").state, State::Fine);
    }

    fn locked(soft: &str, hard: &str, capabilities: &str) -> Check {
        let fake = Fake::new();
        let limits = format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max locked memory         {soft}              {hard}              bytes     "
        );
        fake.file("proc/self/limits", &limits);
        fake.file("proc/self/status", &format!("CapEff:\t{capabilities}"));
        only(&checks(&fake.world_without_device()), "locked-memory").clone()
    }

    #[test]
    fn too_little_memory_to_lock_is_named() {
        let few = locked("8388608", "unlimited", "0000000000000000");
        assert_eq!(few.state, State::Advice);
        assert_eq!(command(&few), "ulimit -l 131072");
        assert!(few.text.contains("8 MiB") && few.text.contains("32 MiB"), "{few:?}");
        let bound = locked("8388608", "8388608", "0000000000000000");
        assert!(bound.change.unwrap().commands.is_empty(), "it could not be raised that far");
    }

    #[test]
    fn enough_memory_no_limit_or_the_privilege_is_fine() {
        assert_eq!(locked("33554432", "33554432", "0").state, State::Fine);
        assert_eq!(locked("unlimited", "unlimited", "0").state, State::Fine);
        assert_eq!(locked("65536", "65536", "000001ffffffffff").state, State::Fine);
    }
}
