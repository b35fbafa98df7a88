//! Tests of the table of methods, and runs of the methods on the disk that contains the sources.

use super::*;
use fixtures::folder;
use std::collections::HashSet;
use std::path::Path;
use wrote_jobs::jobs;
use wrote_jobs::jobs::{GroupReport, Permissions};
use wrote_result::Stop;

use Workload::{Small, Stream};

#[test]
fn every_row_has_a_name_of_its_own_in_its_workload() {
    let names: HashSet<_> = WAYS.iter().map(|way| way.name).collect();
    assert_eq!(names.len(), WAYS.len());
    for way in WAYS {
        assert!(way.name.starts_with(&format!("{}/", way.workload.as_str())), "{}", way.name);
    }
}

#[test]
fn the_rows_climb_from_the_least_safe_to_the_safest() {
    // M3
    for workload in [Stream, Small] {
        let levels: Vec<_> =
            WAYS.iter().filter(|way| way.workload == workload).map(Way::survives_at_best).collect();
        assert!(levels.is_sorted(), "{levels:?}");
        assert!(levels.contains(&Survives::OsCrash) && levels.contains(&Survives::PowerLoss));
    }
}

/// Returns a method with direct writes through io_uring, and a flush at the end.
fn way(blocks: Blocks) -> Way {
    let named = |way: &&Way| way.name == "small/direct-io_uring-fdatasync-at-end";
    Way { blocks, ..*WAYS.iter().find(named).unwrap() }
}

fn sizes(numjobs: u32) -> Sizes {
    let size_bytes = 64 * 4096 * u64::from(numjobs);
    Sizes { bs_bytes: 4096, size_bytes, iodepth: 4, numjobs, rate: None }
}

fn file(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("job-{number}.data"))
}

fn run(numjobs: u32, blocks: Blocks, folder: &Path, stop: &Stop) -> Result<GroupReport, Error> {
    let files: Vec<PathBuf> = (0..numjobs).map(|number| file(folder, number)).collect();
    let job = way(blocks).job(&sizes(numjobs), Duration::from_secs(3600));
    let permissions = Permissions { overwrite: blocks == Written, ..Permissions::default() };
    jobs::run(
        &job.on_each(&files, None),
        permissions,
        stop,
        &mut (),
        wrote_jobs::peers::Peers::ALONE,
    )
    .map(|mut groups| groups.remove(0))
}

#[test]
fn every_thread_writes_a_file_of_its_own_and_all_of_them_are_counted() {
    for blocks in [New, Allocated] {
        let folder = folder();
        let group = run(3, blocks, folder.path(), &Stop::new()).unwrap();
        let sum = |count: fn(&jobs::JobReport) -> u64| group.jobs.iter().map(count).sum::<u64>();
        assert_eq!(sum(|job| job.write.bytes), sizes(3).size_bytes);
        assert_eq!(sum(|job| job.write.latency_ns.len()), 3 * 64);
        for (number, job) in (0..).zip(&group.jobs) {
            assert!((1..=4).contains(&job.effective.iodepth_reached));
            let file = file(folder.path(), number);
            assert_eq!(file.metadata().unwrap().len(), sizes(3).file_bytes());
        }
    }
}

#[test]
fn blocks_that_were_written_are_written_over_in_a_file_of_the_same_length() {
    let folder = folder();
    run(1, Allocated, folder.path(), &Stop::new()).unwrap();
    let file = file(folder.path(), 0);
    let before = std::fs::read(&file).unwrap();
    run(1, Written, folder.path(), &Stop::new()).unwrap();
    let after = std::fs::read(&file).unwrap();
    assert_eq!(before.len(), after.len());
    // M2: every sector has changed.
    assert!(before.chunks(512).zip(after.chunks(512)).all(|(old, new)| old != new));
}

#[test]
fn a_run_that_was_made_smaller_writes_over_the_beginning_of_the_file() {
    let folder = folder();
    run(1, Allocated, folder.path(), &Stop::new()).unwrap();
    let file = file(folder.path(), 0);
    let before = std::fs::read(&file).unwrap();
    let half = Sizes { size_bytes: sizes(1).size_bytes / 2, ..sizes(1) };
    let job = way(Written).job(&half, Duration::from_secs(3600));
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    let jobs = job.on_each(std::slice::from_ref(&file), None);
    let group =
        jobs::run(&jobs, permissions, &Stop::new(), &mut (), wrote_jobs::peers::Peers::ALONE)
            .unwrap()
            .remove(0);
    assert_eq!(group.written_bytes(), half.size_bytes);
    let (after, middle) = (std::fs::read(&file).unwrap(), before.len() / 2);
    assert!(after.len() == before.len() && after[middle..] == before[middle..]);
    assert_ne!(after[..middle], before[..middle]);
}
