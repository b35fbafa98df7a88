//! The machine during a measurement: its CPUs, its control groups' limits, and the temperature and
//! links of its drives.

pub mod cpu;
mod drive;
pub(crate) mod limits;

pub use drive::{CachedLoop, Drives, Heat, Link};
pub use limits::Throttled;
pub(crate) use limits::{cpus, memory_bytes};

use std::path::Path;
use std::time::Instant;
use wrote::device::BlockDevice;
use wrote_result::document::Limit;

/// The machine's effects on a measurement, from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// The length of the measurement.
    pub elapsed_s: f64,
    /// Stops of this process by a control group's limit of CPU time; `None` where unknown.
    pub cpu_throttled: Option<Throttled>,
    /// The drives before.
    pub before: Drives,
    /// The drives after the run, while they are still warm.
    pub after: Drives,
    /// Whether the kernel was still initialising a new ext4 when the measurement ended.
    pub initialises_ext4: bool,
}

/// The machine's state when a run began.
#[derive(Clone, Debug)]
pub struct Watch {
    began: Instant,
    throttled: Option<Throttled>,
    drives: Drives,
}

impl Watch {
    /// Reads the state of the machine and of the drives below `device`, from a few files of `/proc`
    /// and `/sys`.
    pub fn begin(device: Option<&BlockDevice>) -> Watch {
        let root = Path::new("/");
        Watch {
            began: Instant::now(),
            throttled: limits::throttled(root),
            drives: Drives::look(root, &disks(device)),
        }
    }

    /// Reads the state of the same drives again.
    pub fn end(&self, device: Option<&BlockDevice>) -> Watched {
        let root = Path::new("/");
        let throttled = limits::throttled(root).zip(self.throttled);
        Watched {
            elapsed_s: self.began.elapsed().as_secs_f64(),
            cpu_throttled: throttled.map(|(after, before)| after.since(&before)),
            before: self.drives.clone(),
            after: Drives::look(root, &disks(device)),
            initialises_ext4: is_running(root, LAZY_INIT),
        }
    }
}

/// The kernel's thread that writes the tables of a new ext4 (ext4(5), `init_itable`).
const LAZY_INIT: &str = "ext4lazyinit";

/// Returns whether a process or a thread of the kernel has this name.
fn is_running(root: &Path, name: &str) -> bool {
    let processes = std::fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let mut names = processes.filter_map(|of| std::fs::read(of.path().join("comm")).ok());
    names.any(|found| found.trim_ascii() == name.as_bytes())
}

/// Returns the limits of this process's control groups on the device and on CPUs.
pub fn limits(device: Option<&BlockDevice>) -> Vec<Limit> {
    let root = Path::new("/");
    let number = device.map(|device| (device.major, device.minor));
    let below = disks(device).into_iter().filter_map(|disk| drive::number(root, &disk));
    let mut numbers: Vec<(u32, u32)> = number.into_iter().chain(below).collect();
    numbers.sort_unstable();
    numbers.dedup();
    limits::limits(root, &numbers)
}

/// Returns the kernel's names of the whole disks below a device.
fn disks(device: Option<&BlockDevice>) -> Vec<String> {
    device.map_or_else(Vec::new, |device| match device.disks.as_slice() {
        [] => vec![device.name.clone()],
        disks => disks.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_kernel_is_found_by_its_name() {
        let root = fixtures::folder();
        let process = root.path().join("proc/77");
        std::fs::create_dir_all(&process).unwrap();
        std::fs::write(process.join("comm"), "ext4lazyinit\n").unwrap();
        assert!(is_running(root.path(), LAZY_INIT));
        std::fs::write(process.join("comm"), "ext4-rsv-conver\n").unwrap();
        assert!(!is_running(root.path(), LAZY_INIT));
    }
}
