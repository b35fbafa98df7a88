//! Requests, evidence and measurements for tests.

pub(crate) use wrote_jobs::sample::place;
pub(crate) use wrote_jobs::sample::*;

use crate::calibration::Calibration;
use crate::plan::{Call, Measured, Plan};
use crate::progress::{Observer, Ticker};
use crate::request::Request;
use crate::rounds::measure_in_turn;
use crate::scenarios::{Append, Latency, Load, Long, MessageSizes, Meta, Scenarios};
use crate::scratch::Scratch;
use crate::settings::{Common, Wear};
use crate::site::{Clock, SinceStart, Site};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wrote::device::{self, Target};
use wrote_jobs::peers::Peers;
use wrote_jobs::rate::Rate;
use wrote_result::document::{self, Process, Row};
use wrote_result::{Error, Stop};

/// A clock that only tests advance, in seconds.
#[derive(Debug, Default)]
pub(crate) struct MadeUpClock(pub Cell<f64>);

impl MadeUpClock {
    pub(crate) fn pass(&self, seconds: f64) {
        self.0.set(self.0.get() + seconds);
    }
}

impl Clock for MadeUpClock {
    fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.0.get())
    }
}

/// The settings of a request, in one flat list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub path: PathBuf,
    pub only: Vec<String>,
    pub size_bytes: Option<u64>,
    pub time: Option<Duration>,
    pub runs: Option<u32>,
    pub stream_bs_bytes: Option<u64>,
    pub small_bs_bytes: Option<u64>,
    pub iodepth: Option<u32>,
    pub numjobs: Option<u32>,
    pub messages: Option<u32>,
    pub message_size: Option<(u32, u32)>,
    pub producers: Vec<u32>,
    pub iterations: Option<u32>,
    pub save_size: Vec<u64>,
    pub rate: Option<Rate>,
    pub wear: Option<Wear>,
    pub load_curve: bool,
    pub load_process: Option<Process>,
    pub idle: Option<Duration>,
    pub meta_files: Option<u32>,
}

impl Asked {
    pub(crate) fn new(path: PathBuf) -> Asked {
        Asked { path, ..Asked::default() }
    }

    pub(crate) fn request(&self) -> Request {
        let asked = self.clone();
        let sizes = asked.message_size;
        let append = Append {
            messages: asked.messages,
            message_size: sizes.map(|(min_bytes, max_bytes)| MessageSizes { min_bytes, max_bytes }),
            producers: asked.producers,
        };
        Request {
            only: asked.only,
            common: Common {
                size_bytes: asked.size_bytes,
                time: asked.time,
                runs: asked.runs,
                stream_bs_bytes: asked.stream_bs_bytes,
                small_bs_bytes: asked.small_bs_bytes,
                iodepth: asked.iodepth,
                numjobs: asked.numjobs,
                rate: asked.rate,
                wear: asked.wear,
                wear_parts: 0,
            },
            scenarios: Scenarios {
                append,
                latency: Latency { iterations: asked.iterations, save_size: asked.save_size },
                load: Load { load_curve: asked.load_curve, process: asked.load_process },
                sustained: Long { idle: asked.idle },
                meta: Meta { meta_files: asked.meta_files },
                ..Scenarios::default()
            },
            ..Request::new(asked.path)
        }
    }

    /// Checks the common settings, and returns the result of `plan`.
    pub(crate) fn plan<T>(
        &self,
        target: &Target,
        plan: impl FnOnce(&Scenarios, &Call) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.plan_at(None, target, plan)
    }

    /// Like [`Asked::plan`], for a disk of the given speed.
    pub(crate) fn plan_at<T>(
        &self,
        speed: Option<&Calibration>,
        target: &Target,
        plan: impl FnOnce(&Scenarios, &Call) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Request { only, common, scenarios, .. } = self.request();
        common.check()?;
        plan(&scenarios, &Call { only: &only, common: &common, target, within: None, speed })
    }

    /// Returns every measurement that the registry plans for a disk of the given speed.
    pub(crate) fn planned(&self, speed: Option<&Calibration>) -> Vec<Plan<'static>> {
        let target = device::examine(&self.path).unwrap();
        let request = self.request();
        crate::bench::plan(&request.scenarios.all(), &request, &target, speed).unwrap()
    }

    /// Measures the only requested scenario in `scratch`, and keeps its files if `keep`.
    pub(crate) fn measured(
        &self,
        scratch: &Scratch,
        stop: &Stop,
        keep: bool,
    ) -> Result<Measured, Error> {
        self.observed(&mut (), scratch, stop, keep)
    }

    /// Asserts that a measurement has no result and leaves no files if it was asked to stop
    /// beforehand.
    pub(crate) fn assert_stops(&self) {
        let scratch = Scratch::make(&self.path).unwrap();
        let stop = Stop::new();
        stop.request();
        let stopped = self.measured(&scratch, &stop, false);
        assert!(matches!(stopped, Err(Error::Interrupted)), "{:?}", self.only);
        scratch.remove().unwrap();
        assert!(entries(&self.path).is_empty(), "{:?}", self.only);
    }

    /// Like [`Asked::measured`], with an observer.
    pub(crate) fn observed(
        &self,
        observer: &mut dyn Observer,
        scratch: &Scratch,
        stop: &Stop,
        keep: bool,
    ) -> Result<Measured, Error> {
        let target = device::examine(&self.path).unwrap();
        let mut planned = self.planned(None).remove(0);
        let site = Site {
            scenario: planned.name,
            target: &target,
            scratch,
            stop,
            clock: &SinceStart(Instant::now()),
            keep,
            peers: Peers::ALONE,
            timed: Peers::ALONE,
            rank_files: self.request().rank_files,
        };
        let speed = Calibration::of(&[planned.wants], &site, &self.request().common)?;
        planned = self.planned(Some(&speed)).remove(0);
        let mut ticker = Ticker::new(observer, planned.runs_total(), Duration::ZERO);
        measure(&mut planned, speed, &site, &mut ticker)
    }
}

/// Returns the paths of the entries of a folder, except for the lock file, in order.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let names = fixtures::names(folder).into_iter().filter(|name| name != "lock");
    names.map(|name| folder.join(name)).collect()
}

/// Measures a plan whose runs take time only on `clock`.
pub(crate) fn measured_by(clock: &MadeUpClock, plan: &mut Plan) -> Result<Measured, Error> {
    let folder = fixtures::folder();
    let mut observer = ();
    let mut ticker = Ticker::new(&mut observer, plan.runs_total(), Duration::ZERO);
    let site = Site {
        scenario: plan.name,
        target: &place(1 << 40, 1 << 39),
        scratch: &Scratch::make(folder.path()).unwrap(),
        stop: &Stop::new(),
        clock,
        keep: false,
        peers: Peers::ALONE,
        timed: Peers::ALONE,
        rank_files: Default::default(),
    };
    measure(plan, Calibration::UNKNOWN, &site, &mut ticker)
}

/// Measures a single plan.
pub(crate) fn measure(
    plan: &mut Plan,
    speed: Calibration,
    site: &Site,
    ticker: &mut Ticker,
) -> Result<Measured, Error> {
    let plans = std::slice::from_mut(plan);
    measure_in_turn(plans, &[speed], Duration::ZERO, &[*site], ticker).map(|mut one| one.remove(0))
}

/// Returns a request for these scenarios or rows.
pub(crate) fn asked(only: &[&str]) -> Asked {
    let only = only.iter().map(|name| name.to_string()).collect();
    Asked { only, ..Asked::new("/data".into()) }
}

/// Returns a row of the scenario `latency` with this median. `name` has the form that it has in
/// results: `latency/new-500/fs-write`.
pub(crate) fn saved(name: &str, p50_ns: u64) -> Row {
    let throughput = 500.0 * 1e9 / p50_ns as f64;
    let mut row = row(name, "power-loss", &[0.99, 1.0, 1.01].map(|share| share * throughput));
    row.workload = name.rsplit_once('/').unwrap().0.into();
    row.latency_ns = Some(document::Latency {
        p50: p50_ns,
        p99: 2 * p50_ns,
        count: 1000,
        ..document::Latency::default()
    });
    if let Some((state, way)) = crate::scenarios::latency::way_of(&row) {
        row.crash_leaves = Some(way.kind.leaves(state));
        row.view = Some(document::View::Saves);
    }
    row
}
