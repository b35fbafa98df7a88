//! Handles messages over the size limit.

use wrote_result::words;

/// The most bytes that are skipped. A larger count is considered wrong.
pub(super) const PASSED_BYTES_MAX: usize = 64 << 20;

words! {
    /// The treatment of a message over the size limit. Each such message is counted.
    #[derive(Default)]
    pub enum Oversize {
        /// Keeps the start, as rsyslog does by default.
        #[default]
        Truncate = "truncate",
        /// Splits it into messages of the maximum length.
        Split = "split",
        /// Drops the message.
        Skip = "skip",
        /// Ends the connection.
        Refuse = "refuse",
    }
}

/// The rest of an oversized message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest<End> {
    /// Skip this many bytes.
    Passed(usize),
    /// Skip through the next delimiter.
    PassedUntil(End),
    /// Take this many bytes in parts.
    Taken(usize),
    /// Take everything up to the next delimiter in parts.
    TakenUntil(End),
}
