//! The arguments of `wrote trace`.

use super::OutputArgs;
use super::values::words;
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use wrote_report::Format;
use wrote_result::document::Severity;
use wrote_result::trace::Ack;

pub(super) const LONG_ABOUT: &str = "Run COMMAND, and say what of its writes would survive a power \
        cut.\n\n\
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
        wrote trace --format json -o t.json ./save   the whole of it, for a program";

/// The arguments of `wrote trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The program and its arguments
    #[arg(value_name = "COMMAND", required_unless_present = "schema", trailing_var_arg = true,
        allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

    /// The sign that something is saved: judge each, not only the end
    #[arg(long, value_name = "WHEN", default_value = "exit", value_parser = words([
        ("exit", "The end of the program", Ack::Exit),
        ("stdout", "A write to standard output", Ack::Stdout),
        ("socket", "An answer on a socket", Ack::Socket)
    ]))]
    pub ack: Ack,

    /// Judge only the files below this folder; may be repeated
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub under: Vec<PathBuf>,

    /// Exit with 1 where there is a finding of this weight or more
    #[arg(long, value_name = "WEIGHT", value_parser = words([
        ("warning", "A crash loses something", Severity::Warning),
        ("info", "Anything at all", Severity::Info)
    ]))]
    pub fail_on: Option<Severity>,

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
