//! Tests of engines, saves and copies on each rung of the engine.

use super::disk::{Fault, FaultyDisk};
use super::{FAULTS, FAULTS_IN_PLACE, assert_of_the_device, content, on_each_file_system, read};
use fixtures::or_skip;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote::engine::{Engine, FileId, Op, Options};
use wrote::{Action, CopyOptions, Disk, Error, FileOptions, Ioengine};

const RUNGS: [Ioengine; 3] = [Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync];
const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 8;
/// The lengths of saves. The second one bypasses the page cache if the rung has a depth.
const LENGTHS: [usize; 2] = [10_000, 4 << 20];

/// A rung, with direct or cached I/O.
#[derive(Clone, Copy, Debug)]
struct Case {
    rung: Ioengine,
    direct: bool,
}

impl Case {
    fn all() -> impl Iterator<Item = Case> {
        RUNGS.into_iter().flat_map(|rung| [false, true].map(|direct| Case { rung, direct }))
    }

    fn path(self, disk: &FaultyDisk) -> PathBuf {
        disk.path().join(format!("{}-{}", self.rung.as_str(), self.direct))
    }

    fn open(self, disk: &FaultyDisk) -> (Engine, FileId) {
        let mut engine = engine(self.rung, BLOCK_BYTES);
        let file = FileOptions::new().create(true).write(true).direct(self.direct);
        let file = engine.open_file(self.path(disk), &file).unwrap();
        (engine, file)
    }
}

fn engine(rung: Ioengine, buffer_bytes: usize) -> Engine {
    Engine::open(&Options::new(rung, 4, buffer_bytes)).unwrap()
}

fn on(rung: Ioengine, buffer_bytes: usize) -> Disk {
    Disk::open(&Options::new(rung, 4, buffer_bytes)).unwrap()
}

/// Writes blocks from `first` on, flushes, and returns the first error.
fn write_and_flush(engine: &mut Engine, file: FileId, first: u64) -> Result<(), Error> {
    for number in first..first + BLOCKS {
        let mut buffer = engine.lease()?;
        buffer.copy_from_slice(&content(number, BLOCK_BYTES));
        let offset = number * BLOCK_BYTES as u64;
        engine.queue(number, Op::Write { file, offset, buffer, durable: false });
    }
    // The flush is requested even after a failed write.
    let written = engine.drain();
    let flushed = engine.flush(file);
    written.and(flushed)
}

#[test]
fn a_failed_flush_of_a_real_disk_poisons_on_every_rung_though_a_second_fsync_succeeds() {
    // W1, W2
    let (mut forgiven, mut cases) = (0, 0);
    or_skip!(on_each_file_system(|disk| {
        for fault in FAULTS_IN_PLACE {
            for plain in poisoned(disk, fault) {
                forgiven += u32::from(plain);
                cases += 1;
            }
        }
    }));
    eprintln!("FACT: {forgiven} of {cases} times a plain fsync succeeded after the failed flush");
    assert!(forgiven > 0, "no file system forgot a failed flush: the test shows nothing");
}

/// Makes a flush fail in each case, and returns whether a plain fsync succeeds afterwards.
fn poisoned(disk: &mut FaultyDisk, fault: Fault) -> Vec<bool> {
    let mut open: Vec<_> = Case::all().map(|case| (case, case.open(disk))).collect();
    for (_, (engine, file)) in &mut open {
        write_and_flush(engine, *file, 0).unwrap();
        write_and_flush(engine, *file, BLOCKS).unwrap();
        engine.sync_folder(disk.path()).unwrap();
    }
    disk.set(fault);
    for (case, (engine, file)) in &mut open {
        let case = format!("{case:?}, {fault:?}");
        let error = write_and_flush(engine, *file, BLOCKS).expect_err(&case);
        assert_of_the_device(&error, disk, &case);
    }
    disk.set(Fault::None);
    let plain = |case: Case| File::open(case.path(disk)).and_then(|file| file.sync_all()).is_ok();
    let plain = open.iter().map(|(case, _)| plain(*case)).collect();
    for (case, (engine, file)) in &mut open {
        let case = format!("{case:?}, {fault:?}");
        let error = write_and_flush(engine, *file, 2 * BLOCKS).expect_err(&case);
        assert!(matches!(error, Error::Poisoned { .. }), "{case}: {error}");
    }
    drop(open);
    disk.cut_and_mount();
    let expected: Vec<u8> = (0..BLOCKS).flat_map(|number| content(number, BLOCK_BYTES)).collect();
    for case in Case::all() {
        let found = read(&case.path(disk));
        assert!(found.starts_with(&expected), "{case:?}, {fault:?}: acknowledged blocks are lost");
    }
    plain
}

#[test]
fn a_save_on_a_disk_that_fails_leaves_all_of_the_old_or_all_of_the_new() {
    // W1
    or_skip!(on_each_file_system(|disk| FAULTS.into_iter().for_each(|fault| save(disk, fault))));
}

fn save(disk: &mut FaultyDisk, fault: Fault) {
    let cases = || RUNGS.into_iter().flat_map(|rung| LENGTHS.map(|len| (rung, len)));
    let path = |disk: &FaultyDisk, (rung, len): (Ioengine, usize)| {
        disk.path().join(format!("{}-{len}", rung.as_str()))
    };
    for case in cases() {
        wrote::write(path(disk, case), content(1, case.1)).unwrap();
    }
    disk.set(fault);
    let errors: Vec<Error> = cases()
        .map(|case| {
            let saved = on(case.0, 1 << 20).write(path(disk, case), content(2, case.1));
            let case = format!("{case:?}, {fault:?}");
            let error = saved.expect_err(&case);
            assert_of_the_device(&error, disk, &case);
            error
        })
        .collect();
    disk.cut_and_mount();
    for (case, error) in cases().zip(errors) {
        let (found, new) = (read(&path(disk, case)), content(2, case.1));
        let may_be_new = matches!(error, Error::File { action: Action::SyncFolder, .. });
        let is_whole = found == content(1, case.1) || may_be_new && found == new;
        assert!(is_whole, "{case:?}, {fault:?}, {error}: {} bytes", found.len());
        // A save under the same name succeeds again.
        wrote::write(path(disk, case), &new).unwrap();
    }
}

#[test]
fn a_copy_on_a_disk_that_fails_says_so_and_leaves_no_part_under_its_name() {
    // W1
    or_skip!(on_each_file_system(|disk| FAULTS.into_iter().for_each(|fault| copy(disk, fault))));
}

fn copy(disk: &mut FaultyDisk, fault: Fault) {
    let bytes = content(3, 900_001);
    let target = |disk: &FaultyDisk, rung: Ioengine| disk.path().join(rung.as_str());
    wrote::write(disk.path().join("source"), &bytes).unwrap();
    // After this, the bytes are only on the device.
    disk.cut_and_mount();
    let source = disk.path().join("source");
    // This caches the names, so that only the content must be read.
    source.metadata().unwrap();
    RUNGS.iter().for_each(|rung| drop(target(disk, *rung).metadata()));
    disk.set(fault);
    let bs_bytes = 64 << 10;
    let options = || CopyOptions::new().reflink(Some(false)).bs_bytes(bs_bytes);
    for rung in RUNGS {
        let case = format!("{rung:?}, {fault:?}");
        let copied = options().on(&on(rung, bs_bytes)).copy(&source, target(disk, rung));
        assert_of_the_device(&copied.expect_err(&case), disk, &case);
    }
    disk.cut_and_mount();
    let source = disk.path().join("source");
    assert!(read(&source) == bytes, "{fault:?}");
    for rung in RUNGS {
        let target = target(disk, rung);
        // The name may have been created before the flush of its folder failed.
        assert!(!target.exists() || read(&target) == bytes, "{rung:?}, {fault:?}: a part");
        options().replace(true).copy(&source, &target).unwrap();
        std::fs::remove_file(&target).unwrap();
    }
}

#[test]
fn no_rung_promises_before_a_slow_disk_has_flushed() {
    // W1
    let slow = Duration::from_millis(400);
    or_skip!(on_each_file_system(|disk| {
        let mut open: Vec<_> = Case::all().map(|case| (case, case.open(disk))).collect();
        disk.set(Fault::Slow(slow));
        for (case, (engine, file)) in &mut open {
            let begin = Instant::now();
            write_and_flush(engine, *file, 0).unwrap();
            assert!(begin.elapsed() >= slow, "{case:?}: {:?}", begin.elapsed());
        }
    }));
}
