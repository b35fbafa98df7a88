//! Processes that are killed while they append to a log, at random moments.

use crate::failure::{Failure, Tried};
use crate::report::{Counts, Outcome, Report};
use crate::repository::{CARGO_LIMIT, cargo, root};
use crate::run::{Show, run};

/// What is asked of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How many processes are killed.
    #[arg(long, value_name = "N", default_value_t = TIMES)]
    times: u32,
    /// What the moments are drawn from; a new one each time where none is given, and shown.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

const TIMES: u32 = 200;
/// The test that kills, which `cargo test` runs with fewer times.
const TEST: &str = "log_kill";

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments { times: TIMES, seed: None }
    }
}

/// Kills them.
pub fn lab(report: &mut Report, arguments: Arguments) -> Result<(), Failure> {
    report.step("lab kill", || kill(arguments))
}

fn kill(arguments: Arguments) -> Result<Outcome, Failure> {
    let skips = tempfile::NamedTempFile::new().tried("a temporary file")?;
    // In release: the faster the log is, the more a moment hits.
    let words = ["test", "--release", "--package", "wrote", "--test", TEST, "--", "--nocapture"];
    let mut command = cargo(&words);
    command.env("WROTE_KILLS", arguments.times.to_string()).current_dir(root());
    command.env("WROTE_SKIPS_FILE", skips.path());
    if let Some(seed) = arguments.seed {
        command.env("WROTE_SEED", seed.to_string());
    }
    let finished = run(&mut command, CARGO_LIMIT, Show::Live)?;
    let skipped = std::fs::read_to_string(skips.path()).tried(skips.path().display())?;
    Ok(Outcome::Tests(Counts::read(&finished, &skipped), finished.trouble))
}
