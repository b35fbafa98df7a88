//! Read-only checks that explain why a disk is slow or unsafe.
//!
//! [`examine`] reads `/proc` and `/sys` for facts about a path, its disks, this process and the
//! machine, and opens no file for writing. Each question is a separate check; `docs/doctor.md`
//! explains all of them. A check reports a state with the evidence, the known cost, and the command
//! that changes the setting. No check changes a setting.

mod disk;
#[cfg(test)]
mod fake;
mod layers;
mod machine;
mod place;
mod process;
mod stack;
#[cfg(test)]
mod tests;
mod texts;
mod world;

use crate::machine::host;
use crate::machine::target::shown_target;
use Subject::{EachDevice, EachDisk, EachPartition, Mount, Whole};
use stack::{Disk, Partition, Stack};
use std::cmp::Reverse;
use std::path::Path;
use world::World;
use wrote_result::Error;
use wrote_result::doctor::{Check, Examination, SCHEMA};

/// The function of a check, by what it examines.
#[derive(Clone, Copy)]
enum Subject {
    /// The path, this process or the machine.
    Whole(fn(&World) -> Option<Check>),
    /// The file system, if the path is on one.
    Mount(fn(&World) -> Option<Check>),
    /// Each whole disk below the path.
    EachDisk(fn(&World, &Disk) -> Option<Check>),
    /// Each whole disk and each layer, identified by name.
    EachDevice(fn(&World, &str) -> Option<Check>),
    /// Each partition below the path.
    EachPartition(fn(&World, &Partition) -> Option<Check>),
}

/// All checks with their stable ids, in the order of `docs/doctor.md`.
const CHECKS: [(&str, Subject); 33] = [
    ("scheduler", EachDisk(disk::scheduler)),
    ("write-cache", EachDisk(disk::write_cache)),
    ("transfer-size", EachDisk(disk::transfer)),
    ("queue", EachDisk(disk::hidden)),
    ("alignment", EachPartition(|world, partition| Some(disk::alignment(world, partition)))),
    ("loop-device", EachDisk(layers::loop_device)),
    ("raid", EachDevice(layers::raid)),
    ("encryption", EachDevice(layers::encryption)),
    ("trim", Whole(layers::trim)),
    ("in-memory", Whole(place::in_memory)),
    ("no-block-device", Whole(place::no_device)),
    ("journal", Mount(place::journal)),
    ("read-only", Mount(place::read_only)),
    ("file-system-errors", Mount(place::errors)),
    ("mount-sync", Mount(|world| Some(place::sync(world)))),
    ("mount-discard", Mount(|world| Some(place::discard(world)))),
    ("mount-atime", Mount(|world| Some(place::atime(world)))),
    ("mount-barrier", Mount(place::barrier)),
    ("mount-data", Mount(|world| Some(place::data(world)))),
    ("mount-commit", Mount(place::commit)),
    ("mount-copy-on-write", Mount(place::copy_on_write)),
    ("atomic-writes", Mount(place::atomic_writes)),
    ("space", Whole(place::space)),
    ("inodes", Whole(place::inodes)),
    ("file-attributes", Whole(place::attributes)),
    ("file-extents", Whole(place::extents)),
    ("io-uring", Whole(|world| Some(process::io_uring(world)))),
    ("locked-memory", Whole(process::locked_memory)),
    ("disk-limit", EachDevice(process::disk_limit)),
    ("cpu-limit", Whole(process::cpu_limit)),
    ("dirty-pages", Whole(machine::dirty_pages)),
    ("cpu-governor", Whole(machine::governor)),
    ("clock-source", Whole(machine::clock_source)),
];

impl Subject {
    fn checks(self, world: &World) -> Vec<Check> {
        let Stack { disks, layers, partitions, .. } = &world.stack;
        let names = || disks.iter().map(|disk| &disk.name).chain(layers);
        match self {
            Mount(_) if matches!(&*world.target.filesystem, "none" | "unknown") => Vec::new(),
            Whole(check) | Mount(check) => Vec::from_iter(check(world)),
            EachDisk(check) => {
                disks.iter().filter_map(|disk| Some(check(world, disk)?.of(&disk.name))).collect()
            }
            EachDevice(check) => {
                names().filter_map(|name| Some(check(world, name)?.of(name))).collect()
            }
            EachPartition(check) => {
                let check = |one: &Partition| Some(check(world, one)?.of(&one.name));
                partitions.iter().filter_map(check).collect()
            }
        }
    }
}

/// Examines `path` (a folder, a file or a block device) without writing.
///
/// If a fact cannot be read, for lack of privileges or in a container, its check is in
/// [`State::Unknown`](wrote_result::doctor::State::Unknown); this is never an error.
///
/// # Errors
///
/// [`Error::Failed`] if the path cannot be examined.
pub fn examine(path: &Path) -> Result<Examination, Error> {
    let world = World::of(path)?;
    Ok(Examination {
        schema: SCHEMA.into(),
        examined_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        host: host::host(),
        target: shown_target(&world.target, world.example.as_deref()),
        checks: checks(&world),
    })
}

/// Returns all checks, worst first, and otherwise in the order of the table.
fn checks(world: &World) -> Vec<Check> {
    let named = |(id, subject): &(&str, Subject)| {
        let checks = subject.checks(world).into_iter();
        checks.map(|check| Check { id: (*id).into(), ..check }).collect::<Vec<_>>()
    };
    let mut checks: Vec<Check> = CHECKS.iter().flat_map(named).collect();
    checks.sort_by_key(|check| Reverse(check.state));
    checks
}
