//! Tests every finding of `docs/findings.md`: the built program reports it where it applies, and
//! not elsewhere.
//!
//! The tests of a finding `an-id` are called `an_id_is_said..` and `an_id_is_not_said..`; one test
//! here compares their names with the catalogue. Most need root, for their own devices. Tests that
//! judge rates and times need an idle machine: `cargo xtask nightly`.

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
mod meta;
mod neighbour;
mod offsets;
mod preload;
mod ranks;
mod scene;
mod stall;
mod strange;

use std::process::Command;
use wrote_result::finding::IDS;

#[test]
fn every_finding_has_a_test_that_it_is_said_and_one_that_it_is_not() {
    let program = std::env::current_exe().expect("the tests' own program");
    let listed = Command::new(program).args(["--list", "--format", "terse"]).output();
    let listed = String::from_utf8(listed.expect("the tests can be listed").stdout).expect("text");
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter_map(|name| name.rsplit("::").next())
        .collect();
    for id in IDS {
        for what in ["is_said", "is_not_said"] {
            let begin = format!("{}_{what}", id.replace('-', "_"));
            assert!(names.iter().any(|name| name.starts_with(&begin)), "no test {begin}..");
        }
    }
}
