//! Scenarios: questions about a disk, answered by rows measured in turn.

mod arrivals;
mod bench;
mod calibration;
pub mod child;
mod choice;
pub mod fit;
pub mod langs;
mod names;
mod plan;
mod progress;
mod request;
mod rounds;
#[cfg(test)]
mod sample;
mod scenario;
mod scenarios;
pub mod scratch;
mod settings;
mod site;
mod stream;
mod transactions;
pub mod versus;

pub use bench::{Bench, report_leftovers};
pub use calibration::{Calibration, Wanted};
pub use plan::{Call, Measured, OneRun, Plan, Prepared, RUNS_MIN, RowSpec, Turn, Within, Work};
pub use progress::{Announcement, Answering, Observer, Progress, Ticker};
pub use request::Request;
pub use scenario::{Listed, Scenario};
pub use scenarios::{
    Append, Ladder, Latency, Load, Long, MessageSizes, Meta, Pages, Peak, Rand, Scenarios, Ways,
    catalogue, listed,
};
pub use settings::{Common, Wear, positive};
pub use site::{Clock, SinceStart, Site, clear};
pub use wrote_jobs::peers::Peers;
