//! The scenario `load`: one workload at rising rates, and its latency at each.

mod rounds;
mod subject;

use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use crate::scenarios::ladder;
use std::time::Duration;
use subject::Subject;
use wrote_result::Error;
use wrote_result::document::Process;

pub(crate) const NAME: &str = "load";
const USUAL: [&str; 2] = ["rand/read", "rand/write"];
/// The rates, in percent of the closed-loop speed: denser where latency bends, and one beyond.
const PERCENTS: [u32; 13] = [10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 100, 110];
const RUNS: u32 = 3;
const TIME: Duration = Duration::from_secs(1);
/// The most bytes that a run writes at closed-loop speed; longer runs are shortened.
const WRITTEN_BYTES_MAX: u64 = 512 << 20;

/// One curve.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    subject: Subject,
    runs: u32,
    time: Duration,
    process: Process,
    /// Operations per second of the closed loop, once measured.
    closed_iops: f64,
}

/// The settings of the scenario `load`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Load {
    /// Measure latency at rising request rates and mark the knee (default workloads: rand/read,
    /// rand/write)
    #[cfg_attr(feature = "cli", arg(long, group = "open_loop"))]
    pub load_curve: bool,

    /// When operations are due; by default at random intervals.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub process: Option<Process>,
}

impl Scenario for Load {
    fn name(&self) -> &'static str {
        NAME
    }

    /// It runs rows of other scenarios at rising rates.
    fn catalogue(&self) -> Vec<Listed> {
        Vec::new()
    }

    fn is_alone(&self) -> bool {
        self.load_curve
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        let curves = if self.load_curve { self.curves(call)? } else { Vec::new() };
        Ok(curves.into_iter().map(Curve::plan).collect())
    }
}

impl Load {
    /// Returns a curve for each requested workload.
    fn curves(&self, call: &Call) -> Result<Vec<Curve>, Error> {
        let usual = USUAL.map(str::to_owned);
        let names = if call.only.is_empty() { &usual[..] } else { call.only };
        let mut curves: Vec<Curve> = Vec::new();
        for name in names {
            for subject in subjects(name, call)? {
                if curves.iter().any(|curve| curve.subject.name == subject.name) {
                    continue;
                }
                curves.push(Curve {
                    subject,
                    runs: call.common.runs.unwrap_or(RUNS),
                    time: call.common.time.unwrap_or(TIME),
                    process: self.process.unwrap_or(Process::Poisson),
                    closed_iops: 0.0,
                });
            }
        }
        Ok(curves)
    }
}

/// Returns the workloads of a name: rows of a grid or of the ladder.
fn subjects(name: &str, call: &Call) -> Result<Vec<Subject>, Error> {
    let of_grids = subject::workloads().filter(|named| {
        // A mix has two rates and two latencies, so a scenario's name selects only its other
        // workloads.
        name == named.workload || name == named.scenario && named.workload != MIX
    });
    let of_grids: Vec<&str> = of_grids.map(|named| named.workload).collect();
    if of_grids.contains(&MIX) {
        return Err(Error::Usage(format!(
            "--load-curve: {MIX} reads and writes at once, and a curve is of one of them; name \
             rand/read or rand/write"
        )));
    }
    if !of_grids.is_empty() {
        let cell = |workload: &&str| Subject::of_grid(workload, call);
        return of_grids.iter().map(cell).collect();
    }
    let rows = ladder::WAYS.iter().filter(|way| {
        let only = [name.to_owned()];
        Call { only: &only, ..*call }.names(ladder::NAME, way.name)
    });
    let rows: Vec<Subject> =
        rows.map(|way| Subject::of_row(way, call)).collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Err(Error::Usage(format!(
            "--load-curve: {name} has no rate to raise; name workloads of rand or peak, or rows of \
             the ladder"
        )));
    }
    Ok(rows)
}

const MIX: &str = "rand/mix";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Asked, place};
    use crate::scenarios::Scenarios;

    fn asked(only: &[&str]) -> Asked {
        Asked { load_curve: true, ..sample::asked(only) }
    }

    fn curves(request: &Asked) -> Result<Vec<Curve>, Error> {
        request.plan(&place(1 << 40, 1 << 39), |of, call| of.load.curves(call))
    }

    fn names(request: &Asked) -> Result<Vec<String>, Error> {
        let curves = curves(request)?;
        Ok(curves.iter().map(|curve| curve.subject.name.to_owned()).collect())
    }

    #[test]
    fn curves_are_measured_only_when_they_are_asked_for() {
        assert!(!Load::default().is_alone());
        let request = Asked { load_curve: false, ..asked(&["rand"]) };
        let plan = |of: &Scenarios, call: &Call| of.load.plan(call);
        assert!(request.plan(&place(1 << 40, 1 << 39), plan).unwrap().is_empty());
        assert_eq!(names(&asked(&[])).unwrap(), USUAL);
    }

    #[test]
    fn a_curve_is_of_a_workload_of_a_grid_or_of_a_row_of_the_ladder_and_each_comes_once() {
        assert_eq!(names(&asked(&["rand"])).unwrap(), ["rand/read", "rand/write"]);
        assert_eq!(names(&asked(&["peak/read", "peak"])).unwrap(), ["peak/read", "peak/write"]);
        assert_eq!(names(&asked(&["small/o_dsync-each"])).unwrap(), ["small/o_dsync-each"]);
        assert_eq!(names(&asked(&["small", "small/cached"])).unwrap().len(), 9);
    }

    #[test]
    fn a_row_without_a_rate_to_raise_is_refused_in_one_line() {
        for name in ["ways", "append", "rand/mix"] {
            let refused = names(&asked(&[name])).unwrap_err();
            assert!(matches!(refused, Error::Usage(_)), "{name}");
            assert_eq!(refused.to_string().lines().count(), 1, "{name}");
        }
    }

    #[test]
    fn reads_write_their_file_and_no_more_and_writes_a_bounded_number_of_bytes() {
        let plans: Vec<_> = curves(&asked(&[])).unwrap().into_iter().map(Curve::plan).collect();
        let [reads, writes] = &plans[..] else { panic!("two curves") };
        assert!(reads.written_bytes_max() <= 4 * reads.space_bytes);
        assert!(writes.written_bytes_max() < 24 << 30);
    }
}
