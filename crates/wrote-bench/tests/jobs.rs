//! Jobs on real files: what they leave behind, what they count, and what they refuse.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote::Ioengine;
use wrote_bench::jobs::{GroupReport, JobReport, Permissions, Watcher, run};
use wrote_bench::spec::{BlockShare, BlockSizes, Data, Fallocate, JobSpec, Rw, SyncEach, Verify};
use wrote_bench::{Error, Stop};

const READ: Rw = Rw { read: true, write: false, random: false };
const WRITE: Rw = Rw { read: false, write: true, random: false };
const MIX: Rw = Rw { read: true, write: true, random: false };
const BLOCK: u64 = 4096;
const FILE: u64 = 64 * BLOCK;
const VERIFY: Option<Verify> = Some(Verify { after_writes: true });

fn random(rw: Rw) -> Rw {
    Rw { random: true, ..rw }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

/// A job of 64 blocks of 4 KiB in one file of its name.
fn job(folder: &Path, name: &str, rw: Rw) -> JobSpec {
    JobSpec {
        name: name.into(),
        clone: 0,
        group: 0,
        group_reporting: false,
        rw,
        rwmixread_percent: 50,
        ioengine: Ioengine::IoUring,
        iodepth: 8,
        iodepth_batch: 0,
        iodepth_batch_complete_min: 0,
        read_bs: BlockSizes::one(BLOCK),
        write_bs: BlockSizes::one(BLOCK),
        files: vec![folder.join(name)],
        offset_bytes: 0,
        file_bytes: Some(FILE),
        io_bytes: None,
        loops: 1,
        direct: true,
        sync: SyncEach::No,
        fsync: None,
        fdatasync: None,
        end_fsync: false,
        runtime: None,
        time_based: false,
        ramp_time: Duration::ZERO,
        startdelay: Duration::ZERO,
        read_rate_bytes_per_s: None,
        write_rate_bytes_per_s: None,
        read_rate_iops: None,
        write_rate_iops: None,
        norandommap: false,
        seed: 1,
        verify: None,
        data: Data::Random,
        fallocate: Fallocate::Native,
        invalidate: true,
        hipri: false,
        fixedbufs: true,
        registerfiles: true,
        sqthread_poll: false,
        sqthread_poll_cpu: None,
        percentiles: Vec::new(),
        options: Vec::new(),
    }
}

/// What a watcher is told of each group: its number, its jobs, and the bytes that are laid out.
#[derive(Default)]
struct Told(Vec<(u32, usize, u64)>);
impl Watcher for Told {
    fn group(&mut self, group: u32, jobs: &[JobSpec], laid_out_bytes: u64) {
        self.0.push((group, jobs.len(), laid_out_bytes));
    }
}

fn go_with(jobs: &[JobSpec], permissions: Permissions) -> Result<Vec<GroupReport>, Error> {
    run(jobs, permissions, &Stop::new(), &mut ())
}

fn go(jobs: &[JobSpec]) -> Vec<GroupReport> {
    go_with(jobs, Permissions::default()).unwrap()
}

fn one(job: JobSpec) -> JobReport {
    go(&[job]).remove(0).jobs.remove(0)
}

fn refusal_with(jobs: &[JobSpec], permissions: Permissions) -> String {
    let error = go_with(jobs, permissions).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

fn refusal(jobs: &[JobSpec]) -> String {
    refusal_with(jobs, Permissions::default())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// No block of the file is empty, and no two are equal.
fn all_blocks_differ(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    let blocks: std::collections::HashSet<&[u8]> = bytes.chunks(BLOCK as usize).collect();
    blocks.len() == bytes.len() / BLOCK as usize && !blocks.contains([0; BLOCK as usize].as_slice())
}

#[test]
fn every_engine_reads_and_writes_every_block_and_counts_it() {
    for (ioengine, iodepth) in
        [(Ioengine::IoUring, 8), (Ioengine::Threads, 4), (Ioengine::Psync, 1)]
    {
        for rw in [READ, WRITE, MIX, random(READ), random(WRITE), random(MIX)] {
            for direct in [false, true] {
                let folder = folder();
                let spec = job(folder.path(), "file", rw);
                let report = one(JobSpec { ioengine, iodepth, direct, end_fsync: true, ..spec });
                assert_eq!(report.read.bytes + report.write.bytes, FILE, "{ioengine:?} {rw:?}");
                for (direction, is) in [(&report.read, rw.read), (&report.write, rw.write)] {
                    assert_eq!(direction.bytes > 0, is);
                    assert_eq!(direction.operations, direction.bytes / BLOCK);
                    assert_eq!(direction.latency_ns.len(), direction.operations);
                }
                assert_eq!(report.depths.len(), FILE / BLOCK);
                assert_eq!(report.flush_ns.len(), u64::from(rw.write));
                let path = folder.path().join("file");
                assert_eq!(path.metadata().unwrap().len(), FILE);
                assert!(all_blocks_differ(&path), "{ioengine:?} {rw:?}");
            }
        }
    }
}

#[test]
fn bytes_are_those_of_size_io_size_loops_and_split() {
    let folder = folder();
    let write = |name, io_bytes, loops| JobSpec {
        io_bytes,
        loops,
        ..job(folder.path(), name, random(WRITE))
    };
    let split = BlockSizes(vec![
        BlockShare { bytes: 4096, percent: 60 },
        BlockShare { bytes: 16384, percent: 40 },
    ]);
    for (spec, expected) in [
        (write("whole", None, 1), FILE),
        (write("less", Some(5 * BLOCK), 1), 5 * BLOCK),
        (write("more", Some(3 * FILE), 1), 3 * FILE),
        (write("loops", None, 3), 3 * FILE),
        (JobSpec { write_bs: split.clone(), ..write("split", None, 1) }, FILE),
        (JobSpec { write_bs: split, rw: WRITE, ..write("in order", None, 2) }, 2 * FILE),
        (JobSpec { norandommap: true, ..write("no map", None, 2) }, 2 * FILE),
    ] {
        let name = spec.name.clone();
        assert_eq!(one(spec).write.bytes, expected, "{name}");
    }
}

#[test]
fn several_files_are_used_in_turn_and_each_from_its_offset_on() {
    let folder = folder();
    let files: Vec<PathBuf> = ["a", "b", "c"].map(|name| folder.path().join(name)).into();
    let spec = job(folder.path(), "job", WRITE);
    let spec = JobSpec { files: files.clone(), offset_bytes: 2 * BLOCK, ..spec };
    assert_eq!(one(JobSpec { fallocate: Fallocate::None, ..spec }).write.bytes, 3 * FILE);
    for path in files {
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len() as u64, FILE + 2 * BLOCK);
        assert!(bytes[..2 * BLOCK as usize].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn what_is_written_is_what_verify_expects_and_a_flipped_byte_is_found_and_named() {
    for rw in [WRITE, random(WRITE)] {
        for direct in [false, true] {
            let folder = folder();
            let write = JobSpec { verify: VERIFY, direct, ..job(folder.path(), "file", rw) };
            let path = folder.path().join("file");
            assert_eq!(one(write).verified_bytes, FILE);
            // A later run reads it, in another order.
            let read = job(folder.path(), "file", random(READ));
            let read = JobSpec { verify: VERIFY, direct, file_bytes: None, ..read };
            assert_eq!(one(read.clone()).verified_bytes, FILE);
            let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, 5 * BLOCK + 1234).unwrap();
            file.write_all_at(&[byte[0] ^ 1], 5 * BLOCK + 1234).unwrap();
            let error = refusal(&[read]);
            let expected = format!("{}: verify at byte {}: CRC32C", path.display(), 5 * BLOCK);
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn blocks_that_were_written_over_are_held_against_the_last_write() {
    let split = BlockSizes(vec![
        BlockShare { bytes: 4096, percent: 50 },
        BlockShare { bytes: 12288, percent: 50 },
    ]);
    for (loops, norandommap, write_bs, whole) in [
        (3, false, BlockSizes::one(BLOCK), true),
        (1, true, BlockSizes::one(BLOCK), false),
        (2, false, split, false),
    ] {
        let folder = folder();
        let spec = job(folder.path(), "file", random(WRITE));
        let spec = JobSpec { verify: VERIFY, loops, norandommap, write_bs, ..spec };
        let verified = one(spec).verified_bytes;
        assert!(verified > 0 && verified <= FILE);
        assert_eq!(verified == FILE, whole, "{verified}");
    }
}

#[test]
fn a_mix_is_verified_by_what_it_wrote() {
    let folder = folder();
    let report = one(JobSpec { verify: VERIFY, ..job(folder.path(), "file", random(MIX)) });
    assert_eq!(report.verified_bytes, report.write.bytes);
    assert!(report.fallbacks.iter().any(|step| step.wanted == "verify of reads"));
}

#[test]
fn a_file_that_exists_is_refused_and_untouched_unless_it_may_be_written_over() {
    // W7
    for rw in [WRITE, MIX] {
        let folder = folder();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; FILE as usize]).unwrap();
        // A job before it does not begin either.
        let before = job(folder.path(), "before", WRITE);
        let spec = JobSpec { group: 1, ..job(folder.path(), "file", rw) };
        let error = refusal(&[before, spec.clone()]);
        let path_shown = path.display();
        assert_eq!(
            error,
            format!("{path_shown}: exists and would be written over; --overwrite allows it")
        );
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; FILE as usize]);
        assert_eq!(names(folder.path()), ["file"]);
        let permissions = Permissions { overwrite: true, ..Permissions::default() };
        go_with(&[spec], permissions).unwrap();
        assert_ne!(std::fs::read(&path).unwrap(), vec![7; FILE as usize]);
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
        return skip::skip("a_device_is_never_written", "there is none in /dev");
    };
    let spec = JobSpec { files: vec![device], ..job(Path::new("/"), "device", WRITE) };
    let everything = Permissions { overwrite: true, read_unwritten: true, overlap: true };
    let error = refusal_with(&[spec], everything);
    // Who may not read the device is told that before.
    assert!(error.contains("is a block device") || error.contains("ermission"), "{error}");
}

#[test]
fn groups_run_one_after_the_other_and_later_ones_use_the_files_of_earlier_ones() {
    let folder = folder();
    let file = vec![folder.path().join("file")];
    let later =
        |group, name, rw| JobSpec { group, files: file.clone(), ..job(folder.path(), name, rw) };
    let mut told = Told::default();
    let jobs =
        [later(0, "write", WRITE), later(2, "read", READ), later(1, "write again", random(WRITE))];
    let reports = run(&jobs, Permissions::default(), &Stop::new(), &mut told).unwrap();
    let order: Vec<&str> = reports.iter().map(|group| group.jobs[0].spec.name.as_str()).collect();
    assert_eq!(order, ["write", "write again", "read"]);
    // What the first wrote was there for the last to read.
    assert_eq!(told.0, [(0, 1, 0), (1, 1, 0), (2, 1, 0)]);
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn jobs_of_a_group_run_at_once_and_each_is_reported() {
    let folder = folder();
    let clones: Vec<JobSpec> = (0..3)
        .map(|clone| JobSpec {
            clone,
            files: vec![folder.path().join(format!("file.{clone}"))],
            ..job(folder.path(), "writers", WRITE)
        })
        .collect();
    let report = go(&clones).remove(0);
    assert_eq!(report.jobs.len(), 3);
    assert!(report.jobs.iter().zip(0..).all(|(job, clone)| job.spec.clone == clone));
    assert!(report.jobs.iter().all(|job| job.write.bytes == FILE && job.elapsed <= report.elapsed));
    assert!(report.max_rss_bytes > 0);
}

#[test]
fn jobs_that_use_the_same_bytes_at_once_are_refused_unless_all_of_them_read() {
    let folder = folder();
    let file = vec![folder.path().join("file")];
    let on_it = |name, rw, offset_bytes| JobSpec {
        files: file.clone(),
        offset_bytes,
        ..job(folder.path(), name, rw)
    };
    for rw in [WRITE, READ] {
        let error = refusal(&[on_it("a", WRITE, 0), on_it("b", rw, FILE - BLOCK)]);
        assert!(error.contains("a and b use the same bytes of it at once"), "{error}");
        assert!(error.starts_with(&file[0].display().to_string()), "{error}");
    }
    assert!(names(folder.path()).is_empty());
    assert_eq!(go(&[on_it("a", READ, 0), on_it("b", READ, 0)])[0].jobs.len(), 2);
    std::fs::remove_file(&file[0]).unwrap();
    assert_eq!(go(&[on_it("a", WRITE, 0), on_it("b", WRITE, FILE)])[0].jobs.len(), 2);
    std::fs::remove_file(&file[0]).unwrap();

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
    assert_eq!(run(&jobs, permissions, &Stop::new(), &mut notes).unwrap()[0].jobs.len(), 2);
    assert!(notes.0.len() == 1 && notes.0[0].contains("the same bytes"), "{:?}", notes.0);
}

#[test]
fn what_was_never_written_is_not_read_unless_it_is_permitted() {
    // M9
    let folder = folder();
    let path = folder.path().join("file");
    let file = std::fs::File::create(&path).unwrap();
    file.write_all_at(&vec![1; (FILE / 2) as usize], 0).unwrap();
    file.set_len(FILE).unwrap();
    let spec = job(folder.path(), "file", READ);
    let sparse = go_with(std::slice::from_ref(&spec), Permissions::default());
    let Err(error) = sparse else {
        return skip::skip("what_was_never_written_is_not_read", "no holes on this file system");
    };
    let expected = format!("{}: was never written from byte {}", path.display(), FILE / 2);
    assert!(error.to_string().starts_with(&expected), "{error}");
    let permissions = Permissions { read_unwritten: true, ..Permissions::default() };
    assert_eq!(
        go_with(std::slice::from_ref(&spec), permissions).unwrap()[0].jobs[0].read.bytes,
        FILE
    );
    let half = JobSpec { file_bytes: Some(FILE / 2), ..spec.clone() };
    assert_eq!(one(half).read.bytes, FILE / 2);
    let error = refusal_with(&[JobSpec { file_bytes: Some(2 * FILE), ..spec }], permissions);
    assert!(error.contains("bytes long"), "{error}");
}

#[test]
fn a_missing_file_is_laid_out_with_random_data_and_the_watcher_is_told_how_much() {
    let folder = folder();
    let file = vec![folder.path().join("file")];
    let read = |group, file_bytes| JobSpec {
        group,
        files: file.clone(),
        file_bytes: Some(file_bytes),
        ..job(folder.path(), "read", random(READ))
    };
    let mut told = Told::default();
    let jobs = [read(0, FILE), read(1, FILE), read(2, 3 * FILE)];
    run(&jobs, Permissions::default(), &Stop::new(), &mut told).unwrap();
    // The run's own file is laid out further when a later job reads more of it.
    assert_eq!(told.0, [(0, 1, FILE), (1, 1, 0), (2, 1, 2 * FILE)]);
    assert_eq!(file[0].metadata().unwrap().len(), 3 * FILE);
    assert!(all_blocks_differ(&file[0]));
}

#[test]
fn blocks_are_made_as_fallocate_says() {
    for (fallocate, len_bytes) in [
        (Fallocate::Native, FILE),
        (Fallocate::Truncate, FILE),
        (Fallocate::Keep, BLOCK),
        (Fallocate::None, BLOCK),
    ] {
        let folder = folder();
        let spec = job(folder.path(), "file", WRITE);
        let report = one(JobSpec { fallocate, io_bytes: Some(BLOCK), ..spec });
        let found = folder.path().join("file").metadata().unwrap().len();
        if report.fallbacks.iter().any(|step| step.wanted == "fallocate") {
            assert_eq!(found, BLOCK);
        } else {
            assert_eq!(found, len_bytes, "{fallocate:?}");
        }
    }
}

#[test]
fn zeros_are_written_where_they_are_asked_for() {
    let folder = folder();
    one(JobSpec { data: Data::Zeros, ..job(folder.path(), "file", WRITE) });
    let bytes = std::fs::read(folder.path().join("file")).unwrap();
    assert_eq!(bytes, vec![0; FILE as usize]);
}

#[test]
fn an_interrupted_run_removes_its_own_files_and_no_others() {
    struct StopIn(u32, Stop);
    impl Watcher for StopIn {
        fn group(&mut self, group: u32, _: &[JobSpec], _: u64) {
            if group == self.0 {
                self.1.request();
            }
        }
    }
    for stop_in in [0, 1] {
        let folder = folder();
        let precious = folder.path().join("precious");
        std::fs::write(&precious, vec![7; FILE as usize]).unwrap();
        let endless = |group, name, rw| JobSpec {
            group,
            time_based: group == 1,
            runtime: (group == 1).then_some(Duration::from_secs(3600)),
            ..job(folder.path(), name, rw)
        };
        let jobs =
            [endless(0, "a", WRITE), endless(1, "b", random(READ)), endless(1, "precious", READ)];
        let stop = Stop::new();
        let result = run(&jobs, Permissions::default(), &stop, &mut StopIn(stop_in, stop.clone()));
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(names(folder.path()), ["precious"]);
        assert_eq!(std::fs::read(&precious).unwrap(), vec![7; FILE as usize]);
    }
}

#[test]
fn a_job_that_fails_ends_the_others_and_leaves_nothing() {
    let folder = folder();
    let endless = JobSpec {
        time_based: true,
        runtime: Some(Duration::from_secs(3600)),
        ..job(folder.path(), "endless", random(WRITE))
    };
    // What it reads has no headers.
    std::fs::write(folder.path().join("bare"), vec![7; FILE as usize]).unwrap();
    let wrong = JobSpec { verify: VERIFY, ..job(folder.path(), "bare", READ) };
    let error = refusal(&[endless, wrong]);
    assert!(error.contains("bare: verify at byte 0: there is no header"), "{error}");
    assert_eq!(names(folder.path()), ["bare"]);
}

#[test]
fn a_rate_lets_no_more_through_than_its_time_allows() {
    let folder = folder();
    for iodepth in [1, 8] {
        let spec = job(folder.path(), &format!("file{iodepth}"), random(WRITE));
        let spec = JobSpec { iodepth, write_rate_iops: Some(100), ..spec };
        let spec = JobSpec { io_bytes: Some(10 * BLOCK), ..spec };
        let report = one(spec);
        assert_eq!(report.write.operations, 10);
        // The tenth is due 90 ms after the first.
        assert!(report.elapsed >= Duration::from_millis(90), "{:?}", report.elapsed);
    }
}

#[test]
fn a_job_of_a_time_goes_on_until_then_and_its_ramp_is_not_counted() {
    let folder = folder();
    let time = Duration::from_millis(120);
    let spec = JobSpec {
        time_based: true,
        runtime: Some(time),
        ramp_time: time,
        startdelay: Duration::from_millis(20),
        ..job(folder.path(), "file", random(WRITE))
    };
    let begin = std::time::Instant::now();
    let report = one(spec.clone());
    assert!(begin.elapsed() >= 2 * time);
    assert!(report.elapsed >= time);
    assert!(report.write.bytes > 0);
    assert_eq!(report.write.latency_ns.len(), report.write.operations);
    assert_eq!(
        report.depths.len(),
        report
            .submitted_together
            .iter_recorded()
            .map(|value| { value.value_iterated_to() * value.count_at_value() })
            .sum::<u64>()
    );
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    let short = JobSpec { time_based: false, ramp_time: Duration::from_secs(3600), ..spec };
    let error = refusal_with(&[short], permissions);
    assert!(error.contains("over before its ramp_time"), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let folder = folder();
    let spec = job(folder.path(), "file", WRITE);
    let huge = BlockSizes::one(2 << 30);
    for (wrong, words) in [
        (JobSpec { time_based: true, ..spec.clone() }, "runtime"),
        (JobSpec { loops: 0, ..spec.clone() }, "loops"),
        (JobSpec { iodepth: 0, ..spec.clone() }, "iodepth"),
        (JobSpec { iodepth: 1 << 20, ..spec.clone() }, "iodepth"),
        (JobSpec { write_bs: BlockSizes::one(0), ..spec.clone() }, "bs:"),
        (JobSpec { write_bs: huge, ..spec.clone() }, "bs:"),
        (JobSpec { write_bs: BlockSizes(Vec::new()), ..spec.clone() }, "bs"),
        (JobSpec { file_bytes: None, ..spec.clone() }, "no size"),
        (JobSpec { file_bytes: Some(100), ..spec.clone() }, "no room for one block"),
        (JobSpec { file_bytes: Some(1 << 62), ..spec.clone() }, "do not fit"),
        (JobSpec { files: Vec::new(), ..spec.clone() }, "files"),
        (JobSpec { files: [&spec.files[..], &spec.files].concat(), ..spec.clone() }, "twice"),
        (JobSpec { rw: Rw { write: false, ..WRITE }, ..spec.clone() }, "neither"),
        (JobSpec { verify: VERIFY, write_bs: BlockSizes::one(8), ..spec.clone() }, "header"),
        (JobSpec { verify: VERIFY, rw: READ, ..spec.clone() }, "nothing in it to verify"),
        (JobSpec { files: vec!["/nowhere/file".into()], ..spec.clone() }, "no such folder"),
    ] {
        let error = refusal(&[wrong]);
        assert!(error.contains(words), "{words}: {error}");
        assert!(names(folder.path()).is_empty(), "{words}");
    }
    assert!(refusal(&[]).contains("no job"));
}

#[test]
fn what_is_not_done_as_asked_is_said() {
    // W6
    let folder = folder();
    let write = |name| job(folder.path(), name, random(WRITE));
    let split = BlockSizes(vec![
        BlockShare { bytes: 4096, percent: 50 },
        BlockShare { bytes: 8192, percent: 50 },
    ]);
    for (spec, wanted) in [
        (JobSpec { ioengine: Ioengine::Psync, ..write("psync") }, "iodepth 8"),
        (JobSpec { write_bs: split, ..write("split") }, "random map"),
        (JobSpec { fdatasync: Some(8), ..write("flushes") }, "flushes in the queue beside writes"),
    ] {
        let report = one(spec);
        assert!(report.fallbacks.iter().any(|step| step.wanted == wanted), "{wanted}");
    }
    assert!(one(write("plain")).fallbacks.iter().all(|step| step.wanted == "fallocate"));
}
