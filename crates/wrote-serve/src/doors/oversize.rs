//! Messages over the limit, and the rest of one that is passed over.

use std::str::FromStr;

/// The most bytes that are passed over: a count beyond it is taken for a wrong one.
pub(super) const PASSED_BYTES_MAX: usize = 64 << 20;

/// The treatment of a message of more bytes than the limit. Each such message is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// Its beginning is kept, as rsyslog does by default.
    #[default]
    Truncate,
    /// Each part of it that is as long as a message may be is a message.
    Split,
    /// Nothing of it is kept.
    Skip,
    /// The connection ends.
    Refuse,
}

impl Oversize {
    pub(super) const ALL: [Oversize; 4] =
        [Oversize::Truncate, Oversize::Split, Oversize::Skip, Oversize::Refuse];

    /// The word in URLs.
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

/// The rest of a message over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest<End> {
    /// This number of bytes is passed over.
    Passed(usize),
    /// All up to one of these bytes is passed over, and that byte.
    PassedUntil(End),
    /// This number of bytes is taken in parts.
    Taken(usize),
    /// All up to one of these bytes is taken in parts.
    TakenUntil(End),
}
