//! Findings on whole files: the source of a copy in memory, the memory of a way, ways without a
//! measurement.

use crate::scene::{Disk, MIB, bench, of, said, silent};
use crate::support::{self, document};
use fixtures::{finish, or_skip};
use wrote_result::document::{Document, Severity};

const DROPPED: &str = "--only ways/file/stream-8m-dropped --size 32MiB --runs 2";
const WARM: &str = "--only ways/file/stream-8m --size 32MiB --runs 2";

#[test]
fn same_device_is_said_of_a_copy_whose_source_the_device_read() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let document = bench(disk.path(), DROPPED);
    said(&document, "same-device", &["ways/file/stream-8m-dropped"]);
}

#[test]
fn same_device_is_not_said_of_a_copy_whose_source_was_in_memory() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    silent(&bench(disk.path(), WARM), "same-device");
}

#[test]
fn read_from_memory_is_said_of_a_source_that_was_written_a_moment_ago() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let document = bench(disk.path(), WARM);
    let finding = said(&document, "read-from-memory", &["ways/file/stream-8m"]);
    assert_eq!(finding.severity, Severity::Info);
}

#[test]
fn read_from_memory_is_not_said_of_a_source_that_was_dropped() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    silent(&bench(disk.path(), DROPPED), "read-from-memory");
}

#[test]
fn memory_grows_is_said_of_a_way_that_holds_the_file_beside_one_that_does_not() {
    let disk = or_skip!(Disk::ext4(512 * MIB));
    let more = "--only ways/file/fs-write,ways/file/stream-8m --size 96MiB --runs 1";
    let document = bench(disk.path(), more);
    let peak = support::row(&document, "ways/file/fs-write").runs[0].max_rss_bytes;
    or_skip!(peak.ok_or("/proc/self/clear_refs may not be written to".to_owned()));
    said(&document, "memory-grows", &["ways/file/fs-write"]);
}

#[test]
fn memory_grows_is_not_said_of_copies_alone() {
    let disk = or_skip!(Disk::ext4(512 * MIB));
    let more = "--only ways/file/stream-8m,ways/file/copy --size 96MiB --runs 1";
    silent(&bench(disk.path(), more), "memory-grows");
}

const DD: &str = "--only ways/file/dd-fdatasync,ways/file/chunks-8m --size 2MiB --runs 1";

#[test]
fn left_out_is_said_where_dd_is_not_installed() {
    let folder = fixtures::folder();
    let mut command = support::bench(folder.path(), DD);
    command.args(["--format", "json"]).env("PATH", folder.path());
    let document = document(&finish(&mut command));
    let rows = &of(&document, "left-out").evidence["rows"];
    assert!(rows.get("ways/file/dd-fdatasync").is_some(), "{rows}");
    assert!(rows.get("ways/file/chunks-8m").is_none(), "{rows}");
}

#[test]
fn left_out_is_not_said_where_it_is() {
    let folder = fixtures::folder();
    silent(&bench(folder.path(), DD), "left-out");
}

/// Rows that take their slice on a disk of any speed.
const FLUSHED: &str =
    "--only small/fdatasync-each,small/o_dsync-each,small/direct-o_dsync-each-overwrite";

#[test]
#[ignore = "nightly"]
fn shortened_is_said_where_the_time_is_too_short_for_every_run() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    // All slices of these rows are longer than that.
    let document = bench(disk.path(), "--only stream,small --within 9s");
    let evidence = &of(&document, "shortened").evidence;
    assert_eq!(evidence["within_s"], 9.0);
    let least = document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    let least = least.map(|row| row.runs.len()).min().expect("there is a row");
    assert!(least >= 3 && evidence["runs_min"] == least, "{evidence:?}");
}

#[test]
#[ignore = "nightly"]
fn shortened_is_not_said_where_the_runs_were_asked_for() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    silent(&bench(disk.path(), &format!("{FLUSHED} --runs 1")), "shortened");
}

#[test]
fn leftovers_is_said_of_the_folder_of_a_run_that_was_killed() {
    let folder = fixtures::folder();
    let long = "--only small/fdatasync-each --size 200M --runs 50 --time 30s --iodepth 1";
    let mut killed = fixtures::Running::start(&mut support::bench(folder.path(), long));
    let left = support::until_it_writes(&mut killed, folder.path());
    killed.send(rustix::process::Signal::KILL);
    killed.finish();
    let document = bench(folder.path(), "--only small/cached --size 64KiB --runs 1 --iodepth 1");
    let finding = of(&document, "leftovers");
    assert!(finding.text.contains(left.to_str().expect("text")), "{finding:?}");
}

#[test]
fn leftovers_is_not_said_of_the_folder_of_a_run_that_lives_or_of_others() {
    let folder = fixtures::folder();
    let long = "--only small/fdatasync-each --size 200M --runs 50 --time 30s --iodepth 1";
    let mut living = fixtures::Running::start(&mut support::bench(folder.path(), long));
    support::until_it_writes(&mut living, folder.path());
    std::fs::create_dir(folder.path().join(".wrote-mine")).expect("a folder");
    std::fs::write(folder.path().join(".wrote-mine/file"), "theirs").expect("a file");
    let short = "--only small/cached --size 64KiB --runs 1 --iodepth 1";
    silent(&bench(folder.path(), short), "leftovers");
}

#[test]
fn interrupted_is_said_with_the_runs_until_then_and_nothing_is_left() {
    let folder = fixtures::folder();
    let rows = "--only stream/cached,small/cached --size 4MiB --iodepth 1 --runs 1000 \
                --format json";
    let mut run = fixtures::Running::start(&mut support::bench(folder.path(), rows));
    // A run's file is removed before the next one begins.
    let mut changes = 0;
    run.until("the file of another run", || {
        let files = support::run_folders(folder.path()).into_iter();
        let mut files = files.flat_map(|folder| support::job_files(&folder));
        let is_there = files.any(|file| file.to_string_lossy().contains("-new-"));
        changes += u32::from(is_there == (changes % 2 == 0));
        (changes > 4).then_some(())
    });
    run.send(rustix::process::Signal::INT);
    let finished = run.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    let document: Document = serde_json::from_str(&finished.stdout).expect("a result");
    let evidence = &of(&document, "interrupted").evidence;
    assert!(evidence["runs_max"].as_u64() > Some(0), "{evidence:?}");
    assert!(finished.stderr.ends_with("wrote: interrupted\n"), "{finished:?}");
    assert_eq!(fixtures::names(folder.path()), [""; 0]);
}

#[test]
fn interrupted_is_not_said_of_a_run_that_came_to_its_end() {
    let folder = fixtures::folder();
    let short = "--only small/cached --size 64KiB --runs 1 --iodepth 1";
    silent(&bench(folder.path(), short), "interrupted");
}
