//! What holds a disk back, found without writing to it.

use crate::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name and version of the doctor's own document.
pub const SCHEMA: &str = "wrote.doctor/1";

/// What was looked at, and what was found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Examination {
    /// `wrote.doctor/1`.
    pub schema: String,
}

/// Looks at what lies under `path`, and writes nothing.
///
/// # Errors
///
/// [`Error::Failed`] where the path can't be looked at.
pub fn examine(path: &Path) -> Result<Examination, Error> {
    let _ = path;
    todo!()
}
