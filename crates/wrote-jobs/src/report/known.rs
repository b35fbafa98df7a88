//! The context of a group's rows: the disk before the run, names and files of earlier groups.

use super::before::Before;
use crate::jobs::GroupReport;
use crate::spec::JobSpec;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The context of a group's rows: the disk before the run, and the earlier groups.
#[derive(Debug)]
pub(super) struct Known<'a> {
    /// The disk under the files before all groups.
    pub before: &'a Before,
    /// Whether blocks that were never written could be read.
    pub read_unwritten: bool,
    pub names: Names,
    /// Files of earlier groups.
    files: HashSet<PathBuf>,
}

/// The names in use: each row has its own.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// Returns the name, with a number if it is taken.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let numbered = (2..).map(|number| format!("{wanted}#{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names.find(|name| self.0.insert(name.clone())).expect("there is no end of numbers")
    }
}

impl<'a> Known<'a> {
    pub(super) fn new(before: &'a Before, read_unwritten: bool) -> Known<'a> {
        Known { before, read_unwritten, names: Names::default(), files: HashSet::new() }
    }

    /// Returns whether all bytes of the file that a job uses were written and flushed when the
    /// clock started: before the run, or because the job also reads, and the run prepares what is
    /// read (M9).
    pub(super) fn is_settled(&self, file: &Path, spec: &JobSpec) -> bool {
        let overwrites = spec.overwrite && spec.rw.write;
        let made_ready = overwrites || spec.rw.read && !self.read_unwritten;
        let made_ready = made_ready && !self.is_changed(file);
        self.before.settled.contains(file) || made_ready
    }

    /// Returns whether an earlier group used the file.
    pub(super) fn is_changed(&self, file: &Path) -> bool {
        self.files.contains(file)
    }

    /// Adds the files of a finished group.
    pub(super) fn is_over(&mut self, group: &GroupReport) {
        self.files.extend(group.jobs.iter().flat_map(|job| job.spec.files.iter().cloned()));
    }
}
