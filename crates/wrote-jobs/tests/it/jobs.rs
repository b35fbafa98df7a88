//! Tests of jobs on real files: their files and counts.

use crate::scene::*;
use fixtures::{folder, names};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;
use wrote_jobs::jobs::{Permissions, run};
use wrote_jobs::peers::Peers;
use wrote_jobs::spec::{BlockShare, BlockSizes, Fallocate, Think};
use wrote_result::Stop;

#[test]
fn every_engine_reads_and_writes_every_block_and_counts_it() {
    for (ioengine, iodepth) in
        [(Ioengine::IoUring, 8), (Ioengine::Threads, 4), (Ioengine::Psync, 1)]
    {
        for rw in [READ, WRITE, MIX, random(READ), random(WRITE), random(MIX)] {
            for direct in [false, true] {
                let folder = folder();
                let mut spec = job(folder.path(), "file", rw);
                (spec.io.ioengine, spec.io.iodepth, spec.io.direct) = (ioengine, iodepth, direct);
                spec.writes.end_fsync = true;
                let report = one(spec);
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
    let write = |name, io_bytes, loops| {
        let job = job(folder.path(), name, random(WRITE));
        job.with(|job| (job.pace.io_bytes, job.pace.loops) = (io_bytes, loops))
    };
    let split = BlockSizes::Split(vec![
        BlockShare { bytes: 4096, percent: 60 },
        BlockShare { bytes: 16384, percent: 40 },
    ]);
    let in_order = write("in order", None, 2).with(|job| job.order.rw = WRITE);
    for (spec, expected) in [
        (write("whole", None, 1), FILE),
        (write("less", Some(5 * BLOCK), 1), 5 * BLOCK),
        (write("more", Some(3 * FILE), 1), 3 * FILE),
        (write("loops", None, 3), 3 * FILE),
        (write("split", None, 1).with(|job| job.order.write_bs = split.clone()), FILE),
        (in_order.with(|job| job.order.write_bs = split), 2 * FILE),
        (write("no map", None, 2).with(|job| job.order.norandommap = true), 2 * FILE),
    ] {
        let name = spec.name.clone();
        assert_eq!(one(spec).write.bytes, expected, "{name}");
    }
}

#[test]
fn several_files_are_used_in_turn_and_each_from_its_offset_on() {
    let folder = folder();
    let files: Vec<PathBuf> = ["a", "b", "c"].map(|name| folder.path().join(name)).into();
    let mut spec = job(folder.path(), "job", WRITE);
    (spec.files.paths, spec.files.offset_bytes) = (files.clone(), 2 * BLOCK);
    assert_eq!(one(spec.with(|job| job.files.fallocate = Fallocate::None)).write.bytes, 3 * FILE);
    for path in files {
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len() as u64, FILE + 2 * BLOCK);
        assert!(bytes[..2 * BLOCK as usize].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn verify_expects_the_written_bytes_and_names_a_flipped_one() {
    for rw in [WRITE, random(WRITE)] {
        for direct in [false, true] {
            let folder = folder();
            let mut write = job(folder.path(), "file", rw);
            (write.writes.verify, write.io.direct) = (VERIFY, direct);
            let path = folder.path().join("file");
            assert_eq!(one(write).verified_bytes, FILE);
            // A later run reads the file in a different order.
            let mut read = job(folder.path(), "file", random(READ));
            (read.writes.verify, read.io.direct, read.files.file_bytes) = (VERIFY, direct, None);
            assert_eq!(one(read.clone()).verified_bytes, FILE);
            let file = File::options().read(true).write(true).open(&path).unwrap();
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
    let split = BlockSizes::Split(vec![
        BlockShare { bytes: 4096, percent: 50 },
        BlockShare { bytes: 12288, percent: 50 },
    ]);
    for (loops, norandommap, write_bs, whole) in [
        (3, false, BlockSizes::one(BLOCK), true),
        (1, true, BlockSizes::one(BLOCK), false),
        (2, false, split, false),
    ] {
        let folder = folder();
        let mut spec = job(folder.path(), "file", random(WRITE));
        (spec.writes.verify, spec.pace.loops) = (VERIFY, loops);
        (spec.order.norandommap, spec.order.write_bs) = (norandommap, write_bs);
        let verified = one(spec).verified_bytes;
        assert!(verified > 0 && verified <= FILE);
        assert_eq!(verified == FILE, whole, "{verified}");
    }
}

#[test]
fn a_mix_is_verified_by_what_it_wrote() {
    let folder = folder();
    let mix = job(folder.path(), "file", random(MIX));
    let report = one(mix.with(|job| job.writes.verify = VERIFY));
    assert_eq!(report.verified_bytes, report.write.bytes);
    assert!(report.fallbacks.iter().any(|step| step.wanted == "verify of reads"));
}

#[test]
fn groups_run_one_after_the_other_and_later_ones_use_the_files_of_earlier_ones() {
    let folder = folder();
    let file = vec![folder.path().join("file")];
    let later = |group, name, rw| {
        let job = job(folder.path(), name, rw);
        job.with(|job| (job.group, job.files.paths) = (group, file.clone()))
    };
    let mut told = Told::default();
    let jobs =
        [later(0, "write", WRITE), later(2, "read", READ), later(1, "write again", random(WRITE))];
    let reports =
        run(&jobs, Permissions::default(), &Stop::new(), &mut told, Peers::ALONE).unwrap();
    let order: Vec<&str> = reports.iter().map(|group| group.jobs[0].spec.name.as_str()).collect();
    assert_eq!(order, ["write", "write again", "read"]);
    // The last job read the blocks of the first.
    assert_eq!(told.0, [(0, 1, 0), (1, 1, 0), (2, 1, 0)]);
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_missing_file_is_laid_out_with_random_data_and_the_watcher_is_told_how_much() {
    let folder = folder();
    let file = vec![folder.path().join("file")];
    let read = |group, file_bytes| {
        let mut job = job(folder.path(), "read", random(READ));
        job.group = group;
        (job.files.paths, job.files.file_bytes) = (file.clone(), Some(file_bytes));
        job
    };
    let mut told = Told::default();
    let jobs = [read(0, FILE), read(1, FILE), read(2, 3 * FILE)];
    run(&jobs, Permissions::default(), &Stop::new(), &mut told, Peers::ALONE).unwrap();
    // A later job that reads more of the run's own file extends it first.
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
        let mut spec = job(folder.path(), "file", WRITE);
        (spec.files.fallocate, spec.pace.io_bytes) = (fallocate, Some(BLOCK));
        let report = one(spec);
        let found = folder.path().join("file").metadata().unwrap().len();
        if report.fallbacks.iter().any(|step| step.wanted == "allocated blocks") {
            assert_eq!(found, BLOCK);
        } else {
            assert_eq!(found, len_bytes, "{fallocate:?}");
        }
    }
}

#[test]
fn no_operation_is_issued_that_is_due_at_the_deadline_or_later() {
    let folder = folder();
    for (number, ioengine) in [Ioengine::Psync, Ioengine::IoUring].into_iter().enumerate() {
        let runtime = Some(Duration::from_millis(200));
        let mut spec = job(folder.path(), "", WRITE);
        (spec.io.ioengine, spec.pace.runtime, spec.pace.time_based) = (ioengine, runtime, true);
        let files = |rate: &str| vec![folder.path().join(format!("{rate}-{number}"))];
        // Operations are due at 0 and 100 ms; with a rate in bytes, at 0, 50, 100 and 150 ms.
        let mut iops = spec.clone();
        (iops.files.paths, iops.pace.write_rate_iops) = (files("iops"), Some(10));
        assert!((1..=2).contains(&one(iops).write.operations));
        let mut bytes = spec;
        bytes.files.paths = files("bytes");
        bytes.pace.write_rate_bytes_per_s = Some(20 * BLOCK);
        assert!((1..=4).contains(&one(bytes).write.operations));
    }
}

#[test]
fn the_rates_of_a_mix_say_what_it_is_made_of_and_each_direction_waits_for_itself_alone() {
    let folder = folder();
    let mut mix = job(folder.path(), "file", random(MIX));
    mix.pace.io_bytes = Some(50 * BLOCK);
    let mut rates = mix.clone();
    (rates.pace.read_rate_iops, rates.pace.write_rate_iops) = (Some(4000), Some(1000));
    let report = one(rates);
    assert_eq!((report.read.operations, report.write.operations), (40, 10));
    // M5: a direction without a rate is never late, even if the other direction waits.
    let one_rate = mix.with(|job| job.pace.read_rate_iops = Some(100));
    let report = one(one_rate.with(|job| job.files.paths = vec![folder.path().join("other")]));
    assert_eq!(report.read.operations + report.write.operations, 50);
    assert!(report.write.latency_ns.max() <= report.elapsed.as_nanos() as u64);
    assert!(report.read.operations <= 1 + report.elapsed.as_millis() as u64 / 10);
}

#[test]
fn a_job_of_a_time_goes_on_until_then_and_its_ramp_is_not_counted() {
    let folder = folder();
    let time = Duration::from_millis(120);
    let mut spec = job(folder.path(), "file", random(WRITE));
    (spec.pace.time_based, spec.pace.runtime, spec.pace.ramp_time) = (true, Some(time), time);
    spec.pace.startdelay = Duration::from_millis(20);
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
    let mut short = spec;
    (short.pace.time_based, short.pace.ramp_time) = (false, Duration::from_secs(3600));
    let error = refusal_with(&[short], permissions);
    assert!(error.contains("ended before its ramp_time"), "{error}");
}

#[test]
fn each_fallback_is_reported() {
    // W6
    let folder = folder();
    let write = |name| job(folder.path(), name, random(WRITE));
    let split = BlockSizes::Split(vec![
        BlockShare { bytes: 4096, percent: 50 },
        BlockShare { bytes: 8192, percent: 50 },
    ]);
    let flushes = write("flushes").with(|job| job.writes.fdatasync = Some(8));
    for (spec, wanted) in [
        (write("psync").with(|job| job.io.ioengine = Ioengine::Psync), "iodepth 8"),
        (write("split").with(|job| job.order.write_bs = split), "random map"),
        (flushes, "flushes in the queue beside writes"),
    ] {
        let report = one(spec);
        assert!(report.fallbacks.iter().any(|step| step.wanted == wanted), "{wanted}");
    }
    assert!(one(write("plain")).fallbacks.iter().all(|step| step.wanted == "allocated blocks"));
}

#[test]
fn a_job_that_thinks_pauses_after_its_operations_and_no_latency_has_the_pause() {
    let folder = folder();
    let time = Duration::from_millis(30);
    for (iodepth, blocks, pauses) in [(1, 1, 4), (8, 2, 2), (2, 4, 1), (8, 5, 0)] {
        let think = Some(Think { time, spin: time / 10, blocks });
        let mut job = job(folder.path(), &format!("file{iodepth}.{blocks}"), random(MIX));
        (job.pace.think, job.io.iodepth, job.pace.io_bytes) = (think, iodepth, Some(4 * BLOCK));
        let report = one(job);
        assert_eq!(report.read.operations + report.write.operations, 4);
        assert!(report.elapsed >= time * pauses, "{blocks}: {:?}", report.elapsed);
        // Completions are collected before the pause, so none of them has to wait until its end.
        assert!(report.completed_together.max() <= u64::from(blocks), "{blocks}");
    }
    let think = Some(Think { time: Duration::from_secs(3600), spin: Duration::ZERO, blocks: 1 });
    let job = job(folder.path(), "short", WRITE);
    let short = job.with(|job| (job.pace.think, job.pace.runtime) = (think, Some(time)));
    assert_eq!(one(short).write.operations, 1, "the job's time ends the pause");
}

#[test]
fn a_file_to_write_over_is_written_before_the_clock_starts() {
    let folder = folder();
    let over = |name: &str| {
        let job = job(folder.path(), name, random(WRITE));
        job.with(|job| (job.files.overwrite, job.pace.number_ios) = (true, Some(1)))
    };
    let mut told = Told::default();
    let done =
        run(&[over("new")], Permissions::default(), &Stop::new(), &mut told, Peers::ALONE).unwrap();
    assert_eq!((told.0[0].2, done[0].jobs[0].write.bytes), (FILE, BLOCK));
    assert!(all_blocks_differ(&folder.path().join("new")));
    // Only the missing parts of an existing file are written, and only with permission.
    std::fs::write(folder.path().join("short"), [7; BLOCK as usize]).unwrap();
    assert!(refusal(&[over("short")]).contains("--overwrite allows it"));
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    let mut told = Told::default();
    run(&[over("short")], permissions, &Stop::new(), &mut told, Peers::ALONE).unwrap();
    assert_eq!(told.0[0].2, FILE - BLOCK);
    assert_eq!(folder.path().join("short").metadata().unwrap().len(), FILE);
}

#[test]
fn unlink_removes_what_the_run_made_and_nothing_else() {
    // W7
    let folder = folder();
    let unlinked = |rw| job(folder.path(), "gone", rw).with(|job| job.files.unlink = true);
    let stays = job(folder.path(), "stays", WRITE);
    let later = unlinked(READ).with(|job| job.group = 1);
    let done = go(&[unlinked(WRITE).with(|job| job.writes.verify = VERIFY), stays, later.clone()]);
    assert_eq!(done[1].jobs[0].read.bytes, FILE, "a later group makes it again");
    assert_eq!(names(folder.path()), ["stays"]);
    let all = later.with(|job| (job.files.file_bytes, job.files.unlink) = (None, false));
    let error = refusal(&[unlinked(WRITE), all]);
    assert!(error.contains("does not exist, and creating it needs a size"), "{error}");
    std::fs::write(folder.path().join("gone"), vec![7; FILE as usize]).unwrap();
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    for rw in [READ, WRITE] {
        let error = refusal_with(&[unlinked(rw)], permissions);
        assert!(error.ends_with("exists, and unlink removes only files that the run creates"));
    }
    assert_eq!(std::fs::read(folder.path().join("gone")).unwrap(), vec![7; FILE as usize]);
}
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
    // The run writes a new file before reading it.
    assert_eq!(one(job(folder.path(), "b", READ)).unwritten_bytes, Some(0));
}
