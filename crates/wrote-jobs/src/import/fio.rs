//! The conversion of fio's document into one of ours.

use super::findings as imported;
use super::options::Options;
use super::output::{Output, OutputJob};
use super::rows;
use super::{neither, refused};
use serde_json::Value;
use wrote_result::Error;
use wrote_result::document::{Document, Host, Program, Row, SCHEMA, Scenario, Target};

/// Converts fio's document: one scenario, a row for each job and direction, its `numjobs` together.
pub(super) fn document(name: &str, value: Value) -> Result<Document, Error> {
    if value.get("jobs").is_none() {
        let what = if value.get("client_stats").is_some() {
            "is fio's result of several machines (client_stats), which is not read"
        } else {
            return Err(neither(name));
        };
        return Err(refused(name, what));
    }
    let output: Output = serde_json::from_value(value)
        .map_err(|error| refused(name, &format!("is not the JSON of fio 3: {error}")))?;
    let mut rows: Vec<Row> = Vec::new();
    let mut unflushed = Vec::new();
    let mut failed = Vec::new();
    for batch in output.jobs.chunk_by(OutputJob::is_clone_of) {
        let job = &batch[0];
        let options = Options { global: &output.global, own: &job.options };
        if let Some(failure) = batch.iter().find(|job| job.error != 0) {
            failed.push((job.jobname.clone(), format!("fio: error {}", failure.error)));
            continue;
        }
        for mut row in rows::rows(batch, &options) {
            row.name = free(&row.name, &rows);
            unflushed.extend(imported::Unflushed::of(&row, options.flag("fsync_on_close")));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(refused(name, "no job in it has read or written anything"));
    }
    let mut findings = imported::find(&unflushed, &failed);
    wrote_result::finding::sort(&mut findings);
    Ok(Document {
        schema: SCHEMA.into(),
        wrote: Program { version: output.version, commit: None, debug_build: false },
        started_at: jiff::Timestamp::from_second(output.timestamp)
            .map(|time| time.to_string())
            .unwrap_or_default(),
        elapsed_s: rows.iter().flat_map(|row| &row.runs).map(|run| run.elapsed_s).sum(),
        command: Vec::new(),
        host: Host::default(),
        target: Target::default(),
        scenarios: vec![Scenario {
            name: "fio".into(),
            question: "What did fio's jobs do?".into(),
            rows,
            knee: None,
        }],
        findings,
        advice: Vec::new(),
    })
}

/// Returns the name, with a number if it is taken.
fn free(wanted: &str, rows: &[Row]) -> String {
    let numbered = (2..).map(|number| format!("{wanted}#{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    let is_free = |name: &String| !rows.iter().any(|row| row.name == *name);
    names.find(is_free).expect("there is no end of numbers")
}
