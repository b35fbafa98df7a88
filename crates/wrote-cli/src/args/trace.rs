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

    /// Attach to this process until it ends or Ctrl-C
    #[arg(short, long = "pid", value_name = "PID",
        conflicts_with_all = ["command", "record"])]
    pub process: Option<i32>,

    /// Save the program's writes as jobs for `wrote run`, as they were and as advised
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "files")]
    pub job: Option<PathBuf>,

    /// The sign that data is saved: exit, stdout, socket, or /REGEX/ in standard output, standard
    /// error or a socket; each sign is judged
    #[arg(long, value_name = "WHEN", default_value = "exit")]
    pub ack: Sign,

    /// Whether the program may use io_uring
    #[arg(long, value_name = "ANSWER", default_value = "allow", action = ArgAction::Set,
        value_parser = words([
        ("allow", "Its operations are judged like system calls; polled rings are refused", true),
        ("refuse", "Refused, as by a kernel without it: programs fall back to system calls", false)
    ]))]
    pub io_uring: bool,

    /// Also watch daemons that it leaves behind
    ///
    /// Until they end, or until Ctrl-C. Without it the report comes when the program ends.
    #[arg(long)]
    pub daemons: bool,

    /// Judge as if all files were on a disk with a journal
    ///
    /// As on ext4, XFS or Btrfs. In containers and virtual machines for tests, files may lie in
    /// memory, or where flushes cannot be followed.
    #[arg(long)]
    pub on_disk: bool,

    /// Judge only files below FOLDER; may be repeated
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub under: Vec<PathBuf>,

    /// Exit with 1 if there is a finding of at least this severity, or something can't be judged
    #[arg(long, value_name = "WEIGHT", value_parser = words([
        ("warning", "A crash may lose data", Severity::Warning),
        ("info", "Any finding", Severity::Info)
    ]))]
    pub fail_on: Option<Severity>,

    /// Afterwards run CHECK on the folders that a power loss could have left
    ///
    /// As `wrote trace crash` does, judged as on a disk with a journal. Exit with 1 if a check
    /// fails; only then is the record kept. Exit with 3 if something was not checked or not seen.
    #[arg(long, value_name = "CHECK", conflicts_with = "process")]
    pub check: Option<String>,

    /// Time limit of all checks: states that were not checked are counted, and exit with 3
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::parse_duration,
        requires = "check", hide_short_help = true)]
    pub within: Duration,

    /// Write the outcome of --check for CI, too, as JUnit's XML; FILE must not exist
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "files",
        requires = "check", hide_short_help = true)]
    pub junit: Option<PathBuf>,

    /// Write the findings and the outcome of --check as SARIF, too; FILE must not exist
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "files",
        hide_short_help = true)]
    pub sarif: Option<PathBuf>,

    /// Keep a record of the calls for `wrote trace crash`
    ///
    /// With their data, below --under or the current folder.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "files")]
    pub record: Option<PathBuf>,

    /// Limit on the bytes of a record: the folder as it was, and all that is written
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = units::parse_size,
        requires = "record")]
    pub record_max: u64,

    /// How the report is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = words([
        ("table", "For people: the verdict last", Format::Table),
        ("json", "The whole of it, `wrote.trace/1`", Format::Json),
        ("markdown", "To paste into an issue", Format::Markdown),
        ("github", "Annotations for GitHub Actions, at lines of the source", Format::Github)
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
    /// Returns whether a program is started.
    pub fn runs(&self) -> bool {
        self.verb.is_none() && !self.schema && self.process.is_none()
    }
}

/// The subcommands of `wrote trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Check the states that a power loss could have left
    Crash(TraceCrashArgs),
}

/// The arguments of `wrote trace crash`.
#[derive(Debug, Args)]
pub struct TraceCrashArgs {
    /// The record that --record made
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: PathBuf,

    /// The program to run on each state, with its arguments: DIR stands for the folder
    #[arg(long, value_name = "'COMMAND DIR'", required_unless_present = "keep")]
    pub check: Option<String>,

    /// Limit on the number of states
    #[arg(long, value_name = "N", default_value_t = TraceCrashArgs::MOMENTS,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub moments: u64,

    /// Time limit of each check
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::parse_duration)]
    pub timeout: Duration,

    /// Time limit of all checks
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::parse_duration)]
    pub within: Duration,

    /// Make only this state, by its number (with the same --moments)
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    pub state: Option<u64>,

    /// Keep the state of --state in this new folder
    #[arg(long, value_name = "DIR", requires = "state", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
}

impl TraceCrashArgs {
    const MOMENTS: u64 = 200;
    const TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns the arguments for checking a record, with the default values of all other settings.
    pub fn of(record: PathBuf, check: String, within: Duration) -> TraceCrashArgs {
        let (moments, timeout) = (TraceCrashArgs::MOMENTS, TraceCrashArgs::TIMEOUT);
        let (check, state, keep) = (Some(check), None, None);
        TraceCrashArgs { record, check, moments, timeout, within, state, keep }
    }
}
