//! Saves on the simulated disk, with a fault at every operation: a file has all of the old content
//! or all of the new, on the running system and after a power loss.

use libc::{EAGAIN, EDQUOT, EEXIST, EINTR, EIO, ENOSPC};
use std::path::Path;
use wrote::engine::{Fault, Options};
use wrote::{Action, Disk, Error, Ioengine, Sim, SyncPolicy};

/// The content and the options of a save.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    sync: SyncPolicy,
    /// Bytes of the old content; `None` where there is no file yet.
    old: Option<usize>,
    new: usize,
    buffer_bytes: usize,
    iodepth: u32,
    /// Whether an existing file is an error.
    is_new: bool,
}

const SMALL: Case = Case {
    sync: SyncPolicy::Always,
    old: Some(3000),
    new: 1000,
    buffer_bytes: 4096,
    iodepth: 1,
    is_new: false,
};
/// Several pieces, some in flight at once, the last a partial sector.
const PIECES: Case = Case { new: 21_777, iodepth: 4, ..SMALL };
const FIRST: Case = Case { old: None, ..PIECES };
const EMPTY: Case = Case { new: 0, ..SMALL };
/// Past the page cache, with padding to cut.
const LARGE: Case =
    Case { new: (4 << 20) + 777, buffer_bytes: 1 << 20, iodepth: 4, old: Some(5000), ..SMALL };
const NEW: Case = Case { is_new: true, ..FIRST };
const CASES: [Case; 6] = [SMALL, PIECES, FIRST, EMPTY, LARGE, NEW];

fn unsynced(case: Case) -> Case {
    Case { sync: SyncPolicy::No, ..case }
}

fn path() -> &'static Path {
    Path::new("/sim/folder/file")
}

/// Returns content whose sectors begin with their number. Each length has another filling, so a mix
/// of two differs from both.
fn content(len: usize) -> Vec<u8> {
    let mut bytes = vec![(len % 251) as u8 + 1; len];
    for (number, sector) in bytes.chunks_exact_mut(512).enumerate() {
        sector[..8].copy_from_slice(&(number as u64).to_le_bytes());
    }
    bytes
}

fn old(case: Case) -> Option<Vec<u8>> {
    case.old.map(content)
}

fn new(case: Case) -> Option<Vec<u8>> {
    Some(content(case.new))
}

fn open(sim: &Sim, case: Case) -> Disk {
    let options = Options::new(Ioengine::IoUring, case.iodepth, case.buffer_bytes);
    Disk::simulated(sim, &options).unwrap()
}

/// Creates a disk with stable old content.
fn disk(seed: u64, case: Case) -> Sim {
    let sim = Sim::new(seed);
    if let Some(old) = old(case) {
        open(&sim, case).write_unflushed(path(), &old).unwrap();
    }
    sim.sync();
    sim
}

fn save(sim: &Sim, case: Case) -> Result<(), Error> {
    let disk = open(sim, case);
    let (own, content) = (disk.memory(), content(case.new));
    let result = match (case.is_new, case.sync) {
        (true, _) => disk.write_new(path(), content),
        (false, SyncPolicy::No) => disk.write_unflushed(path(), content),
        (false, _) => disk.write(path(), content),
    };
    assert_eq!(disk.outstanding(), 0);
    assert_eq!(disk.memory(), own, "W5: every buffer came back");
    result
}

/// Counts the operations of a save without a fault.
fn operations(case: Case) -> u64 {
    let sim = disk(1, case);
    let before = sim.operations();
    save(&sim, case).unwrap();
    sim.operations() - before
}

/// Saves with a fault at every operation.
fn at_every_operation(case: Case, fault: Fault, check: impl Fn(&Sim, Result<(), Error>)) {
    for operation in 0..operations(case) {
        let sim = disk(operation, case);
        sim.fault(sim.operations() + operation, fault);
        let result = save(&sim, case);
        check(&sim, result);
    }
}

/// The found content. A part or a mix is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Old,
    New,
}

fn whole(case: Case, found: Option<Vec<u8>>) -> Found {
    match found {
        found if found == new(case) => Found::New,
        found if found == old(case) => Found::Old,
        found => panic!("{case:?}: neither old nor new: {:?} bytes", found.map(|f| f.len())),
    }
}

/// Whether the save failed after its content was in place.
fn is_in_place(result: &Result<(), Error>) -> bool {
    match result {
        Ok(()) => true,
        Err(Error::File { action, .. }) => *action == Action::SyncFolder,
        Err(_) => false,
    }
}

#[test]
fn what_is_short_or_interrupted_at_any_operation_is_whole_all_the_same() {
    // W4
    for case in [SMALL, PIECES, FIRST, EMPTY, LARGE, NEW, unsynced(PIECES), unsynced(NEW)] {
        for fault in [
            Fault::Short(0),
            Fault::Short(1),
            Fault::Short(700),
            Fault::Once(EINTR),
            Fault::Once(EAGAIN),
        ] {
            at_every_operation(case, fault, |sim, result| {
                result.unwrap();
                assert_eq!(whole(case, sim.contents(path())), Found::New);
                assert_eq!(sim.names(), [path()]);
            });
        }
    }
}

#[test]
fn an_error_at_any_operation_leaves_the_old_file_whole_and_nothing_beside_it() {
    for case in CASES.into_iter().chain([PIECES, FIRST, NEW].map(unsynced)) {
        for errno in [EIO, ENOSPC, EDQUOT] {
            at_every_operation(case, Fault::Once(errno), |sim, result| {
                let in_place = is_in_place(&result);
                let error = result.unwrap_err();
                assert_eq!(error.errno(), errno);
                assert!(error.to_string().starts_with("/sim/folder/file: "), "{error}");
                let expected = if in_place { new(case) } else { old(case) };
                assert_eq!(sim.contents(path()), expected);
                let there = expected.is_some().then(|| path().to_owned());
                assert_eq!(sim.names(), Vec::from_iter(there), "no name of our own is left");
            });
        }
    }
}

#[test]
fn a_disk_that_fails_for_ever_leaves_the_old_content_or_the_new_in_its_place() {
    for case in CASES {
        for errno in [EIO, ENOSPC, EINTR] {
            at_every_operation(case, Fault::Forever(errno), |sim, result| {
                let expected = if is_in_place(&result) { Found::New } else { Found::Old };
                assert_eq!(result.unwrap_err().errno(), errno);
                assert_eq!(whole(case, sim.contents(path())), expected);
                // Only the temporary file may stay.
                assert!(sim.names().len() <= 2, "{:?}", sim.names());
            });
        }
    }
}

#[test]
fn after_a_power_loss_at_any_operation_there_is_all_of_the_old_or_all_of_the_new() {
    for case in CASES {
        let seeds = if case.new > 1 << 20 { 5 } else { 200 };
        let mut seen = Vec::new();
        for operation in 0..operations(case) {
            for seed in 0..seeds {
                let sim = disk(seed * 1000 + operation, case);
                sim.fault(sim.operations() + operation, Fault::PowerLoss);
                save(&sim, case).unwrap_err();
                seen.push(whole(case, sim.after_power_loss(path())));
            }
        }
        // Both happen, so the disk distinguishes the moments.
        assert!(seen.contains(&Found::Old) && seen.contains(&Found::New), "{case:?}");
    }
}

#[test]
fn a_save_that_returned_survives_a_power_loss() {
    // W1
    for case in CASES {
        for seed in 0..if case.new > 1 << 20 { 5 } else { 200 } {
            for sync in [SyncPolicy::Always, SyncPolicy::EverySec] {
                let case = Case { sync, ..case };
                let sim = disk(seed, case);
                save(&sim, case).unwrap();
                assert_eq!(whole(case, sim.after_power_loss(path())), Found::New);
            }
        }
    }
}

#[test]
fn a_power_loss_after_a_failed_save_finds_the_old_or_the_new_and_the_old_where_it_was_not_in_place()
{
    for case in CASES {
        for fault in [Fault::Once(EIO), Fault::Forever(EIO)] {
            at_every_operation(case, fault, |sim, result| {
                let found = whole(case, sim.after_power_loss(path()));
                assert!(found == Found::Old || is_in_place(&result));
            });
        }
    }
}

#[test]
fn without_a_flush_a_power_loss_may_leave_the_old_the_new_or_neither() {
    // As documented for `write_unflushed`. Shows that the simulated disk distinguishes a promise
    // from luck.
    let case = unsynced(PIECES);
    let found = (0..200).map(|seed| {
        let sim = disk(seed, case);
        save(&sim, case).unwrap();
        assert_eq!(whole(case, sim.contents(path())), Found::New);
        sim.after_power_loss(path())
    });
    let found: Vec<_> = found.collect();
    assert!(found.contains(&old(case)));
    assert!(found.iter().any(|found| *found != old(case) && *found != new(case)));
}

#[test]
fn without_a_flush_nothing_is_flushed() {
    // One write, one rename; with flushes also the file's and the folder's.
    assert_eq!(operations(unsynced(SMALL)), 2);
    assert_eq!(operations(SMALL), 4);
}

#[test]
fn a_full_disk_is_an_error_and_the_old_file_is_whole() {
    for case in [SMALL, PIECES, FIRST, LARGE, NEW] {
        let old_len = case.old.unwrap_or(0);
        for room in [0, 1, case.new / 2, case.new - 1] {
            let sim = disk(room as u64, case);
            sim.set_capacity((old_len + room) as u64);
            assert_eq!(save(&sim, case).unwrap_err().errno(), ENOSPC, "{case:?}, room for {room}");
            assert_eq!(sim.contents(path()), old(case));
            assert_eq!(sim.names().len(), usize::from(case.old.is_some()));
        }
    }
}

#[test]
fn a_name_that_exists_is_refused_before_anything_is_written_for_a_new_file() {
    // W7
    for case in [SMALL, LARGE, unsynced(PIECES)] {
        let case = Case { is_new: true, ..case };
        let sim = disk(1, case);
        let before = sim.operations();
        assert_eq!(save(&sim, case).unwrap_err().errno(), EEXIST);
        assert_eq!(sim.operations(), before);
        assert_eq!(sim.contents(path()), old(case));
        assert_eq!(sim.names(), [path()]);
    }
}

#[test]
fn a_disk_saves_again_after_an_error() {
    for operation in 0..operations(LARGE) {
        let sim = disk(operation, LARGE);
        let disk = open(&sim, LARGE);
        sim.fault(sim.operations() + operation, Fault::Once(EIO));
        disk.write(path(), content(LARGE.new)).unwrap_err();
        disk.write(path(), content(LARGE.new)).unwrap();
        assert_eq!(sim.after_power_loss(path()), new(LARGE), "W1");
    }
}

#[test]
fn buffers_of_any_size_do() {
    for buffer_bytes in [1, 511, 4097, 70_000, 1 << 20] {
        for new_len in [0, 1, 511, 4097, 65_536, (4 << 20) + 1] {
            if new_len / buffer_bytes > 10_000 {
                continue;
            }
            let case = Case { buffer_bytes, new: new_len, ..LARGE };
            let sim = disk(buffer_bytes as u64, case);
            save(&sim, case).unwrap();
            assert_eq!(sim.after_power_loss(path()), new(case));
        }
    }
}

#[test]
fn a_flush_that_lies_changes_nothing_on_the_running_system() {
    for case in CASES.into_iter().filter(|case| *case != LARGE) {
        at_every_operation(case, Fault::Lie, |sim, result| {
            result.unwrap();
            assert_eq!(sim.contents(path()), new(case), "{case:?}");
            // The next save flushes again, and is durable.
            let after = Case { old: None, is_new: false, new: 777, ..case };
            save(sim, after).unwrap();
            assert_eq!(sim.after_power_loss(path()), new(after), "W1");
        });
    }
}
