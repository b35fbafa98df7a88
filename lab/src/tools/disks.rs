//! Disks of three kinds for measurements: the machine's own disk, and two slower ones.
//!
//! A slower disk is an ext4 on a loop device. A control group limits its bytes and operations,
//! including write-back: the root group of version 1, or a version 2 group that contains this
//! process. A flush costs the operations that the file system performs for it, and has no
//! additional delay.

use super::failure::{Failure, Tried};
use crate::fixtures::{Group, Loop, Mounted};
use clap::ValueEnum;
use rustix::fs::{major, minor};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const GROUPS: &str = "/sys/fs/cgroup";
/// The file to which a process writes its ID in order to enter a group.
const PROCESSES: &str = "cgroup.procs";
const IMAGE_BYTES: u64 = 24 << 30;

/// A kind of disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum DiskKind {
    /// The machine's own, below the named folder.
    Own,
    /// A cloud volume: 125 MB/s, 3,000 operations per second.
    SlowSsd,
    /// A hard disk, at its inner tracks: 75 MB/s, 150 operations per second.
    HardDisk,
}

#[derive(Clone, Copy)]
struct Limits {
    bytes_per_s: u64,
    operations_per_s: u64,
}

/// A mounted disk of some kind. Dropping it removes it.
#[derive(Debug)]
pub struct Disk {
    // The fields are dropped in this order, so that the unmount is not slowed down.
    _limit: Limit,
    mounted: Mounted,
}

impl fmt::Display for DiskKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no kind is hidden");
        formatter.write_str(value.get_name())
    }
}

impl DiskKind {
    fn limits(self) -> Option<Limits> {
        let (megabytes_per_s, operations_per_s) = match self {
            DiskKind::Own => return None,
            DiskKind::SlowSsd => (125, 3000),
            // A control group can't distinguish a seek from an access to the next block, and counts
            // a sequential stream in units of half a MiB. The rate can therefore not be higher.
            DiskKind::HardDisk => (75, 150),
        };
        Some(Limits { bytes_per_s: megabytes_per_s * 1_000_000, operations_per_s })
    }
}

impl Disk {
    /// Creates a disk, which requires root; `None` for the machine's own disk.
    pub fn make(kind: DiskKind) -> Result<Option<Disk>, Failure> {
        let Some(limits) = kind.limits() else { return Ok(None) };
        let skip = |because| Failure::Skipped(format!("{kind}: {because}"));
        let disk = Loop::attach(IMAGE_BYTES).map_err(skip)?;
        let node = fs::metadata(disk.node()).tried(disk.node().display())?.rdev();
        let mounted = Mounted::disks("ext4", vec![disk]).map_err(skip)?;
        let limit = Limit::set(&format!("{}:{}", major(node), minor(node)), limits)?;
        Ok(Some(Disk { _limit: limit, mounted }))
    }

    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        self.mounted.path()
    }
}

/// The limits on a device in a control group. Dropping the value lifts them.
#[derive(Debug)]
enum Limit {
    /// The lines that lift the limits, for the root group's files of version 1.
    Root(Vec<(PathBuf, String)>),
    /// A version 2 group that contains this process.
    Group { _group: Group },
}

impl Limit {
    fn set(device: &str, limits: Limits) -> Result<Limit, Failure> {
        let Limits { bytes_per_s, operations_per_s } = limits;
        let root = Path::new(GROUPS);
        if root.join("blkio/cgroup.procs").exists() {
            let mosts = [
                ("read_bps", bytes_per_s),
                ("write_bps", bytes_per_s),
                ("read_iops", operations_per_s),
                ("write_iops", operations_per_s),
            ];
            let file = |what| root.join(format!("blkio/blkio.throttle.{what}_device"));
            let lifted = mosts.map(|(what, _)| (file(what), format!("{device} 0")));
            let limit = Limit::Root(lifted.into());
            for (what, most) in mosts {
                fs::write(file(what), format!("{device} {most}")).tried(file(what).display())?;
            }
            return Ok(limit);
        }
        let (bytes, operations) = (bytes_per_s, operations_per_s);
        let limits =
            format!("{device} rbps={bytes} wbps={bytes} riops={operations} wiops={operations}");
        let own = std::process::id().to_string();
        let group = Group::make(root.join(format!("wrote-disk-{own}"))).map_err(Failure::Failed)?;
        // The file is missing if the root group does not delegate the controller.
        let entered = group.write("io.max", &limits).and_then(|()| group.write(PROCESSES, &own));
        entered.map_err(Failure::Failed)?;
        Ok(Limit::Group { _group: group })
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let undone = match self {
            Limit::Root(lines) => lines.iter().try_for_each(|(file, line)| fs::write(file, line)),
            // The group itself is removed afterwards.
            Limit::Group { .. } => {
                fs::write(Path::new(GROUPS).join(PROCESSES), std::process::id().to_string())
            }
        };
        if let Err(error) = undone {
            eprintln!("a limit of a device is left: {error}");
        }
    }
}
