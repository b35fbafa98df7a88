//! Reports on the files of jobs: unwritten blocks, blocks that two jobs used at once, and cached
//! blocks of direct jobs.

use crate::scene::{BLOCK, FILE, READ, WRITE, go, go_with, job, one};
use fixtures::folder;
use std::fs::File;
use std::os::unix::fs::FileExt;
use wrote_jobs::jobs::{Overlap, Permissions};
use wrote_jobs::spec::JobSpec;

#[test]
fn reads_of_unwritten_bytes_are_noted() {
    // M9
    let folder = folder();
    let path = folder.path().join("a");
    let file = File::create(&path).unwrap();
    file.set_len(FILE).unwrap();
    let permissions = Permissions { read_unwritten: true, ..Permissions::default() };
    let told = || {
        let jobs = [job(folder.path(), "a", READ)];
        go_with(&jobs, permissions).unwrap()[0].jobs[0].unwritten_bytes
    };
    match told() {
        Some(0) => return fixtures::skip("holes", "this file system does not tell of holes"),
        unwritten => assert_eq!(unwritten, Some(FILE)),
    }
    file.write_all_at(&[1; FILE as usize / 2], 0).unwrap();
    assert_eq!(told(), Some(FILE / 2));
    file.write_all_at(&[1; FILE as usize], 0).unwrap();
    assert_eq!(told(), Some(0));
    // The run writes a new file before it reads it.
    assert_eq!(one(job(folder.path(), "b", READ)).unwritten_bytes, Some(0));
}

#[test]
fn jobs_that_use_the_same_bytes_at_once_are_told() {
    let folder = folder();
    let second =
        |offset_bytes| JobSpec { name: "b".into(), offset_bytes, ..job(folder.path(), "a", WRITE) };
    let permissions = Permissions { overlap: true, overwrite: true, ..Permissions::default() };
    let told = |offset_bytes| {
        let jobs = [job(folder.path(), "a", WRITE), second(offset_bytes)];
        go_with(&jobs, permissions).unwrap().remove(0).overlaps
    };
    let file = folder.path().join("a");
    assert_eq!(told(FILE - BLOCK), [Overlap { file, jobs: ["a".into(), "b".into()] }]);
    assert_eq!(told(FILE), []);
}

#[test]
fn cached_bytes_are_noted_of_direct_jobs_alone() {
    let folder = folder();
    let direct = JobSpec { direct: true, ..job(folder.path(), "a", WRITE) };
    let cached = JobSpec { direct: false, ..job(folder.path(), "b", WRITE) };
    let groups = go(&[direct, cached]);
    let held = &groups[0].held;
    if held.is_empty() {
        return fixtures::skip("held", "the kernel does not say what is cached");
    }
    assert_eq!(held.len(), 1);
    assert_eq!((&held[0].file, held[0].before_bytes), (&folder.path().join("a"), 0));
    // Where direct I/O is refused, the job uses the page cache.
    if groups[0].jobs[0].direct {
        assert!(held[0].after_bytes < FILE / 2, "{held:?}");
    }
}
