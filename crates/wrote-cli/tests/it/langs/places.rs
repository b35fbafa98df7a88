//! Tests of several paths: existing files stay untouched, and nothing is left behind.

use crate::langs::scene::{MEMORY, Scene, document, text};
use crate::support::wrote;
use fixtures::{finish, judge, names, skip_here};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use wrote_result::langs::Place;

const LITTLE: &str = "--size 5000 --runs 1 --saves 3 --lines 20";

/// Returns the command `wrote langs` of the honest language in these places.
fn honest(scene: &Scene, paths: &[&Path], more: &str) -> Command {
    let mut command = wrote(&["langs"]);
    command.args(paths).arg("--add").arg(scene.language("honest")).args(["--only", "honest"]);
    command.args(more.split_whitespace());
    scene.at_home(&mut command);
    command
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.honest();
    scene
}

fn on_disk() -> Scene {
    let scene = Scene::on_disk();
    scene.honest();
    scene
}

fn tables(place: &Place) -> Vec<&str> {
    place.workloads.iter().map(|workload| workload.name.as_str()).collect()
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
fn the_same_place_twice_is_refused_by_whatever_name() {
    let scene = scene();
    let target = scene.target();
    let link = scene.beside("link");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    for other in [target.clone(), target.join("."), link] {
        let finished = finish(&mut honest(&scene, &[&target, &other], LITTLE));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        assert!(finished.complaint().contains(text(&other)), "{finished:?}");
        assert_eq!(names(&target), [""; 0]);
    }
}

#[test]
fn a_path_that_is_no_folder_is_refused_before_anything_is_built_or_written() {
    let scene = scene();
    let file = scene.beside("file");
    fs::write(&file, "text").expect("a file");
    let null = PathBuf::from("/dev/null");
    for wrong in [scene.beside("nowhere"), file.clone(), null] {
        let finished = finish(&mut honest(&scene, &[&scene.target(), &wrong], LITTLE));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        assert!(finished.complaint().contains(text(&wrong)), "{finished:?}");
        assert_eq!(names(&scene.target()), [""; 0]);
        assert!(!scene.cache().join("wrote").exists());
    }
    assert_eq!(fs::read_to_string(file).expect("it is there"), "text");
}

#[test]
fn memory_has_no_drive_and_no_cold_reads_and_a_disk_has_both() {
    let Ok(memory) = TempDir::with_prefix_in("wrote-test-", MEMORY) else {
        return skip_here!("there is no file system in memory to write to");
    };
    let scene = on_disk();
    let more = format!("{LITTLE} --workloads bytes --drop-caches --format json");
    let paths = [memory.path(), &scene.target()];
    let document = document(&finish(&mut honest(&scene, &paths, &more)));
    let [in_memory, on_disk] = &document.places[..] else { panic!("{document:?}") };
    assert_eq!(in_memory.target.filesystem, "tmpfs");
    assert_eq!(tables(in_memory), ["bytes/write", "bytes/read"]);
    assert!(in_memory.drive.is_none(), "{in_memory:?}");
    assert_eq!((names(memory.path()), names(&scene.target())), (vec![], vec![]));
    if on_disk.target.device.is_none() {
        return skip_here!("the build is on no disk either");
    }
    assert_eq!(tables(on_disk), ["bytes/write", "bytes/read", "bytes/read-cold"]);
    let drive = on_disk.drive.as_ref().expect("a drive");
    assert!(drive.write_row.starts_with("peak/write/") && drive.read_row.starts_with("peak/read/"));
    assert!(drive.write_bytes_per_s.median > 0.0 && drive.read_bytes_per_s.median > 0.0);
}

#[test]
fn the_schema_that_is_printed_takes_the_result_of_a_run() {
    let test = "the_schema_that_is_printed_takes_the_result_of_a_run";
    let scene = on_disk();
    scene.rogue("rogue", "on_lines() { exit 3; }", "lines");
    scene.add(
        "absent",
        &crate::langs::scene::manifest("absent", "needs = ['no-such-tool']", ""),
        &[],
    );
    let schema = finish(&mut wrote(&["langs", "--schema"]));
    assert_eq!(schema.code(), Some(0), "{schema:?}");
    let more = format!("{LITTLE} --format json");
    let result = finish(&mut scene.langs(&["honest", "rogue", "absent"], &more));
    assert_eq!(document(&result).schema, "wrote.langs/1");
    if let Some(complaints) = judge(test, &schema.stdout, &[&result.stdout]) {
        assert_eq!(complaints, [""], "{result:?}");
    }
}
