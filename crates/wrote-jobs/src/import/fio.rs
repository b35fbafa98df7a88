//! A converter of fio's document into ours, with findings on costs that fio's numbers omit.

use super::rows;
use super::rows::{Output, OutputJob};
use super::{neither, refused};
use crate::findings::no_io;
use crate::fio;
use crate::report::Names;
use serde_json::Value;
use wrote_result::Error;
use wrote_result::document::{
    Direction, Document, Finding, Flush, Program, Row, SCHEMA, Scenario, Source,
};
use wrote_result::finding::left_out;

/// The engines whose writes go to the page cache unless they are direct. Other engines write to the
/// network or to memory that is mapped without a cache, or discard the data.
const CACHED_ENGINES: [&str; 11] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring", "splice",
    "mmap", "threads",
];

/// Converts fio's document into a single scenario, with a row for each job and direction. The
/// `numjobs` clones of a job share a row.
pub(super) fn document(name: &str, value: Value) -> Result<Document, Error> {
    if value.get("jobs").is_none() {
        let several = "is fio's result of several machines (client_stats), which is not read";
        let is_of_several = value.get("client_stats").is_some();
        return Err(if is_of_several { refused(name, several) } else { neither(name) });
    }
    let jobs = value["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if jobs.iter().any(|job| job.get("mixed").is_some() && job.get("read").is_none()) {
        let mixed = "mixes reads and writes (unified_rw_reporting=mixed), which can't be \
                     separated; run fio with unified_rw_reporting=both";
        return Err(refused(name, mixed));
    }
    let output: Output = serde_json::from_value(value)
        .map_err(|error| refused(name, &format!("is not the JSON of fio 3: {error}")))?;
    let (mut rows, mut names): (Vec<Row>, _) = (Vec::new(), Names::default());
    let (mut unflushed, mut flushed_late, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for batch in output.jobs.chunk_by(OutputJob::is_clone_of) {
        let job = &batch[0];
        let spec = fio::described([&output.global, &job.options]);
        if let Some(failure) = batch.iter().find(|job| job.error != 0) {
            failed.push((job.jobname.clone(), format!("fio: error {}", failure.error)));
            continue;
        }
        for mut row in rows::rows(batch, &spec) {
            row.name = names.take(&row.name);
            if is_unflushed(&row) {
                unflushed.push(row.name.clone());
                flushed_late.extend(spec.is_on("fsync_on_close").then(|| row.name.clone()));
            }
            rows.push(row);
        }
    }
    if let ([], [(job, what), ..]) = (&rows[..], &failed[..]) {
        return Err(refused(name, &format!("all of its jobs failed, such as {job}: {what}")));
    }
    if rows.is_empty() {
        return Err(refused(name, "none of its jobs has read or written anything"));
    }
    let own = [no_io(&rows), flush_outside_clock(&unflushed, &flushed_late), left_out(&failed)];
    let mut findings: Vec<Finding> = own.into_iter().flatten().collect();
    wrote_result::finding::sort(&mut findings);
    Ok(Document {
        schema: SCHEMA.into(),
        source: Some(Source::Fio),
        wrote: Program { version: output.version, commit: None, debug_build: false },
        started_at: jiff::Timestamp::from_second(output.timestamp)
            .map(|time| time.to_string())
            .unwrap_or_default(),
        elapsed_s: rows.iter().flat_map(|row| &row.runs).map(|run| run.elapsed_s).sum(),
        scenarios: vec![Scenario {
            name: "fio".into(),
            question: "What did fio's jobs do?".into(),
            rows,
            knee: None,
        }],
        findings,
        ..Document::default()
    })
}

/// Returns whether a row's writes were still in the page cache when its clock stopped.
fn is_unflushed(row: &Row) -> bool {
    let asked = &row.settings.asked;
    let is_cached = !asked.direct && CACHED_ENGINES.contains(&&*asked.ioengine.to_string());
    row.direction == Direction::Write && is_cached && asked.sync == Flush::None
}

/// Returns the finding on unflushed rows; `None` if there are none. The rows in `flushed_late` were
/// flushed after the clock stopped.
fn flush_outside_clock(unflushed: &[String], flushed_late: &[String]) -> Option<Finding> {
    if unflushed.is_empty() {
        return None;
    }
    let late = if flushed_late.is_empty() {
        String::new()
    } else {
        format!(". fsync_on_close flushes after the clock stopped ({})", flushed_late.join(", "))
    };
    let text = format!(
        "Memory speed, in whole or in part: writes were in the page cache, unflushed, when the \
         clock stopped ({}){late}. Set end_fsync=1 in the job to count the flush, or direct=1 to \
         bypass the cache",
        unflushed.join(", ")
    );
    Finding::warning("flush-outside-clock", text)
        .with("rows", unflushed)
        .with("fsync_on_close", flushed_late)
        .into()
}
