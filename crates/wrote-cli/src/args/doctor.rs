//! The arguments of `wrote doctor`.

use super::OutputArgs;
use super::values::words;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use wrote_report::Format;

pub(super) const LONG_ABOUT: &str = "Say what holds the disk under PATH back, and the command that \
        changes it.\n\nExamines what the kernel reports about the disk, its queue, the file system \
        and its mount, this process and the machine. Nothing is written: no file is made, nothing \
        is opened but for reading, and no command that is named is run. What is found is a risk \
        (data is in danger), advice (it may cost speed), unknown (with the reason), or fine. Each \
        check is explained in docs/doctor.md.\n\nThe exit code is 0 whatever is found, and 1 where \
        PATH can't be examined.";

pub(super) const EXAMPLES: &str = "Examples:\n  \
        wrote doctor                             the disk that the current folder is on\n  \
        wrote doctor /mnt/data --all             another, with all that is fine at length\n  \
        wrote doctor /mnt/data/wal.log           a file: also its attributes and its space\n  \
        wrote doctor /dev/nvme0n1                a disk itself, which is not opened\n  \
        wrote doctor --format json -o disk.json  the whole examination, for a program";

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
