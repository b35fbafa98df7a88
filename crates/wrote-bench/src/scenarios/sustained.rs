//! The scenario `sustained`: one long stream of writes, which shows where and how often the disk
//! slows down.

mod change;
mod findings;
#[cfg(test)]
mod made_up;
mod measure;
#[cfg(test)]
mod tests;

use crate::calibration::Wanted;
use crate::plan::{Call, Plan, RowSpec};
use crate::scenario::{Listed, Scenario};
use crate::settings::{Common, STREAM_BS_BYTES};
use crate::stream;
use std::time::Duration;
use wrote::Survives;
use wrote_jobs::data::{buffers_bytes, check_buffers};
use wrote_jobs::findings::Evidence;
use wrote_jobs::machine::target::device_of;
use wrote_jobs::machine::{host, target, watch};
use wrote_jobs::rate::Rate;
use wrote_jobs::spec::{JobSpec, WRITE};
use wrote_result::document::{Answer, Finding, Row, View};
use wrote_result::{Error, units};

/// The divisor of the usable space that gives the space left for the file's metadata.
const SPARE_PART: u64 = 100;
pub(crate) const NAME: &str = "sustained";
const ROW: &str = "sustained/direct-io_uring";
const WORDS: &str = "direct io_uring, nonstop";

const QUESTION: &str = "How fast does this disk take writes for long, and after how many bytes \
    does it slow down?";
const TIME: Duration = Duration::from_secs(60);
/// The maximum rate that is assumed without a size. No drive on four lanes of PCIe 4.0 is faster.
const BYTES_PER_S_MAX: u64 = 8_000_000_000;
/// The file size if the file system does not report its free space.
const FILE_BYTES_UNKNOWN: u64 = 16 << 30;
/// The number of writes in flight. They are 8 MiB in total, enough for a fast drive. A calibration
/// to choose the number would use up part of the burst.
const IODEPTH: u32 = 16;
/// The time for which the device rests before it is measured again.
const IDLE: Duration = Duration::from_secs(10);
/// The maximum time of the second measurement.
const RECOVERED_TIME_MAX: Duration = Duration::from_secs(10);
/// The divisor of the bytes that a measurement may write that gives the bytes left for the second
/// measurement.
const RECOVERED_PART: u64 = 5;
/// The assumed speed if neither a limit nor a calibrated speed is known.
const USUAL_BYTES_PER_S: f64 = 1e9;
/// The minimum number of bytes of a run that is preceded by a calibration. Before a shorter run, a
/// calibration would use up a considerable part of the burst that the run is meant to find.
const CALIBRATED_BYTES_MIN: u64 = 8 << 30;

/// The settings of the scenario `sustained`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Long {
    /// Pause before sustained measures again; 0 skips the second measurement [default: 10s]
    #[cfg_attr(feature = "cli", arg(long, value_name = "TIME", value_parser = units::parse_pause,
        allow_hyphen_values = true))]
    pub idle: Option<Duration>,
}

impl Scenario for Long {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let survives = Some(Survives::ProcessCrash);
        vec![Listed { scenario: NAME, row: ROW, way: WORDS, survives }]
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        Ok(Run::new(self, call)?.map(Run::plan).into_iter().collect())
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        findings::find(evidence)
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        let answer = |row: &Row| {
            let lasting = row.sustained.as_ref()?.sustained_bytes_per_s.median;
            let (question, how) = ("Long writes".into(), WORDS.into());
            let (row, bytes_per_s) = (row.name.clone(), Some(lasting));
            Some(Answer { question, row, how, bytes_per_s, ..Answer::default() })
        };
        evidence.rows.iter().filter(|row| row.name == ROW).filter_map(answer).collect()
    }
}

/// The only run of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    bs_bytes: u64,
    iodepth: u32,
    /// The maximum number of bytes written before the pause.
    size_bytes: u64,
    /// The size of the file. A full file is overwritten from its start.
    file_bytes: u64,
    /// The time after which the run stops, unless its bytes are written sooner.
    time: Option<Duration>,
    rate: Option<Rate>,
    idle: Duration,
    /// The maximum number of bytes of both measurements together; `u64::MAX` without a limit.
    wear_bytes: u64,
    /// The lowest speed known: the requested rate, the limit of a control group, or the calibrated
    /// speed.
    known_bytes_per_s: Option<f64>,
}

impl Run {
    /// Plans the requested row; `None` if it is not requested.
    fn new(asked: &Long, call: &Call) -> Result<Option<Run>, Error> {
        let (request, target) = (call.common, call.target);
        if !call.names(NAME, ROW) {
            return Ok(None);
        }
        let bs_bytes = request.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES).max(1);
        Common::check_direct(bs_bytes, target)?;
        let iodepth = request.iodepth.unwrap_or(IODEPTH).max(1);
        check_buffers("--bs x --iodepth", buffers_bytes(bs_bytes, iodepth), host::memory())?;
        let time = request.time.or(request.size_bytes.is_none().then_some(TIME));
        let size_bytes = match (request.size_bytes, time) {
            (Some(size), _) => size,
            (None, time) => most_bytes(time.unwrap_or(TIME), request.rate, bs_bytes),
        };
        let idle = asked.idle.unwrap_or(IDLE);
        let wear_bytes = request.written_bytes_max(target);
        let kept_bytes = if idle.is_zero() { 0 } else { wear_bytes / RECOVERED_PART };
        let size_bytes = size_bytes.min(wear_bytes - kept_bytes) / bs_bytes * bs_bytes;
        if size_bytes == 0 {
            return Err(Error::Usage(format!(
                "--size: {NAME} needs at least one write, of {}",
                units::block_size(bs_bytes)
            )));
        }
        let budget_bytes = match target.capacity_bytes {
            0 if request.size_bytes.is_some() => u64::MAX,
            0 => FILE_BYTES_UNKNOWN,
            capacity => target::budget(capacity, target.free_bytes),
        };
        // The file's metadata takes space as well.
        let spare_bytes = budget_bytes / SPARE_PART;
        let file_bytes = size_bytes.min(budget_bytes - spare_bytes) / bs_bytes * bs_bytes;
        if file_bytes == 0 {
            target::check_room(bs_bytes, bs_bytes, target)?;
        }
        let device = device_of(target);
        let limit = stream::most_bytes_per_s(&watch::limits(device));
        let asked_for = request.rate.map(|rate| bytes_per_s(rate, bs_bytes));
        let speed = call.speed.map(|speed| speed.bytes_per_s).filter(|speed| speed.is_finite());
        Ok(Some(Run {
            bs_bytes,
            iodepth,
            size_bytes,
            file_bytes,
            time,
            rate: request.rate,
            idle,
            wear_bytes,
            known_bytes_per_s: limit
                .into_iter()
                .chain(asked_for)
                .chain(speed)
                .min_by(f64::total_cmp),
        }))
    }

    /// Returns the plan of the only row.
    fn plan(self) -> Plan<'static> {
        let row = Row {
            name: ROW.into(),
            workload: NAME.into(),
            way: WORDS.into(),
            view: Some(View::Long),
            ..Row::default()
        };
        let bytes_max = match (self.time, self.wear_bytes) {
            (Some(_), u64::MAX) if self.known_bytes_per_s.is_none() => u64::MAX,
            _ => self.size_bytes + self.recovered_bytes_max(),
        };
        let time = self.writing() + self.afterwards_max();
        let row = RowSpec { row, time, bytes_max, ..RowSpec::default() };
        let is_long = self.size_bytes >= CALIBRATED_BYTES_MIN;
        Plan {
            runs: 1,
            space_bytes: self.file_bytes,
            shares_files: true,
            wants: match self.time.is_none() && self.known_bytes_per_s.is_none() && is_long {
                true => Wanted::Stream,
                false => Wanted::Flush,
            },
            ..Plan::new(NAME, QUESTION, vec![row], self)
        }
    }

    /// Returns the job of the stream, without its file.
    fn spec(&self) -> JobSpec {
        JobSpec::new(ROW, WRITE, self.bs_bytes).with(|job| {
            job.io.iodepth = self.iodepth;
            job.files.file_bytes = Some(self.file_bytes);
            (job.pace.io_bytes, job.pace.runtime) = (Some(self.size_bytes), self.time);
            job.pace.write_rate_bytes_per_s = self.rate.and_then(|rate| rate.bytes_per_s());
            job.pace.write_rate_iops = self.rate.and_then(|rate| rate.iops());
            job.pace.rate_process = self.rate.map(|rate| rate.process).unwrap_or_default();
        })
    }

    /// Returns the time limit of the writes before the pause, or an estimate of their time if there
    /// is no limit.
    fn writing(&self) -> Duration {
        let by_size = self.size_bytes as f64 / self.known_bytes_per_s.unwrap_or(USUAL_BYTES_PER_S);
        self.time.unwrap_or(Duration::from_secs_f64(by_size))
    }

    /// Returns the maximum time of the pause and the second measurement.
    fn afterwards_max(&self) -> Duration {
        match self.idle.is_zero() {
            true => Duration::ZERO,
            false => self.idle + RECOVERED_TIME_MAX.min(self.writing() / 2),
        }
    }

    /// Returns the maximum number of bytes that the second measurement writes.
    fn recovered_bytes_max(&self) -> u64 {
        let most = (self.size_bytes / 2).min(self.wear_bytes - self.size_bytes);
        if self.idle.is_zero() { 0 } else { most / self.bs_bytes * self.bs_bytes }
    }
}

fn most_bytes(time: Duration, rate: Option<Rate>, bs_bytes: u64) -> u64 {
    let most = time.as_secs_f64() * BYTES_PER_S_MAX as f64;
    let held = rate.map_or(f64::INFINITY, |rate| {
        // Poisson arrivals may cluster a little.
        2.0 * time.as_secs_f64() * bytes_per_s(rate, bs_bytes)
    });
    most.min(held).max(bs_bytes as f64) as u64
}

fn bytes_per_s(rate: Rate, bs_bytes: u64) -> f64 {
    bs_bytes as f64 / rate.mean_distance(bs_bytes).as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod plan_tests {
    use super::*;
    use crate::sample::{Asked, asked, place};
    use crate::settings::Wear;
    use wrote::device::Target;
    use wrote_jobs::rate::Amount;

    fn run(request: &Asked, target: &Target) -> Run {
        request
            .plan(target, |of, call| Run::new(&of.sustained, call))
            .unwrap()
            .expect("it is called for")
    }

    #[test]
    fn it_is_measured_only_where_it_is_named() {
        let target = place(1 << 40, 1 << 39);
        assert!(
            asked(&[]).plan(&target, |of, call| Run::new(&of.sustained, call)).unwrap().is_none()
        );
        assert!(
            asked(&["ladder"])
                .plan(&target, |of, call| Run::new(&of.sustained, call))
                .unwrap()
                .is_none()
        );
        assert!(
            asked(&["sustained"])
                .plan(&target, |of, call| Run::new(&of.sustained, call))
                .unwrap()
                .is_some()
        );
        assert!(
            asked(&[ROW])
                .plan(&target, |of, call| Run::new(&of.sustained, call))
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn by_default_it_writes_for_a_minute_and_no_more_than_a_measurement_may() {
        let target = place(1 << 42, 1 << 41);
        let most = |wear| {
            let run = run(&Asked { wear, ..asked(&[NAME]) }, &target);
            assert_eq!(run.time, Some(TIME));
            assert_eq!(run.size_bytes % run.bs_bytes, 0);
            assert_eq!(run.file_bytes, run.size_bytes);
            assert!(run.recovered_bytes_max() > 0);
            run.plan().written_bytes_max()
        };
        assert!((9_000_000_000..=10_000_000_000).contains(&most(None)));
        assert!((800_000_000..=1_000_000_000).contains(&most(Some(Wear::Low))));
    }

    #[test]
    fn a_time_is_written_whole_and_bounded_by_what_drives_can_do() {
        let request = Asked { time: Some(TIME), ..asked(&[NAME]) };
        let run = run(&request, &place(1 << 42, 1 << 41));
        assert!(run.size_bytes > 59 * BYTES_PER_S_MAX && run.size_bytes <= 60 * BYTES_PER_S_MAX);
        assert_eq!((run.time, run.plan().written_bytes_max()), (Some(TIME), u64::MAX));
    }

    #[test]
    fn a_size_is_written_whole_in_a_file_that_leaves_enough_free() {
        let request = Asked { size_bytes: Some(8 << 30), ..asked(&[NAME]) };
        let (capacity, free) = (10 << 30, 3 << 30);
        let run = run(&request, &place(capacity, free));
        assert_eq!((run.size_bytes, run.time), (8 << 30, None));
        let budget_bytes = target::budget(capacity, free);
        let nearly_all = budget_bytes - budget_bytes / 50..budget_bytes;
        assert!(nearly_all.contains(&run.file_bytes), "{}", run.file_bytes);
        let spec = run.spec();
        let bytes = (spec.pace.io_bytes, spec.files.file_bytes);
        assert_eq!(bytes, (Some(8 << 30), Some(run.file_bytes)));
    }

    #[test]
    fn a_rate_holds_the_stream_and_bounds_what_is_announced() {
        let amount = Amount::BytesPerS(10_000_000);
        let rate = Some(Rate { amount, process: Default::default() });
        let request = Asked { rate, ..asked(&[NAME]) };
        let run = run(&request, &place(1 << 40, 1 << 39));
        assert_eq!(run.spec().pace.write_rate_bytes_per_s, Some(10_000_000));
        assert!((600_000_000..=1_200_000_000).contains(&run.size_bytes), "{}", run.size_bytes);
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        let target = place(1 << 40, 1 << 39);
        for request in [
            Asked { size_bytes: Some(0), ..asked(&[NAME]) },
            Asked { size_bytes: Some(4096), ..asked(&[NAME]) },
            Asked { stream_bs_bytes: Some(1 << 40), ..asked(&[NAME]) },
        ] {
            let Err(Error::Usage(text)) =
                request.plan(&target, |of, call| Run::new(&of.sustained, call))
            else {
                panic!("{request:?}")
            };
            assert_eq!(text.lines().count(), 1);
        }
        let full = asked(&[NAME])
            .plan(&place(10 << 30, 1 << 30), |of, call| Run::new(&of.sustained, call))
            .unwrap_err();
        assert!(full.to_string().contains("must stay free"), "{full}");
    }

    #[test]
    fn no_more_is_written_than_is_announced_after_a_pause() {
        let request = Asked { size_bytes: Some(1 << 30), ..asked(&[NAME]) };
        let run = run(&request, &place(1 << 40, 1 << 39));
        assert_eq!(run.plan().written_bytes_max(), (1 << 30) + (1 << 29));
        let request = Asked { idle: Some(Duration::ZERO), ..request };
        let run = request
            .plan(&place(1 << 40, 1 << 39), |of, call| Run::new(&of.sustained, call))
            .unwrap()
            .unwrap();
        assert_eq!(run.plan().written_bytes_max(), 1 << 30);
    }
}
