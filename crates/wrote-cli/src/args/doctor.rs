//! The arguments of `wrote doctor`.

use super::OutputArgs;
use super::values::words;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use wrote_report::Format;

/// The arguments of `wrote doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The folder, file or block device to look at
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,

    /// How the result is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = words([
        ("table", "For people: the worst last", Format::Table),
        ("json", "The whole of it, `wrote.doctor/1`", Format::Json),
        ("markdown", "To paste in an issue", Format::Markdown)
    ]))]
    pub format: Format,

    /// Where the result goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Also show what is fine at length
    #[arg(long)]
    pub all: bool,

    /// Print the JSON Schema of the result, and look at nothing
    #[arg(long, conflicts_with = "files")]
    pub schema: bool,
}
