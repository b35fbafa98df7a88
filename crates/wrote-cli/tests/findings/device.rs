//! Findings on the device and the file system: their kind, free space, and cache.

use crate::scene::{Disk, MIB, bench, of, said, silent};
use crate::strange;
use fixtures::{Mounted, or_skip};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use serde_json::json;
use std::fs::File;
use std::path::Path;
use wrote_result::document::Severity;

const SOME: &str = "--only small/cached,small/direct-psync --size 1MiB --time 60s --runs 1";

#[test]
fn no_block_device_is_said_of_a_file_system_in_memory() {
    let mounted = or_skip!(Mounted::tmpfs(64 * MIB));
    let document = bench(mounted.path(), SOME);
    assert_eq!(of(&document, "no-block-device").severity, Severity::Warning);
}

#[test]
fn no_block_device_is_said_of_a_file_system_that_names_none() {
    let strange = or_skip!(strange::mount(""));
    let document = bench(strange.path(), SOME);
    assert_eq!(of(&document, "no-block-device").severity, Severity::Info);
}

#[test]
fn no_journal_is_said_of_rows_that_would_survive_a_power_loss() {
    let mounted = or_skip!(Mounted::image("ext2", 64 * MIB));
    let document = bench(mounted.path(), "--only small --size 1MiB --time 60s --runs 1");
    let rows = &of(&document, "no-journal").evidence["rows"];
    assert!(!rows.to_string().contains("\"small/cached\""), "{rows}");
    let journaled = or_skip!(Disk::ext4(64 * MIB));
    silent(&bench(journaled.path(), SOME), "no-journal");
}

#[test]
fn counters_off_is_said_where_the_queue_counts_nothing() {
    let disk = or_skip!(Disk::ext4(64 * MIB).and_then(|disk| disk.with("iostats", "0")));
    let document = bench(disk.path(), SOME);
    of(&document, "counters-off");
    // Without counters, there is no finding about memory.
    silent(&document, "ram-not-disk");
}

/// Fills the file system with one file, until `free_percent` of it is free for an ordinary user.
fn fill(folder: &Path, free_percent: u64) {
    let stat = statvfs(folder).expect("a file system");
    let taken = stat.f_bavail - stat.f_blocks * free_percent / 100;
    let file = File::create_new(folder.join("filler")).expect("a file");
    fallocate(&file, FallocateFlags::empty(), 0, taken * stat.f_frsize).expect("room");
}

#[test]
fn nearly_full_is_said_where_less_than_15_percent_are_free() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    fill(disk.path(), 13);
    let document = bench(disk.path(), SOME);
    let used = of(&document, "nearly-full").evidence["used_share"].as_f64().expect("a number");
    assert!((0.86..0.88).contains(&used), "{used}");
}

#[test]
fn within_drive_cache_is_said_of_a_short_run_on_a_disk_that_does_not_turn() {
    let disk = or_skip!(Disk::ext4(64 * MIB).and_then(|disk| disk.with("rotational", "0")));
    let document = bench(disk.path(), SOME);
    let written = &of(&document, "within-drive-cache").evidence["written_bytes_total"];
    assert!(written.as_u64() >= Some(2 * MIB), "{written}");
}

#[test]
fn fallback_is_said_where_direct_transfers_are_refused() {
    for at in ["open", "transfer"] {
        let strange = or_skip!(strange::mount(&format!("--refuse-direct {at}")));
        let document = bench(strange.path(), SOME);
        let finding = said(&document, "fallback", &["small/direct-psync"]);
        assert_eq!(finding.evidence["wanted"], json!("O_DIRECT"), "{finding:?}");
        assert!(finding.text.contains("Invalid argument"), "{finding:?}");
    }
}

#[test]
fn depth_not_reached_is_said_of_fewer_operations_than_the_depth() {
    let disk = or_skip!(Disk::ext4(64 * MIB));
    let more = "--only small/direct-io_uring --size 16KiB --iodepth 32 --runs 1";
    let document = bench(disk.path(), more);
    let depth = &of(&document, "depth-not-reached").evidence["iodepth"]["small/direct-io_uring"];
    assert_eq!(depth["asked"], json!(32));
    assert!(depth["reached"].as_u64() <= Some(4), "{depth}");
}
