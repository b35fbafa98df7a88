//! Tests of `wrote bench` on file systems that are full, read-only, in memory, stacked, or not
//! ext4. All of them need root.

use crate::support::{bench, document, findings, row, survived, until_it_writes, wrote};
use fixtures::{Mounted, Running, finish, folder, names, or_skip};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use wrote_result::document::{Document, Survives};
use wrote_result::units::parse_size;

const MIB: u64 = 1 << 20;

/// The rows that are measured: unflushed, in place, and flushed.
const SOME: &str = "--only stream/cached,stream/direct-io_uring-overwrite,small/o_dsync-each,\
                    small/direct-o_dsync-each-overwrite --size 4MiB --time 60s --runs 1 \
                    --format json";

/// Returns the result of these rows on a file system that supports all of them.
fn measured(mounted: &Mounted) -> Document {
    let before = names(mounted.path());
    let document = document(&finish(&mut bench(mounted.path(), SOME)));
    assert_eq!(names(mounted.path()), before);
    let rows = &document.scenarios[0].rows;
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.bytes_per_run == 4 * MIB), "{rows:?}");
    document
}

fn survives(document: &Document, name: &str) -> Survives {
    survived(row(document, name))
}

/// Fills the file system with one file, until `free_bytes` are left.
fn fill(folder: &Path, free_bytes: u64) {
    let mut options = File::options();
    let file = options.append(true).create(true).open(folder.join("filler")).unwrap();
    let mut piece = 16 * MIB;
    while piece >= 4096 {
        let stat = statvfs(folder).unwrap();
        // Root may also use the blocks reserved for root.
        if stat.f_bfree * stat.f_frsize < free_bytes + piece {
            piece /= 2;
            continue;
        }
        let end = file.metadata().unwrap().len();
        match fallocate(&file, FallocateFlags::empty(), end, piece) {
            Ok(()) | Err(Errno::INTR) => {}
            Err(Errno::NOSPC) => piece /= 2,
            Err(errno) => panic!("fallocate: {errno}"),
        }
    }
}

#[test]
fn a_nearly_full_disk_is_refused_and_what_stays_free_is_told() {
    let mounted = or_skip!(Mounted::image("ext4", 64 * MIB));
    fill(mounted.path(), 6 * MIB);
    let before = names(mounted.path());
    let refused = finish(&mut bench(mounted.path(), ""));
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    let line = refused.complaint();
    assert!(line.contains("must stay free") && line.ends_with("Free some space first"), "{line}");
    assert_eq!(names(mounted.path()), before);
}

#[test]
fn a_disk_too_small_for_the_size_is_refused_with_one_that_works() {
    let mounted = or_skip!(Mounted::image("ext4", 64 * MIB));
    let before = names(mounted.path());
    let refused = finish(&mut bench(mounted.path(), "--only stream --runs 1 --size 200M"));
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    let line = refused.complaint();
    assert!(line.contains("would leave nothing free"), "{line}");
    let (_, rest) = line.split_once("Use --size ").expect("a size is recommended");
    let size = rest.split(' ').next().unwrap();
    assert!(parse_size(size).unwrap() < 64 * MIB, "{line}");
    let more = format!("--only stream --runs 1 --size {size} --format json");
    document(&finish(&mut bench(mounted.path(), &more)));
    assert_eq!(names(mounted.path()), before);
}

#[test]
fn a_read_only_file_system_is_refused() {
    let mounted = or_skip!(Mounted::image("ext4", 64 * MIB));
    or_skip!(mounted.make_read_only());
    let line = format!("wrote: {}: is on a read-only file system", mounted.path().display());
    let (path, elsewhere) = (mounted.path().to_str().unwrap(), folder());
    let fit = |place: &[&str]| wrote(&[&["fit", "etcd"], place].concat());
    // The file system is also too small for etcd's pattern, but the message does not mention that,
    // because more space would not help.
    for (code, mut command) in [
        (1, bench(mounted.path(), "--size 4M")),
        (5, fit(&[path])),
        (5, fit(&[elsewhere.path().to_str().unwrap(), "--beside", "copy", "--neighbour", path])),
        (1, wrote(&["langs", path])),
    ] {
        let refused = finish(&mut command);
        assert_eq!(refused.code(), Some(code), "{refused:?}");
        assert_eq!(refused.complaint(), line);
    }
    assert!(names(elsewhere.path()).is_empty());
}

#[test]
fn a_file_system_in_memory_suits_no_program_that_flushes_however_fast_it_is() {
    let mounted = or_skip!(Mounted::tmpfs(512 * MIB));
    // The only rule of redis is about a thread that flushes once per second.
    for program in ["etcd", "redis"] {
        let mut command = wrote(&["fit", program, mounted.path().to_str().unwrap()]);
        let finished = finish(command.args(["--runs", "3", "--time", "3s", "--quiet"]));
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        let line = format!("wrote: {program} on {}: DOES NOT FIT (", mounted.path().display());
        assert!(finished.stderr.starts_with(&line), "{finished:?}");
        let said = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("Flushed writes here survive no more than process-crash"), "{said}");
    }
}

#[test]
fn a_file_system_in_memory_works_and_survives_no_more_than_the_process() {
    let mounted = or_skip!(Mounted::tmpfs(64 * MIB));
    let document = measured(&mounted);
    let found = findings(&document);
    assert!(found.contains(&"no-block-device"), "{found:?}");
    assert!(document.target.device.is_none() && document.target.no_device_because.is_some());
    for row in &document.scenarios[0].rows {
        assert_eq!(survived(row), Survives::ProcessCrash, "{row:?}");
        assert!(row.runs.iter().all(|run| run.device_written_bytes.is_none()), "{row:?}");
    }
}

#[test]
fn an_overlay_is_measured_on_the_device_below() {
    let overlay = Mounted::image("ext4", 64 * MIB).and_then(Mounted::overlay);
    let mounted = or_skip!(overlay);
    let document = measured(&mounted);
    assert_eq!(document.target.filesystem, "overlay");
    let device = document.target.device.as_ref().expect("a device");
    assert!(device.name.starts_with("loop"), "{device:?}");
    assert!(!findings(&document).contains(&"no-block-device"));
    assert_eq!(survives(&document, "small/o_dsync-each"), Survives::PowerLoss);
}

#[test]
fn xfs_writes_in_place_and_btrfs_elsewhere_so_that_only_a_flush_survives_the_kernel() {
    for (kind, in_place) in [("xfs", Survives::OsCrash), ("btrfs", Survives::ProcessCrash)] {
        let mounted = or_skip!(Mounted::image(kind, 320 * MIB));
        let document = measured(&mounted);
        assert_eq!(document.target.filesystem, kind);
        assert_eq!(survives(&document, "stream/cached"), Survives::ProcessCrash);
        assert_eq!(survives(&document, "stream/direct-io_uring-overwrite"), in_place, "{kind}");
        assert_eq!(survives(&document, "small/o_dsync-each"), Survives::PowerLoss);
    }
}

#[test]
fn no_flush_survives_a_power_loss_where_barriers_are_off() {
    let mounted = Mounted::image_with("ext4", 64 * MIB, "barrier=0");
    let mounted = or_skip!(mounted);
    let document = measured(&mounted);
    for row in &document.scenarios[0].rows {
        assert!(survived(row) <= Survives::OsCrash, "{row:?}");
    }
    assert_eq!(survives(&document, "small/o_dsync-each"), Survives::OsCrash);
    assert_eq!(survives(&document, "small/direct-o_dsync-each-overwrite"), Survives::OsCrash);
}

#[test]
fn a_disk_that_others_fill_meanwhile_ends_the_run_and_leaves_nothing() {
    // The first row allocates blocks with each write, and the second with fallocate before the
    // first write.
    for row in ["small/fdatasync-each", "small/direct-psync"] {
        let mounted = or_skip!(Mounted::image("ext4", 256 * MIB));
        let before = names(mounted.path());
        let more = format!("--only {row} --size 100M --runs 1000 --time 5s --iodepth 1");
        let mut run = Running::start(&mut bench(mounted.path(), &more));
        until_it_writes(&mut run, mounted.path());
        // This is repeated, because each run frees its blocks at its end, and the next run uses
        // them.
        run.while_it_runs(|| fill(mounted.path(), 0));
        let finished = run.finish();
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
        // The announcement comes first, unless the calibration has found the disk full.
        let said: Vec<&str> = finished.stderr.lines().collect();
        assert!((1..=2).contains(&said.len()), "{said:?}");
        let line = said[said.len() - 1];
        assert!(line.starts_with("wrote: ") && line.contains("No space left on device"), "{line}");
        std::fs::remove_file(mounted.path().join("filler")).unwrap();
        assert_eq!(names(mounted.path()), before);
    }
}
