//! Folders that are no languages, and requests for unknown languages: one line each, and nothing
//! made.

use crate::langs::scene::{Scene, assert_says, manifest, text};
use crate::support::wrote;
use fixtures::{finish, names};
use std::fs;

/// Returns the one line about a folder that is given as a language.
fn refusal(scene: &Scene, folder: &str) -> String {
    let mut command = wrote(&["langs", text(&scene.target()), "--add", folder]);
    scene.at_home(&mut command);
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    assert_eq!(names(&scene.target()), [""; 0]);
    assert!(!scene.cache().join("wrote").exists(), "{:?}", names(&scene.cache()));
    finished.complaint().to_owned()
}

/// Asserts that `wrote` refuses a manifest in one line with the name of its file and these words.
fn refused(manifest: &str, words: &[&str]) {
    let scene = Scene::new();
    let folder = scene.add("wrong", manifest, &[]);
    let line = refusal(&scene, text(&folder));
    for word in [&["wrong", "manifest.toml"], words].concat() {
        assert!(line.contains(word), "{word:?} is not in {line:?}");
    }
}

#[test]
fn a_manifest_that_is_no_toml_is_refused_with_the_line_of_the_mistake() {
    refused("name = 'Wrong'\nway = \n", &["2"]);
}

#[test]
fn a_key_that_no_manifest_has_is_refused_by_its_name() {
    refused(&format!("flavour = 'hot'\n{}", manifest("wrong", "", "")), &["flavour"]);
    refused(&manifest("wrong", "compile = ['cc']", ""), &["compile"]);
}

#[test]
fn a_manifest_without_what_every_language_needs_is_refused_by_what_is_not_there() {
    refused("name = 'Wrong'\ninstall = 'nothing'\n", &["toolchain"]);
    refused("name = 'Wrong'\ninstall = 'nothing'\ntoolchain = []\n", &["toolchain"]);
    let whole = manifest("wrong", "", "");
    for key in ["install", "version", "run"] {
        let without: Vec<&str> =
            whole.lines().filter(|line| !line.trim().starts_with(&format!("{key} ="))).collect();
        refused(&without.join("\n"), &[key]);
    }
}

#[test]
fn a_command_without_a_program_is_refused() {
    let whole = manifest("wrong", "", "");
    refused(&whole.replace("['sh', '{source}/program.sh']", "[]"), &["run"]);
}

#[test]
fn a_task_that_there_is_not_is_refused() {
    refused(&manifest("wrong", "", "bytes-erase"), &["bytes-erase"]);
}

#[test]
fn a_placeholder_that_there_is_not_is_refused() {
    refused(&manifest("wrong", "", "").replace("{source}", "{sauce}"), &["{sauce}"]);
}

#[test]
fn an_id_that_is_taken_is_refused() {
    let scene = Scene::new();
    let folder = scene.add("go", &manifest("go", "", ""), &[]);
    let line = refusal(&scene, text(&folder));
    assert!(line.contains("go") && line.contains("already"), "{line}");
    let folder = scene.add("other", &manifest("cpp-get-put", "", ""), &[]);
    let line = refusal(&scene, text(&folder));
    assert!(line.contains("cpp-get-put") && line.contains("already"), "{line}");
}

#[test]
fn the_same_folder_twice_is_refused() {
    let scene = Scene::new();
    scene.honest();
    let finished = finish(&mut scene.langs_of(&["honest", "honest"], ""));
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    assert!(finished.complaint().contains("honest"), "{finished:?}");
}

#[test]
fn a_folder_that_is_no_language_is_refused() {
    let scene = Scene::new();
    let nowhere = scene.beside("nowhere");
    let line = refusal(&scene, text(&nowhere));
    assert!(line.contains(text(&nowhere)), "{line}");
    let empty = scene.beside("empty");
    fs::create_dir(&empty).expect("a folder");
    let line = refusal(&scene, text(&empty));
    assert!(line.contains(text(&empty)) && line.contains("manifest.toml"), "{line}");
    let file = scene.beside("file");
    fs::write(&file, "text").expect("a file");
    let line = refusal(&scene, text(&file));
    assert!(line.contains(text(&file)), "{line}");
}

#[test]
fn a_language_that_there_is_not_is_answered_with_the_near_one() {
    let scene = Scene::new();
    let mut command = wrote(&["langs", text(&scene.target()), "--only", "pyhton"]);
    scene.at_home(&mut command);
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    let line = finished.complaint();
    assert!(line.contains("pyhton") && line.contains("python"), "{line}");
}

#[test]
fn who_does_nothing_of_what_was_asked_for_is_refused_in_one_line() {
    let scene = Scene::new();
    scene.rogue("saver", "", "save");
    let finished = finish(&mut scene.langs(&["saver"], "--workloads lines --lines 20"));
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
    assert_says(finished.stderr.trim_end(), &["none of these workloads", "The saver one"]);
}
