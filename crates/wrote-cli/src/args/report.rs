//! The arguments of `wrote report`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The arguments of `wrote report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// JSON that wrote or fio printed; - is standard input
    #[arg(value_name = "RESULT", value_hint = ValueHint::FilePath, required = true)]
    pub results: Vec<PathBuf>,

    /// Write the page to FILE instead of standard output; FILE must not exist
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace the FILE of --output if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
}
