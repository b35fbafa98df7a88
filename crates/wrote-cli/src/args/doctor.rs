//! The arguments of `wrote doctor`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The help at length.
pub(super) const LONG_ABOUT: &str =
    "Say what holds the disk under PATH back, and the command that changes it.";

/// The help's end.
pub(super) const EXAMPLES: &str = "Examples:\n  wrote doctor /mnt/data";

/// The arguments of `wrote doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The folder, file or block device to look at
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
}
