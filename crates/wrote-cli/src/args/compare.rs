//! The arguments of `wrote compare`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The help at length.
pub(super) const LONG_ABOUT: &str =
    "Hold a result against an older one: what changed, and how sure that is.";

/// The help's end.
pub(super) const EXAMPLES: &str = "Examples:\n  wrote compare before.json after.json";

/// The arguments of `wrote compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The older result: what wrote or fio printed as JSON
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub old: PathBuf,

    /// The newer one
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    pub new: PathBuf,
}
