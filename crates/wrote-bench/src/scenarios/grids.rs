//! Every scenario that is a grid, and the one that has a workload.

use super::grid::{Grid, GridWorkload, called};
use super::{peak, rand};
use crate::scenario::Call;
use wrote_result::Error;

/// The workloads of all grids, in the order in which they are measured.
pub(crate) fn workloads() -> impl Iterator<Item = &'static GridWorkload> {
    peak::WORKLOADS.iter().chain(rand::WORKLOADS)
}

/// Makes the grid with the workload that the call names.
pub(crate) fn of_workload(call: &Call) -> Result<Grid, Error> {
    let peak = called(peak::WORKLOADS, call, peak::grid)?;
    let grid = match peak {
        None => called(rand::WORKLOADS, call, rand::grid)?,
        peak => peak,
    };
    grid.ok_or_else(|| Error::Failed("no grid has that workload".into()))
}
