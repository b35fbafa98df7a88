//! The verbs of `peers/`, a separate workspace that is built on demand.

use lab::tools::failure::Failure;
use lab::tools::repository::root;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The manifest of the workspace.
pub const MANIFEST: &str = "peers/Cargo.toml";

/// The words of a verb.
#[derive(clap::Args)]
pub struct Words {
    /// Its arguments; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    words: Vec<OsString>,
}

/// Replaces this process by the verb's program, in the caller's folder.
pub fn run(verb: &str, Words { words }: &Words) -> Result<(), Failure> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--quiet", "--manifest-path"]).arg(root().join(MANIFEST));
    let Err(error): Result<Infallible, _> = Err(command.arg("--").arg(verb).args(words).exec());
    Err(Failure::Failed(format!("cargo: {error}")))
}
