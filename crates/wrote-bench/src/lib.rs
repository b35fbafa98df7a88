//! Scenarios: questions about a disk, answered by rows measured in turn.

mod arrivals;
mod bench;
mod burst;
mod calibration;
pub mod child;
mod choice;
pub mod fit;
pub mod langs;
mod names;
mod progress;
mod request;
mod rounds;
#[cfg(test)]
mod sample;
mod scenario;
mod scenarios;
pub mod scratch;
pub mod versus;

pub use bench::{Bench, report_leftovers, share};
pub use calibration::Calibration;
pub use progress::{Announcement, Answering, Observer, Progress, Ticker};
pub use request::{Common, RankSettings, Request, Wear, positive};
pub use rounds::{Clock, RUNS_MIN, SinceStart, Turn, in_turn};
pub use scenario::{
    Call, Listed, Measured, OneRun, Plan, Scenario, Scope, Site, Within, boxed, clear,
};
pub use scenarios::{
    Append, AppendAs, Ladder, Latency, Load, Long, MessageSizes, Meta, Peak, Rand, Scenarios, Ways,
    catalogue,
};
pub use wrote_jobs::peers::{Alone, Peers};
