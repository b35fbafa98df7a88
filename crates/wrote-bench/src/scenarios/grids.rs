//! Lists all grid scenarios and their workloads.

use super::grid::{Grid, GridWorkload, called};
use super::{peak, rand};
use crate::scenario::Call;
use wrote_result::Error;

/// Returns the workloads of all grids, in the order of measurement.
pub(crate) fn workloads() -> impl Iterator<Item = &'static GridWorkload> {
    peak::WORKLOADS.iter().chain(rand::WORKLOADS)
}

/// Creates the grid with the requested workload.
pub(crate) fn of_workload(call: &Call) -> Result<Grid, Error> {
    let peak = called(peak::WORKLOADS, call, peak::grid)?;
    let grid = match peak {
        None => called(rand::WORKLOADS, call, rand::grid)?,
        peak => peak,
    };
    grid.ok_or_else(|| Error::Failed("no grid has that workload".into()))
}
