//! The scenario `load`: one workload at rising rates, and its latency at each.

use crate::Error;
use crate::bench::{Request, Ticker};
use crate::scenario::{Measured, Planned, Site};
use std::time::Duration;
use wrote::device::Target;

/// The scenario's name.
pub(crate) const NAME: &str = "load";
/// What the scenario answers.
pub(crate) const QUESTION: &str = "What does latency do as the load rises, and where does it bend?";

/// What is measured of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct Plan;

impl Plan {
    /// The plan of what is called for by name; `None` where nothing is.
    pub(crate) fn new(request: &Request, target: &Target) -> Result<Option<Plan>, Error> {
        let _ = (request, target);
        Ok(None)
    }
}

impl Planned for Plan {
    fn runs_total(&self) -> u32 {
        todo!()
    }

    fn space_bytes_max(&self) -> u64 {
        todo!()
    }

    fn written_bytes_max(&self) -> u64 {
        todo!()
    }

    fn estimate(&self) -> Duration {
        todo!()
    }

    fn measure(&self, _site: &Site, _ticker: &mut Ticker) -> Result<Measured, Error> {
        todo!()
    }
}
