//! The reasons why a program stops.

use wrote::Error;

/// The reason why a step failed.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// A broken promise of the log, in one sentence.
    Broken(String),
    /// A reader that ended too early, in one sentence. Only a misdirected read excuses it.
    Ended(String),
    /// A damaged log of lines whose repair cannot decide what to keep.
    Undecided,
    /// An error of the log. The caller knows whether it has a reason.
    Error(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Error(error)
    }
}

/// Reports a broken promise if `holds` is false.
pub fn holds(holds: bool, broken: impl FnOnce() -> String) -> Result<(), Trouble> {
    if holds { Ok(()) } else { Err(Trouble::Broken(broken())) }
}
