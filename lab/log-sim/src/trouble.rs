//! Why a program does not go on.

use wrote::Error;

/// Why a step of a program did not do what it says.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// A promise of the log's is broken: one sentence that says which.
    Broken(String),
    /// The log gave an error. Whether there was a reason for one is for the caller to say.
    Error(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Error(error)
    }
}

/// A broken promise, where `holds` is false.
pub fn holds(holds: bool, broken: impl FnOnce() -> String) -> Result<(), Trouble> {
    if holds { Ok(()) } else { Err(Trouble::Broken(broken())) }
}
