//! The machine during a measurement: its CPUs, the limits of its control groups, and the
//! temperature and links of its drives.

pub mod cpu;
mod drive;
pub(crate) mod limits;

pub use drive::{CachedLoop, Drives, Heat, Link};
pub use limits::Throttled;
pub(crate) use limits::{cpus, memory_bytes};

use std::fs::DirEntry;
use std::path::Path;
use std::time::Instant;
use wrote::device::BlockDevice;
use wrote_result::document::Limit;

/// The machine's effects on a measurement, from start to end.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// The duration of the measurement, in seconds.
    pub elapsed_s: f64,
    /// How often a control group's limit on CPU time stopped this process; `None` if unknown.
    pub cpu_throttled: Option<Throttled>,
    /// The drives before the measurement.
    pub before: Drives,
    /// The drives right after the measurement, while they are still warm.
    pub after: Drives,
    /// Whether the kernel was still initialising a new ext4 file system when the measurement ended.
    pub initialises_ext4: bool,
}

/// The machine's state when a measurement began.
#[derive(Clone, Debug)]
pub struct Watch {
    began: Instant,
    throttled: Option<Throttled>,
    drives: Drives,
}

impl Watch {
    /// Reads the state of the machine, and of the drives below `device`, from a few files in
    /// `/proc` and `/sys`.
    pub fn begin(device: Option<&BlockDevice>) -> Watch {
        let root = Path::new("/");
        Watch {
            began: Instant::now(),
            throttled: limits::throttled(root),
            drives: Drives::look(root, &disks(device)),
        }
    }

    /// Reads the state of the machine and the drives again, and returns it with the earlier state.
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

/// The kernel thread that writes the tables of a new ext4 file system (ext4(5), `init_itable`).
const LAZY_INIT: &str = "ext4lazyinit";

/// The kernel's `PF_KTHREAD`, in field 9 of `/proc/PID/stat` (proc_pid_stat(5)).
const OF_THE_KERNEL: u64 = 0x0020_0000;

/// Returns whether a kernel thread with this name is running. Names alone do not suffice, because
/// any process can choose one.
fn is_running(root: &Path, name: &str) -> bool {
    let threads = std::fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let is_it = |of: DirEntry| {
        let stat = std::fs::read_to_string(of.path().join("stat")).ok()?;
        // The name is in parentheses, and field 3 follows the last closing parenthesis.
        let (before, after) = stat.rsplit_once(") ")?;
        let flags: u64 = after.split(' ').nth(9 - 3)?.parse().ok()?;
        Some(before.split_once(" (")?.1 == name && flags & OF_THE_KERNEL > 0)
    };
    threads.filter_map(is_it).any(|is_it| is_it)
}

/// Returns the limits that this process's control groups set on the device and on CPUs.
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
    fn a_thread_of_the_kernel_is_found_by_its_name_and_no_process_that_took_it() {
        let root = fixtures::folder();
        let thread = root.path().join("proc/77");
        std::fs::create_dir_all(&thread).unwrap();
        let runs = |name: &str, flags: &str| {
            let stat = format!("77 ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 5");
            std::fs::write(thread.join("stat"), stat).unwrap();
            is_running(root.path(), LAZY_INIT)
        };
        assert!(runs("ext4lazyinit", "2129984"));
        assert!(!runs("ext4-rsv-conver", "2129984"));
        assert!(!runs("ext4lazyinit", "4194304"), "a process of that name");
        assert!(!runs("a) (ext4lazyinit", "2129984"));
    }
}
