//! Checks of this process's permissions: io_uring, and locked memory.

use super::shell::sysctl;
use super::world::World;
use wrote_result::doctor::{Change, Check, Evidence};
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
        return Check::fine("io_uring may be used");
    };
    let (culprit, found, change) = who_forbids(world, said);
    let found = found.into_iter().chain([Evidence::new("io_uring_setup(2)", said.clone())]);
    let check = match culprit {
        Some(culprit) => Check::advice(format!("io_uring may not be used: {culprit}")),
        None => {
            Check::unknown("io_uring may not be used", format!("nothing here says by what: {said}"))
        }
    };
    Check { change, ..check }
        .found(found)
        .costs(
            "wrote writes by a pool of threads then, with more context switches and CPU time for \
             each operation.",
        )
        .measured(&world.measure("peak,rand"))
        .source(
            "io_uring_setup(2); kernel: Documentation/admin-guide/sysctl/kernel.rst, \
             io_uring_disabled",
        )
}

/// Returns the known obstacle to io_uring, with the evidence and the change.
fn who_forbids(world: &World, said: &str) -> (Option<String>, Vec<Evidence>, Option<Change>) {
    let disabled = world.root.see("proc/sys/kernel/io_uring_disabled");
    let group = world.root.see("proc/sys/kernel/io_uring_group");
    let seccomp = world.root.line("proc/self/status", "Seccomp:");
    let level = disabled.as_ref().and_then(Evidence::number).unwrap_or(0);
    let risk = "io_uring was the way into the kernel of 60 % of the exploits in Google's bounty \
                programme (security.googleblog.com, June 2023): that is why some forbid it";
    if level > 0 {
        let whom = match level {
            1 => "to all but root and its group",
            _ => "to all",
        };
        let name = "kernel.io_uring_disabled";
        let change = sysctl(name, "0", risk);
        let found = [disabled, group].into_iter().flatten().collect();
        return (Some(format!("{name} forbids it {whom}")), found, Some(change));
    }
    if said.contains("os error 38") {
        let is_old = world.kernel().is_some_and(|version| version < KERNEL_MIN);
        let text = match is_old {
            true => "the kernel is older than Linux 5.1, which brought it",
            false => "the kernel was built without it, or a seccomp filter says so",
        };
        let release = world.root.see("proc/sys/kernel/osrelease");
        let change = Change::how(
            "start a kernel of 5.1 or later, better 6.1, with CONFIG_IO_URING, or the container \
             with a seccomp profile that allows it",
            risk,
        );
        let found = release.into_iter().chain(seccomp).collect();
        return (Some(text.into()), found, Some(change));
    }
    if seccomp.as_ref().and_then(Evidence::number) == Some(SECCOMP_FILTER) {
        let text = "a seccomp filter of this process forbids it, as Docker's default profile does";
        let change = Change::how(
            "start the container with a profile that allows io_uring_setup, io_uring_enter and \
             io_uring_register: docker run --security-opt seccomp=PROFILE.json",
            risk,
        );
        return (Some(text.into()), seccomp.into_iter().collect(), Some(change));
    }
    (None, seccomp.into_iter().collect(), None)
}

pub(super) fn locked_memory(world: &World) -> Option<Check> {
    let limit = world.root.line("proc/self/limits", "Max locked memory")?;
    let mut fields = limit.value.split_whitespace();
    let (soft, hard) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let capabilities = world.root.line("proc/self/status", "CapEff:");
    let has_capability = capabilities
        .as_ref()
        .and_then(|capabilities| u64::from_str_radix(&capabilities.value, 16).ok())
        .is_some_and(|set| set >> CAP_IPC_LOCK & 1 == 1);
    let needed = units::block_size(REGISTERED_BYTES);
    let check = if has_capability {
        Check::fine("memory may be locked without limit (CAP_IPC_LOCK)")
    } else {
        match soft.parse::<u64>() {
            // `unlimited`.
            Err(_) => Check::fine("memory may be locked without limit"),
            Ok(soft_bytes) if soft_bytes >= REGISTERED_BYTES => {
                let may = units::block_size(soft_bytes);
                Check::fine(format!("{may} of memory may be locked"))
            }
            Ok(soft_bytes) => too_little(world, soft_bytes, &needed, &hard),
        }
    };
    check
        .found([limit])
        .found(capabilities)
        .source("getrlimit(2), RLIMIT_MEMLOCK; io_uring_register(2)")
        .into()
}

fn too_little(world: &World, soft_bytes: u64, needed: &str, hard: &str) -> Check {
    let may = units::block_size(soft_bytes);
    let within = hard.parse::<u64>().is_ok_and(|hard_bytes| hard_bytes < LOCKED_KIB << 10);
    let risk = "a program that locks much takes that memory from all others";
    let change = if within {
        Change::how(format!("root alone can raise it over {hard} bytes, as below"), risk)
    } else {
        Change::run(format!("ulimit -l {LOCKED_KIB}"), risk)
    };
    let text = format!(
        "only {may} of memory may be locked, and a stream registers {needed} with io_uring"
    );
    Check::advice(text)
        .costs(
            "Buffers are not registered then, and the kernel pins and unpins their pages for each \
             write.",
        )
        .measured(&world.measure("peak"))
        .change(change.lasting(format!(
            "memlock in /etc/security/limits.conf, in KiB ({LOCKED_KIB}); LimitMEMLOCK=128M in a \
             service of systemd; --ulimit memlock=134217728 for Docker"
        )))
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
