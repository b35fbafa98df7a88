//! Programs that hang: `wrote` ends each one with its children, and the other programs go on.

use crate::langs::scene::{Scene, assert_says, document, failures, row, workload};
use fixtures::{finish, names};

/// Long for an answer of some milliseconds even on a busy machine, and short for a test.
const PATIENCE: &str = "--workloads lines --lines 20 --runs 1 --timeout 5s --format json";

/// Runs a rogue and an honest one, asserts that both leave nothing, and returns the rogue's
/// failure.
fn hangs(otherwise: &str) -> Result<(), String> {
    let scene = Scene::new();
    scene.honest();
    scene.rogue("rogue", otherwise, "lines");
    let document = document(&finish(&mut scene.langs(&["rogue", "honest"], PATIENCE)));
    assert_eq!(scene.processes(), [""; 0]);
    assert_eq!(names(&scene.target()), [""; 0]);
    row(workload(&document, "lines"), "honest");
    match &failures(&document, "rogue")[..] {
        [] => Ok(row(workload(&document, "lines"), "rogue")).map(|_| ()),
        [failure] => Err(failure.because.clone()),
        several => panic!("{several:?}"),
    }
}

fn ended_for_its_time(otherwise: &str) {
    let because = hangs(otherwise).expect_err("no row");
    assert_says(&because, &["longer than 5.00 s"]);
}

#[test]
fn a_program_that_sleeps_is_ended() {
    ended_for_its_time("on_lines() { sleep 1000; }");
}

#[test]
fn a_program_that_will_not_hear_of_its_end_is_ended_all_the_same() {
    ended_for_its_time("on_lines() { trap '' TERM INT HUP; while :; do sleep 1000; done; }");
}

#[test]
fn a_program_that_spins_is_ended() {
    ended_for_its_time("on_lines() { while :; do :; done; }");
}

#[test]
fn a_program_that_has_stopped_itself_is_ended() {
    ended_for_its_time("on_lines() { kill -STOP $$; }");
}

#[test]
fn a_program_that_prints_without_end_is_ended_and_its_output_is_not_kept() {
    ended_for_its_time("on_answer() { yes | tr -d '\\n'; }");
}

#[test]
fn a_child_that_holds_the_answer_open_is_ended_with_its_parent_whose_answer_stands() {
    assert_eq!(hangs("on_answer() { sleep 1000 & answer; }"), Ok(()));
}

#[test]
fn a_child_that_holds_nothing_open_is_ended_with_its_parent() {
    assert_eq!(hangs("on_answer() { sleep 1000 > /dev/null 2>&1 & answer; }"), Ok(()));
}

#[test]
fn a_program_that_waits_for_input_gets_none() {
    assert_eq!(hangs("on_lines() { cat > /dev/null; append_lines; }"), Ok(()));
}
