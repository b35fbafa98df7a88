//! Findings on appended messages: lost messages, and their order.

use crate::scene::{bench, said};
use crate::support::row;
use fixtures::folder;
use wrote_result::document::Document;

/// Returns the result of appending 20,000 messages, which are enough for tasks on two or more
/// processors to overtake each other.
fn appended(rows: &str) -> Document {
    let folder = folder();
    bench(folder.path(), &format!("--only {rows} --messages 20000 --message-size 64 --runs 2"))
}

#[test]
fn records_lost_is_said_of_several_handles_on_one_file() {
    let document = appended("append/flume-10-files,append/mutex");
    said(&document, "records-lost", &["append/flume-10-files"]);
}

#[test]
fn records_out_of_order_is_said_of_tasks_that_each_hand_over_one() {
    let document = appended("append/mutex,append/loop");
    let records = |name: &str| row(&document, name).runs[0].records.expect("looked for");
    // The test proves nothing unless one task overtakes another.
    assert!(records("append/mutex").out_of_order > 0, "{document:?}");
    said(&document, "records-out-of-order", &["append/mutex"]);
}
