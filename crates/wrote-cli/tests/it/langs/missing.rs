//! The search for languages and toolchains, and the folder that programs are built in. A missing
//! toolchain is named with its install command, and the other languages run.

use crate::langs::scene::{
    Scene, assert_says, document, manifest, program, row, text, workload, workloads,
};
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

#[test]
fn a_program_that_does_no_requested_task_is_refused_in_one_line() {
    let scene = Scene::new();
    scene.rogue("saver", "", "save");
    let finished = finish(&mut scene.langs(&["saver"], "--workloads lines --lines 20"));
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
    assert_says(finished.stderr.trim_end(), &["none of these workloads", "The saver one"]);
}

#[test]
fn a_user_without_a_home_gets_a_folder_for_the_run_alone() {
    let scene = Scene::new();
    let (count, temporary) = (scene.beside("count"), scene.beside("temporary"));
    let build = format!("set -e\ncp \"$1\"/*.sh \"$2\"\necho built >> '{}'\n", text(&count));
    let toolchain = "build = ['sh', '{source}/build.sh', '{source}', '{build}']";
    let manifest =
        manifest("built", toolchain, "").replace("'{source}/program.sh'", "'{build}/program.sh'");
    scene.add("built", &manifest, &[("build.sh", &build), ("program.sh", &program(""))]);
    fs::create_dir(&temporary).expect("a folder");
    for times_built in 1..=2 {
        let mut command = scene.langs(&["built"], LITTLE);
        command.env_remove("HOME").env_remove("XDG_CACHE_HOME").env("TMPDIR", &temporary);
        let finished = finish(&mut command);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let built = fs::read_to_string(&count).expect("a build");
        assert_eq!(built.lines().count(), times_built);
        assert_eq!(names(&temporary), [""; 0]);
    }
}
