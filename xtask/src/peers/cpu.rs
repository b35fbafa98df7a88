//! The machine's processors: what our children used of them, and which one a run is pinned to.

use crate::failure::{Failure, Tried};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::thread::{CpuSet, sched_getaffinity};

/// CPU seconds, user and kernel, of all our children that have ended, with all their threads: also
/// those of the kernel that work for a ring (`getrusage(2)`, `RUSAGE_CHILDREN`).
pub fn children_cpu_s() -> Result<f64, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).tried("getrusage")?;
    let microseconds =
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(microseconds as f64 / 1e6)
}

/// The one processor for runs that are to have one.
pub fn pinned() -> Result<usize, Failure> {
    let allowed = sched_getaffinity(None).tried("sched_getaffinity")?;
    Ok(choice(&allowed))
}

/// The second processor where we may use it: most interrupts go to the first.
fn choice(allowed: &CpuSet) -> usize {
    let all = || (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    all().find(|&cpu| cpu > 0).or_else(|| all().next()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn allowed(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            set.set(cpu);
        }
        set
    }

    #[test]
    fn the_first_processor_is_taken_only_where_it_is_the_only_one() {
        assert_eq!(choice(&allowed(&[0, 1, 2])), 1);
        assert_eq!(choice(&allowed(&[0, 5])), 5);
        assert_eq!(choice(&allowed(&[0])), 0);
    }

    #[test]
    fn a_child_that_has_ended_is_counted() {
        let before = children_cpu_s().expect("getrusage");
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
        assert!(Command::new("sh").args(["-c", script]).status().expect("a shell").success());
        assert!(children_cpu_s().expect("getrusage") > before);
    }
}
