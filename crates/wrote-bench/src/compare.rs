//! Two results held against each other: what changed, by how much, and how sure that is.

use crate::Error;
use crate::result::Document;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name and version of the comparison's own document.
pub const SCHEMA: &str = "wrote.compare/1";

/// A result held against an older one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// `wrote.compare/1`.
    pub schema: String,
}

/// Holds `new` against `old`, row by row.
///
/// # Errors
///
/// [`Error::Failed`] where the two have no row in common that did the same work: it names what differs.
pub fn compare(old: &Document, new: &Document) -> Result<Comparison, Error> {
    let _ = (old, new);
    todo!()
}
