//! Measures which method makes a write durable faster, and reports which writes are atomic.

use super::{BUFFER_BYTES, Disk, DiskBuffer};
use crate::device::AtomicWrites;
use crate::engine::FileOptions;
use crate::error::{Action, Error, Tried};
use crate::staged::beside;
use std::path::Path;
use std::time::Instant;

/// The maximum number of blocks in the measured file. Both methods write to each block in turn.
const BLOCKS_MAX: u32 = 8;

/// The best method of writing durably to the files of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calibrated {
    /// Whether a write becomes durable sooner with RWF_DSYNC than with `fdatasync(2)`, for
    /// [`DirectFile::set_dsync`](super::DirectFile::set_dsync).
    pub dsync: bool,
    /// The limits of atomic writes to files of the folder, for [`FileOptions::atomic`]; `None` if
    /// they are not supported. [`AtomicWrites::of`] then returns the reason.
    pub atomic_writes: Option<AtomicWrites>,
}

/// Returns whether RWF_DSYNC had the lower median time. If the medians are equal, returns true,
/// because RWF_DSYNC needs only a single call.
fn dsync_is_faster([mut dsync_ns, mut fdatasync_ns]: [Vec<u64>; 2]) -> bool {
    median(&mut dsync_ns) <= median(&mut fdatasync_ns)
}

/// Returns the middle sample, or the mean of the two middle ones.
fn median(samples: &mut [u64]) -> u64 {
    samples.sort_unstable();
    samples[(samples.len() - 1) / 2].midpoint(samples[samples.len() / 2])
}

/// Measures whether a write of `write_bytes` in `folder`, a folder on a real disk, becomes durable
/// sooner with RWF_DSYNC than with `fdatasync(2)`, and determines the limits of atomic writes
/// there. Each method performs `rounds` writes (at least one), alternating with the other method,
/// over flushed blocks of a new file, directly if the file system supports that. The file is
/// unlinked before the first write, so that it can't be left behind.
///
/// With either method, the first write to a block costs more than later ones.
///
/// # Errors
///
/// [`Error::File`] if the file can't be created, removed, written or flushed; [`Error::Alignment`]
/// if the file system does not support direct writes of `write_bytes`; [`Error::TooLong`] if
/// `write_bytes` exceeds the size of the disk's buffers.
///
/// ```
/// use wrote::engine::Options;
/// use wrote::{Disk, FileOptions, Ioengine, file::calibrate};
///
/// # let folder = tempfile::tempdir()?;
/// let disk = Disk::open(&Options::new(Ioengine::IoUring, 8, 64 << 10))?;
/// let here = calibrate(&disk, folder.path(), 4096, 16)?;
/// let is_atomic = here.atomic_writes.is_some_and(|of| of.bytes_min <= 4096);
///
/// let options = FileOptions::new().create_new(true).write(true).direct(true).atomic(is_atomic);
/// let file = disk.open_file(folder.path().join("data"), &options)?;
/// file.set_dsync(here.dsync);
/// let mut buffer = disk.lease()?;
/// buffer.set_len(4096);
/// file.write_durable(buffer, 0)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn calibrate(
    disk: &Disk,
    folder: impl AsRef<Path>,
    write_bytes: usize,
    rounds: u32,
) -> Result<Calibrated, Error> {
    let (folder, write_bytes) = (folder.as_ref(), write_bytes.max(1));
    let options = FileOptions::new().create_new(true).write(true).direct(true);
    let place = folder.join("calibration");
    let (path, file) = beside(&place, |path| disk.open_file(path, &options))?;
    // Examining the file needs its path, which the next line removes.
    let atomic_writes = file.atomic_writes().ok();
    std::fs::remove_file(&path).tried(&path, Action::Remove)?;
    let len_max = disk.buffer_bytes();
    if write_bytes > len_max {
        return Err(Error::TooLong {
            path,
            action: Action::Write,
            offset: Some(0),
            len: write_bytes,
            len_max: len_max as u64,
            limit: BUFFER_BYTES,
        });
    }
    let rounds = rounds.max(1);
    let blocks = rounds.min(BLOCKS_MAX);
    // The blocks are written and flushed first, so that a measured write changes only data.
    for block in 0..blocks {
        let buffer = filled(disk, write_bytes, u32::MAX - block)?;
        file.write(buffer, u64::from(block) * write_bytes as u64)?;
    }
    file.sync_all()?;
    let mut times_ns = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for dsync in in_turn(round) {
            file.set_dsync(dsync);
            // The bytes differ each time, so that the device must write them.
            let buffer = filled(disk, write_bytes, 2 * round + u32::from(dsync))?;
            let offset = u64::from(round % blocks) * write_bytes as u64;
            let start = Instant::now();
            file.write_durable(buffer, offset)?;
            times_ns[usize::from(!dsync)].push(start.elapsed().as_nanos() as u64);
        }
    }
    file.close()?;
    Ok(Calibrated { dsync: dsync_is_faster(times_ns), atomic_writes })
}

/// Returns the order of the two methods in a round. It alternates, so that neither always follows
/// the other.
fn in_turn(round: u32) -> [bool; 2] {
    let dsync_first = round.is_multiple_of(2);
    [dsync_first, !dsync_first]
}

/// Leases a buffer and fills it with pseudorandom bytes that depend on the seed (xorshift;
/// Marsaglia: Xorshift RNGs, 2003).
fn filled(disk: &Disk, write_bytes: usize, seed: u32) -> Result<DiskBuffer, Error> {
    let mut buffer = disk.lease()?;
    buffer.set_len(write_bytes);
    let mut state = u64::from(seed) << 1 | 1;
    for bytes in buffer.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.copy_from_slice(&state.to_le_bytes()[..bytes.len()]);
    }
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Ioengine, Options};

    #[test]
    fn the_way_with_the_smaller_median_is_chosen_whatever_the_outliers() {
        let of = |dsync: &[u64], fdatasync: &[u64]| {
            dsync_is_faster([dsync.to_vec(), fdatasync.to_vec()])
        };
        assert!(of(&[10, 11, 9000], &[20, 21, 1]));
        assert!(!of(&[20, 21, 1], &[10, 11, 9000]));
        assert!(of(&[5, 5], &[5, 5]), "one call is less than two");
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_two() {
        assert_eq!(median(&mut [40, 10, 30, 20]), 25);
        assert_eq!(median(&mut [30, 10, 20]), 20);
    }

    #[test]
    fn each_way_comes_first_as_often_as_the_other() {
        // M8
        assert_eq!(in_turn(0), [true, false]);
        assert_eq!(in_turn(1), [false, true]);
        assert_eq!(in_turn(2), in_turn(0));
    }

    #[test]
    fn a_calibration_measures_both_ways_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(&Options::new(Ioengine::Threads, 2, 8192)).unwrap();
        calibrate(&disk, folder.path(), 8192, 5).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(disk.buffers_free(), 2);
    }

    #[test]
    fn a_calibration_tells_the_atomic_writes_as_a_file_does() {
        let told = |folder: &Path| {
            let disk = Disk::open(&Options::new(Ioengine::Psync, 1, 4096)).unwrap();
            let found = calibrate(&disk, folder, 4096, 1).unwrap().atomic_writes;
            let file = folder.join("data");
            std::fs::write(&file, "text").unwrap();
            assert_eq!(found, AtomicWrites::of(&file).ok());
            std::fs::remove_file(&file).unwrap();
        };
        told(tempfile::tempdir_in(".").unwrap().path());
        let xfs = fixtures::or_skip!(fixtures::Mounted::image("xfs", 320 << 20));
        told(xfs.path());
    }

    #[test]
    fn a_calibration_that_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(&Options::new(Ioengine::Psync, 1, 4096)).unwrap();
        let error = calibrate(&disk, folder.path(), 4097, 1).unwrap_err();
        assert!(matches!(error, Error::TooLong { len_max: 4096, .. }), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let nowhere = folder.path().join("nowhere");
        assert_eq!(calibrate(&disk, &nowhere, 4096, 1).unwrap_err().errno(), libc::ENOENT);
    }
}
