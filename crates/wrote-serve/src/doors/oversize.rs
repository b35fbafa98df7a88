//! Handles messages over the size limit.

use std::str::FromStr;

/// The most bytes that are skipped. A larger count is considered wrong.
pub(super) const PASSED_BYTES_MAX: usize = 64 << 20;

/// The treatment of a message over the size limit. Each such message is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// Keeps the start, as rsyslog does by default.
    #[default]
    Truncate,
    /// Splits it into messages of the maximum length.
    Split,
    /// Drops the message.
    Skip,
    /// Ends the connection.
    Refuse,
}

impl Oversize {
    pub(super) const ALL: [Oversize; 4] =
        [Oversize::Truncate, Oversize::Split, Oversize::Skip, Oversize::Refuse];

    /// Returns the name used in URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Oversize::Truncate => "truncate",
            Oversize::Split => "split",
            Oversize::Skip => "skip",
            Oversize::Refuse => "refuse",
        }
    }
}

impl FromStr for Oversize {
    type Err = String;

    fn from_str(word: &str) -> Result<Oversize, String> {
        let found = Oversize::ALL.into_iter().find(|oversize| oversize.as_str() == word);
        found.ok_or_else(|| format!("oversize={word} is none of truncate, split, skip, refuse"))
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
