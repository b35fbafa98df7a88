//! The arguments of `wrote fit`, as a request.

use super::OutputArgs;
use super::values::{formats, words};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use wrote_bench::fit::{FitRequest, Neighbour, Program};
use wrote_report::Format;
use wrote_result::units;

pub(super) const LONG_ABOUT: &str = "Judge whether the disk under PATH is good enough for a \
        program.\n\n\
        Makes the system calls that the program makes for its transactions (--show prints them, \
        with their sources), and compares the latency and rate with what the program's makers and \
        operators ask of a disk. A rule fits or does not fit where the whole 95 % interval is on \
        one side of its limit; else it is undecided, and the time that would decide it is named. \
        Where no rule is published, the figures stand alone. --beside repeats everything in turn \
        beside other work on the disk.\n\n\
        PROGRAM is a name of --list, or a file of your own (with a / or .toml in its name) in the \
        form that --show prints.\n\n\
        Files are written in a folder that the run makes under PATH (.wrote-XXXX) and removes; \
        the program's own files are not touched. The result goes to standard output, or to a file \
        with --output; progress and notes go to standard error.\n\n\
        The exit code is 0 where every published rule fits alone or there is none, 1 where one \
        does not fit, and 3 where one is undecided.";

pub(super) const EXAMPLES: &str = "Examples:\n  \
        wrote fit --list                          the programs\n  \
        wrote fit etcd /var/lib/etcd              is this disk good enough for etcd?\n  \
        wrote fit etcd /mnt/a --beside copy,sync  and beside a copy, and small flushes?\n  \
        wrote fit etcd /mnt/a --sustained         and after its burst?\n  \
        wrote fit --all /mnt/a                    which programs does this disk suit?\n  \
        wrote fit etcd /mnt/a --beside copy --neighbour /mnt/b\n  \
        \x20                                         beside a copy on another file system\n  \
        wrote fit --show sqlite > mine.toml       a pattern with its sources, to change\n  \
        wrote fit ./mine.toml /mnt/a --time 2min  a pattern of your own, for longer\n  \
        wrote fit etcd --quiet --format json      for a program; the exit code is the verdict";

/// The time of all runs for one program, and for all.
const TIME: Duration = Duration::from_secs(40);
const TIME_ALL: Duration = Duration::from_secs(300);

/// The arguments of `wrote fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// The program: a name of --list, or a TOML file of your own
    #[arg(value_name = "PROGRAM", required_unless_present_any = ["list", "all"])]
    pub program: Option<String>,

    /// The folder to measure in; the program's own folder is fine
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::DirPath)]
    pub path: PathBuf,

    /// The time of all runs [default: 40s; with --all 5min]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration,
        allow_hyphen_values = true)]
    pub time: Option<Duration>,

    /// Measure also beside other work on the disk
    #[arg(long, value_name = "WORK,..", value_delimiter = ',',
        value_parser = words(Neighbour::ALL))]
    pub beside: Vec<Neighbour>,

    /// Write for a minute (or =TIME) first, and before each run: judge the disk without its burst
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
        default_missing_value = "1min", value_parser = units::parse_duration)]
    pub sustained: Option<Duration>,

    /// The folder in which the other work is done, where it is not PATH
    #[arg(long, value_name = "PATH", requires = "beside", value_hint = ValueHint::DirPath)]
    pub neighbour: Option<PathBuf>,

    /// How the result is written
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = formats(
        "For people: the verdict last",
        "The whole result, `wrote.result/1`",
        "One line for each run"
    ))]
    pub format: Format,

    /// Where the result goes.
    #[command(flatten)]
    pub to: OutputArgs,

    /// Show no progress and no notes
    #[arg(short, long)]
    pub quiet: bool,

    /// Judge the disk for every program of --list: wrote fit --all PATH
    #[arg(long, conflicts_with_all = ["list", "show"])]
    pub all: bool,

    /// List the programs, and measure nothing
    #[arg(long, conflicts_with_all = ["program", "files", "show"])]
    pub list: bool,

    /// Print the program's pattern and rules with their sources, and measure nothing
    #[arg(long, conflicts_with = "files")]
    pub show: bool,
}

impl FitArgs {
    /// The request about `programs`. `command` is the command line as it was given.
    pub fn request(&self, programs: Vec<Program>, command: Vec<String>) -> FitRequest {
        let usual = if self.all { TIME_ALL } else { TIME };
        FitRequest {
            programs,
            path: self.path.clone(),
            time: self.time.unwrap_or(usual),
            runs: FitRequest::RUNS,
            sustained: self.sustained,
            neighbours: self.beside.clone(),
            neighbour_path: self.neighbour.clone(),
            command,
            commit: crate::commit(),
        }
    }
}
