//! Jobs that several ranks run at once: each on its own files, or on its regions of theirs.

use super::plan;
use crate::args::RunArgs;
use crate::progress::JobReporter;
use wrote_jobs::jobs::{self, GroupReport, Made, Permissions, Watcher};
use wrote_jobs::peers::Peers;
use wrote_jobs::report::Before;
use wrote_jobs::spec::JobSpec;
use wrote_result::{Error, Stop};

/// Runs the jobs as one of the ranks. Rank 0 reports to the user.
pub(super) fn run_jobs(
    arguments: &RunArgs,
    specs: &[JobSpec],
    reporter: &mut JobReporter,
    peers: Peers,
    stop: &Stop,
) -> Result<(Before, Vec<GroupReport>), Error> {
    let (permissions, is_shared) = (arguments.permissions(), arguments.ranks.shared_file);
    // Writing to an existing file is refused here, before any rank creates one.
    let own = if is_shared { specs.to_vec() } else { jobs::on_own_files(specs, peers) };
    jobs::check(&own, permissions, &mut ())?;
    peers.barrier("the checks")?;
    // Dropping either removes the files of a run that failed, here or on another rank.
    let (mut shared, mut made) = (Made::default(), Made::default());
    let mut placed = own;
    if is_shared {
        shared = jobs::make_shared(specs, peers, stop)?;
        placed = jobs::on_regions(specs, peers)?;
    }
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
    shared.keep();
    made.keep();
    Ok((before, groups))
}
