//! Builds of programs: one for each version of text and compiler. An unfinished build is never
//! taken for a program.

use crate::langs::scene::{
    Scene, document, failures, language, manifest, program, row, text, workload,
};
use fixtures::{finish, names};
use std::fs;
use std::path::{Path, PathBuf};
use wrote_result::langs::State;

const LITTLE: &str = "--workloads lines --lines 20 --runs 1";

/// Adds a language that `build.sh` builds from `{source}` in `{build}`. A file of the test holds
/// its version.
fn built(scene: &Scene, build: &str, program: &str) {
    let version = scene.beside("version");
    if !version.exists() {
        fs::write(&version, "compiler 1").expect("a file");
    }
    let toolchain = "build = ['sh', '{source}/build.sh', '{source}', '{build}']";
    let manifest = manifest("built", toolchain, "")
        .replace("echo 1.0 of built", &format!("cat {}", text(&version)))
        .replace("'{source}/program.sh'", "'{build}/program.sh'");
    scene.add("built", &manifest, &[("build.sh", build), ("program.sh", program)]);
}

/// A build that succeeds, and appends a line to a file.
fn counting(scene: &Scene) -> (PathBuf, String) {
    let count = scene.beside("count");
    let build = format!("set -e\ncp \"$1\"/*.sh \"$2\"\necho built >> {}\n", text(&count));
    (count, build)
}

fn times(count: &Path) -> usize {
    fs::read_to_string(count).unwrap_or_default().lines().count()
}

/// Runs the language and asserts that it has its row.
fn runs(scene: &Scene) {
    let document = scene.document(&["built"], LITTLE);
    assert_eq!(language(&document, "built").state, State::Ready, "{document:?}");
    row(workload(&document, "lines"), "built");
}

#[test]
fn a_compilers_complaint_is_told_and_the_others_run() {
    let scene = Scene::new();
    scene.honest();
    built(&scene, "echo 'program.sh:7: too much cheese' >&2\nexit 4\n", &program(""));
    let finished =
        finish(&mut scene.langs(&["honest", "built"], &format!("{LITTLE} --format json")));
    let document = document(&finished);
    let language = language(&document, "built");
    assert_eq!(language.state, State::BuildFailed);
    let because = language.because.as_deref().unwrap_or_default();
    assert!(because.contains("program.sh:7: too much cheese"), "{because}");
    row(workload(&document, "lines"), "honest");
    assert!(failures(&document, "honest").is_empty());
    assert!(finished.stderr.contains("too much cheese"), "{finished:?}");
}

#[test]
fn a_build_that_failed_is_tried_again() {
    let scene = Scene::new();
    scene.honest();
    let (count, build) = counting(&scene);
    // The fault lies in the machine: text and version stay the same.
    let machine = scene.beside("machine");
    let build = format!("test -e {} || exit 1\n{build}", text(&machine));
    built(&scene, &build, &program(""));
    let failed = scene.document(&["honest", "built"], LITTLE);
    assert_eq!(language(&failed, "built").state, State::BuildFailed);
    fs::write(machine, "well").expect("a file");
    runs(&scene);
    assert_eq!(times(&count), 1);
}

#[test]
fn a_build_that_makes_no_program_is_a_failure_of_that_language() {
    let scene = Scene::new();
    scene.honest();
    built(&scene, "exit 0\n", &program(""));
    let document = scene.document(&["honest", "built"], LITTLE);
    let table = workload(&document, "lines");
    assert!(table.rows.iter().all(|row| row.language != "built"), "{table:?}");
    let failed = language(&document, "built").state == State::BuildFailed;
    assert!(failed || !failures(&document, "built").is_empty(), "{document:?}");
    row(table, "honest");
}

#[test]
fn a_user_without_a_home_gets_a_folder_for_the_run_alone() {
    let scene = Scene::new();
    let (count, build) = counting(&scene);
    built(&scene, &build, &program(""));
    let temporary = scene.beside("temporary");
    fs::create_dir(&temporary).expect("a folder");
    for times_built in 1..=2 {
        let mut command = scene.langs(&["built"], LITTLE);
        command.env_remove("HOME").env_remove("XDG_CACHE_HOME").env("TMPDIR", &temporary);
        let finished = finish(&mut command);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert_eq!(times(&count), times_built);
        assert_eq!(names(&temporary), [""; 0]);
    }
}
