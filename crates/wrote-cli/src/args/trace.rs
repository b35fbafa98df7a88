//! The arguments of `wrote trace`.

use super::OutputArgs;
use super::values::words;
use clap::{Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wrote_report::Format;
use wrote_result::document::Severity;
use wrote_result::units;
use wrote_trace::Sign;

pub(super) const LONG_ABOUT: &str = "Run COMMAND, and report what of its writes would survive a \
        power cut.\n\n\
        Stops the program and all that it starts at each call that changes files, without root and \
        without a change to the program, and keeps account of what was flushed and what was not: \
        bytes and names. At its end it lists each file with what it survives, and findings: what \
        was done wrong, when, and how it is done right. docs/trace.md explains each.\n\n\
        The program keeps its input, its output, its terminal, its signals and its exit code. The \
        report goes to standard error, or to a file with --output. A setuid program runs without \
        the rights of its owner. io_uring is refused, so that programs fall back to calls that are \
        seen; writes through shared memory are not seen, and said.\n\n\
        The exit code is the program's own; 1 with --fail-on where a finding is found; 127 where \
        there is no such program, 126 where it can't be run.";

pub(super) const EXAMPLES: &str = "Examples:\n  \
        wrote trace ./save-settings             what would survive of what it saves?\n  \
        wrote trace --ack stdout ./server       was it safe when the program said so?\n  \
        wrote trace --under /data -- make test  of the files below /data alone\n  \
        wrote trace --fail-on warning -o trace.txt -- cargo test\n  \
        \x20                                       for CI: fail where a save is not safe\n  \
        wrote trace --format json -o t.json ./save   the whole of it, for a program\n  \
        wrote trace --record r ./save && wrote trace crash r --check './load DIR'\n  \
        \x20                                       can it be read after every power cut?";

const CRASH_LONG_ABOUT: &str = "Make the folders that a power cut could have left while a recorded \
        program ran, and run a check on each.\n\n\
        FILE is of `wrote trace --record FILE COMMAND`. The states are those that ext4, XFS and \
        Btrfs leave: names change in order, and of bytes that no flush covered any may be missing. \
        The worst come first; the same FILE gives the same states by the same numbers.\n\n\
        The check is a program with its arguments, without a shell: a word DIR stands for the \
        folder, which comes last where there is none. It may change the folder. The variable \
        WROTE_ANSWERS has how often the program had answered before the power cut (see --ack; its \
        end counts): what it had answered for must be there. A check fails by its exit code, by a \
        signal, or by the time limit.\n\n\
        The exit code is 0 where all states pass, 1 where one fails.";

const CRASH_EXAMPLES: &str = "Examples:\n  \
        wrote trace crash r --check 'python3 load.py DIR'   each state in a new folder\n  \
        wrote trace crash r --check './load DIR' --moments 1000\n  \
        wrote trace crash r --state 17 --keep state-17      one of them, to look at";

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

    /// After it, run its writes again beside the advised way, in turn, in a new folder beside each
    /// file: how much faster could it be?
    #[arg(long, conflicts_with = "process")]
    pub replay: bool,

    /// The sign that something is saved, to judge each and not only the end: exit, stdout, socket,
    /// or /REGEX/ for what standard output, standard error or a socket gets
    #[arg(long, value_name = "WHEN", default_value = "exit")]
    pub ack: Sign,

    /// Watch reads too: was what was read back on the disk?
    #[arg(long)]
    pub reads: bool,

    /// Judge only the files below this folder; may be repeated
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub under: Vec<PathBuf>,

    /// Exit with 1 where there is a finding of this weight or more
    #[arg(long, value_name = "WEIGHT", value_parser = words([
        ("warning", "A crash loses something", Severity::Warning),
        ("info", "Anything at all", Severity::Info)
    ]))]
    pub fail_on: Option<Severity>,

    /// Keep the calls and their data in this file, for `wrote trace crash`: those below --under, or
    /// below the current folder
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

/// The subcommands of `wrote trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Make what a power cut could have left of a recorded program, and check each
    #[command(long_about = CRASH_LONG_ABOUT, after_help = CRASH_EXAMPLES)]
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
    #[arg(long, value_name = "N", default_value_t = 200,
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
