//! `Log`, a sequential log for many producers, with an acknowledgement once a record is safe.

mod ahead;
mod append;
mod aside;
mod batch;
mod batches;
#[cfg(test)]
mod bits;
mod chain;
mod claim;
mod cut;
#[cfg(test)]
mod document;
mod driver;
mod flusher;
mod gather;
mod handle;
mod input;
mod lock;
#[cfg(test)]
#[cfg(loom)]
mod model;
mod names;
mod open;
mod prepare;
mod promises;
mod reader;
mod record;
mod recovery;
mod rescue;
mod retention;
mod sealed;
mod seek;
mod segment;
mod space;
mod state;
#[cfg(test)]
mod testing;
mod ticket;
mod wait;
mod walk;
mod watch;

pub(crate) use aside::copy as copy_aside;
pub(crate) use gather::Gathering;
pub use handle::{Log, LogOptions};
pub use input::until;
pub(crate) use input::{Input, LogFiles, is_same_file};
#[doc(hidden)]
pub use open::check_place;
pub(crate) use promises::{Aim, Promises, Waiting};
pub use reader::{LogReader, Record};
pub use rescue::{Damage, LogSummary, repair, summary, verify};
pub use sealed::Segment;
pub(crate) use state::Goal;
pub use state::LogStats;
pub use ticket::Ticket;
pub(crate) use wait::Gate;
