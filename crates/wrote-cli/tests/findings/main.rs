//! Tests that the built program reports the findings of `docs/findings.md` where they apply.
//!
//! A test of a finding `an-id` is called `an_id_is_said..`. One test compares these names with the
//! catalogue. Unit tests next to the code test when a finding is absent. Most tests need root, to
//! create their own devices. Tests that judge rates and times need an idle machine: `cargo xtask
//! nightly`.

#[path = "../support/mod.rs"]
mod support;

mod bytes;
mod device;
mod files;
mod heat;
mod limits;
mod long;
mod machine;
mod messages;
mod neighbour;
mod offsets;
mod plain;
mod preload;
mod scene;
mod stall;
mod strange;

use std::process::Command;
use wrote_result::finding::IDS;

/// The findings that require several nodes, minutes of removals, or a killed run. The first two are
/// covered by unit tests, and the last by the tests of `wrote clean`.
const ELSEWHERE: [&str; 3] = ["leftovers", "slower-each-round", "stragglers"];

#[test]
fn every_finding_has_a_test_in_which_the_program_reports_it() {
    let program = std::env::current_exe().expect("the tests' own program");
    let listed = Command::new(program).args(["--list", "--format", "terse"]).output();
    let listed = String::from_utf8(listed.expect("the tests can be listed").stdout).expect("text");
    for id in IDS.iter().filter(|id| !ELSEWHERE.contains(id)) {
        let begin = format!("::{}_is_said_", id.replace('-', "_"));
        assert!(listed.contains(&begin), "no test {begin}..");
    }
}
