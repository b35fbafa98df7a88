//! Scenarios: questions about a disk, answered by rows measured in turn.

mod arrivals;
mod bench;
mod burst;
mod calibration;
pub mod child;
mod choice;
pub mod fit;
pub mod langs;
mod measured;
mod names;
mod progress;
mod request;
mod rounds;
#[cfg(test)]
mod sample;
mod scenario;
mod scenarios;
pub mod scratch;
mod sharing;
pub mod versus;

pub use bench::{Bench, report_leftovers};
pub use calibration::Calibration;
pub use measured::{OneRun, clear};
pub use progress::{Announcement, Answering, Observer, Progress, Ticker};
pub use request::{Common, RankSettings, Request, Wear, positive};
pub use rounds::{Clock, RUNS_MIN, SinceStart, Turn, in_turn};
pub use scenario::{Call, Listed, Measured, Plan, Scenario, Scope, Site, Within, boxed};
pub use scenarios::{
    Append, AppendAs, Ladder, Latency, Load, Long, MessageSizes, Meta, Peak, Rand, Scenarios, Ways,
    catalogue,
};
pub use sharing::share;
pub use wrote_jobs::peers::{Alone, Peers};
