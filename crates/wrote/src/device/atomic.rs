//! Atomic writes: after a power loss, each is either complete or absent (`RWF_ATOMIC`,
//! `pwritev2(2)`).

use super::examine;
use super::target::{Target, version};
use crate::error::{Action, Error, Tried};
use rustix::fs::{AtFlags, StatxFlags};
use std::fs::File;
use std::path::Path;

/// `STATX_WRITE_ATOMIC` of `linux/stat.h`, which rustix does not name.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);

/// The limits of atomic writes to a file opened with
/// [`FileOptions::atomic`](crate::FileOptions::atomic). After a power loss, an atomic write is
/// either complete or absent.
///
/// The length of an atomic write is a power of two, and divides the write's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AtomicWrites {
    /// The minimum length, in bytes.
    pub bytes_min: u32,
    /// The maximum length, in bytes.
    pub bytes_max: u32,
    /// The maximum length that the device itself writes atomically, in bytes; 0 if it can't. XFS
    /// performs longer ones by writing to newly allocated blocks and then changing its map, which
    /// costs a journal entry (Linux 6.16).
    pub device_bytes_max: u32,
    /// The maximum number of buffers in one write.
    pub segments_max: u32,
}

impl AtomicWrites {
    /// Returns the limits of atomic writes to the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with `EOPNOTSUPP` and the reason if atomic writes are not supported; also
    /// with the reason if the file can't be examined.
    pub fn of(path: impl AsRef<Path>) -> Result<AtomicWrites, Error> {
        let path = path.as_ref();
        let file = File::open(path).tried(path, Action::Open)?;
        AtomicWrites::or_refused(path, atomic_writes(&file, &examine(path)?))
    }

    pub(crate) fn or_refused(
        path: &Path,
        found: Result<AtomicWrites, String>,
    ) -> Result<AtomicWrites, Error> {
        found.map_err(|because| Error::Refused {
            path: path.to_owned(),
            because: format!("there are no atomic writes here: {because}"),
            errno: libc::EOPNOTSUPP,
        })
    }
}

/// Returns the limits of atomic writes to an open `file` of `target`, or the reason why there are
/// none.
///
/// They come from `statx(2)` with `STATX_WRITE_ATOMIC`, which supports block devices since Linux
/// 6.11, files on ext4 and XFS since 6.13, and XFS without the device's help since 6.16. The
/// device's limit is `atomic_write_unit_max_bytes` of its queue.
pub fn atomic_writes(file: &File, target: &Target) -> Result<AtomicWrites, String> {
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC)
        .map_err(|errno| format!("statx: {errno}"))?;
    if found.stx_atomic_write_unit_max == 0 {
        let release = rustix::system::uname();
        return Err(why_not(target, &release.release().to_string_lossy()));
    }
    let bytes_max = found.stx_atomic_write_unit_max;
    let of_device = target.device.as_ref().map_or(0, |device| device.atomic_write_bytes_max);
    Ok(AtomicWrites {
        bytes_min: found.stx_atomic_write_unit_min,
        bytes_max,
        device_bytes_max: bytes_max.min(u32::try_from(of_device).unwrap_or(u32::MAX)),
        segments_max: found.stx_atomic_write_segments_max,
    })
}

/// Returns the reason why a kernel of this `release` does not support atomic writes on `target`.
fn why_not(target: &Target, release: &str) -> String {
    let filesystem = target.filesystem.as_str();
    let Some(since) = first_kernel(filesystem) else {
        return format!("{filesystem} has none; ext4 and XFS have");
    };
    if version(release).is_some_and(|kernel| kernel < since) {
        let (major, minor) = since;
        return format!("Linux {major}.{minor} and later have them, and this is {release}");
    }
    let device = match &target.device {
        Err(because) => return because.clone(),
        Ok(device) => &device.name,
    };
    let none = format!("the device {device} promises none");
    match filesystem {
        "xfs" if version(release) < Some((6, 16)) => {
            format!("{none}, and XFS makes them by itself since Linux 6.16")
        }
        "xfs" => format!("{none}, and this XFS cannot write to a new place (reflink=0)"),
        _ => format!("{none}; XFS makes them by itself since Linux 6.16"),
    }
}

/// Returns the version of the first kernel with atomic writes on this file system.
fn first_kernel(filesystem: &str) -> Option<(u32, u32)> {
    match filesystem {
        "none" => Some((6, 11)),
        "ext4" | "xfs" => Some((6, 13)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::BlockDevice;
    use crate::file::Disk;

    fn place(filesystem: &str) -> Target {
        let device = Ok(BlockDevice { name: "sda".into(), ..BlockDevice::default() });
        Target { filesystem: filesystem.into(), device, ..Target::default() }
    }

    #[test]
    fn the_reason_names_what_is_missing() {
        for (filesystem, release, reason) in [
            ("btrfs", "6.18.1", "btrfs has none"),
            ("ext4", "6.12.3", "Linux 6.13 and later"),
            ("none", "6.10", "Linux 6.11 and later"),
            ("ext4", "6.18.1", "the device sda promises none"),
            ("xfs", "6.15", "since Linux 6.16"),
            ("xfs", "6.18", "reflink=0"),
        ] {
            let told = why_not(&place(filesystem), release);
            assert!(told.contains(reason), "{filesystem} on {release}: {told}");
        }
        let nowhere = Target { device: Err("no device".into()), ..place("ext4") };
        assert_eq!(why_not(&nowhere, "6.18"), "no device");
    }

    #[test]
    fn a_promised_write_succeeds_and_another_one_fails() {
        // W6: whether or not this file system supports atomic writes, no write falls back to
        // another method.
        try_writes(&tempfile::tempdir_in(".").unwrap());
        let xfs = fixtures::or_skip!(fixtures::Mounted::image("xfs", 320 << 20));
        try_writes(&tempfile::tempdir_in(xfs.path()).unwrap());
    }

    fn try_writes(folder: &tempfile::TempDir) {
        use crate::engine::{FileOptions, Ioengine, Options};
        let path = folder.path().join("data");
        File::create(&path).unwrap().set_len(64 << 10).unwrap();
        let options = FileOptions::new().write(true).direct(true).atomic(true);
        for ioengine in [Ioengine::Psync, Ioengine::IoUring] {
            let told = atomic_writes(&File::open(&path).unwrap(), &examine(&path).unwrap());
            let disk = Disk::open(&Options::new(ioengine, 1, 64 << 10)).unwrap();
            match (disk.open_file(&path, &options), told) {
                (Ok(file), Ok(units)) => {
                    assert_eq!(file.atomic_writes().unwrap(), units);
                    assert_eq!(AtomicWrites::of(&path).unwrap(), units);
                    let mut buffer = disk.lease().unwrap();
                    buffer.set_len(units.bytes_min as usize);
                    file.write(buffer, 0).unwrap();
                    let mut buffer = disk.lease().unwrap();
                    buffer.set_len(3 * units.bytes_min as usize);
                    assert!(file.write(buffer, 0).is_err(), "no power of two");
                }
                (Err(Error::Refused { because, errno, .. }), Err(reason)) => {
                    assert!(because.contains(&reason), "{because}");
                    assert_eq!(errno, libc::EOPNOTSUPP);
                }
                (file, told) => panic!("{file:?}, {told:?}"),
            }
        }
    }
}
