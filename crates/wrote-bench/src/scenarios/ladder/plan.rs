//! Chooses the sizes, the depths and the slice of the runs, so that the ladder takes a dozen
//! seconds.

use super::{NAME, WAYS, Way, Workload};
use crate::calibration::{self, Calibration, Wanted};
use crate::plan::{Call, PART, Plan, RUNS, RowSpec, Within};
use crate::scenarios::reads;
use crate::settings::{Common, STREAM_BS_BYTES};
use crate::stream::{self, Past, Sizes};
use std::time::Duration;
use wrote::device::Target;
use wrote_jobs::data::check_buffers;
use wrote_jobs::findings::Burst;
use wrote_jobs::machine::foreign::SAMPLES_PART;
use wrote_jobs::machine::held_memory::HeldMemory;
use wrote_jobs::machine::host::Memory;
use wrote_jobs::machine::{held_memory, host, target};
use wrote_jobs::rate;
use wrote_result::Error;
use wrote_result::document::{Blocks, Flush, Row, View};

/// The size of a memory page, and of many databases' pages.
const SMALL_BS_BYTES: u64 = 4 << 10;
/// The number of writes in flight on a fast device.
const IODEPTH: u32 = 64;
/// The minimum number of writes in flight that keep a device busy while the thread prepares another
/// write.
const IODEPTH_MIN: u32 = 4;
/// The time within which the device must complete the writes in flight, so that a run stops on
/// time.
const IN_FLIGHT_S: f64 = 0.1;
/// The time in which the disk writes the maximum number of bytes of a stream.
const STREAM_TIME_MAX: Duration = Duration::from_secs(1);
/// The factor between the lengths of streams on a disk with a burst and on any other disk. A
/// control group lets writes through in slices of 0.1 s, so a run's rate may be off by half a
/// slice.
const BURST_TIMES: u32 = 5;
/// The slice of a run, not counting a final flush: enough for many small writes on most disks. With
/// `--within`, it is as long as the time allows.
pub(super) const SLICE: Duration = Duration::from_millis(130);
/// The minimum number of writes per file on a slow disk.
const WRITES_MIN: u64 = 4;
/// The maximum slice with `--within`.
const SLICE_MAX: Duration = Duration::from_secs(5);
/// The time limit of the whole ladder on a slow disk, from the start of `wrote` to its end.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);
/// A time limit that is longer than any run.
const WHOLE: Duration = Duration::from_secs(24 * 3600);
const STREAM_SIZE_BYTES_MAX: u64 = 1 << 30;
const SMALL_SIZE_BYTES_MAX: u64 = 128 << 20;

const QUESTION: &str =
    "How fast does this disk take sequential writes, and what does each method survive?";

/// A validated request, and its amounts on a disk of the calibrated speed; without calibration, on
/// the fastest disk.
#[derive(Clone, Debug)]
pub(crate) struct Amounts {
    pub ways: Vec<&'static Way>,
    runs: u32,
    common: Common,
    numjobs: u32,
    /// The requested time limit, counted from the start of `wrote`.
    within: Option<Duration>,
    /// Whether reads and the writers of one log are measured next.
    is_default: bool,
    /// The time of a run, unless the request sets one.
    slice: Duration,
    /// The burst to use up before runs, if the disk has one.
    pub(super) burst: Option<Burst>,
    /// For each workload, the size of the largest run that leaves enough free space and keeps the
    /// limit of bytes.
    share_bytes: [u64; 2],
    /// The sizes of the runs of streams and of small writes.
    sizes: [Sizes; 2],
    /// The amount of memory to reserve for cached runs, through a file that never reaches the disk.
    pub(super) held_bytes: u64,
}

/// The amounts, and the state of the runs, which the module `rounds` performs.
pub(super) struct Runs {
    pub amounts: Amounts,
    /// The streams that the disk limited, and the number of bytes written to the disk so far.
    pub past: Vec<Past>,
    pub disk_bytes: u64,
    /// Whether the file that the rows of a workload overwrite has been written, for each workload.
    pub filled: [bool; 2],
    /// The memory for the longest cached run.
    pub held: Option<HeldMemory>,
}

/// Plans the requested rows; `None` if there are none.
pub(super) fn plan(call: &Call) -> Result<Option<Plan<'static>>, Error> {
    let amounts = Amounts::new(call, call.within)?;
    let is_sized = amounts.common.size_bytes.is_some() && amounts.common.iodepth.is_some();
    let usual = amounts.limit(WITHIN);
    let mut plan = Plan {
        runs: amounts.runs,
        within: amounts.within.map(|within| amounts.limit(within)),
        space_bytes: amounts.files_bytes() + amounts.held_bytes,
        prepared_bytes: amounts.overwritten_bytes(),
        shares_files: true,
        wants: if is_sized { Wanted::Flush } else { Wanted::Stream },
        ..Plan::new(
            NAME,
            QUESTION,
            amounts.ways.iter().map(|way| amounts.row(way, call.speed)).collect(),
            Runs {
                amounts,
                past: Vec::new(),
                disk_bytes: call.speed.map_or(0, |speed| speed.written_bytes),
                filled: [false; 2],
                held: None,
            },
        )
    };
    if call.within.is_some() {
        // If the disk is faster than calibrated, more rounds fill the time.
        let bytes = plan.written_bytes_max();
        plan.spare_bytes = (bytes / 2).min(call.written_bytes_max().saturating_sub(bytes));
    }
    if plan.within.is_none() && !call.common.has_amount() && plan.time(call.speed) > usual.until {
        plan.within = Some(usual);
    }
    Ok((!plan.rows.is_empty()).then_some(plan))
}

impl Amounts {
    /// Chooses the amounts of the requested rows. Without `within`, requested amounts are measured
    /// without a time limit.
    pub(crate) fn new(call: &Call, within: Option<Duration>) -> Result<Amounts, Error> {
        let is_called = |way: &&Way| call.only.is_empty() || call.names(NAME, way.name);
        let mut amounts = Amounts {
            ways: WAYS.iter().filter(is_called).collect(),
            runs: call.common.runs.unwrap_or(RUNS),
            common: call.common.clone(),
            numjobs: call.common.numjobs.unwrap_or(1),
            within,
            is_default: call.is_default(),
            slice: SLICE,
            burst: call.speed.and_then(|speed| speed.burst),
            share_bytes: [u64::MAX; 2],
            sizes: [Sizes::default(); 2],
            held_bytes: 0,
        };
        amounts.check(call.target)?;
        if let Some(within) = within {
            amounts.slice = amounts.slice_within(within, call.speed);
        }
        amounts.share(call);
        amounts.fit(call)?;
        Ok(amounts)
    }

    /// Returns the specification of a method's row on a disk of this speed.
    fn row(&self, way: &Way, speed: Option<&Calibration>) -> RowSpec {
        let size_bytes = self.sizes_of(way.workload).size_bytes;
        let drained_bytes = self.drained_bytes(way);
        let time = self.time(way.workload);
        let time = if time < WHOLE { time } else { self.slice };
        // A run may write all its bytes before its time has passed, unless each small write waits
        // for the device.
        let is_stream = self.common.rate.is_none() && !way.waits_each();
        let time = match speed.filter(|speed| is_stream && speed.bytes_per_s.is_finite()) {
            Some(speed) => time.min(speed.time_of(size_bytes)),
            None => time,
        };
        RowSpec {
            row: Row {
                name: way.name.into(),
                workload: way.workload.as_str().into(),
                way: way.words.into(),
                view: Some(View::Operations),
                ..Row::default()
            },
            importance: way.importance,
            time,
            beside: speed.map_or(Duration::ZERO, |of| of.time_of(drained_bytes)),
            // The run writes its file once, or the bytes that are due at a rate.
            bytes_max: self
                .due_bytes_max(way.workload)
                .unwrap_or(size_bytes)
                .saturating_add(drained_bytes),
            makes_files: way.blocks != Blocks::Written,
            ..RowSpec::default()
        }
    }

    /// Refuses amounts that can't be measured on this disk.
    fn check(&self, target: &Target) -> Result<(), Error> {
        let least = self.ways.iter().map(|way| self.least_bytes(way.workload)).max().unwrap_or(0);
        if let Some(size) = self.common.size_bytes.filter(|size| *size < least) {
            return Err(Error::Usage(format!(
                "--size: {size} bytes are less than one write of each job: at least {least} bytes"
            )));
        }
        self.common.rate.map_or(Ok(()), |rate| rate.check(self.numjobs, "jobs"))?;
        self.check_memory(host::memory())?;
        for way in self.ways.iter().filter(|way| way.direct) {
            Common::check_direct(self.bs_bytes(way.workload), target)?;
        }
        Ok(())
    }

    /// Refuses buffers that take more than half of the memory.
    fn check_memory(&self, memory: Memory) -> Result<(), Error> {
        let bs = self.ways.iter().map(|way| self.bs_bytes(way.workload)).max().unwrap_or(0);
        let depth = self.common.iodepth.unwrap_or(IODEPTH);
        let buffers = bs.saturating_mul(depth.into()).saturating_mul(self.numjobs.into());
        check_buffers("--bs x --iodepth x --numjobs", buffers, memory)
    }

    /// Returns the slice that makes all runs fill the requested time.
    fn slice_within(&self, within: Duration, speed: Option<&Calibration>) -> Duration {
        let rows = self.ways.len().max(1) as u32;
        let slices: u32 = self.ways.iter().map(|way| self.slices(way.workload)).sum();
        let round = self.limit(within).until.saturating_sub(2 * calibration::TIME) / self.runs;
        let round = round - round / SAMPLES_PART;
        let each = round.saturating_sub(calibration::beside(speed, true) * rows) / slices.max(1);
        each.clamp(SLICE, SLICE_MAX)
    }

    /// Returns the number of slices that a run takes. A stream takes more than one if a burst, or a
    /// time slice of a control group, would be a large part of it.
    fn slices(&self, workload: Workload) -> u32 {
        if self.burst.is_some() && workload == Workload::Stream { BURST_TIMES } else { 1 }
    }

    /// Returns the limit for this requested time.
    fn limit(&self, within: Duration) -> Within {
        let kept = if self.is_default { within / PART * 2 } else { Duration::ZERO };
        Within::new(within, kept, true)
    }

    /// Limits the runs to their shares of the free space and of the bytes that may be written.
    /// Reserves the bytes that use up a burst before runs. If too many bytes would have to be
    /// reserved, the burst remains in the figures.
    fn share(&mut self, call: &Call) {
        let drained: u64 = self.ways.iter().map(|way| self.drained_bytes(way)).sum();
        let mut wear_bytes = call.written_bytes_max();
        if self.is_default {
            let read_bytes = reads::file_bytes_max(call);
            wear_bytes -= wear_bytes / u64::from(PART) + read_bytes;
        }
        let drained = drained * u64::from(self.runs);
        let bytes = stream::reserve(&mut self.burst, drained, wear_bytes);
        let [stream, small] = Workload::ALL.map(|workload| self.files_written(workload));
        // Small writes get at most a quarter, because few of their rows write whole files.
        let small_bytes = match stream {
            0 => bytes,
            _ => (bytes / 4).min(small * SMALL_SIZE_BYTES_MAX),
        };
        // The number of files: the file being written, and the files that are overwritten.
        let files = 1 + self.overwritten().count() as u64;
        let least = self.least_bytes(Workload::Stream).max(1 << 20);
        let room = (target::room_bytes(call.target) / files).max(least);
        let shares = [(bytes - small_bytes) / stream.max(1), small_bytes / small.max(1)];
        self.share_bytes = shares.map(|share| share.min(room));
    }

    /// Returns the number of files of a workload that are written in total. A file that is
    /// overwritten is counted once.
    fn files_written(&self, workload: Workload) -> u64 {
        let rows = self.ways.iter().filter(|way| way.workload == workload).count() as u64;
        let overwritten = self.overwritten().filter(|of| *of == workload).count() as u64;
        rows * u64::from(self.runs) + overwritten
    }

    /// Chooses sizes for a disk of the calibrated speed. Refuses files that don't fit on the disk.
    fn fit(&mut self, call: &Call) -> Result<(), Error> {
        let bytes_per_s = call.speed.map_or(f64::MAX, |speed| speed.bytes_per_s);
        self.sizes = Workload::ALL.map(|workload| self.sizes(workload, bytes_per_s));
        let files_bytes = self.files_bytes();
        target::check_room(files_bytes, self.largest_bytes(Workload::Stream), call.target)?;
        let cached = self.ways.iter().filter(|way| !way.direct);
        let longest = cached.map(|way| self.sizes_of(way.workload).size_bytes).max().unwrap_or(0);
        let spare = target::room_bytes(call.target).saturating_sub(files_bytes);
        self.held_bytes = held_memory::most_bytes(longest.min(spare));
        Ok(())
    }

    /// Returns the workloads with a file that every round overwrites.
    pub(super) fn overwritten(&self) -> impl Iterator<Item = Workload> {
        let is_over = |way: &Way, of| way.workload == of && way.blocks == Blocks::Written;
        Workload::ALL.into_iter().filter(move |of| self.ways.iter().any(|way| is_over(way, *of)))
    }

    fn overwritten_bytes(&self) -> u64 {
        self.overwritten().map(|workload| self.sizes_of(workload).size_bytes).sum()
    }

    /// Returns the maximum total size of the files that exist at the same time, in bytes.
    fn files_bytes(&self) -> u64 {
        let sizes = self.ways.iter().map(|way| self.sizes_of(way.workload).size_bytes);
        self.overwritten_bytes() + sizes.max().unwrap_or(0)
    }

    fn bs_bytes(&self, workload: Workload) -> u64 {
        match workload {
            Workload::Stream => self.common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES),
            Workload::Small => self.common.small_bs_bytes.unwrap_or(SMALL_BS_BYTES),
        }
    }

    /// Returns the number of bytes that all jobs together write if each performs one write.
    fn least_bytes(&self, workload: Workload) -> u64 {
        self.bs_bytes(workload) * u64::from(self.numjobs)
    }

    fn largest_bytes(&self, workload: Workload) -> u64 {
        let usual = match workload {
            Workload::Stream => STREAM_SIZE_BYTES_MAX,
            Workload::Small => SMALL_SIZE_BYTES_MAX,
        };
        // At a rate, a file is at most as long as the bytes that are due. A longer run repeats the
        // file.
        let usual = self.due_bytes_max(workload).map_or(usual, |due| due.min(usual));
        let wanted =
            self.common.size_bytes.unwrap_or(usual.min(self.share_bytes[workload as usize]));
        let least = self.least_bytes(workload);
        (wanted / least).max(1) * least
    }

    /// Returns the maximum number of bytes that are due within a run at a rate; `None` without a
    /// rate.
    fn due_bytes_max(&self, workload: Workload) -> Option<u64> {
        let bs_bytes = self.bs_bytes(workload);
        let due = self.common.rate?.operations_max(bs_bytes, self.time(workload));
        Some(due.saturating_mul(bs_bytes))
    }

    /// Returns the stream that uses up the burst before a run; `None` if the burst would not affect
    /// this method.
    pub(super) fn drain(&self, way: &Way) -> Option<Sizes> {
        let bs_bytes = self.bs_bytes(Workload::Stream);
        let stays_in_memory = !way.direct && way.flush == Flush::None;
        stream::drain(self.burst, bs_bytes).filter(|_| !way.is_of_flushes() && !stays_in_memory)
    }

    fn drained_bytes(&self, way: &Way) -> u64 {
        self.drain(way).map_or(0, |sizes| sizes.size_bytes)
    }

    /// Returns the time limit of a run. A stream of a requested size is written completely. Small
    /// writes of that size, each of them flushed, might take an hour.
    pub(super) fn time(&self, workload: Workload) -> Duration {
        match (self.common.time, workload) {
            (Some(time), _) => time,
            (None, _) if self.common.rate.is_some() => rate::RUN_TIME,
            (None, Workload::Stream) if self.common.size_bytes.is_some() => WHOLE,
            (None, _) => self.slice * self.slices(workload),
        }
    }

    /// Returns the sizes of the runs of a workload.
    pub(super) fn sizes_of(&self, workload: Workload) -> &Sizes {
        &self.sizes[workload as usize]
    }

    /// Returns the sizes of a workload's runs on a device that streams at `bytes_per_s`.
    pub(crate) fn sizes(&self, workload: Workload, bytes_per_s: f64) -> Sizes {
        let least = self.least_bytes(workload);
        // Small writes are seldom faster than a stream, so the bytes that a stream writes in a
        // slice are enough for the slice.
        let time = match workload {
            Workload::Stream => self.time(workload).min(STREAM_TIME_MAX * self.slices(workload)),
            Workload::Small => self.time(workload),
        };
        let wanted = ((bytes_per_s * time.as_secs_f64()) as u64).max(least * WRITES_MIN);
        let largest = self.largest_bytes(workload);
        let is_asked = self.common.size_bytes.is_some() || self.common.rate.is_some();
        // A file that rows overwrite is filled with the blocks of a stream.
        let block = self.least_bytes(Workload::Stream);
        let is_block = block.is_multiple_of(least) && block <= wanted.min(largest);
        let unit = if is_block { block } else { least };
        let size_bytes = match is_asked {
            true => largest,
            false => (wanted / unit).max(1).saturating_mul(unit).min(largest),
        };
        let depth = (bytes_per_s * IN_FLIGHT_S / least as f64) as u32;
        Sizes {
            bs_bytes: self.bs_bytes(workload),
            size_bytes,
            iodepth: self.common.iodepth.unwrap_or(depth.clamp(IODEPTH_MIN, IODEPTH)),
            numjobs: self.numjobs,
            rate: self.common.rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wear;
    use crate::sample::{Asked, place as target};
    use proptest::prelude::*;

    fn request() -> Asked {
        Asked::new("/data".into())
    }

    fn amounts(request: &Asked) -> Result<Amounts, Error> {
        request.plan(&target(1 << 40, 1 << 39), |_, call| Amounts::new(call, None))
    }

    /// Plans the rows for this disk, within a time limit.
    fn planned(
        request: &Asked,
        disk: &Target,
        within_s: Option<u64>,
    ) -> Result<Plan<'static>, Error> {
        let within = within_s.map(Duration::from_secs);
        request.plan(disk, |_, call| Ok(plan(&Call { within, ..*call })?.unwrap()))
    }

    fn disk() -> Target {
        target(1 << 40, 1 << 39)
    }

    fn refusal(request: &Asked) -> String {
        match amounts(request) {
            Err(Error::Usage(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_is_every_row_five_times() {
        let plan = planned(&request(), &disk(), None).unwrap();
        assert_eq!(plan.rows.len(), WAYS.len());
        assert_eq!(plan.runs_total(), 5 * WAYS.len() as u32);
    }

    #[test]
    fn rows_are_called_by_scenario_workload_or_name() {
        let count = |only: &[&str]| {
            let only = only.iter().map(|name| name.to_string()).collect();
            amounts(&Asked { only, ..request() }).unwrap().ways.len()
        };
        assert_eq!(count(&["ladder"]), WAYS.len());
        assert_eq!(count(&["stream"]), 8);
        assert_eq!(count(&["small"]), 9);
        assert_eq!(count(&["small/cached", "small/cached"]), 1);
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        for request in [
            Asked { size_bytes: Some(0), ..request() },
            Asked { size_bytes: Some(4096), ..request() },
            Asked { runs: Some(0), ..request() },
            Asked { iodepth: Some(0), ..request() },
            Asked { iodepth: Some(1 << 20), ..request() },
            Asked { numjobs: Some(0), ..request() },
            Asked { stream_bs_bytes: Some(0), ..request() },
            Asked { small_bs_bytes: Some(1 << 40), ..request() },
        ] {
            assert_eq!(refusal(&request).lines().count(), 1);
        }
    }

    #[test]
    fn a_fast_device_gets_large_deep_runs_and_a_slow_one_small_shallow_ones() {
        // A requested time is an amount, which removes the default limit on bytes.
        let plan = amounts(&Asked { time: Some(Duration::from_millis(300)), ..request() }).unwrap();
        let fast = plan.sizes(Workload::Stream, 5e9);
        assert_eq!((fast.size_bytes, fast.iodepth), (1 << 30, 64));
        let slow = plan.sizes(Workload::Stream, 20e6);
        assert!(slow.size_bytes <= 6_000_000 && slow.iodepth == 4, "{slow:?}");
        let asked = Asked { iodepth: Some(64), size_bytes: Some(1 << 28), ..request() }
            .plan(&target(1 << 40, 1 << 39), |_, call| Amounts::new(call, None));
        let slow = asked.unwrap().sizes(Workload::Stream, 20e6);
        assert_eq!((slow.size_bytes, slow.iodepth), (1 << 28, 64));
    }

    #[test]
    fn a_longer_time_allows_more_bytes_unless_the_wear_was_asked_for() {
        let most = |wear, within_s| {
            let request = Asked { wear, ..request() };
            planned(&request, &disk(), within_s).unwrap().written_bytes_max()
        };
        assert!(most(None, Some(60)) > 3 * most(None, None));
        assert!(most(None, Some(5)) <= Wear::Normal.bytes_max(&disk()));
        assert!(most(Some(Wear::Low), Some(60)) <= 1_000_000_000);
    }

    #[test]
    fn every_row_has_a_place_among_the_important_ones() {
        let places: std::collections::HashSet<usize> =
            WAYS.iter().map(|way| way.importance).collect();
        assert_eq!(places, (0..WAYS.len()).collect());
        let stream = |way: &&Way| way.workload == Workload::Stream;
        assert!(WAYS.iter().filter(stream).any(|way| way.importance < 4));
    }

    #[test]
    fn a_block_that_no_direct_write_can_have_is_refused_before_anything_is_made() {
        let mut disk = target(1 << 40, 1 << 39);
        let mut device = wrote::device::BlockDevice::default();
        device.logical_block_bytes = 512;
        disk.device = Ok(device);
        let plan = |only: &str| {
            let asked = Asked { stream_bs_bytes: Some(3000), only: vec![only.into()], ..request() };
            asked.plan(&disk, |_, call| Amounts::new(call, None))
        };
        let error = plan("stream").unwrap_err().to_string();
        assert_eq!(error, "--bs 3000: must be a multiple of 512 on this disk");
        assert!(plan("stream/cached").is_ok());
    }

    #[test]
    fn all_runs_keep_to_the_limit_of_bytes_and_use_most_of_it() {
        let drive = |bytes: u64| {
            let mut drive = target(1 << 40, 1 << 39);
            let mut device = wrote::device::BlockDevice::default();
            (device.name, device.capacity_bytes) = ("nvme0n1".into(), bytes);
            drive.device = Ok(device);
            drive
        };
        let most = |only: &[&str], wear, bytes| {
            let only = only.iter().map(|name| name.to_string()).collect();
            let asked = Asked { only, wear, ..request() };
            let plan = planned(&asked, &drive(bytes), None).unwrap();
            let calibrated_bytes = asked.request().common.calibrated_bytes_max();
            (plan.written_bytes_max() + calibrated_bytes) as f64 / 1e9
        };
        for only in [&[][..], &["stream"], &["small"], &["stream/cached"]] {
            let usual = most(only, None, 1 << 40);
            assert!(usual <= 10.0, "{only:?}: {usual} GB");
            let small_drive = most(only, None, 100_000_000_000);
            assert!(small_drive <= 1.0, "{only:?}: {small_drive} GB");
            let low = most(only, Some(Wear::Low), 1 << 40);
            assert!(low <= 1.0, "{only:?}: {low} GB");
        }
        assert!(most(&[], None, 1 << 40) > 8.7);
        // A loop device does not consist of flash.
        let mut looped = drive(4 << 30);
        if let Ok(device) = &mut looped.device {
            device.name = "loop0".into();
        }
        assert_eq!(Wear::Normal.bytes_max(&looped), 10_000_000_000);
    }

    #[test]
    fn a_calibrated_run_has_the_bytes_of_its_slice_and_all_of_them_are_announced() {
        let most = planned(&request(), &disk(), None).unwrap().written_bytes_max();
        let flush = Duration::from_millis(5);
        let speed = Calibration { bytes_per_s: 100e6, flush, ..Calibration::default() };
        let plan = request().plan_at(Some(&speed), &disk(), |_, call| plan(call));
        let plan = plan.unwrap().unwrap();
        assert_eq!(plan.rows[0].bytes_max / 1_000_000, 12);
        // 85 runs of 13 MB each, and the two files that are overwritten in place.
        let bytes = plan.written_bytes_max();
        assert!(bytes < most && (1_000_000_000..1_400_000_000).contains(&bytes), "{bytes}");
        assert!(plan.rows.iter().all(|row| row.time <= SLICE && row.time > SLICE * 9 / 10));
    }

    #[test]
    fn a_time_that_was_asked_for_is_filled_with_longer_slices() {
        let slice = |s| planned(&request(), &disk(), Some(s)).unwrap().rows[0].time;
        assert_eq!(slice(10), SLICE);
        assert!((Duration::from_millis(400)..Duration::from_millis(700)).contains(&slice(60)));
    }

    #[test]
    fn buffers_that_would_take_the_memory_are_refused() {
        // W8
        let deep = Asked { iodepth: Some(64), stream_bs_bytes: Some(1 << 30), ..request() };
        match amounts(&deep) {
            Err(Error::Usage(text)) => assert!(text.contains("68.7 GB of buffers"), "{text}"),
            // On a very large machine, 64 GiB are less than half of the memory.
            other => assert!(other.is_ok() && host::memory().bytes >= 128 << 30),
        }
        let usual = amounts(&request()).unwrap();
        let of = |bytes| usual.check_memory(Memory { bytes, whose: "the machine's" });
        assert!(of(1 << 30).is_ok());
        assert!(of(32 << 20).is_err());
    }

    #[test]
    fn a_disk_that_is_too_full_is_refused_and_left_alone() {
        let error = request()
            .plan(&target(10 << 30, 1 << 30), |_, call| Amounts::new(call, None))
            .unwrap_err();
        assert!(
            matches!(&error, Error::Failed(text) if text.contains("must stay free")),
            "{error}"
        );
        let large = Asked { size_bytes: Some(9 << 30), ..request() };
        assert!(
            large.plan(&target(10 << 30, 9 << 30), |_, call| Amounts::new(call, None)).is_err()
        );
    }

    proptest! {
        #[test]
        fn no_run_is_larger_than_was_said_and_every_run_is_whole_writes(
            bytes_per_s in 1e3..1e11,
            numjobs in 1..8_u32,
            bs_log in 9..22_u32,
            free in 1_u64 << 33..1 << 45,
        ) {
            let bs = Some(1_u64 << bs_log);
            let request = Asked {
                numjobs: Some(numjobs), stream_bs_bytes: bs, small_bs_bytes: bs, ..request()
            };
            let disk = target(1 << 45, free);
            let plan = planned(&request, &disk, None).unwrap();
            prop_assert!(plan.space_bytes <= target::budget(1 << 45, free));
            let plan = request.plan(&disk, |_, call| Amounts::new(call, None)).unwrap();
            for workload in [Workload::Stream, Workload::Small] {
                let sizes = plan.sizes(workload, bytes_per_s);
                prop_assert!(sizes.size_bytes <= plan.largest_bytes(workload));
                prop_assert!(sizes.size_bytes > 0);
                prop_assert_eq!(sizes.size_bytes % (sizes.bs_bytes * u64::from(numjobs)), 0);
            }
        }
    }
}
