//! The arguments of `wrote fit`, and their conversion into a request.

use super::OutputArgs;
use super::values::{formats, words};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use wrote_bench::Common;
use wrote_bench::fit::{FitRequest, Neighbour, Program};
use wrote_report::Format;
use wrote_result::units;

/// The arguments of `wrote fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// The program: a name of --list, or a TOML file of your own
    #[arg(value_name = "PROGRAM", required_unless_present_any = ["list", "all"])]
    pub program: Option<String>,

    /// The folder to measure in; the program's own folder is fine
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::DirPath)]
    pub path: PathBuf,

    /// Time of the whole measurement [default: 40s, with --all 5min; as much again for each WORK]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration,
        allow_hyphen_values = true)]
    pub time: Option<Duration>,

    /// Runs of each pattern, in whatever time they take, instead of up to 8 within --time
    #[arg(long, value_name = "N", value_parser = units::parse_count::<{ Common::RUNS_MAX }>,
        allow_hyphen_values = true)]
    pub runs: Option<u32>,

    /// Also measure under background load on the disk
    #[arg(long, value_name = "WORK,..", value_delimiter = ',',
        value_parser = words(Neighbour::ALL))]
    pub beside: Vec<Neighbour>,

    /// Write for a minute (or =TIME) first, and before each run: judge the disk after its burst
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
        default_missing_value = "1min", value_parser = units::parse_duration)]
    pub sustained: Option<Duration>,

    /// The folder of the background load, if not PATH
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
    /// Returns the request about `programs`. `command` is the command line as given.
    pub fn request(&self, programs: Vec<Program>, command: Vec<String>) -> FitRequest {
        FitRequest {
            programs,
            path: self.path.clone(),
            time: self.time,
            runs: self.runs,
            sustained: self.sustained,
            neighbours: self.beside.clone(),
            neighbour_path: self.neighbour.clone(),
            command,
            commit: crate::commit(),
        }
    }
}
