//! The scenario `read`: a stream of reads and small random reads, which the default run measures in
//! addition to the writes. Each scenario has a separate file.

use super::grid::{Grid, GridWorkload};
use crate::choice::best;
use crate::plan::{Call, PART, Plan, Within};
use crate::scenario::{Listed, Scenario};
use std::time::Duration;
use wrote_jobs::findings::Evidence;
use wrote_jobs::spec::{READ, Rw};
use wrote_result::Error;
use wrote_result::document::Answer;
use wrote_result::units::block_size;

const NAME: &str = "read";
const QUESTION: &str = "How fast does this disk read, in a stream and at random offsets?";
const STREAM: &str = "stream";
const RANDOM: &str = "random";
const WORKLOADS: [GridWorkload; 2] = [
    GridWorkload::new(NAME, "read/stream", "direct io_uring, in order", false),
    GridWorkload::new(NAME, "read/random", "direct io_uring, random", false),
];

/// The block sizes and queue depths of the stream and of the random reads.
const STREAM_BS_BYTES: u64 = 1 << 20;
const STREAM_IODEPTH: u32 = 8;
const RANDOM_BS_BYTES: u64 = 4 << 10;
const RANDOM_IODEPTH: u32 = 32;
const TIME: Duration = Duration::from_millis(100);
/// The time to write the file, before it is read.
const FILE_TIME_S: f64 = 0.2;
const FILE_BYTES: [u64; 2] = [16 << 20, 256 << 20];

/// The scenario `read`. It has no settings.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Reads {}

impl Scenario for Reads {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        WORKLOADS.iter().map(GridWorkload::listed).collect()
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        let is_default = call.is_default();
        let is_called = |row: &str| is_default || call.names(NAME, row);
        if !WORKLOADS.iter().any(|of| is_called(of.workload)) {
            return Ok(Vec::new());
        }
        let mut grid = grid(call)?;
        grid.cells.retain(|cell| is_called(&cell.name));
        // Time is kept for the writers of one log, which are measured next.
        let kept = |within: Duration| if is_default { within / PART } else { Duration::ZERO };
        let within = call.within.map(|within| Within::new(within, kept(within), true));
        Ok(vec![Plan { within, ..grid.plan(call.speed) }])
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        best(evidence, &[("Stream, read", "read/stream"), ("Random reads", "read/random")])
    }
}

/// Returns the maximum length of the file that is written and read, unless the request sets it.
pub(super) fn file_bytes_max(call: &Call) -> u64 {
    let bytes = call.speed.map_or(f64::INFINITY, |speed| speed.bytes_per_s * FILE_TIME_S);
    let part = call.common.written_bytes_max(call.target) / u64::from(PART);
    (bytes as u64).clamp(FILE_BYTES[0], FILE_BYTES[1]).min(part)
}

fn grid(call: &Call) -> Result<Grid, Error> {
    let mut grid = Grid::new(NAME, QUESTION, TIME, call)?;
    if call.common.size_bytes.is_none() {
        grid.file_bytes = (file_bytes_max(call).min(grid.file_bytes) >> 20 << 20).max(1 << 20);
    }
    let random = Rw { random: true, ..READ };
    let stream_bytes = call.common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
    let random_bytes = call.common.small_bs_bytes.unwrap_or(RANDOM_BS_BYTES);
    for (name, rw, bs_bytes, iodepth) in [
        (STREAM, READ, stream_bytes, STREAM_IODEPTH),
        (RANDOM, random, random_bytes, RANDOM_IODEPTH),
    ] {
        let iodepth = call.common.iodepth.unwrap_or(iodepth);
        let way = format!("O_DIRECT, {} x {iodepth}", block_size(bs_bytes));
        grid.add(NAME, name, way, None, grid.spec(rw, bs_bytes, iodepth));
    }
    Ok(grid)
}
