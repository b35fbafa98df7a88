//! The groups of jobs that run at once.

use super::draft::Draft;
use super::{Notes, ParseError};

/// Numbers the groups of a file in the order of its jobs.
#[derive(Default)]
pub(super) struct Groups {
    /// The group of the previous job.
    current: Option<u32>,
    /// The groups that are reported as one.
    reported_as_one: Vec<u32>,
    /// The jobs with `new_group` in the middle of a group, and their group.
    split: Vec<(u32, Draft)>,
}

impl Groups {
    /// Returns the group of the next job: a new one where `stonewall` makes it wait.
    pub fn join(&mut self, draft: &Draft) -> u32 {
        let group = match self.current {
            None => 0,
            Some(current) if draft.stonewall => current + 1,
            Some(current) => {
                if draft.new_group {
                    self.split.push((current, draft.clone()));
                }
                current
            }
        };
        if draft.job.group_reporting {
            self.reported_as_one.push(group);
        }
        self.current = Some(group);
        group
    }

    /// Refuses `new_group` in a group that is reported as one. Elsewhere it has no effect: its jobs
    /// run at once and are reported apart anyway.
    pub fn check(&self, notes: &mut Notes) -> Result<(), ParseError> {
        for (group, draft) in &self.split {
            if self.reported_as_one.contains(group) {
                return Err(draft.wrong(
                    "new_group",
                    "jobs that run at once are reported as one by group_reporting; leave that out, \
                     or write stonewall to run them one after the other",
                ));
            }
            draft.note("new_group", "changes nothing, since each job is reported alone", notes);
        }
        Ok(())
    }
}
