//! One curve: a workload of a grid or of the ladder, measured in a closed loop, and then, in turn,
//! at increasing fractions of the speed of that loop.

use super::{Load, NAME, knee};
use crate::calibration::Wanted;
use crate::plan::{Call, Plan, Prepared, RowSpec, Turn, Work};
use crate::progress::Ticker;
use crate::scenarios::grid::Grid;
use crate::scenarios::ladder;
use crate::scenarios::ladder::Way;
use crate::scenarios::ladder::plan::Amounts;
use crate::settings::STREAM_BS_BYTES;
use crate::site::Site;
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::data::seed;
use wrote_jobs::jobs::{GroupReport, JobReport, Permissions};
use wrote_jobs::rate::{Amount, Rate};
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::JobSpec;
use wrote_result::document::{Blocks, Knee, Process, Row, Settings, View};
use wrote_result::{Error, stats};

/// The rates, in percent of the closed-loop speed. They are denser where the latency rises, and the
/// last one exceeds that speed.
const PERCENTS: [u32; 13] = [10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 100, 110];
const RUNS: u32 = 3;
const TIME: Duration = Duration::from_secs(1);
/// The pause after each run. Without it, a run beyond the device's speed would slow down the next
/// one.
const REST: Duration = Duration::from_millis(50);
/// The maximum number of bytes that a run writes at closed-loop speed. Longer runs are shortened.
const WRITTEN_BYTES_MAX: u64 = 512 << 20;
/// The number of operations in flight while the files are filled.
const IODEPTH_FILL: u32 = 8;
/// The maximum size of a row's files. A run repeats the files until its time has passed.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A curve of latency over load.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// The workload: `rand/read`, `small/o_dsync-each`.
    pub name: &'static str,
    runs: u32,
    time: Duration,
    process: Process,
    numjobs: u32,
    job: JobSpec,
    /// The job that fills each file before the first run. Without it, each run creates its files.
    fill: Option<JobSpec>,
    /// The row of the ladder; `None` for a cell of a grid.
    way: Option<&'static Way>,
    /// The operations per second of the closed loop, once it is measured.
    closed_iops: f64,
}

impl Curve {
    fn new(name: &'static str, job: JobSpec, numjobs: u32, asked: &Load, call: &Call) -> Curve {
        Curve {
            name,
            runs: call.common.runs.unwrap_or(RUNS),
            time: call.common.time.unwrap_or(TIME),
            process: asked.process.unwrap_or(Process::Poisson),
            numjobs,
            job,
            fill: None,
            way: None,
            closed_iops: 0.0,
        }
    }

    /// Returns the curve of a grid with one workload. If the grid has several io_uring methods, the
    /// curve uses the default one.
    pub(super) fn of_grid(mut grid: Grid, asked: &Load, call: &Call) -> Curve {
        if grid.cells.len() > 1 {
            grid.cells.retain(|cell| cell.name.ends_with("-registered"));
        }
        let cell = grid.cells.remove(0);
        let fill = Some(grid.layout_job());
        let job = cell.spec.with(|job| job.name = cell.name);
        Curve { fill, ..Curve::new(cell.workload, job, grid.numjobs, asked, call) }
    }

    /// Returns the curve of a row of the ladder.
    pub(super) fn of_row(way: &'static Way, asked: &Load, call: &Call) -> Result<Curve, Error> {
        let mut sizes = Amounts::new(call, None)?.sizes(way.workload, f64::MAX);
        if call.common.size_bytes.is_none() {
            let least = sizes.bs_bytes * u64::from(sizes.numjobs);
            sizes.size_bytes =
                (sizes.size_bytes.min(FILE_BYTES_MAX) / least).max(1).saturating_mul(least);
        }
        let in_place = way.blocks == Blocks::Written;
        let fill = in_place.then(|| sizes.fill(STREAM_BS_BYTES, IODEPTH_FILL));
        let job = way.job(&sizes, Duration::ZERO);
        let curve = Curve::new(way.name, job, sizes.numjobs, asked, call);
        Ok(Curve { fill, way: Some(way), ..curve })
    }

    /// Returns the plan of the runs at all rates.
    pub(super) fn plan(self) -> Plan<'static> {
        let question = format!(
            "What does the latency of {} do as the load rises, and where does it bend?",
            self.name
        );
        let rows = PERCENTS.into_iter().map(|percent| self.row(percent)).collect();
        let (runs, file_bytes) = (self.runs, self.file_bytes());
        Plan {
            runs,
            // The runs of the closed loop.
            runs_before: runs,
            prepare: (self.time + REST) * runs,
            wants: Wanted::Stream,
            space_bytes: file_bytes,
            // The files, and the writes of each closed-loop run, which writes the files at most
            // once.
            prepared_bytes: file_bytes * (1 + u64::from(runs)),
            shares_files: true,
            ..Plan::new(NAME, &question, rows, self)
        }
    }

    /// Returns the specification of a row for a rate, without the rate itself, which follows from
    /// the closed loop.
    fn row(&self, percent: u32) -> RowSpec {
        let workload = format!("{NAME}/{}", self.name);
        let row = Row {
            name: format!("{workload}/{:.2}", share(percent)),
            workload,
            view: Some(View::Curve),
            ..Row::default()
        };
        // A Poisson process with this many operations deviates from the mean by less than a tenth.
        let at_rate = WRITTEN_BYTES_MAX / 100 * u64::from(percent) / 10 * 11;
        let bytes_max = if self.job.order.rw.write { at_rate } else { 0 };
        RowSpec { row, time: self.time + REST, bytes_max, ..RowSpec::default() }
    }

    /// Returns the total size of the files of all threads.
    fn file_bytes(&self) -> u64 {
        self.job.files.file_bytes.unwrap_or(0) * u64::from(self.numjobs)
    }

    fn files(&self, site: &Site) -> Vec<PathBuf> {
        site.job_files("data", self.numjobs)
    }

    /// Runs the workload once, at a rate or as fast as possible. Then removes the files that the
    /// run created, and lets the device rest.
    fn run_once(
        &self,
        rate: Option<Rate>,
        time: Duration,
        site: &Site,
    ) -> Result<GroupReport, Error> {
        let files = self.files(site);
        let mut job = self.job.clone().with(|job| job.pace.runtime = Some(time));
        if self.way.is_some() {
            // The arrivals differ from run to run.
            job.seed = seed();
        }
        let overwrite = self.fill.is_some();
        let permissions = Permissions { overwrite, fill: true, ..Permissions::default() };
        let group = site.run_jobs(&job.on_each(&files, rate), permissions, &mut ())?;
        if self.way.is_some() {
            ladder::clear(&files, overwrite, site)?;
        }
        std::thread::sleep(REST);
        site.stop.check()?;
        Ok(group)
    }

    /// Returns the time of a run at a rate. It is shorter if the run would otherwise write more
    /// than announced.
    fn time_at_rate(&self) -> Duration {
        let bytes_per_s = self.closed_iops * self.job.bs_bytes_max() as f64;
        if !self.job.order.rw.write || bytes_per_s <= 0.0 {
            return self.time;
        }
        let most_s = WRITTEN_BYTES_MAX as f64 / bytes_per_s;
        self.time.min(Duration::try_from_secs_f64(most_s).unwrap_or(self.time))
    }
}

fn share(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}

impl Work for Curve {
    /// Fills the files that runs read or overwrite, and measures the closed loop: the median of its
    /// runs.
    fn prepare(&mut self, site: &Site, ticker: &mut Ticker) -> Result<Prepared, Error> {
        let mut written_bytes = 0;
        if let Some(fill) = &self.fill {
            let permissions = Permissions { fill: true, ..Permissions::default() };
            site.run_jobs(&fill.on_each(&self.files(site), None), permissions, &mut ())?;
            written_bytes += self.file_bytes();
        }
        let mut iops = Vec::new();
        for _ in 0..self.runs {
            ticker.tick(&format!("{NAME}/{}: closed loop", self.name));
            let group = self.run_once(None, self.time, site)?;
            let operations = |job: &JobReport| job.read.operations + job.write.operations;
            let operations: u64 = group.jobs.iter().map(operations).sum();
            iops.push(operations as f64 / group.elapsed.as_secs_f64().max(1e-9));
            written_bytes += group.written_bytes();
        }
        self.closed_iops = site.least(stats::median(&iops))?;
        Ok(Prepared { written_bytes, ..Prepared::default() })
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let percent = PERCENTS[at.row];
        let iops = (self.closed_iops * share(percent)).round() as u32;
        // Each thread gets at least one operation per second.
        let amount = Amount::OperationsPerS(iops.max(self.numjobs));
        let rate = Rate { amount, process: self.process };
        let group = self.run_once(Some(rate), self.time_at_rate(), site)?;
        let files = self.files(site);
        let before = site.before(if self.fill.is_some() { &files } else { &[] }, &files);
        let load_share = Some(share(percent));
        Ok(Repeated::of(&group, &before, |_, settings| {
            let settings = match self.way {
                Some(way) => way.stated(settings),
                None => settings,
            };
            Row {
                way: format!("{percent} % of {:.0}/s", self.closed_iops),
                settings: settings.each(|of| Settings { load_share, ..of }),
                ..row.clone()
            }
        }))
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&self.files(site))
    }

    fn knee(&self, rows: &[Row]) -> Option<Knee> {
        knee::knee_of(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Asked;
    use crate::scratch::Scratch;
    use wrote_result::Stop;

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
