//! The comparison: every place, every workload, every program in turn.

use super::{Document, Request};
use crate::{Error, Observer, Stop};

/// Measures, and says what it found.
///
/// Whatever a program does wrong (it crashes, hangs, writes a wrong byte, lies) is told of it alone, and the
/// others' results stand.
///
/// # Errors
///
/// [`Error::Usage`] when what was asked makes no sense or no language that was asked for is there,
/// [`Error::Interrupted`] when `stop` was raised, else [`Error::Failed`].
pub fn langs(
    _request: &Request,
    _stop: &Stop,
    _observer: &mut dyn Observer,
) -> Result<Document, Error> {
    todo!()
}
