//! The conversion of fio's document into one of ours, with findings on costs that its numbers leave
//! out.

use super::options::Options;
use super::rows;
use super::rows::{Output, OutputJob};
use super::{neither, refused};
use crate::findings::no_io;
use serde_json::{Value, json};
use wrote_result::Error;
use wrote_result::document::{
    Direction, Document, Finding, Flush, Host, Program, Row, SCHEMA, Scenario, Severity, Target,
};
use wrote_result::finding::{finding, left_out};

/// Engines whose writes go to the page cache unless they are direct. Other engines write to the
/// network, to memory that is mapped without a cache, or discard the data.
const CACHED_ENGINES: [&str; 11] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring", "splice",
    "mmap", "threads",
];

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
            unflushed.extend(Unflushed::of(&row, options.flag("fsync_on_close")));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(refused(name, "no job in it has read or written anything"));
    }
    let findings = [no_io(&rows), flush_outside_clock(&unflushed), left_out(&failed)];
    let mut findings: Vec<Finding> = findings.into_iter().flatten().collect();
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

/// A job whose writes were in the page cache when its clock stopped.
#[derive(Clone, Debug)]
struct Unflushed {
    name: String,
    /// Whether it was flushed after the clock.
    on_close: bool,
}

impl Unflushed {
    /// Returns the row if its writes were unflushed; `on_close`: its job has `fsync_on_close`.
    fn of(row: &Row, on_close: bool) -> Option<Unflushed> {
        let asked = &row.settings.asked;
        let is_cached = !asked.direct && CACHED_ENGINES.contains(&&*asked.ioengine.to_string());
        let unflushed = row.direction == Direction::Write && is_cached && asked.sync == Flush::None;
        unflushed.then(|| Unflushed { name: row.name.clone(), on_close })
    }
}

fn flush_outside_clock(unflushed: &[Unflushed]) -> Option<Finding> {
    if unflushed.is_empty() {
        return None;
    }
    let names = |of: &dyn Fn(&&Unflushed) -> bool| {
        unflushed.iter().filter(of).map(|one| one.name.as_str()).collect::<Vec<_>>()
    };
    let (all, on_close) = (names(&|_| true), names(&|one| one.on_close));
    let late = if on_close.is_empty() {
        String::new()
    } else {
        format!("; fsync_on_close flushes after the clock ({})", on_close.join(", "))
    };
    let text = format!(
        "memory speed, in whole or in part: writes were in the page cache, unflushed, when the clock \
         stopped ({}){late}; set end_fsync=1 in the job to count the flush, or direct=1 to go past the \
         cache",
        all.join(", ")
    );
    let figures = [
        ("rows", all.iter().map(|name| json!(name)).collect::<Value>()),
        ("fsync_on_close", on_close.iter().map(|name| json!(name)).collect()),
    ];
    Some(finding("flush-outside-clock", Severity::Warning, text, figures))
}
