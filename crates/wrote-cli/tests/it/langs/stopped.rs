//! Tests of signals while a language runs: no files and no processes of the run are left.

use crate::langs::scene::{Scene, text};
use crate::support::wrote;
use fixtures::{Running, finish, names};
use rustix::process::Signal;

const LITTLE: &str = "--workloads lines --lines 20";

/// Runs a language that reports its start and then executes `otherwise`. Sends `wrote` a signal
/// after the report.
fn stopped(otherwise: &str, signal: Signal, code: i32) {
    let scene = Scene::new();
    let begun = scene.beside("begun");
    let otherwise = format!("on_lines() {{ append_lines; : > '{}'; {otherwise}; }}", text(&begun));
    scene.rogue("sleeper", &otherwise, "lines");
    let mut run = Running::start(&mut scene.langs(&["sleeper"], LITTLE));
    run.until("a program's start", || begun.exists().then_some(()));
    run.send(signal);
    let finished = run.finish();
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(code), ""), "{finished:?}");
    assert_eq!(scene.processes(), [""; 0]);
    assert_eq!(names(&scene.target()), [""; 0]);
}

#[test]
fn a_signal_ends_a_program_whatever_it_does_with_its_children_and_removes_its_file() {
    for (otherwise, signal, code) in [
        ("sleep 1000", Signal::TERM, 143),
        ("trap '' INT TERM HUP; while :; do sleep 1000; done", Signal::INT, 130),
        ("sleep 1000 & sleep 1000 & wait", Signal::INT, 130),
    ] {
        stopped(otherwise, signal, code);
    }
}

#[test]
fn a_killed_run_ends_its_program_and_what_it_leaves_is_cleaned() {
    let scene = Scene::new();
    let begun = scene.beside("begun");
    let otherwise = format!("on_lines() {{ append_lines; : > '{}'; sleep 1000; }}", text(&begun));
    scene.rogue("sleeper", &otherwise, "lines");
    let mut run = Running::start(&mut scene.langs(&["sleeper"], LITTLE));
    run.until("a program's start", || begun.exists().then_some(()));
    run.send(Signal::KILL);
    assert_eq!(run.finish().signal(), Some(Signal::KILL.as_raw()));
    assert_eq!(scene.processes(), [""; 0]);
    assert_eq!(names(&scene.target()).len(), 1);
    let cleaned = finish(wrote(&["clean"]).arg(scene.target()));
    assert_eq!((cleaned.code(), cleaned.stderr.as_str()), (Some(0), ""), "{cleaned:?}");
    assert_eq!(names(&scene.target()), [""; 0]);
}
