//! Which jobs run at once.

use super::draft::Draft;
use super::{Notes, ParseError};

/// Numbers the groups of a file as its jobs come.
#[derive(Default)]
pub(super) struct Groups {
    /// The group of the job before.
    current: Option<u32>,
    /// Which groups are reported as one.
    reported_as_one: Vec<u32>,
    /// The jobs that begin a group of reports in the middle of one, and their group.
    split: Vec<(u32, Draft)>,
}

impl Groups {
    /// The group of the next job: a new one where `stonewall` has it wait for those before.
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
        if draft.group_reporting {
            self.reported_as_one.push(group);
        }
        self.current = Some(group);
        group
    }

    /// `new_group` has jobs run at once and be reported apart. Where no jobs are added up it changes
    /// nothing; where they are it can't be done.
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
