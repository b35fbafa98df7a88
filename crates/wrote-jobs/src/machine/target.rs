//! The target of a run: whether files can be created there, how much space there is, and its
//! description for the result.

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;
use wrote::device::{BlockDevice, Target};
use wrote_result::units::{bytes, exact};
use wrote_result::{Error, document as result};

/// Returns the block device below the target; `None` if there is none.
pub fn device_of(target: &Target) -> Option<&BlockDevice> {
    target.device.as_ref().ok()
}

/// Describes a target for the result, with the alignment that `file` on this target requires.
pub fn shown_target(target: &Target, file: Option<&File>) -> result::Target {
    let alignment = file.and_then(|file| wrote::device::alignment(file, target));
    let atomic = file.and_then(|file| wrote::device::atomic_writes(file, target).ok());
    result::Target {
        path: target.path.display().to_string(),
        filesystem: target.filesystem.clone(),
        mount_options: target.mount_options.clone(),
        capacity_bytes: target.capacity_bytes,
        free_bytes: target.free_bytes,
        dio_offset_align_bytes: alignment.map(|(offset_bytes, _)| offset_bytes),
        dio_memory_align_bytes: alignment.map(|(_, memory_bytes)| memory_bytes),
        atomic_write_bytes_min: atomic.map(|units| units.bytes_min),
        atomic_write_bytes_max: atomic.map(|units| units.bytes_max),
        atomic_write_device_bytes_max: atomic.map(|units| units.device_bytes_max),
        has_journal: target.has_journal,
        device: device_of(target).map(shown),
        no_device_because: target.device.as_ref().err().cloned(),
        limits: Vec::new(),
    }
}

fn shown(device: &BlockDevice) -> result::Device {
    result::Device {
        name: device.name.clone(),
        disks: device.disks.clone(),
        model: device.model.clone(),
        capacity_bytes: device.capacity_bytes,
        rotational: device.rotational,
        scheduler: device.scheduler.clone(),
        logical_block_bytes: device.logical_block_bytes,
        physical_block_bytes: device.physical_block_bytes,
        optimal_io_bytes: Some(device.optimal_io_bytes).filter(|bytes| *bytes > 0),
        write_cache: device.write_cache.clone(),
        fua: device.fua,
        io_poll: device.io_poll,
        nr_requests: device.nr_requests,
    }
}

/// The file systems on which only the kernel creates files. To root, their folders look writable.
const OF_THE_KERNEL: [&str; 10] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "proc",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Returns the metadata of a path that a user named, following links.
///
/// # Errors
///
/// [`Error::Usage`] if the path does not exist, and otherwise [`Error::Failed`]; both on one line.
pub fn examined(path: &Path) -> Result<Metadata, Error> {
    std::fs::metadata(path).map_err(|error| unexamined(path, &error))
}

/// Returns the error for a path that a user named and that the kernel could not examine or read.
pub fn unexamined(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => Error::Usage(format!("{shown}: does not exist")),
        ErrorKind::NotADirectory => Error::Usage(format!("{shown}: a part of the path is a file")),
        _ => Error::Failed(format!("{shown}: can't be examined: {error}")),
    }
}

/// Fails if no file can be created in an existing folder, as far as the kernel can tell without
/// creating one.
pub fn check_new(folder: &Path) -> io::Result<()> {
    check_file_system(folder)?;
    match accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(errno @ (Errno::ACCESS | Errno::ROFS)) => Err(errno.into()),
        // Older container runtimes answer EPERM to every newer system call.
        _ => Ok(()),
    }
}

/// Fails if only the kernel creates files in the folder, or on its file system. In `/dev`, root
/// could create a file by mistyping the name of a device, and the file would occupy memory until
/// the next boot.
pub fn check_file_system(folder: &Path) -> io::Result<()> {
    let is_dev = std::fs::canonicalize(folder).is_ok_and(|folder| folder == Path::new("/dev"));
    let name = match wrote::device::examine(folder).map(|target| target.filesystem) {
        _ if is_dev => "/dev".to_owned(),
        Ok(name) if OF_THE_KERNEL.contains(&name.as_str()) => name,
        _ => return Ok(()),
    };
    Err(io::Error::other(format!("only the kernel creates files in {name}")))
}

/// The used share above which a file system is nearly full.
pub const USED_SHARE_MAX: f64 = 0.85;

/// The maximum space to keep free on a file system.
const KEPT_BYTES_MAX: u64 = 5 << 30;

/// Returns the number of bytes to keep free: 10 % of the capacity or 5 GiB, whichever is smaller.
fn kept(capacity_bytes: u64) -> u64 {
    capacity_bytes.div_ceil(10).min(KEPT_BYTES_MAX)
}

/// Returns the number of bytes that a run's files may occupy on a file system of `capacity_bytes`
/// with `free_bytes` free. 10 % of the capacity or 5 GiB, whichever is smaller, must stay free.
pub fn budget(capacity_bytes: u64, free_bytes: u64) -> u64 {
    free_bytes.saturating_sub(kept(capacity_bytes))
}

/// Returns the number of bytes that a run's files may occupy on the target. There is no limit if
/// the capacity is unknown (some FUSE file systems report 0).
pub fn room_bytes(target: &Target) -> u64 {
    if target.capacity_bytes == 0 {
        return u64::MAX;
    }
    budget(target.capacity_bytes, target.free_bytes)
}

/// Refuses a run whose files would together occupy `wanted_bytes` and leave too little free space.
///
/// `size_bytes` is `--size` or its default. The message of [`Error::Failed`] suggests a smaller
/// size, assuming that `wanted_bytes` grows in proportion to it. Does not refuse a file system of
/// unknown capacity (some FUSE file systems report 0).
pub fn check_room(wanted_bytes: u64, size_bytes: u64, target: &Target) -> Result<(), Error> {
    let (capacity, free) = (target.capacity_bytes, target.free_bytes);
    let budget = budget(capacity, free);
    if capacity == 0 || wanted_bytes <= budget {
        return Ok(());
    }
    let left = match free.checked_sub(wanted_bytes) {
        Some(left) if left > 0 => bytes(left),
        _ => "nothing".into(),
    };
    let share = u128::from(size_bytes) * u128::from(budget) / u128::from(wanted_bytes.max(1));
    let way_out = match rounded_down(share as u64) {
        0 => "Free some space first".into(),
        size_bytes => format!("Use --size {} or less", exact(size_bytes)),
    };
    Err(Error::Failed(format!(
        "{}: {} of files would leave {left} free of {}, but at least {} must stay free. {way_out}",
        target.path.display(),
        bytes(wanted_bytes),
        bytes(capacity),
        bytes(kept(capacity)),
    )))
}

/// Rounds down to at most two significant digits. Returns 0 below 1 MB, which is too small for a
/// measurement.
pub fn rounded_down(size_bytes: u64) -> u64 {
    if size_bytes < 1_000_000 {
        return 0;
    }
    let unit = 10_u64.pow(size_bytes.ilog10() - 1);
    size_bytes / unit * unit
}

#[cfg(test)]
mod access_tests {
    use super::*;

    #[test]
    fn no_file_can_be_created_in_a_file_system_of_the_kernel() {
        for (folder, name) in
            [("/dev", "/dev"), ("/proc", "proc"), ("/proc/self/fd", "proc"), ("/sys", "sysfs")]
        {
            let error = check_new(Path::new(folder)).unwrap_err().to_string();
            assert_eq!(error, format!("only the kernel creates files in {name}"));
        }
        check_new(tempfile::tempdir().unwrap().path()).unwrap();
    }

    #[test]
    fn a_path_that_leads_nowhere_is_wrong_usage() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(examined(&file).unwrap().is_file());
        for (path, because) in [
            (folder.path().join("missing"), "does not exist"),
            (file.join("below"), "a part of the path is a file"),
        ] {
            let error = examined(&path).unwrap_err();
            assert!(matches!(error, Error::Usage(_)), "{error:?}");
            assert_eq!(error.to_string(), format!("{}: {because}", path.display()));
        }
    }
}

#[cfg(test)]
mod space_tests {
    use super::*;
    use proptest::prelude::*;
    use wrote_result::units::parse_size;

    const GB: u64 = 1_000_000_000;

    fn target(capacity_bytes: u64, free_bytes: u64) -> Target {
        crate::sample::place(capacity_bytes, free_bytes)
    }

    fn refusal(wanted: u64, size: u64, target: &Target) -> String {
        check_room(wanted, size, target).unwrap_err().to_string()
    }

    #[test]
    fn a_tenth_or_five_gib_stays_free_whichever_is_smaller() {
        assert_eq!(budget(10 * GB, 4 * GB), 3 * GB);
        assert_eq!(budget(1000 * GB, 100 * GB), 100 * GB - (5 << 30));
        assert_eq!(budget(10 * GB, GB), 0);
        assert_eq!(budget(10 * GB, GB / 2), 0);
    }

    #[test]
    fn a_run_that_fits_is_not_refused() {
        assert!(check_room(3 * GB, 3 * GB, &target(10 * GB, 4 * GB)).is_ok());
        assert!(check_room(3 * GB + 1, 3 * GB, &target(10 * GB, 4 * GB)).is_err());
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused_with_a_size_that_does() {
        assert_eq!(
            refusal(3 * GB, 3 * GB, &target(10 * GB, 3_520_000_000)),
            "/data: 3.00 GB of files would leave 520 MB free of 10.0 GB, but at least 1.00 GB must \
             stay free. Use --size 2500M or less"
        );
        // Each file occupies half of the space.
        let twice = refusal(3 * GB, 3 * GB / 2, &target(10 * GB, 2 * GB));
        assert!(
            twice.ends_with(
                "would leave nothing free of 10.0 GB, but at least 1.00 GB must stay free. \
            Use --size 500M or less"
            ),
            "{twice}"
        );
    }

    #[test]
    fn on_a_full_disk_no_size_is_recommended() {
        let full = refusal(GB, GB, &target(10 * GB, GB / 2));
        assert!(full.ends_with("Free some space first"), "{full}");
    }

    #[test]
    fn a_file_system_that_tells_no_capacity_is_not_refused() {
        assert!(check_room(GB, GB, &target(0, 0)).is_ok());
    }

    proptest! {
        #[test]
        fn the_size_that_is_recommended_fits(
            capacity in 1..1_u64 << 50,
            share in 0.0..1.0_f64,
            size in 1_000_000..1_u64 << 50,
            files in 1..5_u64,
        ) {
            let target = target(capacity, (capacity as f64 * share) as u64);
            if let Err(error) = check_room(size * files, size, &target)
                && let Some((_, rest)) = error.to_string().split_once("--size ")
            {
                let recommended = parse_size(rest.split(' ').next().unwrap()).unwrap();
                prop_assert!(check_room(recommended * files, recommended, &target).is_ok());
            }
        }

        #[test]
        fn the_budget_leaves_enough_free(
            capacity in 1..1_u64 << 50,
            free in 0..1_u64 << 50,
        ) {
            let left = free - budget(capacity, free);
            prop_assert!(left >= (capacity / 10).min(5 << 30).min(free));
        }
    }
}
