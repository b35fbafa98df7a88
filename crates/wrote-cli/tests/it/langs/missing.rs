//! Missing toolchains, and the search for toolchains. A missing one is named with its install
//! command, and the other languages run.

use crate::langs::scene::{Scene, document, manifest, program, row, workload, workloads};
use crate::support::wrote;
use fixtures::{finish, is_installed, names, or_skip};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

const LITTLE: &str = "--workloads lines --lines 20 --runs 1";
/// The languages that need a toolchain.
const EMBEDDED: [&str; 12] = [
    "c",
    "cpp",
    "cpp-get-put",
    "go",
    "java",
    "kotlin",
    "scala",
    "python",
    "ruby",
    "node",
    "zig",
    "rust",
];
/// A program that the honest language calls.
const TOOLS: [&str; 7] = ["sh", "date", "od", "awk", "sync", "sleep", "env"];

/// Makes a folder with only the tools of the honest language.
fn few_tools(scene: &Scene) -> PathBuf {
    let folder = scene.beside("tools");
    fs::create_dir(&folder).expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in TOOLS {
        let mut places = std::env::split_paths(&path).map(|place| place.join(tool));
        let place = places.find(|place| place.is_file()).expect("every machine has it");
        symlink(place, folder.join(tool)).expect("a link");
    }
    folder
}

/// Returns a command that finds only the tools of the honest language.
fn with_few_tools(scene: &Scene, mut command: Command) -> Command {
    command.env("PATH", few_tools(scene));
    command
}

#[test]
fn a_missing_language_is_named_below_the_tables() {
    let scene = Scene::new();
    scene.honest();
    scene.add("absent", &absent(), &[]);
    let finished = finish(&mut scene.langs(&["honest", "absent"], LITTLE));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout.contains("The honest one"), "{finished:?}");
    assert!(finished.stdout.contains("The absent one"), "{finished:?}");
    assert!(finished.stdout.contains("write absent anew"), "{finished:?}");
}

/// The manifest of a language whose interpreter is on no machine.
fn absent() -> String {
    manifest("absent", "", "").replace("'sh'", "'no-such-interpreter'")
}

#[test]
fn the_list_names_every_language_with_its_version_or_the_line_that_installs_it() {
    let scene = Scene::new();
    scene.honest();
    let mut command = wrote(&["langs", "--list", "--add"]);
    command.arg(scene.language("honest"));
    scene.at_home(&mut command);
    let finished = finish(&mut with_few_tools(&scene, command));
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    for id in EMBEDDED {
        let listed = finished.stdout.lines().any(|line| line.split_whitespace().next() == Some(id));
        assert!(listed, "{id}: {finished:?}");
    }
    assert!(finished.stdout.contains("apt install ruby"), "{finished:?}");
    assert!(finished.stdout.contains("1.0 of honest"), "{finished:?}");
    // Nothing is built, and the working folder of `wrote` stays empty.
    assert!(!scene.cache().join("wrote").exists(), "{:?}", names(&scene.cache()));
}

#[test]
fn a_language_of_ones_own_stands_beside_an_embedded_one() {
    or_skip!(is_installed("cc"));
    let scene = Scene::new();
    scene.honest();
    let more = "--only honest,c --size 5000 --runs 2 --saves 3 --lines 20 --format json";
    let document = document(&finish(&mut scene.langs_of(&["honest"], more)));
    for workload in workloads(&document) {
        assert!(workload.failures.is_empty(), "{workload:?}");
        row(workload, "honest");
        row(workload, "c");
        // Tables of saves are ordered by the median save.
        assert!(workload.rows.is_sorted_by(|one, other| {
            match (one.latency_ns, other.latency_ns) {
                (Some(one), Some(other)) => one.p50 <= other.p50,
                _ => one.throughput_bytes_per_s.median >= other.throughput_bytes_per_s.median,
            }
        }));
    }
    assert_eq!(names(&scene.target()), [""; 0]);
}

#[test]
fn a_program_is_also_looked_for_where_users_install_their_own() {
    let scene = Scene::new();
    let bin = scene.home().join(".local/bin");
    fs::create_dir_all(&bin).expect("a folder");
    let interpreter = bin.join("wrote-test-interpreter");
    fs::write(&interpreter, "#!/bin/sh\nexec sh \"$@\"\n").expect("a program");
    fs::set_permissions(&interpreter, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let manifest = manifest("homely", "", "").replace("'sh'", "'wrote-test-interpreter'");
    scene.add("homely", &manifest, &[("program.sh", &program(""))]);
    row(workload(&scene.document(&["homely"], LITTLE), "lines"), "homely");
}
