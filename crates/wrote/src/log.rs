//! `Log`: many producers, one sequential log, and an acknowledgement once a record is safe.

mod append;
mod aside;
mod atomics;
mod awaited;
mod background;
mod batch;
#[cfg(test)]
mod bits;
mod chain;
mod claim;
mod cut;
mod driver;
mod flusher;
mod format;
mod handle;
mod input;
mod interrupt;
mod layout;
mod lines;
mod lock;
#[cfg(test)]
#[cfg(loom)]
mod model;
mod names;
mod open;
mod options;
mod prepare;
mod reader;
mod record;
mod recovery;
mod rescue;
mod retention;
mod sealed;
mod seek;
mod segment;
mod state;
mod stats;
mod stream;
#[cfg(test)]
mod testing;
mod ticket;
mod wait;
mod walk;
mod watch;

pub use format::Format;
pub use handle::Log;
pub use interrupt::until;
pub use options::{LogOptions, Prepare};
pub use reader::{LogReader, Record};
pub use rescue::{Damage, LogSummary, SegmentSummary, repair, summary, verify};
/// For `wrote-store`, which keeps sealed segments elsewhere. Not a promise.
#[doc(hidden)]
pub use sealed::{
    SEGMENT_START_BYTES, SealedSegment, SealedSegments, SegmentEnd, SegmentStart, check_segment,
    segment_name, segment_number,
};
pub use stats::LogStats;
pub use stream::LogStream;
pub use ticket::Ticket;
