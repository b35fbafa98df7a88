//! The arguments of a measurement by several ranks under `mpirun`.

use super::values::words;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote_bench::RankSettings;
use wrote_jobs::peers::Peers;
use wrote_result::document::RankFiles;
use wrote_result::{Error, units};

/// The text in a path that stands for the number of a rank.
const RANK: &str = "{rank}";

/// The arguments of several ranks.
#[derive(Clone, Debug, Args)]
pub struct RankArgs {
    /// Under mpirun: one file for all ranks, with a region for each (segments), or with their
    /// blocks in turn (strided)
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true,
        default_missing_value = "segments", help_heading = HEADING, value_parser = words([
        ("segments", "A region for each rank, one behind the other", RankFiles::Segments),
        ("strided", "The blocks of all ranks take turns", RankFiles::Strided)
    ]))]
    pub shared_file: Option<RankFiles>,

    /// Under mpirun: each rank reads what a rank of another node wrote, so that no node reads from
    /// its own cache
    #[arg(long, help_heading = HEADING)]
    pub reorder: bool,

    /// Under mpirun: a rank that comes this much later than the others is considered hung, and all
    /// end; it may take ten times as long as another in any case
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = HEADING,
        value_parser = units::parse_duration, allow_hyphen_values = true)]
    pub rank_timeout: Duration,
}

const HEADING: &str = "Several ranks (mpirun)";

impl RankArgs {
    /// The settings of the measurement.
    pub fn settings(&self) -> RankSettings {
        RankSettings { files: self.shared_file.unwrap_or_default(), reorder: self.reorder }
    }

    /// Refuses settings for several ranks if there is only one.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] names the setting.
    pub fn check(&self, peers: Peers) -> Result<(), Error> {
        let named = match self {
            _ if peers.are_many() => return Ok(()),
            RankArgs { shared_file: Some(_), .. } => "--shared-file",
            RankArgs { reorder: true, .. } => "--reorder",
            _ => return Ok(()),
        };
        Err(Error::Usage(format!("{named}: is for several ranks; mpirun -n N starts them")))
    }
}

/// A path with the number of the rank in it, where it has a place for that.
pub fn of_rank(path: &Path, peers: Peers) -> PathBuf {
    let replaced = path.to_str().map(|text| text.replace(RANK, &peers.rank().to_string()));
    replaced.map_or_else(|| path.to_owned(), PathBuf::from)
}
