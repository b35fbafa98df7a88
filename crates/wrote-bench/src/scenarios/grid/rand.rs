//! The scenario `rand`: small random reads, writes and a mix, over the depth of the queue.

use super::{Grid, Make, Named};
use crate::bench::Request;
use std::time::Duration;
use wrote::device::Target;
use wrote_jobs::spec::Rw;
use wrote_result::Error;

const NAME: &str = "rand";
const QUESTION: &str =
    "How many small random reads and writes does this disk take, and how long does each wait?";

pub(super) const GRID: Make = (NAME, grid);
pub(super) const READ: Named = Named {
    scenario: NAME,
    workload: "rand/read",
    words: "random reads over iodepth",
    writes: false,
};
pub(super) const WRITE: Named =
    Named { scenario: NAME, workload: "rand/write", words: "random writes", writes: true };
pub(super) const MIX: Named =
    Named { scenario: NAME, workload: "rand/mix", words: "70 % reads, 30 % writes", writes: true };

/// A database's page, and the unit in which drives state their IOPS.
const BS_BYTES: u64 = 4 << 10;
/// From one that waits for another to more than most devices serve at once.
const IODEPTHS: [u32; 4] = [1, 4, 16, 64];
const TIME: Duration = Duration::from_millis(400);
/// The most that one run transfers: more than most devices can in its time.
const RUN_BYTES_MAX: u64 = 512 << 20;
const MIX_READ_PERCENT: u32 = 70;

/// The cells.
fn grid(request: &Request, target: &Target) -> Result<Grid, Error> {
    let mut grid = Grid::new(NAME, QUESTION, TIME, request, target)?;
    let bs_bytes = request.small_bs_bytes.unwrap_or(BS_BYTES);
    let depths = request.iodepth.map_or(IODEPTHS.to_vec(), |depth| vec![depth]);
    for (named, read, write) in [(READ, true, false), (WRITE, false, true), (MIX, true, true)] {
        for &iodepth in &depths {
            let mut spec = grid.spec(Rw { read, write, random: true }, bs_bytes, iodepth);
            spec.rwmixread_percent = MIX_READ_PERCENT;
            spec.io_bytes = Some(grid.file_bytes.min(RUN_BYTES_MAX) / bs_bytes * bs_bytes);
            let suffix = iodepth.to_string();
            grid.add(named.workload, &suffix, format!("iodepth {iodepth}"), spec);
        }
    }
    Ok(grid)
}
