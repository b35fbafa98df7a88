//! Jobs that several ranks run at once: each on its own files, or on its regions of theirs.

use super::plan;
use crate::args::RunArgs;
use crate::progress::JobReporter;
use wrote_jobs::jobs::{self, GroupReport, Made, Permissions, Regions, Watcher, file_of_rank};
use wrote_jobs::peers::Peers;
use wrote_jobs::report::Before;
use wrote_jobs::spec::JobSpec;
use wrote_result::document::RankFiles;
use wrote_result::{Error, Stop};

/// Runs the jobs as one of the ranks. Rank 0 reports to the user.
pub(super) fn run_jobs(
    arguments: &RunArgs,
    specs: &[JobSpec],
    reporter: &mut JobReporter,
    peers: Peers,
    stop: &Stop,
) -> Result<(Before, Vec<GroupReport>), Error> {
    let settings = arguments.ranks.settings();
    let (permissions, is_shared) = (arguments.permissions(), settings.files != RankFiles::PerRank);
    let shift = if settings.reorder { peers.shift() } else { 0 };
    let regions = Regions { peers, files: settings.files, shift };
    // Writing to an existing file is refused here, before any rank creates one.
    let own = Regions { shift: 0, ..regions }.place(specs, file_of_rank)?;
    jobs::check(if is_shared { specs } else { &own }, permissions, &mut ())?;
    peers.barrier("the checks")?;
    // Dropping either removes the files of a run that failed, here or on another rank.
    let (prepared, mut made) = (regions.prepare(specs, file_of_rank, stop)?, Made::default());
    let placed = regions.place(specs, file_of_rank)?;
    let permissions = Permissions { overwrite: permissions.overwrite || is_shared, ..permissions };
    let before = Before::examine(&placed, permissions)?;
    let mut nobody = ();
    let watcher: &mut dyn Watcher = if peers.is_first() {
        reporter.announce(format!("each of {} ranks: {}", peers.ranks(), plan::announced(&placed)));
        reporter
    } else {
        &mut nobody
    };
    let groups = jobs::run_with(&placed, permissions, stop, watcher, &mut made, peers)?;
    peers.barrier("the end")?;
    prepared.keep();
    made.keep();
    Ok((before, groups))
}
