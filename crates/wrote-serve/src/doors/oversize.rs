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
    /// Nothing of it is kept.
    Skip,
    /// The connection ends.
    Refuse,
}

impl Oversize {
    const ALL: [Oversize; 3] = [Oversize::Truncate, Oversize::Skip, Oversize::Refuse];

    /// The word in URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Oversize::Truncate => "truncate",
            Oversize::Skip => "skip",
            Oversize::Refuse => "refuse",
        }
    }
}

impl FromStr for Oversize {
    type Err = String;

    fn from_str(word: &str) -> Result<Oversize, String> {
        let found = Oversize::ALL.into_iter().find(|oversize| oversize.as_str() == word);
        found.ok_or_else(|| format!("oversize={word} is none of truncate, skip, refuse"))
    }
}

/// The rest of a message over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// This number of bytes.
    Bytes(usize),
    /// All up to this byte, with it.
    Until(u8),
}

impl Passing {
    /// Passes over the beginning of `input`. Returns its bytes, and what is left.
    pub(super) fn pass(self, input: &[u8]) -> (usize, Option<Passing>) {
        match self {
            Passing::Bytes(left) => {
                let bytes = left.min(input.len());
                (bytes, (left > bytes).then_some(Passing::Bytes(left - bytes)))
            }
            Passing::Until(end) => match memchr::memchr(end, input) {
                Some(at) => (at + 1, None),
                None => (input.len(), Some(self)),
            },
        }
    }
}
