//! What a `DirectFile` reads and writes, against a model in memory: on every rung of the engine and
//! on four file systems.

mod script;
mod support;

use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use script::{BUFFER_BYTES, FILE_BYTES, Script, Source, Step, random_step};
use std::path::Path;
use support::{Mounted, skip};
use wrote::{Disk, Durable, FileOptions, Ioengine, Options, Sim};

const MIB: u64 = 1 << 20;
const SEED: u64 = 20_250_904;
const DEPTH: u32 = 16;

/// What one file system goes through: together a quarter of a million reads and writes.
const RUNS: [(Ioengine, bool, u64); 5] = [
    (Ioengine::IoUring, true, 120_000),
    (Ioengine::IoUring, false, 40_000),
    (Ioengine::Threads, true, 30_000),
    (Ioengine::Psync, true, 40_000),
    (Ioengine::Psync, false, 20_000),
];

fn new(direct: bool) -> FileOptions {
    FileOptions { create_new: true, write: true, direct, ..FileOptions::default() }
}

fn disk(ioengine: Ioengine) -> Disk {
    let options = Options { buffers: 24, ..Options::new(ioengine, DEPTH, BUFFER_BYTES) };
    Disk::open(&options).unwrap()
}

fn a_quarter_of_a_million(test: &str, mounted: Result<Mounted, String>) {
    let mounted = match mounted {
        Ok(mounted) => mounted,
        Err(reason) => return skip(test, &reason),
    };
    let mut total = 0;
    for (seed, (ioengine, direct, operations)) in (SEED..).zip(RUNS) {
        // Told by the harness where the test fails.
        println!("{ioengine:?}, direct: {direct}, seed {seed}");
        let path = mounted.path().join(format!("file-{seed}"));
        total += random_script(&path, ioengine, direct, operations, seed);
        std::fs::remove_file(&path).unwrap();
    }
    assert!(total >= 250_000);
}

/// Carries out a script by chance; gives how many reads and writes it had.
fn random_script(path: &Path, ioengine: Ioengine, direct: bool, count: u64, seed: u64) -> u64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let source = Source::new(&mut random);
    let disk = disk(ioengine);
    let file = disk.open_file(path, &new(direct)).unwrap();
    if seed.is_multiple_of(2) {
        file.set_durable(Durable::Fdatasync);
    }
    let mut script = Script::new(&disk, &file, &source, DEPTH as usize);
    while script.reads_and_writes < count {
        script.step(random_step(&mut random));
    }
    let reads_and_writes = script.reads_and_writes;
    let model = script.end();
    file.sync_all().unwrap();
    assert_eq!(file.len().unwrap(), model.len() as u64);
    file.close().unwrap();
    assert!(std::fs::read(path).unwrap() == model, "the file holds other bytes than were written");
    reads_and_writes
}

#[test]
fn random_reads_and_writes_on_ext4_match_a_model() {
    let test = "random_reads_and_writes_on_ext4_match_a_model";
    a_quarter_of_a_million(test, Mounted::image("ext4", 64 * MIB));
}

#[test]
fn random_reads_and_writes_on_xfs_match_a_model() {
    let test = "random_reads_and_writes_on_xfs_match_a_model";
    a_quarter_of_a_million(test, Mounted::image("xfs", 320 * MIB));
}

#[test]
fn random_reads_and_writes_on_btrfs_match_a_model() {
    let test = "random_reads_and_writes_on_btrfs_match_a_model";
    a_quarter_of_a_million(test, Mounted::image("btrfs", 256 * MIB));
}

#[test]
fn random_reads_and_writes_on_tmpfs_match_a_model() {
    let test = "random_reads_and_writes_on_tmpfs_match_a_model";
    a_quarter_of_a_million(test, Mounted::tmpfs(64 * MIB));
}

fn step() -> impl Strategy<Value = Step> {
    // A small file, so that steps meet.
    let offset = 0..40_000_u64;
    prop_oneof![
        6 => (offset.clone(), 0..5 * BUFFER_BYTES).prop_map(|(offset, len)| Step::Read { offset, len }),
        6 => (offset.clone(), 1..BUFFER_BYTES, any::<usize>(), any::<bool>()).prop_map(
            |(offset, len, from, durable)| Step::Write { offset, len, from, durable }
        ),
        1 => (offset.clone(), 1..50_000_u64).prop_map(|(offset, len)| Step::Allocate { offset, len }),
        1 => any::<bool>().prop_map(|all| Step::Sync { all }),
        1 => offset.prop_map(|len| Step::Truncate { len }),
        1 => Just(Step::WaitForAll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn short_scripts_match_a_model_in_whatever_order_the_disk_works(
        steps in prop::collection::vec(step(), 1..40),
        seed in any::<u64>(),
        direct in any::<bool>(),
        buffers in 7_u32..30,
        iodepth in 1_u32..20,
    ) {
        let path = Path::new("/sim/file");
        let sim = Sim::new(seed);
        let options = Options { buffers, ..Options::new(Ioengine::IoUring, iodepth, BUFFER_BYTES) };
        let disk = Disk::simulated(&sim, &options).unwrap();
        let file = disk.open_file(path, &new(direct)).unwrap();
        let source = Source::new(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut script = Script::new(&disk, &file, &source, 20);
        steps.into_iter().for_each(|step| script.step(step));
        let model = script.end();
        prop_assert!(sim.contents(path).unwrap() == model);
        assert!(model.len() as u64 <= FILE_BYTES);
    }
}
