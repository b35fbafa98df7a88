//! Runs of jobs: one group after the other, the jobs of a group at once.

mod check;
mod crew;
mod files;
mod foresight;
mod group;
mod layout;
mod place;
mod regions;
mod reports;
mod resolve;
#[cfg(test)]
pub(crate) mod tests;
mod trial;
mod verify;

pub use files::Made;
pub(crate) use files::NEW_BLOCKS;
pub use layout::lay_out;
pub use place::file_key;
pub use regions::{Regions, file_of_rank};
pub use reports::{
    DirectionReport, GroupReport, Held, JobReport, Mark, Overlap, Permissions, Usage, Watcher,
};
pub(crate) use reports::{merged, span, span_s};
pub use resolve::resolve;

use crate::spec::JobSpec;
use wrote_result::{Error, Stop};

/// Refuses jobs like [`run`] before it creates a file, and writes nothing.
///
/// # Errors
///
/// As [`run`], as far as known before the first group has run.
pub fn check(
    specs: &[JobSpec],
    permissions: Permissions,
    watcher: &mut dyn Watcher,
) -> Result<(), Error> {
    check::check(specs, permissions, &mut |text| watcher.note(text))
}

/// Runs all jobs. Files that the run made stay; a run that fails or is interrupted removes them.
///
/// # Errors
///
/// [`Error::Usage`] when the jobs make no sense together, [`Error::Interrupted`] when a caller
/// raised `stop`, else [`Error::Failed`].
pub fn run(
    specs: &[JobSpec],
    permissions: Permissions,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<Vec<GroupReport>, Error> {
    let mut made = Made::default();
    let reports = run_with(specs, permissions, stop, watcher, &mut made)?;
    made.keep();
    Ok(reports)
}

/// Like [`run`], but the caller decides whether the files that the run made stay: another rank of
/// the same run may fail.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(
    specs: &[JobSpec],
    permissions: Permissions,
    stop: &Stop,
    watcher: &mut dyn Watcher,
    made: &mut Made,
) -> Result<Vec<GroupReport>, Error> {
    check(specs, permissions, watcher)?;
    let mut reports = Vec::new();
    for group in check::groups(specs) {
        reports.push(group::run_group(&group, made, permissions, stop, watcher)?);
        let unlinked = group.iter().filter(|spec| spec.unlink).flat_map(|spec| &spec.files);
        unlinked.into_iter().try_for_each(|path| made.remove(path))?;
    }
    Ok(reports)
}
