//! The arguments of `wrote serve` in a program that was built without it: any.

use clap::Args;
use std::ffi::OsString;

pub(super) const LONG_ABOUT: &str = "Serve a log: messages from many connections, answered when \
        they are safe.\n\nThis program was built without the server. Build it with: \
        cargo build --release --features serve";

pub(super) const EXAMPLES: &str = "Example:\n  \
        cargo run --release --features serve -- serve events --listen tcp://127.0.0.1:5140";

/// The arguments of `wrote serve`, which has no use for them.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Whatever the server would take
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
