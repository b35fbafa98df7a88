//! Read-only checks that explain why a disk is slow or unsafe.
//!
//! [`examine`] reads `/proc` and `/sys` about a path, its disks, this process and the machine, and
//! opens no file for writing. Each question is a check of its own; `docs/doctor.md` explains them
//! all. A check reports its state with the evidence, the known cost, and the command that changes
//! it. No check changes a setting.

mod cache;
#[cfg(test)]
mod fake;
mod file;
mod layers;
mod limits;
mod machine;
mod mount;
mod partition;
mod process;
mod queue;
mod rotation;
mod shell;
mod space;
mod stack;
#[cfg(test)]
mod tests;
mod trim;
mod world;

use crate::host;
use crate::target::shown_target;
use std::path::Path;
use world::World;
use wrote_result::Error;
use wrote_result::doctor::{Check, Examination, SCHEMA};

/// The stable id of each check, in the order of `docs/doctor.md`.
pub const IDS: [&str; 43] = [
    "scheduler",
    "write-cache",
    "write-throttling",
    "merges",
    "queue-depth",
    "transfer-size",
    "completion-cpu",
    "read-ahead",
    "statistics",
    "rotational",
    "poll-queues",
    "queue",
    "alignment",
    "loop-device",
    "raid",
    "encryption",
    "trim",
    "in-memory",
    "no-block-device",
    "read-only",
    "file-system-errors",
    "mount-sync",
    "mount-discard",
    "mount-atime",
    "mount-barrier",
    "mount-data",
    "mount-allocation",
    "mount-commit",
    "mount-copy-on-write",
    "space",
    "inodes",
    "file-attributes",
    "file-extents",
    "io-uring",
    "locked-memory",
    "disk-limit",
    "cpu-limit",
    "dirty-pages",
    "swap",
    "cpu-governor",
    "huge-pages",
    "clock-source",
    "kernel",
];

/// Examines `path` (a folder, a file or a block device), without a write.
///
/// A fact that cannot be read, without privileges or in a container, becomes a check in
/// [`State::Unknown`](wrote_result::doctor::State::Unknown), never an error.
///
/// # Errors
///
/// [`Error::Failed`] where the path cannot be examined.
pub fn examine(path: &Path) -> Result<Examination, Error> {
    let world = World::of(path)?;
    Ok(Examination {
        schema: SCHEMA.into(),
        examined_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        host: host::host(),
        target: shown_target(&world.target, None),
        checks: checks(&world),
    })
}

/// Returns all checks, the worst first.
fn checks(world: &World) -> Vec<Check> {
    let rooms: [fn(&World) -> Vec<Check>; 13] = [
        queue::checks,
        cache::checks,
        rotation::checks,
        partition::checks,
        layers::checks,
        trim::checks,
        mount::checks,
        space::checks,
        file::checks,
        process::checks,
        limits::checks,
        machine::memory,
        machine::clocks,
    ];
    let mut checks: Vec<Check> = rooms.iter().flat_map(|room| room(world)).collect();
    let place = |check: &Check| IDS.iter().position(|id| *id == check.id);
    checks.sort_by_key(|check| (std::cmp::Reverse(check.state), place(check)));
    checks
}
