//! The scenario `sustained`: one long stream of writes, and where and how often it slows down.

use crate::Error;
use crate::bench::{Listed, Request, Ticker};
use crate::scenario::{Measured, Planned, Site};
use std::time::Duration;
use wrote::device::Target;

/// The scenario's name.
pub(crate) const NAME: &str = "sustained";
/// What the scenario answers.
pub(crate) const QUESTION: &str =
    "How fast does this disk take writes for long, and after how many bytes does it slow down?";

/// Everything of the scenario that `Request::only` may name.
pub(crate) fn listed() -> Vec<Listed> {
    Vec::new()
}

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
