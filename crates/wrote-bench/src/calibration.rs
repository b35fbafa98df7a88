//! The calibration: half a second that measures the disk's speed. The most bytes of a run follow
//! from it; it predicts no run.

use crate::settings::{
    CALIBRATION_AGAIN_BYTES_MAX, CALIBRATION_SAVES_BYTES, Common, STREAM_BS_BYTES,
};
use crate::site::{Site, clear};
use crate::stream::{self, Sizes};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_jobs::findings::{Burst, FirstTouch};
use wrote_jobs::jobs::Permissions;
use wrote_jobs::machine::{target, watch};
use wrote_result::Error;

/// The maximum time of each part of the calibration, without a final flush.
pub(crate) const TIME: Duration = Duration::from_millis(250);
/// Shorter streams are not compared: their rates are too rough.
const COMPARED_MIN: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(25)];
/// Writes in flight: enough to keep most devices busy.
const IODEPTH: u32 = 8;
/// The number of small flushed writes. Their median counts.
const SAVES: usize = 5;
const SAVES_MIN: usize = 3;
/// The number of empty files. Their mean time counts.
const FILES: u32 = 16;
const SAVE_BYTES: usize = CALIBRATION_SAVES_BYTES as usize / SAVES;

/// The time of a run outside its clock, but for flushes: its data, its files and its threads.
pub(crate) const BESIDE: Duration = Duration::from_millis(20);
/// The flushes outside a run's clock, of its folder and of what it removes.
const BESIDE_FLUSHES: u32 = 4;
/// The assumed time of a flush without a calibration, and of making a file.
const USUAL_FLUSH: Duration = Duration::from_millis(5);
const USUAL_CREATE: Duration = Duration::from_micros(100);

/// Returns the time to add to a run for what is outside its clock.
pub(crate) fn beside(speed: Option<&Calibration>) -> Duration {
    BESIDE + speed.map_or(USUAL_FLUSH, |speed| speed.flush) * BESIDE_FLUSHES
}

/// The part of a disk's speed that a plan wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// The time of a flush.
    Flush,
    /// The rate of a stream too.
    Stream,
}

/// The speed of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// The speed of a direct stream, including its flush; infinite if none was measured.
    pub bytes_per_s: f64,
    /// The bytes that the calibration wrote.
    pub written_bytes: u64,
    /// The time of one small write with its flush.
    pub flush: Duration,
    /// The time of making an empty file.
    pub create: Duration,
    /// The bytes that the disk writes faster than its sustained rate, if any.
    pub burst: Option<Burst>,
    /// The rates of new blocks and of written ones.
    pub first_touch: Option<FirstTouch>,
}

impl Calibration {
    /// The assumed speed of a disk that was not calibrated.
    pub(crate) const UNKNOWN: Calibration = Calibration {
        bytes_per_s: f64::INFINITY,
        written_bytes: 0,
        flush: USUAL_FLUSH,
        create: USUAL_CREATE,
        burst: None,
        first_touch: None,
    };

    /// Measures the disk. All ranks use the slowest speed.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if a write or flush failed.
    pub(crate) fn of(wanted: Wanted, site: &Site, common: &Common) -> Result<Calibration, Error> {
        let most = |time: Duration| {
            let times_per_s = site.least(1.0 / time.as_secs_f64().max(1e-9))?;
            Ok::<_, Error>(Duration::from_secs_f64(1.0 / times_per_s))
        };
        let (flush, create) = (most(save(site)?)?, most(create(site)?)?);
        if wanted == Wanted::Flush {
            let written_bytes = CALIBRATION_SAVES_BYTES;
            return Ok(Calibration { written_bytes, flush, create, ..Calibration::UNKNOWN });
        }
        let Stream { bytes_per_s, bytes, burst, first_touch } = write_stream(site, common)?;
        let limits = || watch::limits(site.device());
        let burst = burst.or_else(|| stream::of_limit(&limits(), bytes_per_s));
        let bytes_per_s = burst.as_ref().map_or(bytes_per_s, |burst| burst.bytes_per_s);
        let bytes_per_s = site.least(bytes_per_s)?;
        let written_bytes = bytes + CALIBRATION_SAVES_BYTES;
        Ok(Calibration { bytes_per_s, written_bytes, flush, create, burst, first_touch })
    }

    /// Returns the time to write these bytes as a stream; none if no stream was measured.
    pub(crate) fn time_of(&self, bytes: u64) -> Duration {
        Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_s).unwrap_or(Duration::MAX)
    }
}

/// Returns the median time of a small write with its flush.
fn save(site: &Site) -> Result<Duration, Error> {
    let path = site.file("calibration", 0);
    let failed = |error: io::Error| Error::Failed(format!("{}: {error}", path.display()));
    let mut file = File::create_new(&path).map_err(failed)?;
    let (began, mut times) = (Instant::now(), Vec::new());
    // A single stall is not the disk's flush.
    while times.len() < SAVES && (times.len() < SAVES_MIN || began.elapsed() < TIME) {
        let before = Instant::now();
        file.write_all(&[0xa5; SAVE_BYTES]).and_then(|()| file.sync_data()).map_err(failed)?;
        times.push(before.elapsed());
    }
    clear([&path], site.scratch.path())?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Returns the mean time of making an empty file.
fn create(site: &Site) -> Result<Duration, Error> {
    let paths = site.files("calibration", FILES);
    let began = Instant::now();
    for path in &paths {
        File::create_new(path).map_err(Error::at(path, "create"))?;
    }
    let each = began.elapsed() / FILES;
    clear(&paths, site.scratch.path())?;
    Ok(each)
}

struct Stream {
    bytes_per_s: f64,
    /// Written in all.
    bytes: u64,
    burst: Option<Burst>,
    first_touch: Option<FirstTouch>,
}

/// Measures a stream. The flush at its end shows the device's speed where the file system refuses
/// direct I/O. Its first part is then written once more, over the same blocks.
///
/// If the first write takes as long as a stream may, it is the stream: a full queue might take a
/// minute.
fn write_stream(site: &Site, common: &Common) -> Result<Stream, Error> {
    let bs_bytes = common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
    let bytes = common.calibration_bytes_max().min(target::room_bytes(site.target) / 2);
    let one = Sizes { bs_bytes, size_bytes: bs_bytes, iodepth: 1, numjobs: 1, rate: None };
    let files = site.files("calibration", 1);
    let first = write_once(&one, &files, site)?;
    clear(&files, site.scratch.path())?;
    if first.elapsed >= TIME {
        let (bytes_per_s, bytes) = (first.bytes_per_s(), first.bytes);
        return Ok(Stream { bytes_per_s, bytes, burst: None, first_touch: None });
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
    Ok(Stream {
        bytes_per_s: written.bytes_per_s(),
        bytes: first.bytes + written.bytes + again.map_or(0, |again| again.bytes),
        burst: written.burst,
        first_touch,
    })
}

/// A file written for the time of a stream.
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

/// Writes a file of `sizes` for the time of a stream, over the blocks that it has, if any. It
/// stays.
fn write_once(sizes: &Sizes, files: &[PathBuf], site: &Site) -> Result<Written, Error> {
    let job = sizes.fill(sizes.bs_bytes, sizes.iodepth).with(|job| job.pace.runtime = Some(TIME));
    let permissions = Permissions { fill: true, overwrite: true, ..Permissions::default() };
    let group = site.run_jobs(&job.on_each(files, None), permissions, &mut ())?;
    let burst = stream::find(&group.jobs[0].trail);
    Ok(Written { bytes: group.written_bytes(), elapsed: group.elapsed, burst })
}
