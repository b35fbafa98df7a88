//! Programs as data, and the scenario on this machine's disk.

use super::{FitRequest, all, find, fit};
use fixtures::folder;
use std::time::Duration;
use wrote_result::Stop;
use wrote_result::document::FitVerdict;

#[test]
fn every_embedded_program_is_found_by_its_name() {
    for program in all() {
        assert_eq!(find(&program.name).unwrap().version, program.version);
    }
}

#[test]
fn an_unknown_program_is_answered_with_the_near_one() {
    let refused = find("sqlit").unwrap_err().to_string();
    assert!(refused.ends_with("did you mean 'sqlite'?"), "{refused}");
}

#[test]
fn a_users_file_is_measured_and_judged_and_nothing_stays() {
    let place = folder();
    let file = place.path().join("mine.toml");
    let text = r#"
        name = "mine"
        version = "1"
        about = "a log"
        [[pattern]]
        name = "wal"
        label = "WAL"
        source = ["mine.c: append"]
        [pattern.job]
        files = [{ name = "wal", bytes = 65536 }]
        each = [{ call = "write", file = "wal", bytes = 100 }, { call = "fdatasync", file = "wal" }]
        [[rule]]
        pattern = "wal"
        name = "flush P99 < 1 h"
        of = "flush_p99_ns"
        most = 3.6e12
        says = "a test"
        source = "none"
    "#;
    std::fs::write(&file, text).unwrap();
    let request = FitRequest {
        programs: vec![find(file.to_str().unwrap()).unwrap()],
        path: place.path().into(),
        time: Duration::from_millis(600),
        runs: 3,
        transactions: Some(50),
        neighbours: Vec::new(),
        neighbour_path: None,
        command: Vec::new(),
        commit: None,
    };
    let document = fit(&request, &Stop::new(), &mut ()).unwrap();
    let judged = &document.fit.as_ref().unwrap()[0];
    assert_eq!(judged.verdict, Some(FitVerdict::Fits));
    assert_eq!((judged.rules[0].row.as_str(), judged.rules.len()), ("mine/wal", 2));
    assert_eq!(document.scenarios[0].rows[0].runs.len(), 3);
    assert_eq!(fixtures::names(place.path()), ["mine.toml"]);
}
