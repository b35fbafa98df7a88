//! The arguments of `wrote trace`.

use super::OutputArgs;
use super::values::words;
use clap::{ArgAction, Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wrote_report::Format;
use wrote_result::document::Severity;
use wrote_result::units;
use wrote_trace::Sign;

/// The arguments of `wrote trace`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    subcommand_precedence_over_arg = true
)]
pub struct TraceArgs {
    /// A subcommand, in place of a program.
    #[command(subcommand)]
    pub verb: Option<TraceVerb>,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", required_unless_present_any = ["schema", "process"],
        trailing_var_arg = true, allow_hyphen_values = true,
        value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

    /// Join this process, where the kernel permits it, until it ends or Ctrl-C
    #[arg(short, long = "pid", value_name = "PID",
        conflicts_with_all = ["command", "record", "time"])]
    pub process: Option<i32>,

    /// Write its writes as jobs for `wrote run`: as they were, and the same bytes as they should be
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "files")]
    pub job: Option<PathBuf>,

    /// Run the program a second time, unwatched and without its output, and show both times
    #[arg(long)]
    pub time: bool,

    /// After it, run its writes again beside the advised way: how much faster could it be?
    ///
    /// In turn, in a new folder beside each file.
    #[arg(long, conflicts_with = "process")]
    pub replay: bool,

    /// The sign that something is saved, to judge each and not only the end: exit, stdout, socket,
    /// or /REGEX/ for what standard output, standard error or a socket gets
    #[arg(long, value_name = "WHEN", default_value = "exit")]
    pub ack: Sign,

    /// Watch reads too: was what was read back on the disk?
    #[arg(long)]
    pub reads: bool,

    /// Whether the program may use io_uring, whose writes are not seen
    #[arg(long, value_name = "ANSWER", default_value = "refuse", action = ArgAction::Set,
        value_parser = words([
        ("refuse", "As a kernel without it: programs fall back to calls that are seen", false),
        ("allow", "It runs as on its own, and the report says what was not seen", true)
    ]))]
    pub io_uring: bool,

    /// Watch daemons that it leaves, too
    ///
    /// To their end or Ctrl-C. Without it the report comes with the program's end.
    #[arg(long)]
    pub daemons: bool,

    /// Judge as on a disk with a journal, wherever files lie
    ///
    /// As on ext4, XFS or Btrfs. In containers and virtual machines for tests, files may lie in
    /// memory, or where flushes cannot be followed.
    #[arg(long)]
    pub on_disk: bool,

    /// Judge only the files below this folder; may be repeated
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub under: Vec<PathBuf>,

    /// Exit with 1 where there is a finding of this weight or more
    #[arg(long, value_name = "WEIGHT", value_parser = words([
        ("warning", "A crash loses something", Severity::Warning),
        ("info", "Anything at all", Severity::Info)
    ]))]
    pub fail_on: Option<Severity>,

    /// Then check each folder that a power loss could have left
    ///
    /// As `wrote trace crash` does. Exit with 1 if a check fails; only then the record stays.
    #[arg(long, value_name = "CHECK", conflicts_with = "process")]
    pub check: Option<String>,

    /// Keep calls and their data, for `wrote trace crash`
    ///
    /// Those below --under, or below the current folder.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "files")]
    pub record: Option<PathBuf>,

    /// The most bytes of a record: the folder as it was, and all that is written
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = units::parse_size,
        requires = "record")]
    pub record_max: u64,

    /// How the report is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = words([
        ("table", "For people: the verdict last", Format::Table),
        ("json", "The whole of it, `wrote.trace/1`", Format::Json),
        ("markdown", "To paste in an issue", Format::Markdown)
    ]))]
    pub format: Format,

    /// Where the report goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Print the JSON Schema of the result, and run nothing
    #[arg(long, conflicts_with_all = ["files", "command"])]
    pub schema: bool,
}

impl TraceArgs {
    /// Whether a program is started.
    pub fn runs(&self) -> bool {
        self.verb.is_none() && !self.schema && self.process.is_none()
    }
}

/// The subcommands of `wrote trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Make and check what a power cut could have left of a recorded program
    Crash(TraceCrashArgs),
}

/// The arguments of `wrote trace crash`.
#[derive(Debug, Args)]
pub struct TraceCrashArgs {
    /// The record
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: PathBuf,

    /// The check, a program with its arguments: DIR is the folder
    #[arg(long, value_name = "'COMMAND DIR'", required_unless_present = "keep")]
    pub check: Option<String>,

    /// The most states that are made
    #[arg(long, value_name = "N", default_value_t = TraceCrashArgs::MOMENTS,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub moments: u64,

    /// The time that each check has
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::parse_duration)]
    pub timeout: Duration,

    /// Make this state alone, by its number (with the same --moments)
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    pub state: Option<u64>,

    /// Keep the state of --state in this new folder
    #[arg(long, value_name = "DIR", requires = "state", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
}

impl TraceCrashArgs {
    const MOMENTS: u64 = 200;
    const TIMEOUT: Duration = Duration::from_secs(10);

    /// A check of a record, with the settings that the command has without options.
    pub fn of(record: PathBuf, check: String) -> TraceCrashArgs {
        let (moments, timeout) = (TraceCrashArgs::MOMENTS, TraceCrashArgs::TIMEOUT);
        TraceCrashArgs { record, check: Some(check), moments, timeout, state: None, keep: None }
    }
}
