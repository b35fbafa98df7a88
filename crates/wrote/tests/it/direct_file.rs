//! Tests that compare reads and writes of a `DirectFile` with a model in memory, on every rung of
//! the engine and on four file systems.

use crate::folder;
use crate::script::{BUFFER_BYTES, FILE_BYTES, Script, Source, Step, random_step};
use fixtures::{Mounted, skip, skip_here};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::os::fd::AsFd;
use std::path::Path;
use wrote::engine::Options;
use wrote::{Disk, Error, FileOptions, Ioengine, Sim};

const MIB: u64 = 1 << 20;
const SEED: u64 = 20_250_904;
const DEPTH: u32 = 16;

/// The runs on one file system, which together make a quarter of a million reads and writes.
const RUNS: [(Ioengine, bool, u64); 5] = [
    (Ioengine::IoUring, true, 120_000),
    (Ioengine::IoUring, false, 40_000),
    (Ioengine::Threads, true, 30_000),
    (Ioengine::Psync, true, 40_000),
    (Ioengine::Psync, false, 20_000),
];

fn new(direct: bool) -> FileOptions {
    FileOptions::new().create_new(true).write(true).direct(direct)
}

fn disk(ioengine: Ioengine) -> Disk {
    let options = Options::new(ioengine, DEPTH, BUFFER_BYTES).buffers(24);
    Disk::open(&options).unwrap()
}

/// Executes a fraction of 1/`share` of the operations in [`RUNS`].
fn random_scripts(test: &str, mounted: Result<Mounted, String>, share: u64) {
    let mounted = match mounted {
        Ok(mounted) => mounted,
        Err(reason) => return skip(test, &reason),
    };
    let mut total = 0;
    for (seed, (ioengine, direct, operations)) in (SEED..).zip(RUNS) {
        // The test harness prints this if the test fails.
        println!("{ioengine:?}, direct: {direct}, seed {seed}");
        let path = mounted.path().join(format!("file-{seed}"));
        total += random_script(&path, ioengine, direct, operations / share, seed);
        std::fs::remove_file(&path).unwrap();
    }
    assert!(total >= 250_000 / share);
}

/// Executes a random script, and returns the number of reads and writes in it.
fn random_script(path: &Path, ioengine: Ioengine, direct: bool, count: u64, seed: u64) -> u64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let source = Source::new(&mut random);
    let disk = disk(ioengine);
    let file = disk.open_file(path, &new(direct)).unwrap();
    if seed.is_multiple_of(2) {
        file.set_dsync(false);
    }
    let mut script = Script::new(&disk, &file, &source, DEPTH as usize);
    while script.reads_and_writes < count {
        script.step(random_step(&mut random));
    }
    let reads_and_writes = script.reads_and_writes;
    if ioengine != Ioengine::Psync {
        assert!(disk.effective().iodepth_reached > 1, "many are in flight at once");
    }
    let model = script.end();
    file.sync_all().unwrap();
    assert_eq!(file.len().unwrap(), model.len() as u64);
    file.close().unwrap();
    assert!(std::fs::read(path).unwrap() == model, "the file holds other bytes than were written");
    reads_and_writes
}

/// Executes a fraction of 1/`share` of the operations on each file system.
fn on_each_file_system(test: &str, share: u64) {
    for mounted in [
        Mounted::image("ext4", 64 * MIB),
        Mounted::image("xfs", 320 * MIB),
        Mounted::image("btrfs", 256 * MIB),
        Mounted::tmpfs(64 * MIB),
    ] {
        random_scripts(test, mounted, share);
    }
}

#[test]
fn random_reads_and_writes_on_each_file_system_match_a_model() {
    on_each_file_system("random_reads_and_writes_on_each_file_system_match_a_model", 10);
}

#[test]
#[ignore = "nightly"]
fn a_quarter_of_a_million_reads_and_writes_on_each_file_system_match_a_model() {
    let test = "a_quarter_of_a_million_reads_and_writes_on_each_file_system_match_a_model";
    on_each_file_system(test, 1);
}

fn step() -> impl Strategy<Value = Step> {
    // The file is small, so that steps overlap.
    let offset = 0..40_000_u64;
    prop_oneof![
        6 => (offset.clone(), 0..5 * BUFFER_BYTES)
            .prop_map(|(offset, len)| Step::Read { offset, len }),
        6 => (offset.clone(), 1..BUFFER_BYTES, any::<usize>(), any::<bool>()).prop_map(
            |(offset, len, from, durable)| Step::Write { offset, len, from, durable }
        ),
        1 => (offset.clone(), 1..50_000_u64)
            .prop_map(|(offset, len)| Step::Allocate { offset, len }),
        1 => any::<bool>().prop_map(|all| Step::Sync { all }),
        1 => offset.prop_map(|len| Step::Truncate { len }),
        1 => Just(Step::WaitForAll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2000)
    })]
    #[test]
    fn short_scripts_match_a_model_in_whatever_order_the_disk_works(
        steps in prop::collection::vec(step(), 1..40),
        seed in any::<u64>(),
        direct in any::<bool>(),
        buffers in 7_u32..30,
        iodepth in 1_u32..20,
    ) {
        matches_a_model(steps, seed, direct, buffers, iodepth);
    }
}

#[test]
fn a_read_before_writes_to_its_block_matches_the_model() {
    // The test above has found this case.
    let steps = vec![
        Step::Read { offset: 0, len: 8193 },
        Step::Write { offset: 4608, len: 3585, from: 0, durable: false },
        Step::Write { offset: 8704, len: 1, from: 0, durable: false },
    ];
    matches_a_model(steps, 4_338_778_414_936_378_625, false, 7, 2);
}

fn matches_a_model(steps: Vec<Step>, seed: u64, direct: bool, buffers: u32, iodepth: u32) {
    let path = Path::new("/sim/file");
    let sim = Sim::new(seed);
    let options = Options::new(Ioengine::IoUring, iodepth, BUFFER_BYTES).buffers(buffers);
    let disk = Disk::simulated(&sim, &options).unwrap();
    let file = disk.open_file(path, &new(direct)).unwrap();
    let source = Source::new(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut script = Script::new(&disk, &file, &source, 20);
    steps.into_iter().for_each(|step| script.step(step));
    let model = script.end();
    assert!(sim.contents(path).unwrap() == model);
    assert!(model.len() as u64 <= FILE_BYTES);
}

const RUNGS: [Ioengine; 3] = [Ioengine::Psync, Ioengine::Threads, Ioengine::IoUring];

/// Creates a file that ends within a block.
fn ends_within_a_block(path: &Path) -> Vec<u8> {
    let contents: Vec<u8> = (0..3 * BUFFER_BYTES + 777).map(|place| (place / 3) as u8).collect();
    std::fs::write(path, &contents).unwrap();
    contents
}

#[test]
fn a_read_gives_exactly_what_was_asked_up_to_the_end_of_the_file_and_nothing_beyond() {
    for rung in RUNGS {
        for direct in [false, true] {
            let (_folder, path) = folder();
            let contents = ends_within_a_block(&path);
            let end = contents.len();
            let disk = disk(rung);
            let options = FileOptions::new().direct(direct);
            let file = disk.open_file(&path, &options).unwrap();
            for (offset, len) in
                [(0, 1), (511, 2), (4095, 4098), (1, 3 * BUFFER_BYTES), (end - 5, 5)]
            {
                let bytes = file.read(offset as u64, len).unwrap();
                assert!(bytes == contents[offset..offset + len], "{len} from {offset}");
            }
            assert!(file.read(end as u64 - 5, 5000).unwrap() == contents[end - 5..]);
            assert!(file.read(0, 5 * BUFFER_BYTES).unwrap() == contents[..]);
            for offset in [end as u64, end as u64 + 1, 1 << 40] {
                assert!(file.read(offset, 100).unwrap().is_empty());
            }
            for offset in [0, 7, u64::MAX] {
                assert!(file.read(offset, 0).unwrap().is_empty());
            }
        }
    }
}

#[test]
fn a_read_that_takes_more_buffers_than_there_are_names_the_limit() {
    let disk = Disk::simulated(&Sim::new(0), &Options::new(Ioengine::IoUring, 4, 4096)).unwrap();
    let file = disk.open_file(Path::new("/sim/file"), &new(true)).unwrap();
    file.truncate(100_000).unwrap();
    let error = file.read(10, 4 * 4096 - 9).unwrap_err();
    assert!(matches!(error, Error::TooLong { len_max: 16_374, offset: Some(10), .. }));
    assert_eq!(
        error.to_string(),
        "/sim/file: read at byte 10: 16375 bytes do not fit; at most 16374 do (Options::buffers)"
    );
    assert_eq!(file.read(10, 16_374).unwrap().len(), 16_374);
    assert!(file.read(0, usize::MAX).is_err());
}

#[test]
fn a_write_that_is_not_aligned_names_the_alignment_and_writes_nothing() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let disk = disk(rung);
        let file = disk.open_file(&path, &new(true)).unwrap();
        let align = file.alignment();
        if align == 1 {
            return skip_here!("this file system takes no direct writes");
        }
        assert!(file.is_direct());
        for (offset, len) in [(1, align as usize), (0, align as usize + 1)] {
            for durable in [false, true] {
                let mut buffer = disk.lease().unwrap();
                buffer.set_len(len);
                let error = if !durable {
                    file.write(buffer, offset).unwrap_err()
                } else {
                    file.write_durable(buffer, offset).unwrap_err()
                };
                assert!(
                    error.to_string().contains(&format!("multiples of {align} bytes")),
                    "{error}"
                );
            }
        }
        assert_eq!(file.len().unwrap(), 0);
        let mut buffer = disk.lease().unwrap();
        buffer.set_len(align as usize);
        file.write(buffer, align.into()).unwrap();
        assert_eq!(file.len().unwrap(), 2 * u64::from(align));
    }
}

#[test]
fn a_cached_file_takes_writes_of_any_alignment() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let disk = disk(rung);
        let file = disk.open_file(&path, &new(false)).unwrap();
        assert_eq!((file.alignment(), file.is_direct()), (1, false));
        for (offset, text) in [(3, "three"), (1, "on"), (8, "!")] {
            let mut buffer = disk.lease().unwrap();
            buffer.set_len(text.len());
            buffer.copy_from_slice(text.as_bytes());
            file.write_durable(buffer, offset).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"\0onthree!");
    }
}

#[test]
fn allocate_and_truncate_set_the_length_and_what_is_new_reads_as_zeros() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let contents = ends_within_a_block(&path);
        let disk = disk(rung);
        let options = FileOptions::new().write(true).direct(true);
        let file = disk.open_file(&path, &options).unwrap();
        file.allocate(0, 40_000).unwrap();
        assert_eq!(file.len().unwrap(), 40_000);
        file.truncate(5000).unwrap();
        file.truncate(6000).unwrap();
        assert_eq!(file.len().unwrap(), 6000);
        let expected = [&contents[..5000], &[0; 1000]].concat();
        assert!(file.read(0, 10_000).unwrap() == expected[..]);
        assert_eq!(file.truncate(1 << 63).unwrap_err().errno(), 27, "EFBIG");
        assert_eq!(file.allocate(0, 0).unwrap_err().errno(), 22, "EINVAL");
    }
}

#[test]
fn offsets_and_lengths_beyond_any_file_are_refused_and_read_as_its_end() {
    let (_folder, path) = folder();
    let most = Options::new(Ioengine::Psync, 2, usize::MAX);
    assert_eq!(Disk::open(&most).unwrap_err().errno(), libc::ENOMEM);
    for ioengine in [Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync, Ioengine::Mmap] {
        let disk = Disk::open(&Options::new(ioengine, 2, 4096)).unwrap();
        let options = FileOptions::new().create(true).write(true);
        let file = disk.open_file(&path, &options).unwrap();
        for offset in [u64::MAX, u64::MAX - 1, i64::MAX as u64 + 1, i64::MAX as u64] {
            for len in [1, 4096, usize::MAX / 2, usize::MAX] {
                match file.read(offset, len) {
                    Ok(found) => assert_eq!(found.len(), 0),
                    Err(error) => assert!(matches!(error, Error::TooLong { .. }), "{error}"),
                }
                let error = file.allocate(offset, len as u64).unwrap_err();
                assert!([libc::EFBIG, libc::EOPNOTSUPP].contains(&error.errno()), "{error}");
            }
            let error = file.write(disk.lease().unwrap(), offset).unwrap_err();
            assert_eq!(error.errno(), libc::EFBIG, "{error}");
        }
        for len in [u64::MAX, i64::MAX as u64 + 1] {
            assert_eq!(file.truncate(len).unwrap_err().errno(), libc::EFBIG);
        }
        assert_eq!(file.len().unwrap(), 0, "{ioengine:?}");
        file.close().unwrap();
    }
}

#[test]
fn a_file_that_is_only_read_comes_from_the_page_cache_where_that_holds_it() {
    let test = "a_file_that_is_only_read_comes_from_the_page_cache_where_that_holds_it";
    let folder = fixtures::folder();
    let path = folder.path().join("file");
    let content: Vec<u8> = (0..1_000_003_u32).map(|byte| (byte % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let cached = std::fs::File::open(&path).unwrap();
    cached.sync_all().unwrap();
    if wrote::cached_bytes(cached.as_fd(), content.len() as u64) != Some(content.len() as u64) {
        return skip(test, "the kernel does not say what is cached");
    }
    let disk = disk(Ioengine::IoUring);
    let file = disk.open_file(&path, &FileOptions::new().direct(true)).unwrap();
    if !file.is_direct() {
        return skip(test, "the file system has no direct reads");
    }
    let matches = |offset: usize, len: usize| {
        let reading = file.start_read(offset as u64, len);
        let is_at_once = reading.is_over();
        let end = (offset + len).min(content.len());
        assert!(reading.wait().unwrap() == content[offset.min(end)..end], "{len} from {offset}");
        is_at_once
    };
    // These ranges include one that is longer than a buffer. After the last page, the file has
    // nothing that could be cached.
    for (offset, len) in [(0, 1), (4095, 2), (999_999, 4), (77, 5 * BUFFER_BYTES + 1)] {
        assert!(matches(offset, len), "{len} from {offset}");
    }
    for (offset, len) in [(999_999, 40_000), (2_000_000, 10)] {
        matches(offset, len);
    }
    rustix::fs::fadvise(&cached, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    if wrote::cached_bytes(cached.as_fd(), content.len() as u64) != Some(0) {
        return skip(test, "the page cache keeps the file");
    }
    assert!((0..100).all(|number| !matches(number * 9001, 3000)), "the device has to read");
    drop(std::fs::read(&path).unwrap());
    assert!((0..100).any(|number| matches(number * 9001, 3000)), "the file is cached again");
    assert_eq!(disk.buffers_free(), disk.buffers() as usize);
}
