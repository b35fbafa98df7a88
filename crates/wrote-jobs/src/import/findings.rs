//! Findings on results of other tools: what their numbers leave out.

use serde_json::{Value, json};
use wrote_result::document::{Direction, Finding, Row, Severity};
use wrote_result::finding::finding;

/// Engines whose writes go to the page cache unless they are direct. Others write elsewhere: to the
/// network, to memory that is mapped without a cache, to nothing.
const CACHED_ENGINES: [&str; 11] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring", "splice",
    "mmap", "threads",
];

/// A job whose writes were in the page cache when its clock stopped.
#[derive(Clone, Debug)]
pub struct Unflushed {
    name: String,
    /// It was flushed after that.
    on_close: bool,
}

impl Unflushed {
    /// The row, if it is one. `on_close` says that its job has `fsync_on_close`.
    pub fn of(row: &Row, on_close: bool) -> Option<Unflushed> {
        let asked = &row.settings.asked;
        let is_cached = !asked.direct && CACHED_ENGINES.contains(&asked.ioengine.as_str());
        let unflushed = row.direction == Direction::Write && is_cached && asked.sync == "none";
        unflushed.then(|| Unflushed { name: row.name.clone(), on_close })
    }
}

/// The findings on an imported result. `failed` are jobs that ended in an error, with it.
pub fn find(unflushed: &[Unflushed], failed: &[(String, String)]) -> Vec<Finding> {
    flush_outside_clock(unflushed).into_iter().chain(left_out(failed)).collect()
}

fn left_out(failed: &[(String, String)]) -> Option<Finding> {
    let each = failed.iter().map(|(job, because)| format!("{job} ({because})"));
    let text = format!("not measured: {}", each.collect::<Vec<_>>().join(", "));
    let jobs = failed.iter().map(|(job, because)| (job.clone(), json!(because)));
    let figures = [("rows", Value::Object(jobs.collect()))];
    (!failed.is_empty()).then(|| finding("left-out", Severity::Info, text, figures))
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
        format!(" (the flush of fsync_on_close, of {}, is after the clock)", on_close.join(", "))
    };
    let text = format!(
        "{}: written to the page cache, and not flushed before the clock stopped{late}: this is the \
         speed of memory, in whole or in part; say end_fsync=1 in the job to count the flush, or \
         direct=1 to go past the cache",
        all.join(", ")
    );
    let figures = [
        ("rows", all.iter().map(|name| json!(name)).collect::<Value>()),
        ("fsync_on_close", on_close.iter().map(|name| json!(name)).collect()),
    ];
    Some(finding("flush-outside-clock", Severity::Warning, text, figures))
}
