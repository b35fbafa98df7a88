//! The result document of jobs: rows, findings and the machine, derived from the reports of the
//! jobs.

mod before;
mod evidence;
mod merge;
mod row;
mod settings;

pub use before::Before;
pub(crate) use before::Names;
pub use merge::of_all_ranks;
pub use row::{Repeated, join, sum_up};
pub use settings::{fallback, of_spec};

use crate::jobs::{GroupReport, span_s};
use crate::peers::Peers;
use before::Known;
use std::time::Duration;

use crate::machine::host;
use wrote_result::Error;
use wrote_result::document::{Document, Program, Ranks, SCHEMA, Scenario, Source};

/// The parts of the document that do not come from the jobs.
#[derive(Clone, Debug)]
pub struct About {
    /// The command line.
    pub command: Vec<String>,
    /// The commit from which the program was built.
    pub commit: Option<String>,
    /// When the run started.
    pub started_at: jiff::Timestamp,
    /// The duration of the run, including the preparation of its files.
    pub elapsed: Duration,
    /// Whether jobs may read blocks that were never written.
    pub read_unwritten: bool,
}

/// Returns the document `wrote.result/1` of jobs. It has a scenario for each file with its groups,
/// and a row for each job and direction.
///
/// The `numjobs` clones of a job share a row. A job that reads and writes has two rows, `NAME/read`
/// and `NAME/write`. The document contains no advice, because it compares no methods. If there are
/// several ranks, rank 0 returns the document of all ranks, and every other rank returns the
/// document of its own jobs.
///
/// # Errors
///
/// The errors of [`of_all_ranks`]; none if `peers` is a single process.
pub fn document(
    files: &[(&str, &[GroupReport])],
    before: &Before,
    about: &About,
    peers: Peers,
    ranks: Option<Ranks>,
) -> Result<Document, Error> {
    let mut known = Known::new(before, about.read_unwritten);
    let mut evidence = evidence::Rows::default();
    let mut scenarios = Vec::new();
    for (name, groups) in files {
        let mut rows = Vec::new();
        for group in *groups {
            let mut of_group = Vec::new();
            for (run, jobs) in row::rows(group, &mut known) {
                peers.is_over(span_s(jobs));
                of_group.extend(of_all_ranks(run, before.device(), peers)?.rows());
            }
            evidence.add(group, of_group.clone());
            rows.extend(of_group);
        }
        scenarios.push(Scenario {
            name: (*name).into(),
            question: format!("How fast are the jobs of {name} here?"),
            rows,
            knee: None,
        });
    }
    let watched = before.watched();
    let host = host::host();
    let target = before.shown();
    let findings = evidence.findings(&target, before, watched, &host);
    Ok(Document {
        schema: SCHEMA.into(),
        wrote: Program::this(about.commit.clone()),
        started_at: format!("{:.0}", about.started_at),
        elapsed_s: about.elapsed.as_secs_f64(),
        source: Some(Source::Run),
        command: about.command.clone(),
        host,
        target,
        ranks,
        scenarios,
        findings,
        answers: None,
        fit: None,
        languages: None,
        advice: Vec::new(),
    })
}
