//! Findings on other users of the device, and on runs that differ from each other.

use crate::scene::{Disk, MIB, alone, bench, of, run, said, silent};
use crate::strange;
use fixtures::{Mounted, or_skip};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A job that hardly uses the device, and that runs long enough for another program to use the
/// device heavily.
const QUIET: &str = "[quiet]\nrw=write\nbs=4k\nsize=1m\ndirect=1\nrate_iops=100\ntime_based\n\
                     runtime=3\n";

/// Writes to the folder's device until `stop` is set.
fn neighbour(folder: &Path, stop: &AtomicBool) {
    let file = File::create_new(folder.join("neighbour")).expect("a file");
    let piece = vec![7; 8 << 20];
    while !stop.load(Ordering::Relaxed) {
        file.write_all_at(&piece, 0).expect("room");
        file.sync_data().expect("a disk");
    }
}

#[test]
#[ignore = "nightly"]
fn busy_neighbour_is_said_while_another_writes_to_the_same_device() {
    alone(|| {
        let disk = or_skip!(Disk::ext4(256 * MIB));
        let (folder, stop) = (disk.path(), AtomicBool::new(false));
        let document = thread::scope(|scope| {
            scope.spawn(|| neighbour(folder, &stop));
            let finished = fixtures::finish(&mut crate::scene::jobs(folder, QUIET, ""));
            // This must precede any assertion, because a failure would leave the other writer
            // running.
            stop.store(true, Ordering::Relaxed);
            crate::support::document(&finished)
        });
        said(&document, "busy-neighbour", &["quiet"]);
    });
}

#[test]
#[ignore = "nightly"]
fn busy_neighbour_is_not_said_of_a_device_that_nobody_else_uses() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    silent(&run(disk.path(), QUIET, ""), "busy-neighbour");
    // There is no finding either for a job that commits the journal with each write.
    silent(&bench(disk.path(), "--only stream,small --size 4MiB --runs 2"), "busy-neighbour");
}

/// A rate that the machine sustains even if it wakes up threads late.
const EVEN: &str = "--slow-rate 4MB/s";
/// Runs of 4 s each, with little time in between.
const RUNS: &str = "--only stream/direct-psync --size 16MB --time 60s";

#[test]
#[ignore = "nightly"]
fn noisy_is_said_where_one_run_meets_a_disk_that_stands_still() {
    alone(|| {
        // The disk stalls in the second of two runs.
        let strange = or_skip!(strange::mount("--slow-rate 16MB/s --stall-after 20MB --stall 5s"));
        let document = bench(strange.path(), &format!("{RUNS} --runs 2"));
        said(&document, "noisy", &["stream/direct-psync"]);
    });
}

#[test]
#[ignore = "nightly"]
fn noisy_is_not_said_of_even_runs_or_of_one_alone() {
    alone(|| {
        let strange = or_skip!(strange::mount(EVEN));
        silent(&bench(strange.path(), &format!("{RUNS} --runs 2")), "noisy");
        let strange = or_skip!(strange::mount("--slow-rate 16MB/s --stall-after 2MB --stall 2s"));
        silent(&bench(strange.path(), &format!("{RUNS} --runs 1")), "noisy");
    });
}

/// Returns the result of a small job on a new ext4 file system, mounted with these options.
fn newly_made(options: &str) -> Result<wrote_result::document::Document, String> {
    let mounted = Mounted::image_with("ext4", 2048 * MIB, options)?;
    Ok(run(mounted.path(), "[job]\nrw=write\nsize=1m\ndirect=1\n", ""))
}

#[test]
#[ignore = "nightly"]
fn lazy_init_is_said_of_an_ext4_that_was_just_made() {
    // The kernel thread waits 1000 times as long as it writes, so it is still running when the job
    // ends.
    alone(|| {
        of(&or_skip!(newly_made("init_itable=1000")), "lazy-init");
    });
}
