//! A scenario: a question about a disk, with rows that answer it. The module is separate because
//! every scenario and the loop depend on it.

use crate::names::is_below;
use crate::plan::{Call, Plan};
use wrote_jobs::findings::Evidence;
use wrote_result::Error;
use wrote_result::document::{Advice, Answer, Finding};

/// A scenario with its settings. To add a scenario, add two lines to the registry (`scenarios.rs`).
pub trait Scenario {
    /// Returns the scenario's name in results and in `--only`.
    fn name(&self) -> &'static str;
    /// Returns the rows that a request may name.
    fn catalogue(&self) -> Vec<Listed> {
        Vec::new()
    }
    /// Returns whether `name` refers to the scenario, one of its workloads, or one of its rows.
    fn knows(&self, name: &str) -> bool {
        let is_called = |of: &Listed| name == of.scenario || of.is_called(name);
        self.catalogue().iter().any(is_called)
    }
    /// Returns whether the scenario's operations support a rate (M5).
    fn takes_rate(&self) -> bool {
        true
    }
    /// Returns whether the scenario was requested and replaces all other scenarios.
    fn is_alone(&self) -> bool {
        false
    }
    /// Checks the settings, and plans the requested rows as one measurement, several, or none. If a
    /// plan needs the disk's speed, the scenario is planned a second time, with the speed.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for an invalid setting, [`Error::Failed`] if the disk has too little space.
    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error>;
    /// Returns the findings on the scenario's rows.
    fn findings(&self, _: &Evidence) -> Vec<Finding> {
        Vec::new()
    }
    /// Returns advice on writing that follows from the scenario's rows.
    fn advice(&self, _: &Evidence) -> Vec<Advice> {
        Vec::new()
    }
    /// Returns the headline figures.
    fn answers(&self, _: &Evidence) -> Vec<Answer> {
        Vec::new()
    }
}

/// A row that can be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of the scenario: `ladder`.
    pub scenario: &'static str,
    /// The name of the row: `stream/direct-io_uring`. Rows that differ only in a number share an
    /// entry: `peak/read`.
    pub row: &'static str,
    /// The method of writing, in words.
    pub way: &'static str,
    /// The level that a write survives if there are no fallbacks; `None` for reads.
    pub survives: Option<wrote::Survives>,
}

impl Listed {
    /// Returns whether `name` refers to the row or its workload (the part before a `/`).
    pub fn is_called(&self, name: &str) -> bool {
        is_below(self.row, name)
    }
}
