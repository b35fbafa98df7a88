//! Findings on whole files: the source of a copy in memory, the memory of a method, and methods
//! that were not measured.

use crate::scene::{Disk, MIB, bench, of, said};
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
fn read_from_memory_is_said_of_a_source_that_was_written_a_moment_ago() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let document = bench(disk.path(), WARM);
    let finding = said(&document, "read-from-memory", &["ways/file/stream-8m"]);
    assert_eq!(finding.severity, Severity::Info);
}

#[test]
fn memory_grows_is_said_of_a_way_that_holds_the_file_beside_one_that_does_not() {
    let disk = or_skip!(Disk::ext4(512 * MIB));
    let more = "--only ways/file/fs-write,ways/file/stream-8m --size 96MiB --runs 1";
    let document = bench(disk.path(), more);
    let peak = support::row(&document, "ways/file/fs-write").runs[0].max_rss_bytes;
    let peak = or_skip!(peak.ok_or("/proc/self/clear_refs may not be written to".to_owned()));
    assert!(peak >= 96 * MIB, "{peak}");
    said(&document, "memory-grows", &["ways/file/fs-write"]);
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
#[ignore = "nightly"]
fn shortened_is_said_where_the_time_is_too_short_for_every_run() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    // All runs of these rows would take longer than their share of this time.
    let document = bench(disk.path(), "--only stream,small --within 9s");
    let evidence = &of(&document, "shortened").evidence;
    assert_eq!(evidence["within_s"], 9.0);
    let least = document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    let least = least.map(|row| row.runs.len()).min().expect("there is a row");
    assert!(least >= 3 && evidence["runs_min"] == least, "{evidence:?}");
}

#[test]
fn interrupted_is_said_with_the_runs_until_then_and_nothing_is_left() {
    let folder = fixtures::folder();
    let rows = "--only stream/cached,small/cached --size 4MiB --iodepth 1 --runs 1000 \
                --format json";
    let mut run = fixtures::Running::start(&mut support::bench(folder.path(), rows));
    // The file of a run is removed before the next run begins.
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
