//! The runs of one curve: a closed loop, then runs at increasing fractions of its speed, in turn.

use super::{Curve, NAME, PERCENTS, WRITTEN_BYTES_MAX};
use crate::calibration::Wanted;
use crate::plan::{Plan, Prepared, RowSpec, Turn, Work};
use crate::progress::Ticker;
use crate::site::Site;
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::jobs::{GroupReport, JobReport};
use wrote_jobs::rate::{Amount, Rate};
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Knee, Reached, Row, Settings, View};
use wrote_result::stats;

/// The rest after each run, so that one beyond the device's speed does not slow the next.
const REST: Duration = Duration::from_millis(50);
/// The fewest operations for a 99th percentile.
const OPERATIONS_MIN: u64 = 100;

impl Curve {
    /// Returns the plan of the rates.
    pub(super) fn plan(self) -> Plan<'static> {
        let name = self.subject.name;
        let question = format!(
            "What does the latency of {name} do as the load rises, and where does it bend?"
        );
        let rows = PERCENTS.into_iter().map(|percent| self.row(percent)).collect();
        let (runs, file_bytes) = (self.runs, self.subject.file_bytes());
        Plan {
            runs,
            // The closed loop.
            runs_before: runs,
            prepare: (self.time + REST) * runs,
            wants: Wanted::Stream,
            space_bytes: file_bytes,
            // The files, and the writes of the closed loop, at most once each.
            prepared_bytes: file_bytes * (1 + u64::from(runs)),
            shares_files: true,
            ..Plan::new(NAME, &question, rows, self)
        }
    }

    /// Composes the row of a rate, but for the rate, which follows from the closed loop.
    fn row(&self, percent: u32) -> RowSpec {
        let row = Row {
            name: format!("{}/{:.2}", self.workload(), share(percent)),
            workload: self.workload(),
            view: Some(View::Curve),
            ..Row::default()
        };
        // A Poisson process of this many operations deviates by less than a tenth.
        let at_rate = WRITTEN_BYTES_MAX / 100 * u64::from(percent) / 10 * 11;
        let bytes_max = if self.subject.writes() { at_rate } else { 0 };
        RowSpec { row, time: self.time + REST, bytes_max, ..RowSpec::default() }
    }

    fn files(&self, site: &Site) -> Vec<PathBuf> {
        site.job_files("data", self.subject.numjobs)
    }

    /// `load/rand/read`.
    fn workload(&self) -> String {
        format!("{NAME}/{}", self.subject.name)
    }
}

fn share(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}

impl Work for Curve {
    /// Fills the files, and measures a closed loop: the median of its runs.
    fn prepare(&mut self, site: &Site, ticker: &mut Ticker) -> Result<Prepared, Error> {
        let mut written_bytes = self.subject.prepare(&self.files(site), site)?;
        let mut iops = Vec::new();
        for _ in 0..self.runs {
            ticker.tick(&format!("{}: closed loop", self.workload()));
            let group = self.run_once(None, self.time, site)?;
            let operations = |job: &JobReport| job.read.operations + job.write.operations;
            let operations: u64 = group.jobs.iter().map(operations).sum();
            iops.push(operations as f64 / group.elapsed.as_secs_f64().max(1e-9));
            written_bytes += group.written_bytes();
        }
        self.closed_iops = site.least(stats::median(&iops))?;
        Ok(Prepared { written_bytes, ..Prepared::default() })
    }

    fn run(
        &mut self,
        row: &Row,
        turn: Turn,
        site: &Site,
        _: &mut Ticker,
    ) -> Result<Repeated, Error> {
        let percent = PERCENTS[turn.row];
        let group = self.run_once(Some(self.rate(percent)), self.time_at_rate(), site)?;
        let before = self.subject.before(&self.files(site), site);
        let load_share = Some(share(percent));
        Ok(Repeated::of(&group, &before, |_, settings| Row {
            way: format!("{percent} % of {:.0}/s", self.closed_iops),
            settings: self.subject.stated(settings).each(|of| Settings { load_share, ..of }),
            ..row.clone()
        }))
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&self.files(site))
    }

    fn knee(&self, rows: &[Row]) -> Option<Knee> {
        knee_of(rows)
    }
}

impl Curve {
    /// Runs the subject once, and lets the device rest.
    fn run_once(
        &self,
        rate: Option<Rate>,
        time: Duration,
        site: &Site,
    ) -> Result<GroupReport, Error> {
        let group = self.subject.run(&self.files(site), rate, time, site)?;
        std::thread::sleep(REST);
        site.stop.check()?;
        Ok(group)
    }

    /// Returns the time of a run at a rate: shorter if it would write more than announced.
    fn time_at_rate(&self) -> Duration {
        let bytes_per_s = self.closed_iops * self.subject.job.bs_bytes_max() as f64;
        if !self.subject.writes() || bytes_per_s <= 0.0 {
            return self.time;
        }
        let most_s = WRITTEN_BYTES_MAX as f64 / bytes_per_s;
        self.time.min(Duration::try_from_secs_f64(most_s).unwrap_or(self.time))
    }

    fn rate(&self, percent: u32) -> Rate {
        let iops = self.closed_iops * f64::from(percent) / 100.0;
        // At least one operation per second for each thread.
        let iops = (iops.round() as u32).max(self.subject.numjobs);
        Rate { amount: Amount::OperationsPerS(iops), process: self.process }
    }
}

/// Returns the knee of P99 over reached load. Rows that missed their rate are excluded, because
/// their latency grows with the run's length. If the curve has no other knee, the last rate reached
/// before a missed one counts.
fn knee_of(rows: &[Row]) -> Option<Knee> {
    let is_reached = |row: &&Row| Reached::of(row).is_some_and(|reached| reached.is_reached);
    let is_known = |row: &&Row| row.latency().is_some_and(|of| of.count >= OPERATIONS_MIN);
    let mut curve: Vec<&Row> = rows.iter().filter(is_reached).filter(is_known).collect();
    curve.sort_by(|a, b| iops(a).total_cmp(&iops(b)));
    let points: Vec<(f64, f64)> = curve.iter().map(|row| (iops(row), p99_ns(row) as f64)).collect();
    let is_saturated = rows.iter().any(|row| !is_reached(&row));
    let last = curve.len().checked_sub(1).filter(|_| is_saturated);
    let row = curve[knee(&points).or(last)?];
    Some(Knee { row: row.name.clone(), iops: iops(row), p99_ns: p99_ns(row) })
}

fn iops(row: &Row) -> f64 {
    stats::median(&row.runs.iter().map(|run| run.iops).collect::<Vec<f64>>())
}

fn p99_ns(row: &Row) -> u64 {
    row.latency().map_or(0, |of| of.p99)
}

const POINTS_MIN: usize = 5;
/// The paper's sensitivity: a knee stands out by this multiple of the points' mean distance.
const SENSITIVITY: f64 = 1.0;
/// A curve that rises by less than this factor is considered noise.
const RISE_MIN: f64 = 1.5;

/// Finds the knee of a curve of latency over load with Kneedle (Satopää, Albrecht, Irwin, Raghavan,
/// "Finding a 'Kneedle' in a Haystack: Detecting Knee Points in System Behavior", ICDCSW 2011).
///
/// The curve is scaled to the unit square and rotated by 180 degrees, so that an upward bend
/// becomes one that levels off. The point farthest above the diagonal is a knee if the curve then
/// falls by more than the points' mean distance (the paper's sensitivity `S`, here 1) before rising
/// again. The paper first smooths the curve by a spline; here each point is already a median of
/// several runs, and there are too few points for that.
///
/// Returns the index of the knee among points sorted by load; `None` if there is none.
fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let (width, height) = (last.0 - first.0, most - least);
    if points.len() < POINTS_MIN || width <= 0.0 || most < RISE_MIN * least {
        return None;
    }
    // After rotation, a point's depth below the diagonal is its height above it.
    let difference = |point: &(f64, f64)| (point.0 - first.0) / width - (point.1 - least) / height;
    let differences: Vec<f64> = points.iter().rev().map(difference).collect();
    let threshold_below = SENSITIVITY / (points.len() - 1) as f64;
    let mut best: Option<(usize, f64)> = None;
    for place in local_maxima(&differences) {
        let threshold = differences[place] - threshold_below;
        let is_next_maximum = |&next: &usize| is_local_maximum(&differences, next);
        let end = (place + 1..differences.len()).find(is_next_maximum).unwrap_or(differences.len());
        let is_knee = differences[place + 1..end].iter().any(|later| *later < threshold);
        if is_knee && best.is_none_or(|(_, most)| differences[place] > most) {
            best = Some((place, differences[place]));
        }
    }
    best.map(|(place, _)| points.len() - 1 - place)
}

fn local_maxima(values: &[f64]) -> impl Iterator<Item = usize> {
    (0..values.len()).filter(|place| is_local_maximum(values, *place))
}

/// Returns whether a value is greater than its neighbours; never true at the ends.
fn is_local_maximum(values: &[f64], place: usize) -> bool {
    place > 0
        && place + 1 < values.len()
        && values[place] > values[place - 1]
        && values[place] >= values[place + 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Asked};
    use crate::scratch::Scratch;
    use wrote_result::Stop;
    use wrote_result::document::Latency;
    use wrote_result::document::Process;

    /// Returns a row of a curve with requested and reached rates and P99.
    fn point(asked: u32, reached: f64, p99_ns: u64) -> Row {
        let mut row = sample::row("load/rand", "os-crash", &[1e9]);
        row.name = format!("load/{asked}");
        row.settings.asked.rate_iops = Some(asked.into());
        row.settings.asked.numjobs = 1;
        row.latency_ns = Some(Latency { p99: p99_ns, count: 10_000, ..Latency::default() });
        for run in &mut row.runs {
            (run.iops, run.elapsed_s) = (reached, 1.0);
        }
        row
    }

    #[test]
    fn the_knee_is_a_rate_that_was_reached() {
        let p99_us = [100, 101, 103, 108, 120, 150, 260, 500];
        let mut rows: Vec<Row> = (1..)
            .zip(p99_us)
            .map(|(step, us)| point(step * 1000, f64::from(step) * 1000.0, us * 1000))
            .collect();
        rows.push(point(9000, 8200.0, 300_000_000));
        let knee = knee_of(&rows).unwrap();
        assert_eq!((knee.row.as_str(), knee.p99_ns), ("load/6000", 150_000));
    }

    #[test]
    fn a_level_curve_bends_at_the_last_rate_that_was_reached() {
        let mut rows: Vec<Row> =
            (1..=10).map(|step| point(step * 1000, f64::from(step) * 1000.0, 100_000)).collect();
        assert_eq!(knee_of(&rows), None);
        rows.push(point(11_000, 10_000.0, 500_000_000));
        assert_eq!(knee_of(&rows).unwrap().row, "load/10000");
    }

    #[test]
    fn a_real_curve_has_a_row_at_every_rate_and_leaves_nothing() {
        let folder = fixtures::folder();
        for name in ["rand/read", "small/cached", "small/direct-o_dsync-each-overwrite"] {
            let request = Asked {
                only: vec![name.into()],
                load_curve: true,
                load_process: Some(Process::Poisson),
                size_bytes: Some(2 << 20),
                runs: Some(1),
                time: Some(Duration::from_millis(10)),
                ..Asked::new(folder.path().to_owned())
            };
            let scratch = Scratch::make(folder.path()).unwrap();
            let measured = request.measured(&scratch, &Stop::new(), false).unwrap();
            let names: Vec<&str> =
                measured.scenario.rows.iter().map(|row| row.name.as_str()).collect();
            assert_eq!(names.len(), PERCENTS.len());
            assert_eq!(names[6], format!("load/{name}/0.70"));
            for row in &measured.scenario.rows {
                assert!(row.is_open_loop() && row.settings.asked.load_share.is_some());
                assert_eq!(row.settings.asked.rate_process, Some(Process::Poisson));
                assert!(row.runs[0].issue_delay_ns.is_some());
            }
            assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "the lock");
        }
    }
}

#[cfg(test)]
mod knee_tests {
    use super::knee;

    /// Returns the curve of an M/M/1 queue with mean service time 1. Response times are
    /// exponentially distributed with mean 1 / (1 - load), so P99 is ln(100) times that (Kleinrock,
    /// *Queueing Systems*, 1975, 3.2).
    fn queue(loads: &[f64]) -> Vec<(f64, f64)> {
        loads.iter().map(|load| (*load, 100_f64.ln() / (1.0 - load))).collect()
    }

    fn loads(last_percent: u32) -> Vec<f64> {
        (10..=last_percent).step_by(5).map(|percent| f64::from(percent) / 100.0).collect()
    }

    #[test]
    fn the_knee_of_a_queue_is_where_its_curve_is_as_steep_as_the_diagonal() {
        for last_percent in [80, 90, 95] {
            let points = queue(&loads(last_percent));
            let (first, last) = (points[0], points[points.len() - 1]);
            // d/dx 1 / (1 - x) = 1 / (1 - x)^2 is the slope from end to end.
            let slope = (last.1 - first.1) / (last.0 - first.0) / 100_f64.ln();
            let exact = 1.0 - 1.0 / slope.sqrt();
            let found = points[knee(&points).unwrap()].0;
            assert!((found - exact).abs() <= 0.05, "{found} for {exact}");
        }
    }

    #[test]
    fn a_straight_curve_has_no_knee() {
        let line: Vec<(f64, f64)> = (1..=13).map(|x| (f64::from(x), f64::from(3 * x))).collect();
        assert_eq!(knee(&line), None);
        let level: Vec<(f64, f64)> =
            (1..=13).map(|x| (f64::from(x), 100.0 + f64::from(x % 3))).collect();
        assert_eq!(knee(&level), None);
        let levels_off: Vec<(f64, f64)> =
            (1..=13).map(|x| (f64::from(x), 1.0 + f64::from(x).sqrt())).collect();
        assert_eq!(knee(&levels_off), None);
    }

    #[test]
    fn a_corner_is_the_knee() {
        let points: Vec<(f64, f64)> =
            (0..=10).map(|x| (f64::from(x), 1.0 + 20.0 * f64::from((x - 7).max(0)))).collect();
        assert_eq!(knee(&points), Some(7));
    }

    #[test]
    fn a_little_noise_moves_the_knee_by_a_point_at_most() {
        let points = queue(&loads(95));
        let clean = knee(&points).unwrap();
        for noise in [0.05, -0.05] {
            let noisy = |(number, point): (usize, &(f64, f64))| {
                let sign = if number % 2 == 0 { noise } else { -noise };
                (point.0, point.1 * (1.0 + sign))
            };
            let noisy: Vec<(f64, f64)> = points.iter().enumerate().map(noisy).collect();
            assert!(knee(&noisy).unwrap().abs_diff(clean) <= 1);
        }
    }

    #[test]
    fn too_few_points_have_no_knee() {
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&queue(&[0.1, 0.5, 0.9, 0.95])), None);
        assert_eq!(knee(&[(1.0, 1.0); 7]), None);
    }
}
