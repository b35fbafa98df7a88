//! Saves and copies as subjects: a file has either all of the old content or all of the new, on the
//! running system and after a power loss.

use super::{Kept, Outcome, Subject};
use crate::path;
use libc::{EEXIST, EIO, ENOSPC, EOPNOTSUPP};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use wrote::engine::{Fault, Options};
use wrote::{Action, CopyOptions, Disk, Error, Ioengine, Method, Sim, SyncPolicy, Writer, Written};

pub fn subjects() -> Vec<Box<dyn Subject>> {
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    let unsynced = [SMALL, PIECES, FIRST].map(unsynced);
    let every_second = Case { sync: SyncPolicy::EverySec, ..PIECES };
    for case in CASES.into_iter().chain(unsynced).chain([every_second]) {
        subjects.push(Box::new(case));
    }
    for mode in MODES {
        subjects.push(Box::new(mode));
    }
    for direct in [false, true] {
        subjects.push(Box::new(Replacing { direct }));
    }
    subjects
}

/// The content and the options of a save.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    sync: SyncPolicy,
    /// The length of the old content in bytes; `None` if there is no file yet.
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
/// A save with several pieces, some of them in flight at once. The last piece ends with a partial
/// sector.
const PIECES: Case = Case { new: 21_777, iodepth: 4, ..SMALL };
const FIRST: Case = Case { old: None, ..PIECES };
const EMPTY: Case = Case { new: 0, ..SMALL };
/// A save that bypasses the page cache, with padding that must be cut off.
const LARGE: Case =
    Case { new: (4 << 20) + 777, buffer_bytes: 1 << 20, iodepth: 4, old: Some(5000), ..SMALL };
const NEW: Case = Case { is_new: true, ..FIRST };
const CASES: [Case; 6] = [SMALL, PIECES, FIRST, EMPTY, LARGE, NEW];

fn unsynced(case: Case) -> Case {
    Case { sync: SyncPolicy::No, ..case }
}

/// Returns content whose sectors begin with their number. Each length has different filler bytes,
/// so that a mixture of two contents differs from both.
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

fn open(sim: &Sim, case: Case) -> Disk {
    let options = Options::new(Ioengine::IoUring, case.iodepth, case.buffer_bytes);
    Disk::simulated(sim, &options).unwrap()
}

/// Creates a disk with the old content on stable storage.
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
    let content = content(case.new);
    let result = match (case.is_new, case.sync) {
        (true, _) => disk.write_new(path(), content),
        (false, SyncPolicy::No) => disk.write_unflushed(path(), content),
        (false, _) => disk.write(path(), content),
    };
    assert_eq!(disk.outstanding(), 0);
    result
}

impl Case {
    /// Returns the outcome of a save that may have failed, which is either all of the old content
    /// or all of the new.
    fn outcome(self, failure: Option<Error>) -> Outcome {
        let (old, new) = (old(self), Some(content(self.new)));
        let (now, stable) = match &failure {
            None => (vec![new.clone()], vec![new]),
            // The new content was in place, but the flush of its name failed.
            Some(Error::File { action: Action::SyncFolder, .. }) => {
                (vec![new.clone()], vec![old, new])
            }
            Some(_) => (vec![old.clone()], vec![old]),
        };
        let stable = match self.sync {
            SyncPolicy::No => Kept::anything(),
            _ => Kept::OneOf(stable),
        };
        let files = vec![(path().to_owned(), Kept::OneOf(now), stable)];
        Outcome { failures: Vec::from_iter(failure), files }
    }
}

/// A save on a disk of its own.
impl Subject for Case {
    fn disk(&self, seed: u64) -> Sim {
        disk(seed, *self)
    }

    fn work(&self, sim: &Sim, _fault: Option<Fault>) -> Outcome {
        self.outcome(save(sim, *self).err())
    }

    fn capacities(&self) -> Vec<u64> {
        let rooms = [0, 1, self.new / 2, self.new.saturating_sub(1)];
        let is_short = |room: &usize| *room < self.new;
        let old = self.old.unwrap_or(0);
        rooms.into_iter().filter(is_short).map(|room| (old + room) as u64).collect()
    }

    fn power_losses(&self) -> u64 {
        if self.new > 1 << 20 { 3 } else { 40 }
    }
}

/// A `Writer` that replaces a file, in pieces that do not match the buffers.
#[derive(Debug)]
struct Replacing {
    direct: bool,
}

const REPLACED: Case = Case { old: Some(5 * 4096), new: 9 * 4096 + 321, ..PIECES };

impl Replacing {
    fn replace(&self, sim: &Sim) -> std::io::Result<()> {
        let options = Writer::options().bs(4096).iodepth(3).replace(true).direct(self.direct);
        let mut writer = options.on(&sim.disk()).open(path())?;
        for piece in content(REPLACED.new).chunks(3000) {
            writer.write_all(piece)?;
        }
        writer.finish()?;
        Ok(())
    }
}

impl Subject for Replacing {
    fn disk(&self, seed: u64) -> Sim {
        disk(seed, REPLACED)
    }

    fn work(&self, sim: &Sim, _fault: Option<Fault>) -> Outcome {
        let failure = self.replace(sim).err();
        REPLACED.outcome(failure.map(|failure| failure.downcast::<Error>().unwrap()))
    }

    /// Returns false, because an error in extending the file ahead is not reported.
    fn tells(&self) -> bool {
        false
    }

    fn capacities(&self) -> Vec<u64> {
        let old = REPLACED.old.unwrap_or(0);
        (old..old + REPLACED.new).step_by(3000).map(|bytes| bytes as u64).collect()
    }

    fn power_losses(&self) -> u64 {
        30
    }
}

#[test]
fn without_a_flush_a_power_loss_may_leave_the_old_the_new_or_neither() {
    // This is documented for `write_unflushed`. It also shows that on the simulated disk a kept
    // promise is not mere luck.
    let case = unsynced(PIECES);
    let found = (0..200).map(|seed| {
        let sim = disk(seed, case);
        save(&sim, case).unwrap();
        sim.after_power_loss(path())
    });
    let found: Vec<_> = found.collect();
    assert!(found.contains(&old(case)));
    assert!(found.iter().any(|found| *found != old(case) && *found != Some(content(case.new))));
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
fn buffers_of_any_size_do() {
    for buffer_bytes in [1, 511, 4097, 70_000, 1 << 20] {
        for new_len in [0, 1, 511, 4097, 65_536, (4 << 20) + 1] {
            if new_len / buffer_bytes > 10_000 {
                continue;
            }
            let case = Case { buffer_bytes, new: new_len, ..LARGE };
            let sim = disk(buffer_bytes as u64, case);
            save(&sim, case).unwrap();
            assert_eq!(sim.after_power_loss(path()), Some(content(case.new)));
        }
    }
}

#[test]
fn a_disk_saves_again_after_an_error() {
    for operation in 0..4 {
        let sim = disk(operation, LARGE);
        let disk = open(&sim, LARGE);
        sim.fault(sim.operations() + operation, Fault::Once(EIO));
        disk.write(path(), content(LARGE.new)).unwrap_err();
        disk.write(path(), content(LARGE.new)).unwrap();
        assert_eq!(sim.after_power_loss(path()), Some(content(LARGE.new)), "W1");
    }
}

#[test]
fn a_save_without_a_flush_flushes_nothing() {
    // The operations are a write and a rename. With flushes, the file and the folder are also
    // flushed.
    for (case, operations) in [(unsynced(SMALL), 2), (SMALL, 4)] {
        let sim = disk(1, case);
        let begun = sim.operations();
        save(&sim, case).unwrap();
        assert_eq!(sim.operations() - begun, operations);
    }
}

const PIECE_BYTES: usize = 4096;
/// The length of the source, which has several pieces and a partial block.
const LEN: usize = 5 * PIECE_BYTES + 700;

fn source() -> &'static Path {
    Path::new("/sim/source")
}

fn target() -> &'static Path {
    Path::new("/sim/target")
}

/// The options of the copy.
#[derive(Clone, Copy, Debug)]
struct Mode {
    replace: bool,
    verify: bool,
    durable: bool,
    iodepth: u32,
}

const MODES: [Mode; 4] = [
    Mode { replace: true, verify: true, durable: true, iodepth: 3 },
    Mode { replace: false, verify: false, durable: true, iodepth: 8 },
    Mode { replace: true, verify: false, durable: true, iodepth: 1 },
    Mode { replace: false, verify: true, durable: false, iodepth: 2 },
];

fn copy(sim: &Sim, mode: Mode) -> Result<Written, Error> {
    let options = CopyOptions::new()
        .replace(mode.replace)
        .verify(mode.verify)
        .durable(mode.durable)
        .bs_bytes(PIECE_BYTES)
        .iodepth(mode.iodepth);
    let disk = sim.disk();
    let (mut done, mut total) = (0, None);
    let copied = options
        .watch(&mut |bytes_done, bytes_total| {
            assert!(bytes_done >= done, "progress goes forward");
            (done, total) = (bytes_done, bytes_total);
            ControlFlow::Continue(())
        })
        .on(&disk)
        .copy(source(), target());
    if copied.is_ok() {
        assert_eq!(Some(done), total, "all is done at the end");
    }
    assert_eq!(disk.outstanding(), 0);
    copied
}

/// Creates a disk with the source, and with an old target if the mode replaces one.
fn disk_with_source(seed: u64, mode: Mode) -> Sim {
    let sim = Sim::new(seed);
    let options = Options::new(Ioengine::IoUring, 4, PIECE_BYTES);
    let disk = Disk::simulated(&sim, &options).unwrap();
    disk.write(source(), content(LEN)).unwrap();
    if let Some(old) = before(mode) {
        disk.write(target(), old).unwrap();
    }
    sim.sync();
    sim
}

/// Returns the old content of the target, if any.
fn before(mode: Mode) -> Option<Vec<u8>> {
    mode.replace.then(|| content(3000))
}

impl Subject for Mode {
    fn disk(&self, seed: u64) -> Sim {
        disk_with_source(seed, *self)
    }

    fn work(&self, sim: &Sim, _fault: Option<Fault>) -> Outcome {
        let result = copy(sim, *self);
        let whole = Some(content(LEN));
        if let Ok(copied) = &result {
            assert_eq!(copied.bytes, LEN as u64);
            assert!(matches!(copied.method, Method::Direct | Method::Cached));
            assert_eq!(copied.checksum.is_some(), self.verify);
        }
        let mut contents = vec![whole.clone()];
        contents.extend(result.is_err().then(|| before(*self)));
        let target_now = Kept::OneOf(contents);
        let target_stable = if self.durable { target_now.clone() } else { Kept::anything() };
        let kept = Kept::OneOf(vec![whole]);
        let files = vec![
            (source().to_owned(), kept.clone(), kept),
            (target().to_owned(), target_now, target_stable),
        ];
        Outcome { failures: Vec::from_iter(result.err()), files }
    }

    fn shorts(&self) -> &'static [u64] {
        &[512, 3072]
    }

    /// Returns false, because an error in allocating the target is not reported.
    fn tells(&self) -> bool {
        false
    }
}

#[test]
fn a_copy_says_that_the_file_system_has_no_fallocate_or_no_direct_transfers() {
    for mode in MODES {
        let sim = disk_with_source(3, mode);
        // The first operation of a copy allocates.
        sim.fault(sim.operations(), Fault::Once(EOPNOTSUPP));
        let copied = copy(&sim, mode).unwrap();
        assert!(copied.effective.fallbacks.iter().any(|step| step.wanted == "allocated space"));
        assert_eq!(sim.contents(target()), Some(content(LEN)), "{mode:?}");

        let sim = disk_with_source(5, mode);
        sim.refuse_direct_at_transfer();
        let copied = copy(&sim, mode).unwrap();
        assert!(copied.effective.fallbacks.iter().any(|step| step.wanted == "O_DIRECT"));
        assert_eq!(sim.contents(target()), Some(content(LEN)), "{mode:?}");
    }
}

#[test]
fn a_full_disk_is_noticed_before_a_copy_writes_anything() {
    for mode in MODES {
        let sim = disk_with_source(6, mode);
        sim.set_capacity((LEN + before(mode).map_or(0, |old| old.len()) + 2000) as u64);
        let begun = sim.operations();
        let error = copy(&sim, mode).unwrap_err();
        assert_eq!(error.errno(), ENOSPC);
        assert!(error.to_string().starts_with("/sim/target: fallocate"), "{error}");
        // The two operations are the allocation and the removal of the file.
        assert_eq!(sim.operations() - begun, 2);
        assert_eq!(sim.contents(target()), before(mode));
    }
}

#[test]
fn a_copy_has_the_bytes_that_were_read_or_a_verified_one_fails() {
    for mode in MODES {
        for fault in [Fault::Rot, Fault::Misdirected] {
            for operation in 0..30 {
                let sim = disk_with_source(operation, mode);
                sim.fault(sim.operations() + operation, fault);
                match copy(&sim, mode) {
                    // If the bit was flipped in the source, it is copied; if in the target, it is
                    // detected.
                    Ok(_) if fault == Fault::Rot => {
                        assert_eq!(sim.contents(target()), sim.contents(source()), "{mode:?}");
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let is_found = mode.verify && matches!(error, Error::Differs { .. });
                        // Bytes from another offset may be the last ones of the file, and the
                        // source then seems to end early.
                        assert!(is_found || fault == Fault::Misdirected, "{error}");
                        assert_eq!(sim.contents(target()), before(mode), "{error}");
                    }
                }
            }
        }
    }
}
