//! The scenario `load`: one workload at rising rates, and its latency at each rate.

mod curve;
mod knee;

use crate::plan::{Call, Plan};
use crate::scenario::Scenario;
use crate::scenarios::grid::{Grid, GridWorkload, called};
use crate::scenarios::{ladder, peak, rand};
use crate::settings::{Common, STREAM_BS_BYTES};
use curve::Curve;
use itertools::Itertools;
use wrote_result::Error;
use wrote_result::document::Process;

pub(crate) const NAME: &str = "load";
const USUAL: [&str; 2] = ["rand/read", "rand/write"];
const MIX: &str = "rand/mix";
/// The number of operations in flight: enough for the device, and not the queue, to be the limit.
const IODEPTH: u32 = 64;

/// The workloads of a grid, and the function that returns the grid.
type NamedGrid = (&'static [GridWorkload], fn(&Call) -> Result<Grid, Error>);

/// The grids, in the order of measurement.
const GRIDS: [NamedGrid; 2] = [(peak::WORKLOADS, peak::grid), (rand::WORKLOADS, rand::grid)];

/// The settings of the scenario `load`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Load {
    /// Measure latency at rising request rates and mark the knee (default workloads: rand/read,
    /// rand/write)
    #[cfg_attr(feature = "cli", arg(long, group = "open_loop"))]
    pub load_curve: bool,

    /// How the operations are spread over time; by default at random intervals.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub process: Option<Process>,
}

/// The scenario runs rows of other scenarios at rising rates, and has no rows itself.
impl Scenario for Load {
    fn name(&self) -> &'static str {
        NAME
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
        let common = Common {
            iodepth: call.common.iodepth.or(Some(IODEPTH)),
            stream_bs_bytes: call.common.stream_bs_bytes.or(Some(STREAM_BS_BYTES)),
            ..call.common.clone()
        };
        let mut curves: Vec<Curve> = Vec::new();
        for name in names {
            curves.extend(self.curves_of(name, &Call { common: &common, ..*call })?);
        }
        Ok(curves.into_iter().unique_by(|curve| curve.name).collect())
    }

    /// Returns the curves that a name selects: of workloads of a grid, or of rows of the ladder.
    fn curves_of(&self, name: &str, call: &Call) -> Result<Vec<Curve>, Error> {
        let mut curves = Vec::new();
        for (workloads, make) in GRIDS {
            // A mix has two rates and two latencies, so a scenario's name selects only its other
            // workloads.
            let is_named = |of: &&GridWorkload| {
                [of.workload, of.scenario].contains(&name) && of.workload != MIX
            };
            for GridWorkload { workload, .. } in workloads.iter().filter(is_named) {
                let grid = called(workloads, &Call { only: &[(*workload).into()], ..*call }, make)?;
                curves.extend(grid.map(|grid| Curve::of_grid(grid, self, call)));
            }
        }
        let asked = Call { only: &[name.to_owned()], ..*call };
        for way in ladder::WAYS.iter().filter(|way| asked.names(ladder::NAME, way.name)) {
            let only = &[way.name.to_owned()];
            curves.push(Curve::of_row(way, self, &Call { only, ..*call })?);
        }
        if curves.is_empty() {
            return Err(Error::Usage(format!(
                "--load-curve: not for {name}, which has no single rate to raise; name workloads \
                 of rand or peak, or rows of the ladder"
            )));
        }
        Ok(curves)
    }
}

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
        Ok(curves.iter().map(|curve| curve.name.to_owned()).collect())
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
