//! Programs that lie or write elsewhere, through the command: their acts are reported, and nothing
//! of others is touched. The tests of `wrote-bench` have each kind of lie.

use crate::langs::scene::{Scene, assert_says, document, failures, row, text, workload};
use fixtures::{finish, names};
use std::fs;
use wrote_result::langs::Document;

#[test]
fn a_symbolic_link_in_place_of_the_file_is_a_failure_and_what_it_leads_to_is_let_alone() {
    // W7
    let scene = Scene::new();
    scene.honest();
    let victim = scene.beside("victim");
    // The exact bytes that the rogue must write.
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(5000).collect();
    fs::write(&victim, &bytes).expect("a file");
    let otherwise = format!("on_write() {{ ln -s -f '{}' \"$path\"; }}", text(&victim));
    scene.rogue("links", &otherwise, "bytes-write bytes-read");
    let little = "--size 5000 --runs 2 --saves 3 --lines 20 --format json";
    let finished = finish(&mut scene.langs(&["links", "honest"], little));
    let document = document(&finished);
    let [failure, ..] = failures(&document, "links")[..] else { panic!("{document:?}") };
    assert_says(&failure.because, &["symbolic link"]);
    assert!(finished.stderr.contains("The links one"), "{finished:?}");
    assert!(!finished.stderr.contains("The honest one"), "{finished:?}");
    row(workload(&document, "bytes/write"), "honest");
    assert_eq!(fs::read(victim).expect("the victim"), bytes);
    assert_eq!((names(&scene.target()), scene.processes()), (vec![], vec![]));
}

#[test]
fn files_that_a_program_makes_beside_its_own_are_left_and_told() {
    let beside = "on_lines() { append_lines; echo theirs > \"${path%/*}/theirs\"; }";
    let (document, left) = littered(beside);
    assert_eq!(left, "theirs");
    // The rogue wrote its own file correctly.
    row(workload(&document, "lines"), "litter");
}

#[test]
fn a_folder_in_place_of_the_file_is_left_and_told_and_the_others_write_elsewhere() {
    let (document, left) =
        littered("on_lines() { rm \"$path\"; mkdir \"$path\"; echo theirs > \"$path/theirs\"; }");
    assert!(left.ends_with(".data/theirs"), "{left}");
    let [failure] = failures(&document, "litter")[..] else { panic!("{document:?}") };
    assert_says(&failure.because, &["folder in place of the file"]);
}

/// Runs a rogue before and after an honest one. Returns the result, and the one remaining file
/// `theirs`.
fn littered(otherwise: &str) -> (Document, String) {
    let scene = Scene::new();
    scene.honest();
    scene.rogue("litter", otherwise, "lines");
    let little = "--workloads lines --lines 20 --runs 2 --format json";
    let finished = finish(&mut scene.langs(&["litter", "honest"], little));
    let document = document(&finished);
    row(workload(&document, "lines"), "honest");
    let run = names(&scene.target());
    let [run] = &run[..] else { panic!("{run:?}: {finished:?}") };
    assert!(finished.stderr.contains(run.as_str()), "{finished:?}");
    let folder = scene.target().join(run);
    let [left] = &names(&folder)[..] else { panic!("{:?}", names(&folder)) };
    let left = if folder.join(left).is_dir() { format!("{left}/theirs") } else { left.clone() };
    assert_eq!(fs::read_to_string(folder.join(&left)).expect("it is left"), "theirs\n");
    (document, left)
}
