//! The machine while something is measured: its CPUs, what its control groups allow, and the heat and
//! the links of its drives.

pub(crate) mod cgroup;
pub mod cpu;
mod drive;
mod limits;

pub use drive::{CachedLoop, Drives, Heat, Link};
pub use limits::Throttled;

use std::path::Path;
use std::time::Instant;
use wrote::device::BlockDevice;
use wrote_result::document::Limit;

/// What the machine did to what was measured, from the start of the run to its end.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// How long that was, in seconds.
    pub elapsed_s: f64,
    /// How often and how long a control group stopped this process for its use of CPUs; none where
    /// that can't be told.
    pub cpu_throttled: Option<Throttled>,
    /// The drives before.
    pub before: Drives,
    /// The drives after, while they are still warm.
    pub after: Drives,
}

/// The machine as it was when a run began.
#[derive(Clone, Debug)]
pub struct Watch {
    began: Instant,
    throttled: Option<Throttled>,
    drives: Drives,
}

impl Watch {
    /// Looks at the machine and at the drives below this device. Reads some files of `/proc` and `/sys`.
    pub fn begin(device: Option<&BlockDevice>) -> Watch {
        let root = Path::new("/");
        Watch {
            began: Instant::now(),
            throttled: limits::throttled(root),
            drives: Drives::look(root, &disks(device)),
        }
    }

    /// Looks again at the same drives.
    pub fn end(&self, device: Option<&BlockDevice>) -> Watched {
        let root = Path::new("/");
        let throttled = limits::throttled(root).zip(self.throttled);
        Watched {
            elapsed_s: self.began.elapsed().as_secs_f64(),
            cpu_throttled: throttled.map(|(after, before)| after.since(&before)),
            before: self.drives.clone(),
            after: Drives::look(root, &disks(device)),
        }
    }
}

/// What the control groups of this process let the device do, and the CPU.
pub fn limits(device: Option<&BlockDevice>) -> Vec<Limit> {
    let root = Path::new("/");
    let number = device.map(|device| (device.major, device.minor));
    let below = disks(device).into_iter().filter_map(|disk| drive::number(root, &disk));
    let mut numbers: Vec<(u32, u32)> = number.into_iter().chain(below).collect();
    numbers.sort_unstable();
    numbers.dedup();
    limits::limits(root, &numbers)
}

/// The kernel's names of the whole disks that a device is, or lies on.
fn disks(device: Option<&BlockDevice>) -> Vec<String> {
    device.map_or_else(Vec::new, |device| match device.disks.as_slice() {
        [] => vec![device.name.clone()],
        disks => disks.to_vec(),
    })
}
