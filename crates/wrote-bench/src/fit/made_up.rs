//! The time of `wrote fit` on simulated disks: rows and budget are real, the runs are not.

use super::scenario::SuitsPlan;
use super::{FitRequest, Neighbour, all, find};
use crate::budget::{Clock as _, RUNS_MIN};
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::sample::{MadeUpClock, measured_by};
use crate::scenario::{Bounds, Limits, Measured, Plan, Rows, Scope, Site};
use crate::trial::Trial;
use std::rc::Rc;
use std::time::Duration;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::sample::row;

/// Disks by their speed and flush: NVMe, a limited volume, a hard disk, a memory card.
const DISKS: [(f64, f64); 4] = [(1e9, 1e-4), (125e6, 2e-3), (100e6, 12e-3), (10e6, 40e-3)];
/// Times of runs, as multiples of the expected ones.
const VARIATION: [f64; 5] = [1.0, 1.4, 0.6, 1.2, 0.9];

struct OnDisk {
    plan: SuitsPlan,
    clock: Rc<MadeUpClock>,
    runs: usize,
}

impl Rows for OnDisk {
    fn scope(&self) -> Scope {
        self.plan.scope()
    }

    fn rows(&self) -> Vec<String> {
        self.plan.rows()
    }
}

impl Bounds for OnDisk {
    fn space_bytes_max(&self) -> u64 {
        self.plan.space_bytes_max()
    }

    fn written_bytes_max(&self) -> u64 {
        self.plan.written_bytes_max()
    }

    fn estimate(&self) -> Duration {
        self.plan.estimate()
    }

    fn limits(&mut self) -> Option<(Duration, &mut dyn Limits)> {
        self.plan.limits()
    }
}

impl Plan for OnDisk {
    fn prepare(&mut self, site: &Site, ticker: &mut Ticker) -> Result<u64, Error> {
        self.plan.prepare(site, ticker)
    }

    fn run(&mut self, turn: Turn, _: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let expected_s = self.plan.foreseen(turn.row).as_secs_f64();
        self.clock.pass(expected_s * VARIATION[self.runs % VARIATION.len()]);
        self.runs += 1;
        let name = self.rows().swap_remove(turn.row);
        Ok(Repeated::one(row(&name, "power-loss", &[1e9]), wrote_jobs::histogram()))
    }
}

/// Returns the outcome on a disk, the time that it took, and the time that the plan had.
fn fit_on(
    (bytes_per_s, flush_s): (f64, f64),
    request: &FitRequest,
) -> (Result<Measured, Error>, Duration, Duration) {
    let clock = Rc::new(MadeUpClock::default());
    let flush = Duration::from_secs_f64(flush_s);
    let trial = Trial { bytes_per_s, flush, burst: None, first_touch: None };
    let mut plan = SuitsPlan::new(request, false);
    plan.learn(trial);
    clock.pass(1.0);
    let mut plan = OnDisk { plan, clock: clock.clone(), runs: 0 };
    let measured = measured_by(&clock, &mut plan);
    let within = plan.limits().unwrap().0;
    (measured, clock.elapsed(), within)
}

fn request(programs: &[&str], time: Option<u64>, neighbours: &[Neighbour]) -> FitRequest {
    FitRequest {
        programs: match programs {
            [] => all(),
            names => names.iter().map(|name| find(name).unwrap()).collect(),
        },
        path: "/data".into(),
        time: time.map(Duration::from_secs),
        runs: None,
        sustained: None,
        neighbours: neighbours.to_vec(),
        neighbour_path: None,
        command: Vec::new(),
        commit: None,
    }
}

/// Each row has an interval.
fn has_intervals(measured: &Measured) -> bool {
    let is_enough = |runs: usize| (RUNS_MIN as usize..=FitRequest::RUNS as usize).contains(&runs);
    measured.left_out.is_empty()
        && measured.scenario.rows.iter().all(|row| is_enough(row.runs.len()))
}

#[test]
fn the_time_that_is_asked_for_is_taken_beside_neighbours_on_slow_disks_too() {
    let neighbours = Neighbour::ALL.map(|(.., of)| of);
    for disk in DISKS {
        for (programs, asked_s) in
            [(&["etcd"][..], 20), (&["etcd"], 40), (&["redis"], 120), (&["sqlite"], 600)]
        {
            for beside in [&neighbours[..0], &neighbours[..1], &neighbours[..]] {
                let mut within = Duration::from_secs(asked_s);
                let (mut measured, mut elapsed, _) =
                    fit_on(disk, &request(programs, Some(asked_s), beside));
                let case = format!("{disk:?} {programs:?} {asked_s} s {}", beside.len());
                if let Err(refused) = measured {
                    // The least that is possible, which is then measured.
                    let text = refused.to_string();
                    assert!(matches!(refused, Error::Usage(_)), "{case}: {text}");
                    let least = text.split("; use ").nth(1).unwrap().split(" or more").next();
                    let least = wrote_result::units::parse_duration(least.unwrap()).unwrap();
                    assert!(least > Duration::from_secs(asked_s), "{case}: {text}");
                    let again = FitRequest { time: Some(least), ..request(programs, None, beside) };
                    (measured, elapsed, _) = fit_on(disk, &again);
                    within = least;
                }
                let measured = measured.unwrap();
                assert!(has_intervals(&measured), "{case}: {:?}", measured.left_out);
                assert!(elapsed < within.mul_f64(1.5), "{case}: {elapsed:?} of {within:?}");
            }
        }
    }
}

#[test]
fn without_a_time_a_slow_disk_takes_longer_and_is_never_refused() {
    for disk in DISKS {
        for programs in [&["etcd"][..], &[]] {
            let request = request(programs, None, &[Neighbour::Copy]);
            let (measured, elapsed, within) = fit_on(disk, &request);
            assert!(has_intervals(&measured.unwrap()), "{disk:?}");
            assert!(within >= request.usual_time() && elapsed < within.mul_f64(1.5), "{disk:?}");
            let is_longer = within > request.usual_time();
            assert!(is_longer || disk.0 > 10e6, "{disk:?}: {within:?}");
            assert!(!is_longer || disk.0 < 1e9, "{disk:?}: {within:?}");
        }
    }
}
