//! Findings about where bytes go, and about their content.

use crate::scene::{Disk, MIB, bench, found, of, run, said, silent};
use crate::strange;
use fixtures::{Mounted, or_skip};
use serde_json::json;
use std::fs::File;

/// A direct overwrite in place. All of its bytes pass through the device.
const DIRECT: &str = "stream/direct-io_uring-overwrite";

/// Returns options that limit a run only by its size, so that the speed of the machine does not
/// matter.
fn once(rows: &str, size: &str) -> String {
    format!("--only {rows} --size {size} --time 60s --runs 1")
}

#[test]
fn ram_not_disk_is_said_of_what_the_page_cache_took() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let document = bench(disk.path(), &once(&format!("stream/cached,{DIRECT}"), "16MiB"));
    let finding = said(&document, "ram-not-disk", &["stream/cached"]);
    assert_eq!(finding.evidence["file_bytes"], json!(16 * MIB));
}

#[test]
fn ram_not_disk_is_said_of_reads_that_the_page_cache_answered() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let jobs = "[global]\nsize=16m\nbs=1m\ninvalidate=0\n[write]\nrw=write\nend_fsync=1\n\
                filename=file\n[read]\nstonewall\nrw=read\nfilename=file\n";
    let document = run(disk.path(), jobs, "");
    let finding = said(&document, "ram-not-disk", &["read"]);
    assert_eq!(finding.evidence["device_read_bytes"], json!(0));
}

const DIRECT_JOB: &str = "[direct]\nrw=write\nbs=256k\nsize=16m\ndirect=1\n";

#[test]
fn a_file_system_that_journals_data_is_not_taken_for_direct() {
    // With data=journal, ext4 writes through the page cache despite O_DIRECT
    // (Documentation/filesystems/ext4). Newer kernels refuse O_DIRECT in that mode.
    let mounted = or_skip!(Mounted::image_with("ext4", 256 * MIB, "data=journal"));
    let document = run(mounted.path(), DIRECT_JOB, "");
    match found(&document, "fallback") {
        Some(refused) => assert_eq!(refused.evidence["wanted"], json!("O_DIRECT")),
        None => assert!(found(&document, "direct-not-honoured").is_some(), "{document:?}"),
    }
}

#[test]
fn direct_not_honoured_is_said_of_a_loop_device_that_caches_its_image() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let document = run(disk.path(), DIRECT_JOB, "");
    let finding = said(&document, "direct-not-honoured", &["direct"]);
    assert!(finding.text.contains("loop"), "{finding:?}");
    // Once they are flushed, the bytes are on the disk below the loop device.
    let flushed = format!("{DIRECT_JOB}end_fsync=1\n");
    silent(&run(disk.path(), &flushed, "--overwrite"), "direct-not-honoured");
}

#[test]
fn direct_not_honoured_is_not_said_of_one_that_writes_directly() {
    let disk = or_skip!(Disk::ext4(256 * MIB).and_then(Disk::without_cache));
    silent(&run(disk.path(), DIRECT_JOB, ""), "direct-not-honoured");
    silent(&bench(disk.path(), &once("stream", "4MiB")), "direct-not-honoured");
    // A file system that refuses O_DIRECT immediately causes a fallback, which has a separate
    // finding.
    let strange = or_skip!(strange::mount("--refuse-direct open"));
    let document = run(strange.path(), DIRECT_JOB, "");
    silent(&document, "direct-not-honoured");
    assert_eq!(of(&document, "fallback").evidence["wanted"], json!("O_DIRECT"));
}

#[test]
fn compressible_data_is_said_of_zeros() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let jobs = "[zeros]\nrw=write\nbs=64k\nsize=4m\ndirect=1\nzero_buffers=1\n";
    said(&run(disk.path(), jobs, ""), "compressible-data", &["zeros"]);
}

const READ_JOB: &str = "[read]\nrw=read\nbs=64k\nsize=4m\nfilename=file\n";

#[test]
fn unwritten_read_is_said_of_blocks_that_were_only_allocated() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    let file = File::create_new(disk.path().join("file")).expect("a file");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 4 * MIB).expect("room");
    let document = run(disk.path(), READ_JOB, "--read-unwritten");
    said(&document, "unwritten-read", &["read"]);
}

#[test]
fn unwritten_read_is_not_said_of_blocks_that_were_written() {
    let disk = or_skip!(Disk::ext4(256 * MIB));
    std::fs::write(disk.path().join("file"), vec![7; 4 << 20]).expect("room");
    // There is no finding for blocks that may be unwritten, nor for blocks that the run wrote.
    silent(&run(disk.path(), READ_JOB, "--read-unwritten"), "unwritten-read");
    silent(&run(disk.path(), "[own]\nrw=randread\nsize=4m\n", ""), "unwritten-read");
}
