//! The arguments of `wrote serve` in a program that was built without it: any.

use clap::Args;
use std::ffi::OsString;

/// The arguments of `wrote serve`, which has no use for them.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Whatever the server would take
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
