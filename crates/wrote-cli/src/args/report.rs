//! The arguments of `wrote report`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

pub(super) const LONG_ABOUT: &str = "Make one HTML page of results, to look at and to send.\n\nThe \
        page begins with the answer: how to write here, how fast that is, and what it survives. \
        Then come the findings, and charts and a table for each scenario. It opens from disk, asks \
        nothing of any network, prints, and needs no script to be read. The results themselves are \
        inside, and can be saved from it.\n\nEach RESULT is JSON that wrote bench, run, langs, \
        compare or doctor wrote with --format json, or fio with --output-format=json. Several \
        results of benchmarks or jobs stand side by side; where all are of one machine and path, \
        also over time.";

pub(super) const EXAMPLES: &str = "Examples:\n  \
        wrote report disk.json -o disk.html              one result\n  \
        wrote report ssd.json usb.json -o disks.html     two disks side by side\n  \
        wrote report monday.json friday.json > week.html over time\n  \
        wrote bench --html disk.html                     measure, and make the page at once";

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
