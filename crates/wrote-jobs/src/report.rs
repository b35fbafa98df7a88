//! The result document of jobs: from what each did to rows, findings and the machine.

mod before;
mod evidence;
mod known;
mod repeated;
mod row;
mod settings;

pub use before::Before;
pub use repeated::repeated;

use crate::jobs::GroupReport;
use std::time::Duration;
use wrote::Engine;
use wrote_machine::host;
use wrote_result::document::{Document, Program, SCHEMA, Scenario};

/// What the document says beside the jobs.
#[derive(Clone, Debug)]
pub struct About {
    /// The command line.
    pub command: Vec<String>,
    /// The commit that the program was built from.
    pub commit: Option<String>,
    /// When the run began.
    pub started_at: jiff::Timestamp,
    /// How long it took, files made ready included.
    pub elapsed: Duration,
    /// Whether blocks that were never written could be read.
    pub read_unwritten: bool,
}

/// What the groups of one job file did.
#[derive(Clone, Copy, Debug)]
pub struct JobFile<'a> {
    /// The file's name: the scenario's.
    pub name: &'a str,
    /// The groups, in their order.
    pub groups: &'a [GroupReport],
}

/// The document `wrote.result/1` of jobs: a scenario for each file, a row for each job and
/// direction.
///
/// The `numjobs` of a job are one row; what reads and writes has two, `NAME/read` and `NAME/write`.
/// There is no advice: jobs are what somebody chose, not ways that are compared.
pub fn document(files: &[JobFile], before: &Before, about: &About) -> Document {
    let mut known = known::Known::new(before, about.read_unwritten);
    let mut evidence = evidence::Rows::default();
    let scenarios = files.iter().map(|file| {
        let mut rows = Vec::new();
        for group in file.groups {
            let of_group = row::rows(group, &mut known);
            evidence.add(group, &of_group);
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
    let host = host::host(Engine::probe_io_uring().err().unwrap_or_else(|| "yes".into()));
    let target = before.shown();
    let findings = evidence.findings(&target, before, watched, &host);
    Document {
        schema: SCHEMA.into(),
        wrote: Program::this(about.commit.clone()),
        started_at: jiff::Timestamp::from_second(about.started_at.as_second())
            .expect("whole seconds of a time are a time")
            .to_string(),
        elapsed_s: about.elapsed.as_secs_f64(),
        command: about.command.clone(),
        host,
        target,
        scenarios,
        findings,
        advice: Vec::new(),
    }
}
