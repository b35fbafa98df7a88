//! The scenario `peak`: the maximum throughput of sequential reads and writes, and how to reach it.

use super::grid::{Grid, GridWorkload, called, can_poll, short};
use crate::choice::best;
use crate::plan::{Call, Plan};
use crate::scenario::{Listed, Scenario};
use std::time::Duration;
use wrote_jobs::findings::Evidence;
use wrote_jobs::spec::{JobSpec, READ, WRITE};
use wrote_result::document::{Answer, Cell};
use wrote_result::{Error, units};

const NAME: &str = "peak";
const QUESTION: &str =
    "How fast does this disk stream at best, with which block size, depth and mode of io_uring?";

pub(super) const WORKLOADS: &[GridWorkload] = &[
    GridWorkload::new(NAME, "peak/read", "reads: bs x iodepth x way", false),
    GridWorkload::new(NAME, "peak/write", "writes: bs x iodepth x way", true),
];

/// The block sizes: below, around and above what most devices accept as one command.
const BS_BYTES: [u64; 3] = [128 << 10, 512 << 10, 2 << 20];
/// The queue depths: a few operations in flight, and enough for a fast device.
const IODEPTHS: [u32; 2] = [8, 64];
const RUN_BYTES_MAX: u64 = 256 << 20;
const TIME: Duration = Duration::from_millis(250);

/// A variant of io_uring: options in addition to direct I/O.
type Way = (&'static str, fn(&mut JobSpec));

const WAYS: [Way; 4] = [
    ("plain", |spec| {
        spec.io.fixedbufs = false;
        spec.io.registerfiles = false;
    }),
    ("registered", |_| {}),
    ("sqpoll", |spec| spec.io.sqthread_poll = true),
    ("polled", |spec| spec.io.hipri = true),
];

/// The scenario `peak`. It has no settings.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Peak {}

impl Scenario for Peak {
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
        best(evidence, &[("Reads, at best", "peak/read"), ("Writes, at best", "peak/write")])
    }
}

/// Returns the grid. It has polled cells only if the device has poll queues.
pub(super) fn grid(call: &Call) -> Result<Grid, Error> {
    let mut grid = Grid::new(NAME, QUESTION, TIME, call)?;
    let sizes = call.common.stream_bs_bytes.map_or(BS_BYTES.to_vec(), |bytes| vec![bytes]);
    let depths = call.common.iodepth.map_or(IODEPTHS.to_vec(), |depth| vec![depth]);
    for (named, rw) in WORKLOADS.iter().zip([READ, WRITE]) {
        for &bs_bytes in &sizes {
            for &iodepth in &depths {
                for (way, ask) in
                    WAYS.iter().filter(|(way, _)| *way != "polled" || can_poll(call.target))
                {
                    let mut spec = grid.spec(rw, bs_bytes, iodepth);
                    let run_bytes = grid.file_bytes.min(RUN_BYTES_MAX.max(bs_bytes));
                    spec.pace.io_bytes = Some(run_bytes / bs_bytes * bs_bytes);
                    ask(&mut spec);
                    let suffix = format!("{}-{iodepth}-{way}", short(bs_bytes));
                    let side = format!("{} x {iodepth}", units::block_size(bs_bytes));
                    let words = format!("{side}, {way}");
                    let (title, head) = ("BS x IODEPTH".into(), (*way).into());
                    let place = Some(Cell { title, side, head });
                    grid.add(named.workload, &suffix, words, place, spec);
                }
            }
        }
    }
    Ok(grid)
}
