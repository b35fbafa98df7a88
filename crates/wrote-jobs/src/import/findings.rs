//! Findings on results of other tools: costs that their numbers leave out.

use serde_json::{Value, json};
use wrote_result::document::{Direction, Finding, Flush, Row, Severity};
use wrote_result::finding::{finding, left_out};

/// Engines whose writes go to the page cache unless they are direct. Other engines write to the
/// network, to memory that is mapped without a cache, or discard the data.
const CACHED_ENGINES: [&str; 11] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring", "splice",
    "mmap", "threads",
];

/// A job whose writes were in the page cache when its clock stopped.
#[derive(Clone, Debug)]
pub struct Unflushed {
    name: String,
    /// Whether it was flushed after the clock.
    on_close: bool,
}

impl Unflushed {
    /// Returns the row if its writes were unflushed; `on_close`: its job has `fsync_on_close`.
    pub fn of(row: &Row, on_close: bool) -> Option<Unflushed> {
        let asked = &row.settings.asked;
        let is_cached = !asked.direct && CACHED_ENGINES.contains(&&*asked.ioengine.to_string());
        let unflushed = row.direction == Direction::Write && is_cached && asked.sync == Flush::None;
        unflushed.then(|| Unflushed { name: row.name.clone(), on_close })
    }
}

/// Returns the findings on an imported result. `failed` are jobs that ended in an error, each with
/// the error.
pub fn find(unflushed: &[Unflushed], failed: &[(String, String)]) -> Vec<Finding> {
    flush_outside_clock(unflushed).into_iter().chain(left_out(failed)).collect()
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
