//! Copies on the simulated disk, with a fault at every operation.

use libc::{EAGAIN, EEXIST, EINTR, EIO, ENOSPC, EOPNOTSUPP};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use wrote::copy::Method;
use wrote::engine::{Engine, Fault, Op, Options};
use wrote::{Copied, CopyOptions, Error, FileOptions, Ioengine, Sim};

const PIECE_BYTES: usize = 4096;
/// Several pieces and a partial block.
const LEN: usize = 5 * PIECE_BYTES + 700;

fn source() -> &'static Path {
    Path::new("/sim/source")
}

fn target() -> &'static Path {
    Path::new("/sim/target")
}

fn content() -> Vec<u8> {
    (0..LEN).map(|place| (place / 7 + place / 4096 * 31 + 1) as u8).collect()
}

fn old() -> Vec<u8> {
    vec![b'o'; 3000]
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

fn engine(sim: &Sim, mode: Mode) -> Engine {
    Engine::simulated(sim, &Options::new(Ioengine::IoUring, mode.iodepth, PIECE_BYTES)).unwrap()
}

fn put(engine: &mut Engine, path: &Path, bytes: &[u8]) {
    let options = FileOptions::new().create_new(true).write(true);
    let file = engine.open_file(path, &options).unwrap();
    for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
        let mut buffer = engine.lease().unwrap();
        buffer.set_len(piece.len());
        buffer.copy_from_slice(piece);
        let offset = (number * PIECE_BYTES) as u64;
        engine.queue(0, Op::Write { file, offset, buffer, durable: false });
    }
    engine.drain().unwrap();
    engine.close_file(file).unwrap();
}

/// Creates a disk with the source, and with an old target if the mode replaces one.
fn disk(seed: u64, mode: Mode) -> Sim {
    let sim = Sim::new(seed);
    let mut engine = engine(&sim, mode);
    put(&mut engine, source(), &content());
    if mode.replace {
        put(&mut engine, target(), &old());
    }
    sim.sync();
    sim
}

fn copy(sim: &Sim, mode: Mode) -> Result<Copied, Error> {
    let options = CopyOptions::new()
        .replace(mode.replace)
        .verify(mode.verify)
        .durable(mode.durable)
        .bs_bytes(PIECE_BYTES)
        .iodepth(mode.iodepth);
    let disk = sim.disk();
    let own = disk.memory();
    let (mut done, mut total) = (0, None);
    let copied = options
        .watch(&mut |progress| {
            assert!(progress.bytes_done >= done, "progress goes forward");
            (done, total) = (progress.bytes_done, progress.bytes_total);
            ControlFlow::Continue(())
        })
        .on(&disk)
        .copy(source(), target());
    if copied.is_ok() {
        assert_eq!(Some(done), total, "all is done at the end");
    }
    assert_eq!(disk.outstanding(), 0);
    assert_eq!(disk.memory(), own, "W5: every buffer came back");
    copied
}

/// Returns the old contents of the target.
fn before(mode: Mode) -> Option<Vec<u8>> {
    mode.replace.then(old)
}

/// Tries a fault at every operation, until the copy ends before the fault.
fn at_every_operation(fault: Fault, mode: Mode, check: impl Fn(&Sim, Result<Copied, Error>)) {
    for number in 0.. {
        let sim = disk(number, mode);
        let begun = sim.operations();
        sim.fault(begun + number, fault);
        let copied = copy(&sim, mode);
        let reached = sim.operations() > begun + number;
        check(&sim, copied);
        if !reached {
            assert!(number > 10, "a copy is more than {number} operations");
            return;
        }
    }
}

fn names(mode: Mode, copied: bool) -> Vec<PathBuf> {
    let target_is_there = mode.replace || copied;
    let names = [Some(source()), target_is_there.then_some(target())];
    names.into_iter().flatten().map(Path::to_owned).collect()
}

#[test]
fn a_copy_is_whole_and_survives_a_power_loss() {
    for mode in MODES {
        let sim = disk(1, mode);
        let copied = copy(&sim, mode).unwrap();
        assert_eq!(copied.bytes, LEN as u64, "{mode:?}");
        assert!(matches!(copied.methods[..], [Method::Direct | Method::Cached]), "{mode:?}");
        assert_eq!(copied.checksum.is_some(), mode.verify);
        assert_eq!(sim.contents(target()), Some(content()), "{mode:?}");
        assert_eq!(sim.names(), names(mode, true));
        if mode.durable {
            assert_eq!(sim.after_power_loss(target()), Some(content()), "W1, {mode:?}");
        }
    }
}

#[test]
fn an_error_at_any_operation_leaves_what_was_there_or_all_of_the_copy() {
    for mode in MODES {
        for errno in [EIO, ENOSPC] {
            at_every_operation(Fault::Once(errno), mode, |sim, copied| {
                let found = sim.contents(target());
                match copied {
                    Ok(_) => assert_eq!(found, Some(content())),
                    Err(error) => {
                        assert_eq!(error.errno(), errno, "{error}");
                        let is_whole = found == Some(content()) || found == before(mode);
                        assert!(is_whole, "{mode:?}: {error}");
                    }
                }
                let copied = found == Some(content());
                assert_eq!(sim.names(), names(mode, copied), "nothing else is left");
                assert_eq!(sim.contents(source()), Some(content()));
            });
        }
    }
}

#[test]
fn an_error_for_good_leaves_what_was_there_or_all_of_the_copy() {
    for mode in MODES {
        at_every_operation(Fault::Forever(EIO), mode, |sim, copied| {
            let found = sim.contents(target());
            let is_whole = found == Some(content()) || copied.is_err() && found == before(mode);
            assert!(is_whole, "{mode:?}: {copied:?}");
            assert_eq!(sim.contents(source()), Some(content()));
        });
    }
}

#[test]
fn short_and_interrupted_operations_are_brought_to_their_end() {
    // W4
    let faults = [Fault::Short(512), Fault::Short(3072), Fault::Once(EINTR), Fault::Once(EAGAIN)];
    for mode in MODES {
        for fault in faults {
            at_every_operation(fault, mode, |sim, copied| {
                assert_eq!(copied.unwrap().bytes, LEN as u64, "{mode:?} {fault:?}");
                assert_eq!(sim.contents(target()), Some(content()), "{mode:?} {fault:?}");
                assert_eq!(sim.names(), names(mode, true));
            });
        }
    }
}

#[test]
fn power_that_goes_at_any_operation_leaves_what_was_there_or_all_of_the_copy() {
    for mode in MODES.into_iter().filter(|mode| mode.durable) {
        at_every_operation(Fault::PowerLoss, mode, |sim, copied| {
            let found = sim.after_power_loss(target());
            let is_whole = found == Some(content()) || copied.is_err() && found == before(mode);
            assert!(is_whole, "{mode:?}: {copied:?}: {:?}", found.map(|found| found.len()));
            assert_eq!(sim.after_power_loss(source()), Some(content()));
        });
    }
}

#[test]
fn a_copy_goes_on_where_the_file_system_has_no_fallocate_or_no_direct_transfers() {
    for mode in MODES {
        let sim = disk(3, mode);
        // The first operation of a copy allocates.
        sim.fault(sim.operations(), Fault::Once(EOPNOTSUPP));
        let copied = copy(&sim, mode).unwrap();
        assert!(copied.effective.fallbacks.iter().any(|step| step.wanted == "allocated space"));
        assert_eq!(sim.contents(target()), Some(content()), "{mode:?}");

        let sim = disk(4, mode);
        sim.refuse_direct_at_open();
        copy(&sim, mode).unwrap();
        assert_eq!(sim.contents(target()), Some(content()), "{mode:?}");

        let sim = disk(5, mode);
        sim.refuse_direct_at_transfer();
        let copied = copy(&sim, mode).unwrap();
        assert!(copied.effective.fallbacks.iter().any(|step| step.wanted == "O_DIRECT"));
        assert_eq!(sim.contents(target()), Some(content()), "{mode:?}");
    }
}

#[test]
fn a_full_disk_is_told_of_before_anything_is_written() {
    for mode in MODES {
        let sim = disk(6, mode);
        sim.set_capacity((LEN + old().len() + 2000) as u64);
        let begun = sim.operations();
        let error = copy(&sim, mode).unwrap_err();
        assert_eq!(error.errno(), ENOSPC);
        assert!(error.to_string().starts_with("/sim/target: fallocate"), "{error}");
        // The allocation, and the removal of the file.
        assert_eq!(sim.operations() - begun, 2);
        assert_eq!(sim.contents(target()), before(mode));
    }
}

#[test]
fn a_file_that_is_there_is_only_replaced_when_that_was_asked_and_the_source_never() {
    // W7
    let mode = MODES[0];
    let sim = disk(7, mode);
    let begun = sim.operations();
    let error = copy(&sim, Mode { replace: false, ..mode }).unwrap_err();
    assert_eq!(error.errno(), EEXIST);
    let options = CopyOptions::new().replace(true);
    let mut watch = |_| ControlFlow::Continue(());
    let error = options.watch(&mut watch).on(&sim.disk()).copy(source(), source()).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert_eq!(sim.operations(), begun);
    assert_eq!(sim.contents(target()), Some(old()));
    assert_eq!(sim.contents(source()), Some(content()));
}

#[test]
fn a_disk_that_hides_its_faults_gives_a_copy_of_what_was_read_or_an_error() {
    for mode in MODES {
        at_every_operation(Fault::Lie, mode, |sim, copied| {
            copied.unwrap();
            assert_eq!(sim.contents(target()), Some(content()), "on the running system");
        });
        // A flipped bit of the source is copied; one of the target is found.
        at_every_operation(Fault::Rot, mode, |sim, copied| match copied {
            Ok(_) => assert_eq!(sim.contents(target()), sim.contents(source()), "{mode:?}"),
            Err(error) => {
                assert!(matches!(error, Error::Differs { .. }), "{error}");
                assert!(mode.verify && sim.contents(target()) == before(mode), "{error}");
            }
        });
        at_every_operation(Fault::Misdirected, mode, |sim, copied| {
            if let Err(error) = copied {
                assert!(matches!(error, Error::Differs { .. }), "{error}");
                assert_eq!(sim.contents(target()), before(mode), "{mode:?}");
            }
            assert_eq!(sim.contents(source()), Some(content()));
        });
    }
}
