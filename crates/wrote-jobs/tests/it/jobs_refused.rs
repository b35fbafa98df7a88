//! Tests of jobs that are refused or interrupted, or that fail: their messages, and that nothing is
//! left behind.

use crate::scene::*;
use fixtures::{folder, names};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote_jobs::jobs::{Permissions, Watcher, run};
use wrote_jobs::peers::Peers;
use wrote_jobs::spec::{BlockSizes, JobSpec};
use wrote_result::{Error, Stop};

#[test]
fn a_file_that_exists_is_refused_and_untouched_unless_it_may_be_written_over() {
    // W7
    for rw in [WRITE, MIX] {
        let folder = folder();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; FILE as usize]).unwrap();
        // The job in the group before does not begin either.
        let before = job(folder.path(), "before", WRITE);
        let spec = job(folder.path(), "file", rw).with(|job| job.group = 1);
        let error = refusal(&[before, spec.clone()]);
        let path_shown = path.display();
        assert_eq!(
            error,
            format!("{path_shown}: exists and would be overwritten; --overwrite allows it")
        );
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; FILE as usize]);
        assert_eq!(names(folder.path()), ["file"]);
        let permissions = Permissions { overwrite: true, ..Permissions::default() };
        go_with(&[spec], permissions).unwrap();
        assert_ne!(std::fs::read(&path).unwrap(), vec![7; FILE as usize]);
    }
}

#[test]
fn a_file_that_appears_after_the_look_around_is_neither_written_nor_removed() {
    // W7
    struct Appears(PathBuf);
    impl Watcher for Appears {
        fn group(&mut self, _group: u32, _jobs: &[&JobSpec], _laid_out_bytes: u64) {
            std::fs::write(&self.0, "precious").unwrap();
        }
    }
    for (rw, overwrite) in [(WRITE, false), (MIX, false), (READ, false), (WRITE, true)] {
        let folder = folder();
        let spec = job(folder.path(), "file", rw);
        let path = spec.files.paths[0].clone();
        let permissions = Permissions { overwrite, ..Permissions::default() };
        let error =
            run(&[spec], permissions, &Stop::new(), &mut Appears(path.clone()), Peers::ALONE);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("create: File exists"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}

#[test]
fn a_device_is_never_written() {
    // W7
    use std::os::unix::fs::FileTypeExt;
    let is_device =
        |path: &PathBuf| path.metadata().is_ok_and(|it| it.file_type().is_block_device());
    let mut devices = std::fs::read_dir("/dev").unwrap().flatten().map(|entry| entry.path());
    let Some(device) = devices.find(is_device) else {
        return fixtures::skip("a_device_is_never_written", "there is none in /dev");
    };
    let spec = job(Path::new("/"), "device", WRITE).with(|job| job.files.paths = vec![device]);
    let everything = Permissions {
        overwrite: true,
        read_unwritten: true,
        overlap: true,
        fill: true,
        extend: true,
        devices: false,
    };
    let error = refusal_with(&[spec], everything);
    // A user who may not read the device gets an error about that instead.
    assert!(error.contains("is a block device") || error.contains("ermission"), "{error}");
}

#[test]
fn two_names_of_one_file_are_the_same_bytes() {
    // W3
    let folder = folder();
    let [left, right] = ["left", "right"].map(|name| job(folder.path(), name, WRITE));
    std::fs::write(&left.files.paths[0], vec![7; FILE as usize]).unwrap();
    std::fs::hard_link(&left.files.paths[0], &right.files.paths[0]).unwrap();
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    let error = refusal_with(&[left.clone(), right], permissions);
    assert!(error.contains("use the same bytes at once"), "{error}");
    assert_eq!(std::fs::read(&left.files.paths[0]).unwrap(), vec![7; FILE as usize]);
}

#[test]
fn jobs_that_use_the_same_bytes_at_once_are_refused_unless_all_of_them_read() {
    let folder = folder();
    let file = vec![folder.path().join("file")];
    let on_it = |name, rw, offset_bytes| {
        job(folder.path(), name, rw).with(|job| {
            (job.files.paths, job.files.offset_bytes) = (file.clone(), offset_bytes);
        })
    };
    for rw in [WRITE, READ] {
        let error = refusal(&[on_it("a", WRITE, 0), on_it("b", rw, FILE - BLOCK)]);
        assert!(error.contains("a and b use the same bytes at once"), "{error}");
        assert!(error.starts_with(&file[0].display().to_string()), "{error}");
    }
    assert!(names(folder.path()).is_empty());
    assert_eq!(go(&[on_it("a", READ, 0), on_it("b", READ, 0)])[0].jobs.len(), 2);
    std::fs::remove_file(&file[0]).unwrap();
    assert_eq!(go(&[on_it("a", WRITE, 0), on_it("b", WRITE, FILE)])[0].jobs.len(), 2);
    std::fs::remove_file(&file[0]).unwrap();

    // A sequential job touches no more bytes than it transfers.
    let half = |name, rw, offset_bytes| {
        on_it(name, rw, offset_bytes).with(|job| job.pace.io_bytes = Some(FILE / 2))
    };
    assert_eq!(go(&[half("a", WRITE, 0), half("b", WRITE, FILE / 2)])[0].jobs.len(), 2);
    std::fs::remove_file(&file[0]).unwrap();
    refusal(&[half("a", random(WRITE), 0), half("b", WRITE, FILE / 2)]);

    #[derive(Default)]
    struct Notes(Vec<String>);
    impl Watcher for Notes {
        fn note(&mut self, text: &str) {
            self.0.push(text.into());
        }
    }
    let mut notes = Notes::default();
    let permissions = Permissions { overlap: true, ..Permissions::default() };
    let jobs = [on_it("a", WRITE, 0), on_it("b", WRITE, 0)];
    assert_eq!(
        run(&jobs, permissions, &Stop::new(), &mut notes, Peers::ALONE).unwrap()[0].jobs.len(),
        2
    );
    assert!(notes.0.len() == 1 && notes.0[0].contains("the same bytes"), "{:?}", notes.0);
}

#[test]
fn unwritten_blocks_are_read_only_where_that_is_permitted() {
    // M9
    let folder = folder();
    let path = folder.path().join("file");
    let file = std::fs::File::create(&path).unwrap();
    file.write_all_at(&vec![1; (FILE / 2) as usize], 0).unwrap();
    file.set_len(FILE).unwrap();
    let spec = job(folder.path(), "file", READ);
    let sparse = go_with(std::slice::from_ref(&spec), Permissions::default());
    let Err(error) = sparse else {
        return fixtures::skip(
            "what_was_never_written_is_not_read",
            "no holes on this file system",
        );
    };
    let expected = format!("{}: was never written from byte {}", path.display(), FILE / 2);
    assert!(error.to_string().starts_with(&expected), "{error}");
    let permissions = Permissions { read_unwritten: true, ..Permissions::default() };
    assert_eq!(
        go_with(std::slice::from_ref(&spec), permissions).unwrap()[0].jobs[0].read.bytes,
        FILE
    );
    let half = spec.clone().with(|job| job.files.file_bytes = Some(FILE / 2));
    assert_eq!(one(half).read.bytes, FILE / 2);
    let half = spec.clone().with(|job| job.pace.io_bytes = Some(FILE / 2));
    assert_eq!(one(half).read.bytes, FILE / 2);
    let longer = spec.with(|job| job.files.file_bytes = Some(2 * FILE));
    let error = refusal_with(&[longer], permissions);
    assert!(error.contains("fewer than the"), "{error}");
}

#[test]
fn an_interrupted_run_removes_its_own_files_and_no_others() {
    struct StopIn(u32, Stop);
    impl Watcher for StopIn {
        fn group(&mut self, group: u32, _: &[&JobSpec], _: u64) {
            if group == self.0 {
                self.1.request();
            }
        }
    }
    for stop_in in [0, 1] {
        let folder = folder();
        let precious = folder.path().join("precious");
        std::fs::write(&precious, vec![7; FILE as usize]).unwrap();
        let endless = |group, name, rw| {
            let mut job = job(folder.path(), name, rw);
            (job.group, job.pace.time_based) = (group, group == 1);
            job.pace.runtime = (group == 1).then_some(Duration::from_secs(3600));
            job
        };
        let jobs =
            [endless(0, "a", WRITE), endless(1, "b", random(READ)), endless(1, "precious", READ)];
        let stop = Stop::new();
        let result = run(
            &jobs,
            Permissions::default(),
            &stop,
            &mut StopIn(stop_in, stop.clone()),
            Peers::ALONE,
        );
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(names(folder.path()), ["precious"]);
        assert_eq!(std::fs::read(&precious).unwrap(), vec![7; FILE as usize]);
    }
}

#[test]
fn a_job_that_fails_ends_the_others_and_leaves_nothing() {
    let folder = folder();
    let mut endless = job(folder.path(), "endless", random(WRITE));
    (endless.pace.time_based, endless.pace.runtime) = (true, Some(Duration::from_secs(3600)));
    // The blocks that the job reads have no headers.
    std::fs::write(folder.path().join("bare"), vec![7; FILE as usize]).unwrap();
    let wrong = job(folder.path(), "bare", READ).with(|job| job.writes.verify = VERIFY);
    let error = refusal(&[endless, wrong]);
    // Any of the first reads may be the first to complete.
    assert!(error.contains("bare: verify at byte "), "{error}");
    assert!(error.contains(": no header"), "{error}");
    assert_eq!(names(folder.path()), ["bare"]);
}

#[test]
fn jobs_that_make_no_sense_are_refused_before_anything_is_made() {
    let folder = folder();
    let spec = job(folder.path(), "file", WRITE);
    type Wrong = fn(&mut JobSpec);
    let cases: &[(Wrong, &str)] = &[
        (|job| job.pace.time_based = true, "runtime"),
        (|job| job.pace.loops = 0, "loops"),
        (|job| job.io.iodepth = 0, "iodepth"),
        (|job| job.io.iodepth = 1 << 20, "iodepth"),
        (|job| job.order.write_bs = BlockSizes::one(0), "bs:"),
        (|job| job.order.write_bs = BlockSizes::one(2 << 30), "bs:"),
        (|job| job.order.write_bs = BlockSizes::Split(Vec::new()), "bs"),
        (|job| job.files.file_bytes = None, "needs a size"),
        (|job| job.files.file_bytes = Some(100), "no room for one block"),
        (|job| job.files.file_bytes = Some(1 << 62), "do not fit"),
        (|job| job.files.paths = Vec::new(), "files"),
        (|job| job.files.paths.extend_from_within(..), "twice"),
        (|job| job.order.rw.write = false, "neither"),
        (|job| (job.writes.verify, job.order.write_bs) = (VERIFY, BlockSizes::one(8)), "header"),
        (|job| (job.writes.verify, job.order.rw) = (VERIFY, READ), "nothing in it to verify"),
        (
            |job| {
                (job.writes.verify, job.order.rw, job.pace.read_rate_iops) = (VERIFY, MIX, Some(9));
            },
            "a mix under rates",
        ),
        (|job| job.files.paths = vec!["/nowhere/file".into()], "no such folder"),
        (|job| job.files.makes_folders_in = Some("/nowhere".into()), "no such folder"),
    ];
    for (change, words) in cases {
        let error = refusal(&[spec.clone().with(change)]);
        assert!(error.contains(words), "{words}: {error}");
        assert!(names(folder.path()).is_empty(), "{words}");
    }
    assert!(refusal(&[]).contains("no job"));
}
