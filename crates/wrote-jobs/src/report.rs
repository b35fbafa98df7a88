//! The result document of jobs: rows, findings and the machine, from the jobs' reports.

mod before;
mod evidence;
mod merge;
mod ranks;
mod row;
mod settings;

pub use before::Before;
pub(crate) use before::Names;
pub use merge::{Facts, merged, span_of};
pub use ranks::{RankFacts, document_of_ranks};
pub use row::{Repeated, join, sum_up};
pub use settings::fallback;

use crate::jobs::GroupReport;
use before::Known;
use std::time::Duration;

use crate::machine::host;
use wrote_result::document::{Document, Program, SCHEMA, Scenario, Source};

/// Parts of the document beside the jobs.
#[derive(Clone, Debug)]
pub struct About {
    /// The command line.
    pub command: Vec<String>,
    /// The commit that the program was built from.
    pub commit: Option<String>,
    /// The start of the run.
    pub started_at: jiff::Timestamp,
    /// The time of the run, including the preparation of its files.
    pub elapsed: Duration,
    /// Jobs may read blocks that were never written.
    pub read_unwritten: bool,
}

/// The reports of one job file.
#[derive(Clone, Copy, Debug)]
pub struct JobFile<'a> {
    /// The file's name: the scenario's.
    pub name: &'a str,
    /// The groups, in their order.
    pub groups: &'a [GroupReport],
}

/// Returns the document `wrote.result/1` of jobs: a scenario for each file, a row for each job and
/// direction.
///
/// The `numjobs` of a job are one row; a job that reads and writes has two, `NAME/read` and
/// `NAME/write`. The document has no advice, since it compares no ways.
pub fn document(files: &[JobFile], before: &Before, about: &About) -> Document {
    let mut known = Known::new(before, about.read_unwritten);
    let mut evidence = evidence::Rows::default();
    let scenarios = files.iter().map(|file| {
        let mut rows = Vec::new();
        for group in file.groups {
            let of_group = row::rows(group, &mut known);
            evidence.add(group, of_group.clone());
            rows.extend(of_group);
        }
        Scenario {
            name: file.name.into(),
            question: format!("How fast are the jobs of {} here?", file.name),
            rows,
            knee: None,
        }
    });
    let scenarios = scenarios.collect();
    let watched = before.watched();
    let host = host::host();
    let target = before.shown();
    let findings = evidence.findings(&target, before, watched, &host);
    Document {
        schema: SCHEMA.into(),
        wrote: Program::this(about.commit.clone()),
        started_at: format!("{:.0}", about.started_at),
        elapsed_s: about.elapsed.as_secs_f64(),
        source: Some(Source::Run),
        command: about.command.clone(),
        host,
        target,
        ranks: None,
        scenarios,
        findings,
        answers: None,
        fit: None,
        languages: None,
        advice: Vec::new(),
    }
}
