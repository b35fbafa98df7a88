//! The scenario `rand`: small random reads, writes and a mix, by queue depth. Each scenario has a
//! separate file; the grid is shared with other scenarios.

use super::grid::{Grid, GridWorkload, called};
use crate::choice::best;
use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use std::time::Duration;
use wrote_jobs::findings::Evidence;
use wrote_jobs::spec::Rw;
use wrote_result::Error;
use wrote_result::document::Answer;

const NAME: &str = "rand";
const QUESTION: &str =
    "How many small random reads and writes does this disk take, and how long does each wait?";

pub(super) const WORKLOADS: &[GridWorkload] = &[
    GridWorkload::new(NAME, "rand/read", "random reads over iodepth", false),
    GridWorkload::new(NAME, "rand/write", "random writes", true),
    GridWorkload::new(NAME, "rand/mix", "70 % reads, 30 % writes", true),
];

/// The size of a typical database page, for which drives state their IOPS.
const BS_BYTES: u64 = 4 << 10;
/// The queue depths: from one operation at a time to more than most devices serve at once.
const IODEPTHS: [u32; 4] = [1, 4, 16, 64];
const TIME: Duration = Duration::from_millis(400);
/// The maximum number of bytes of one run, which is more than most devices transfer in its time.
const RUN_BYTES_MAX: u64 = 512 << 20;
const MIX_READ_PERCENT: u32 = 70;

/// The scenario `rand`. It has no settings.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Rand {}

impl Scenario for Rand {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        WORKLOADS.iter().map(GridWorkload::listed).collect()
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        let grid = called(WORKLOADS, call, grid)?;
        Ok(grid.map(|grid| grid.plan(call.speed)).into_iter().collect())
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        best(evidence, &[("Random reads", "rand/read"), ("Random writes", "rand/write")])
    }
}

pub(super) fn grid(call: &Call) -> Result<Grid, Error> {
    let mut grid = Grid::new(NAME, QUESTION, TIME, call)?;
    let bs_bytes = call.common.small_bs_bytes.unwrap_or(BS_BYTES);
    let depths = call.common.iodepth.map_or(IODEPTHS.to_vec(), |depth| vec![depth]);
    let directions = [(true, false), (false, true), (true, true)];
    for (named, (read, write)) in WORKLOADS.iter().zip(directions) {
        for &iodepth in &depths {
            let mut spec = grid.spec(Rw { read, write, random: true }, bs_bytes, iodepth);
            spec.order.rwmixread_percent = MIX_READ_PERCENT;
            spec.pace.io_bytes = Some(grid.file_bytes.min(RUN_BYTES_MAX) / bs_bytes * bs_bytes);
            let suffix = iodepth.to_string();
            grid.add(named.workload, &suffix, format!("iodepth {iodepth}"), None, spec);
        }
    }
    Ok(grid)
}
