//! Folders that are not languages, and requests for unknown languages: one line each, and nothing
//! is made.

use crate::langs::scene::{Scene, assert_says, text};
use crate::support::wrote;
use fixtures::{finish, names};

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
fn a_program_that_does_no_requested_task_is_refused_in_one_line() {
    let scene = Scene::new();
    scene.rogue("saver", "", "save");
    let finished = finish(&mut scene.langs(&["saver"], "--workloads lines --lines 20"));
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
    assert_says(finished.stderr.trim_end(), &["none of these workloads", "The saver one"]);
}
