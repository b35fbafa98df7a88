//! The arguments of a measurement by several ranks under `mpirun`. This is a separate file because
//! `bench` and `run` share them.

use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote_jobs::peers::Peers;
use wrote_result::document::RankFiles;
use wrote_result::{Error, units};

/// The part of a path that is replaced by the number of a rank.
const RANK: &str = "{rank}";

/// The arguments of several ranks.
#[derive(Clone, Debug, Default, Args)]
pub struct RankArgs {
    /// Under mpirun: one file for all ranks, with one region after another, one for each rank
    #[arg(long, help_heading = HEADING)]
    pub shared_file: bool,

    /// Under mpirun: a rank that is this much later than the others is considered hung, and all
    /// end; it may always take ten times as long as another
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = HEADING,
        value_parser = units::parse_duration, allow_hyphen_values = true)]
    pub rank_timeout: Duration,
}

const HEADING: &str = "Several ranks (mpirun)";

impl RankArgs {
    /// Returns how the ranks divide their files.
    pub fn files(&self) -> RankFiles {
        if self.shared_file { RankFiles::Segments } else { RankFiles::PerRank }
    }

    /// Refuses a shared file if there is only one rank.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`], which names the setting.
    pub fn check(&self, peers: Peers) -> Result<(), Error> {
        if peers.are_many() || !self.shared_file {
            return Ok(());
        }
        let text = "--shared-file: is for several ranks; mpirun -n N starts them";
        Err(Error::Usage(text.into()))
    }
}

/// Returns the path with `{rank}` replaced by the number of the rank.
pub fn of_rank(path: &Path, peers: Peers) -> PathBuf {
    let replaced = path.to_str().map(|text| text.replace(RANK, &peers.rank().to_string()));
    replaced.map_or_else(|| path.to_owned(), PathBuf::from)
}
