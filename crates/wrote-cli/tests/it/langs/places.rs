//! Tests of the folder that is measured, and of the result: existing files remain untouched, and
//! `report` and `compare` accept the result like any other.

use crate::langs::scene::{Scene, manifest, text};
use crate::support::wrote;
use fixtures::{finish, judge, names};
use std::fs;
use std::path::PathBuf;

const LITTLE: &str = "--size 5000 --runs 2 --saves 3 --lines 20";

fn scene() -> Scene {
    let scene = Scene::new();
    scene.honest();
    scene
}

#[test]
fn other_files_stay_as_they_were() {
    let scene = scene();
    let there = ["job-0.data", "lines", "honest", "notes.txt"];
    for name in there {
        fs::write(scene.target().join(name), name).expect("a file");
    }
    scene.document(&["honest"], LITTLE);
    let mut sorted = there.to_vec();
    sorted.sort_unstable();
    assert_eq!(names(&scene.target()), sorted);
    for name in there {
        assert_eq!(fs::read_to_string(scene.target().join(name)).expect("it is there"), name);
    }
}

#[test]
fn a_path_that_is_no_folder_is_refused_before_anything_is_built_or_written() {
    let scene = scene();
    let file = scene.beside("file");
    fs::write(&file, "text").expect("a file");
    for wrong in [scene.beside("nowhere"), file.clone(), PathBuf::from("/dev/null")] {
        let finished = finish(&mut scene.langs_in(&wrong, &["honest"], LITTLE));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        assert!(finished.complaint().contains(text(&wrong)), "{finished:?}");
        assert!(!scene.cache().join("wrote").exists());
    }
    assert_eq!(fs::read_to_string(file).expect("it is there"), "text");
}

#[test]
fn a_result_is_one_that_the_schema_and_report_and_compare_take() {
    let test = "a_result_is_one_that_the_schema_and_report_and_compare_take";
    let scene = scene();
    scene.rogue("rogue", "on_lines() { exit 3; }", "lines");
    scene.add("absent", &manifest("absent", "needs = ['no-such-tool']", ""), &[]);
    let result = scene.beside("result.json");
    let more = format!("{LITTLE} --format json");
    let mut langs = scene.langs(&["honest", "rogue", "absent"], &more);
    let finished = finish(langs.arg("-o").arg(&result));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let document = fs::read_to_string(&result).expect("a result");
    let page = finish(wrote(&["report"]).arg(&result));
    for part in ["langs/lines", "The absent one", "langs/lines/rogue: ended with exit code 3"] {
        assert!(page.stdout.contains(part), "{part}");
    }
    let compared = finish(wrote(&["compare", "--format", "csv"]).args([&result, &result]));
    assert_eq!(compared.code(), Some(0), "{compared:?}");
    assert!(compared.stdout.contains("langs/save-500/honest"), "{compared:?}");
    let schema = finish(&mut wrote(&["bench", "--schema"]));
    if let Some(complaints) = judge(test, &schema.stdout, &[&document]) {
        assert_eq!(complaints, [""], "{document}");
    }
}
