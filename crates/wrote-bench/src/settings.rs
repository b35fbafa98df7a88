//! The settings that all scenarios share, and the maximum number of bytes that a measurement
//! writes.

use std::time::Duration;
use wrote::device::Target;
use wrote_jobs::machine::target::device_of;
use wrote_jobs::rate::Rate;
use wrote_result::Error;

const BS_BYTES_MAX: u64 = 1 << 30;
/// The maximum number of bytes that a measurement writes, unless the request sets an amount.
const WEAR_BYTES: u64 = 10_000_000_000;
/// The maximum number of bytes of a calibration's stream, and of the part of it that is written
/// again.
const CALIBRATION_BYTES_MAX: u64 = 256 << 20;
pub(crate) const CALIBRATION_AGAIN_BYTES_MAX: u64 = 64 << 20;
/// The maximum number of bytes in the short runs and small files of a calibration.
pub(crate) const CALIBRATION_SMALL_BYTES_MAX: u64 = 17 << 20;
/// The default block size of a stream. It makes the cost of a call negligible, and keeps latency
/// meaningful.
pub const STREAM_BS_BYTES: u64 = 512 << 10;

/// The drive wear that a measurement may cause: the maximum number of bytes that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wear {
    /// A tenth of `Normal`.
    Low,
    /// 10 GB, or 1 % of the drive if that is less.
    #[default]
    Normal,
}

impl Wear {
    /// Returns the maximum number of bytes that a measurement writes to the disk of `target`.
    ///
    /// The limit of 1 % applies only to drives, because the size of a loop device or a memory disk
    /// has nothing to do with wear.
    pub fn bytes_max(self, target: &Target) -> u64 {
        let is_drive = |name: &str| !["loop", "ram", "zram"].iter().any(|of| name.starts_with(of));
        let drive = device_of(target).filter(|device| is_drive(&device.name));
        let share = drive.map(|device| device.capacity_bytes / 100).filter(|share| *share > 0);
        let normal = share.map_or(WEAR_BYTES, |share| share.min(WEAR_BYTES));
        match self {
            Wear::Low => normal / 10,
            Wear::Normal => normal,
        }
    }
}

/// The settings that all scenarios share. Each scenario chooses the settings that are `None`.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// The number of file bytes of one run, over all its threads.
    pub size_bytes: Option<u64>,
    /// The time limit of a run.
    pub time: Option<Duration>,
    /// The number of runs of each row.
    pub runs: Option<u32>,
    /// The length of a write in a stream.
    pub stream_bs_bytes: Option<u64>,
    /// The length of a small write.
    pub small_bs_bytes: Option<u64>,
    /// The number of writes in flight through io_uring.
    pub iodepth: Option<u32>,
    /// The number of threads, each with a separate file.
    pub numjobs: Option<u32>,
    /// The rate of every workload (M5). Without a rate, each operation starts when the previous one
    /// is acknowledged.
    pub rate: Option<Rate>,
    /// The limit on the total bytes written; if `None`, [`Wear::Normal`], unless the request sets
    /// an amount.
    pub wear: Option<Wear>,
    /// The number of scenarios that share this limit; 0 is treated as 1.
    pub wear_parts: u32,
}

impl Common {
    /// The maximum number of runs of each row.
    pub const RUNS_MAX: u32 = 1000;
    /// The maximum number of writes in flight.
    pub const IODEPTH_MAX: u32 = wrote::engine::Options::IODEPTH_MAX;
    /// The maximum number of threads.
    pub const NUMJOBS_MAX: u32 = 256;

    /// Returns whether the request sets an amount: bytes, time, runs, or a rate.
    pub(crate) fn has_amount(&self) -> bool {
        self.size_bytes.is_some()
            || self.time.is_some()
            || self.runs.is_some()
            || self.rate.is_some()
    }

    /// Returns the maximum number of bytes that a scenario writes; `u64::MAX` if the request sets
    /// an amount but no limit.
    pub(crate) fn written_bytes_max(&self, target: &Target) -> u64 {
        match self.wear {
            None if self.has_amount() => u64::MAX,
            wear => {
                let bytes = wear.unwrap_or_default().bytes_max(target);
                let left = bytes - self.calibrated_bytes_max().min(bytes / 2);
                left / u64::from(self.wear_parts.max(1))
            }
        }
    }

    /// Returns the maximum number of bytes that a calibration writes: short runs and small files, a
    /// block, a stream, and the first part of the stream again.
    pub(crate) fn calibrated_bytes_max(&self) -> u64 {
        let first = self.calibration_bytes_max();
        let bs_bytes = self.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
        CALIBRATION_SMALL_BYTES_MAX + 2 * bs_bytes + first + first.min(CALIBRATION_AGAIN_BYTES_MAX)
    }

    /// Returns the maximum number of bytes of a calibration's stream.
    pub(crate) fn calibration_bytes_max(&self) -> u64 {
        let bs_bytes = self.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
        let bytes = match self.wear {
            Some(Wear::Low) => CALIBRATION_BYTES_MAX / 4,
            _ => CALIBRATION_BYTES_MAX,
        };
        self.size_bytes.map_or(bytes, |size| size.min(bytes)).max(bs_bytes)
    }

    /// Refuses a block size that is invalid for direct writes to the disk of `target`.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`], which names the required unit of the disk.
    pub(crate) fn check_direct(bs_bytes: u64, target: &Target) -> Result<(), Error> {
        let unit = device_of(target).map_or(1, |device| u64::from(device.logical_block_bytes));
        if bs_bytes.is_multiple_of(unit.max(1)) {
            return Ok(());
        }
        Err(Error::Usage(format!("--bs {bs_bytes}: must be a multiple of {unit} on this disk")))
    }

    /// Refuses values beyond their limits.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`], one line long, which names the first such value.
    pub fn check(&self) -> Result<(), Error> {
        let limits = [
            ("numjobs", self.numjobs.map(u64::from), Common::NUMJOBS_MAX.into()),
            ("iodepth", self.iodepth.map(u64::from), Common::IODEPTH_MAX.into()),
            ("runs", self.runs.map(u64::from), Common::RUNS_MAX.into()),
            ("bs", self.stream_bs_bytes, BS_BYTES_MAX),
            ("bs", self.small_bs_bytes, BS_BYTES_MAX),
        ];
        for (name, value, most) in limits {
            value.map_or(Ok(()), |value| positive(name, value, most))?;
        }
        if self.size_bytes == Some(0) {
            return Err(Error::Usage("--size: 0 bytes can't be measured; use 1M or more".into()));
        }
        Ok(())
    }
}

/// Refuses 0 and values above `most`.
///
/// # Errors
///
/// [`Error::Usage`], which names the setting.
pub fn positive(name: &str, value: u64, most: u64) -> Result<(), Error> {
    match value {
        0 => Err(Error::Usage(format!("--{name}: must be 1 or more"))),
        value if value > most => {
            Err(Error::Usage(format!("--{name}: {value} is more than {most}")))
        }
        _ => Ok(()),
    }
}
