//! Programs that hang: `wrote` ends each one with its children, and the other programs continue.

use crate::langs::scene::{Scene, assert_says, document, failures, row, workload};
use fixtures::{finish, names};

/// Much longer than a usual answer even on a busy machine, and short for a test.
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
fn a_program_that_has_stopped_itself_is_ended() {
    ended_for_its_time("on_lines() { kill -STOP $$; }");
}

#[test]
fn a_child_that_holds_the_answer_open_is_ended_with_its_parent_whose_answer_stands() {
    assert_eq!(hangs("on_answer() { sleep 1000 & answer; }"), Ok(()));
}
