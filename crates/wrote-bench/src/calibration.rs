//! The calibration: measures the disk's speed in about half a second. This speed decides how many
//! bytes a run may write, and what time is announced. On a slow disk, the calibration continues
//! until the measured speed is steady.

use crate::settings::{
    CALIBRATION_AGAIN_BYTES_MAX, CALIBRATION_SMALL_BYTES_MAX, Common, STREAM_BS_BYTES,
};
use crate::site::{Site, clear};
use crate::stream::{self, Sizes};
use rustix::fs::syncfs;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_jobs::findings::{Burst, FirstTouch};
use wrote_jobs::jobs::Permissions;
use wrote_jobs::machine::{target, watch};
use wrote_result::Error;

/// The maximum time of a stream, not counting its final flush.
pub(crate) const TIME: Duration = Duration::from_millis(250);
/// The minimum times of two streams to be compared. The rates of shorter streams are too imprecise.
const COMPARED_MIN: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(25)];
/// The number of writes in flight, enough to keep most devices busy.
const IODEPTH: u32 = 8;
/// The length of a window of steps. A control group lets the operations of a time slice of this
/// length through at once.
const WINDOW: Duration = Duration::from_millis(100);
/// The maximum number of windows.
const WINDOWS: u32 = 8;
/// If a step takes more than this many times as long as in the previous window, a burst has ended.
const SLOWER: u32 = 2;
/// The maximum number of pairs of short runs in a window, the maximum number of batches of small
/// files in a window, and the number of files in a batch.
const RUNS: u32 = 16;
const BATCHES: u32 = 10;
const FILES: u32 = 50;
/// The size of a short run and of a small file, in bytes.
const SMALL_BYTES: usize = 4 << 10;
const SMALL_FILES: u32 = WINDOWS * (RUNS * 2 + BATCHES * FILES);
const _: () = assert!(SMALL_FILES as u64 * SMALL_BYTES as u64 <= CALIBRATION_SMALL_BYTES_MAX);

/// The time that a run spends on its data and its memory, in addition to its measured time. Short
/// runs spend none.
pub(crate) const BESIDE: Duration = Duration::from_millis(20);

/// Returns the time that a run takes in addition to its measured time.
pub(crate) fn beside(speed: Option<&Calibration>, makes_files: bool) -> Duration {
    speed.unwrap_or(&Calibration::UNKNOWN).beside[usize::from(makes_files)]
}

/// The part of a disk's speed that a plan needs to know, in addition to the time of a short run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing else.
    Flush,
    /// The times needed for small files.
    Files,
    /// The rate of a stream.
    Stream,
}

/// The speed of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// The speed of a direct stream, including its flush; infinite if none was measured.
    pub bytes_per_s: f64,
    /// The number of bytes that the calibration wrote.
    pub written_bytes: u64,
    /// The time that one small write takes, with its flush.
    pub flush: Duration,
    /// The times needed to create a small file, to write it to the device, and to remove it.
    pub file: [Duration; 3],
    /// The time that a run takes in addition to its measured time: on an existing file, and on a
    /// file that the run creates.
    pub beside: [Duration; 2],
    /// The burst that the disk writes faster than its sustained rate, if any.
    pub burst: Option<Burst>,
    /// The rates of writes into new blocks and over written blocks.
    pub first_touch: Option<FirstTouch>,
}

impl Calibration {
    /// The assumed speed of a disk that was not calibrated.
    pub(crate) const UNKNOWN: Calibration = Calibration {
        bytes_per_s: f64::INFINITY,
        written_bytes: 0,
        flush: Duration::from_millis(5),
        file: [Duration::from_micros(100); 3],
        beside: [BESIDE, BESIDE.saturating_mul(2)],
        burst: None,
        first_touch: None,
    };

    /// Measures the disk. All ranks return the slowest of their speeds.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if a write or flush failed.
    pub(crate) fn of(wanted: &[Wanted], site: &Site, common: &Common) -> Result<Self, Error> {
        let most = |time: Duration| {
            let times_per_s = site.least(1.0 / time.as_secs_f64().max(1e-9))?;
            Ok::<_, Error>(Duration::from_secs_f64(1.0 / times_per_s))
        };
        let mut speed = Calibration::UNKNOWN;
        if wanted.contains(&Wanted::Stream) {
            speed = write_stream(site, common)?;
            speed.bytes_per_s = site.least(speed.bytes_per_s)?;
        }
        let [first, new, _, written] = lasting(RUNS, || {
            speed.written_bytes += 2 * SMALL_BYTES as u64;
            short_runs(site)
        })?;
        // Where the number of operations is limited, every flush (of the file, its data, or the
        // folder) waits for the earlier operations.
        speed.flush = most(first.min((first + new) / 3))?;
        speed.beside = [most(written)?, BESIDE + most(first + new)?];
        if wanted.contains(&Wanted::Files) {
            let times = lasting(BATCHES, || {
                speed.written_bytes += u64::from(FILES) * SMALL_BYTES as u64;
                files(site)
            })?;
            for (of, time) in speed.file.iter_mut().zip(times) {
                *of = most(time / FILES)?;
            }
        }
        Ok(speed)
    }

    /// Returns the time needed to write `bytes` as a stream; zero if no stream was measured.
    pub(crate) fn time_of(&self, bytes: u64) -> Duration {
        Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_s).unwrap_or(Duration::MAX)
    }
}

/// Repeats `step` until a window of steps is no longer much slower than the previous window, for at
/// most [`WINDOWS`] windows, and returns the mean times of the step's parts in the last window.
///
/// Thus a burst at the start has ended before the last window, and a single stall is not mistaken
/// for the lasting speed.
fn lasting<const N: usize>(
    steps_max: u32,
    mut step: impl FnMut() -> Result<[Duration; N], Error>,
) -> Result<[Duration; N], Error> {
    let (mut before, mut means) = (Duration::ZERO, [Duration::ZERO; N]);
    for _ in 0..WINDOWS {
        let (mut steps, mut window) = (0, Duration::ZERO);
        means = [Duration::ZERO; N];
        while steps < steps_max && window < WINDOW {
            for (sum, part) in means.iter_mut().zip(step()?) {
                *sum += part;
                window += part;
            }
            steps += 1;
        }
        means = means.map(|sum| sum / steps);
        if !before.is_zero() && window / steps <= before * SLOWER {
            break;
        }
        before = window / steps;
    }
    Ok(means)
}

/// Performs two short runs on one file. Returns, for the first run, the time of the write with its
/// flush and the rest of its time, in which the file is created and removed; then the same two
/// times for the second run.
fn short_runs(site: &Site) -> Result<[Duration; 4], Error> {
    let (files, began) = (site.files("calibration", 1), Instant::now());
    let one = Sizes::one(SMALL_BYTES as u64);
    let first = write_once(&one, &files, site)?.elapsed;
    let begin = Instant::now();
    let again = write_once(&one, &files, site)?.elapsed;
    let second = begin.elapsed();
    clear(&files, site.scratch.path())?;
    Ok([first, began.elapsed() - second - first, again, second - again])
}

/// Creates small files, writes them to the device, and removes them. Returns the times of these
/// parts.
fn files(site: &Site) -> Result<[Duration; 3], Error> {
    let (paths, began) = (site.files("calibration", FILES), Instant::now());
    for path in &paths {
        fs::write(path, [0xa5; SMALL_BYTES]).map_err(Error::at(path, "write"))?;
    }
    let made = began.elapsed();
    let folder = site.scratch.path();
    File::open(folder).and_then(|folder| Ok(syncfs(folder)?)).map_err(Error::at(folder, "sync"))?;
    let written = began.elapsed();
    for path in &paths {
        fs::remove_file(path).map_err(Error::at(path, "unlink"))?;
    }
    Ok([made, written - made, began.elapsed() - written])
}

/// Measures a stream. Its final flush shows the device's speed even if the file system refuses
/// direct I/O. The first part of the stream is then written again, over the same blocks.
///
/// If a single write takes as long as a stream may, and takes as long when it is repeated, it
/// serves as the stream, because a full queue of such writes might take a minute.
fn write_stream(site: &Site, common: &Common) -> Result<Calibration, Error> {
    let bs_bytes = common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
    let bytes = common.calibration_bytes_max().min(target::room_bytes(site.target) / 2);
    let one = Sizes::one(bs_bytes);
    let files = site.files("calibration", 1);
    let mut first = write_once(&one, &files, site)?;
    if first.elapsed >= TIME {
        first = Written { bytes: 2 * bs_bytes, ..write_once(&one, &files, site)? };
    }
    clear(&files, site.scratch.path())?;
    if first.elapsed >= TIME {
        let (bytes_per_s, written_bytes) = (first.bytes_per_s() / 2.0, first.bytes);
        return Ok(Calibration { bytes_per_s, written_bytes, ..Calibration::UNKNOWN });
    }
    let size_bytes = (bytes / bs_bytes).max(1) * bs_bytes;
    let iodepth = common.iodepth.unwrap_or(IODEPTH);
    let sizes = Sizes { size_bytes, iodepth, ..one };
    let written = write_once(&sizes, &files, site)?;
    let size_bytes = written.bytes.min(CALIBRATION_AGAIN_BYTES_MAX) / bs_bytes * bs_bytes;
    let again = (written.elapsed >= COMPARED_MIN[0] && size_bytes > 0)
        .then(|| write_once(&Sizes { size_bytes, ..sizes }, &files, site))
        .transpose()?;
    clear(&files, site.scratch.path())?;
    let is_long = |again: &&Written| again.elapsed >= COMPARED_MIN[1];
    let first_touch = again.as_ref().filter(is_long).map(|again| FirstTouch {
        first_bytes_per_s: written.bytes_per_s(),
        again_bytes_per_s: again.bytes_per_s(),
    });
    // A stall in one of the parts must not hide the limit.
    let limits = watch::limits(site.device());
    let of_limit = |part: &Written| stream::of_limit(&limits, part.bytes, part.elapsed);
    let burst = written.burst.or_else(|| of_limit(&written));
    let burst = burst.or_else(|| again.as_ref().and_then(of_limit));
    Ok(Calibration {
        bytes_per_s: burst.map_or(written.bytes_per_s(), |burst| burst.bytes_per_s),
        written_bytes: first.bytes + written.bytes + again.map_or(0, |again| again.bytes),
        burst,
        first_touch,
        ..Calibration::UNKNOWN
    })
}

/// The result of writing a file for the time of a stream.
struct Written {
    bytes: u64,
    elapsed: Duration,
    burst: Option<Burst>,
}

impl Written {
    fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Writes a file of `sizes` for the time of a stream, over its existing blocks if it has any. The
/// file is kept.
fn write_once(sizes: &Sizes, files: &[PathBuf], site: &Site) -> Result<Written, Error> {
    let job = sizes.fill(sizes.bs_bytes, sizes.iodepth).with(|job| job.pace.runtime = Some(TIME));
    let permissions = Permissions { fill: true, overwrite: true, ..Permissions::default() };
    let group = site.run_jobs(&job.on_each(files, None), permissions, &mut ())?;
    let burst = stream::find(&group.jobs[0].trail);
    Ok(Written { bytes: group.written_bytes(), elapsed: group.elapsed, burst })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs steps that take the given milliseconds, and repeats the last one. Returns the lasting
    /// time of a step and the number of steps taken.
    fn lasts(steps: &[f64]) -> (f64, usize) {
        let mut taken = 0;
        let [lasts, none] = lasting(1000, || {
            taken += 1;
            let ms = steps[taken.min(steps.len()) - 1];
            Ok([Duration::from_secs_f64(ms / 1e3), Duration::ZERO])
        })
        .unwrap();
        assert_eq!(none, Duration::ZERO);
        (lasts.as_secs_f64() * 1e3, taken)
    }

    #[test]
    fn a_steady_pace_is_found_within_two_windows() {
        for ms in [0.5, 2.0, 40.0, 150.0] {
            let (found, steps) = lasts(&[ms]);
            assert!((found / ms - 1.0).abs() < 0.01, "{found} of {ms}");
            assert!(ms * steps as f64 <= 300.0, "{steps} steps of {ms}");
        }
    }

    #[test]
    fn a_burst_at_the_start_is_not_what_lasts() {
        for burst in [3, 30, 90, 150] {
            let (found, _) = lasts(&[vec![1.0; burst], vec![38.0]].concat());
            assert!((found - 38.0).abs() < 1.0, "{found} after {burst}");
        }
    }

    #[test]
    fn operations_let_through_in_batches_have_their_mean_time() {
        // The flush times of a disk limited to 150 operations per second, in slices of 0.1 s.
        let of_a_slice = [[2.5, 0.6, 106.0], [1.7, 16.0, 94.0], [2.6, 11.0, 98.0]].concat();
        let (found, _) = lasts(&of_a_slice.repeat(9));
        assert!((30.0..45.0).contains(&found), "{found}");
    }

    #[test]
    fn a_stall_is_not_what_lasts() {
        for before in [0, 10, 30, 60] {
            let (found, _) = lasts(&[vec![2.0; before], vec![900.0, 2.0]].concat());
            assert!(found < 2.1, "{found} after {before}");
        }
    }
}
