//! Tests of transfers that are completed by polling the device instead of by interrupts.
//!
//! Devices with poll queues are rare. `cargo xtask lab nvme` runs these tests in a guest that has
//! some: `WROTE_POLLED_DIRS` names folders on them, and `WROTE_POLLED_BLOCK_DEVICE` a device that
//! contains this program. There, polling must be real, and interrupts are counted. Elsewhere, the
//! same tests show that the option is harmless and that the engine records its fallback.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use wrote::device;
use wrote::engine::{Completion, Engine, FileId, Op, Options};
use wrote::{FileOptions, Ioengine};

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 256;
const IODEPTH: u32 = 16;
const NEW: FileOptions = FileOptions::new().create_new(true).write(true).direct(true);

/// A folder for a test's files, and whether its device can be polled.
struct Place {
    folder: tempfile::TempDir,
    polled: bool,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    /// Returns the name of the place, such as `nvme-xfs`.
    fn name(&self) -> String {
        let parent = self.folder.path().parent().and_then(Path::file_name);
        parent.unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn places() -> Vec<Place> {
    let Ok(folders) = std::env::var("WROTE_POLLED_DIRS") else {
        return vec![Place { folder: fixtures::folder(), polled: false }];
    };
    let place = |folder| Place { folder: tempfile::tempdir_in(folder).unwrap(), polled: true };
    folders.split(',').map(place).collect()
}

fn engine_of(iodepth: u32, buffer_bytes: usize, iopoll: bool) -> Engine {
    let options = Options::new(Ioengine::IoUring, iodepth, buffer_bytes);
    Engine::open(&options.iopoll(iopoll)).unwrap()
}

fn engine() -> Engine {
    engine_of(IODEPTH, BLOCK_BYTES, true)
}

/// Asserts that polling is in effect if the device can be polled, and that otherwise the fallback
/// is recorded (W6).
fn assert_polled_or_told(engine: &Engine, polled: bool) {
    let effective = engine.effective();
    let told = |because| told(engine, because);
    if polled {
        assert!(effective.iopoll && !told(""), "{effective:?}");
    } else {
        assert!(effective.iopoll || told(""), "{effective:?}");
    }
}

/// Returns whether the fallback from polling has this reason, or there is no io_uring.
fn told(engine: &Engine, because: &str) -> bool {
    engine.effective().fallbacks.iter().any(|step| {
        step.wanted == "io_uring"
            || step.wanted == "polled completions"
                && step.got == "interrupts"
                && !step.because.is_empty()
                && step.because.contains(because)
    })
}

/// Returns a byte that identifies the block, the offset in it, and the version of the block.
fn pattern(block: u64, place: usize, version: u64) -> u8 {
    (block * 31 + place as u64 * 7 + place as u64 / 256 + version * 101) as u8
}

fn is_whole(bytes: &[u8], block: u64, version: u64) -> bool {
    bytes.iter().enumerate().all(|(place, &byte)| byte == pattern(block, place, version))
}

/// Returns every block once, in a scattered order. The step 97 has no factor in common with the
/// number of blocks.
fn jumping(blocks: u64) -> impl Iterator<Item = u64> {
    (0..blocks).map(move |number| number * 97 % blocks)
}

fn queue_write(engine: &mut Engine, file: FileId, block: u64, version: u64, durable: bool) {
    let mut buffer = engine.lease().unwrap();
    let length = buffer.len() as u64;
    buffer.iter_mut().enumerate().for_each(|(place, byte)| *byte = pattern(block, place, version));
    engine.queue(block, Op::Write { file, offset: block * length, buffer, durable });
}

fn write_all(
    engine: &mut Engine,
    file: FileId,
    blocks: impl Iterator<Item = u64>,
    version: u64,
    durable: bool,
) {
    for block in blocks {
        queue_write(engine, file, block, version, durable);
    }
    engine.drain().unwrap();
}

/// Reads blocks with a full queue, and passes each of them to `look`.
fn read_all(
    engine: &mut Engine,
    file: FileId,
    blocks: impl Iterator<Item = u64>,
    mut look: impl FnMut(u64, &[u8]),
) {
    let iodepth = engine.effective().iodepth;
    let mut blocks = blocks.peekable();
    let (mut in_flight, mut completions) = (0, Vec::new());
    while in_flight > 0 || blocks.peek().is_some() {
        while in_flight < iodepth
            && let Some(block) = blocks.next()
        {
            let buffer = engine.lease().unwrap();
            let offset = block * buffer.len() as u64;
            engine.queue(block, Op::Read { file, offset, buffer });
            in_flight += 1;
        }
        engine.reap(1, &mut completions).unwrap();
        for completion in completions.drain(..) {
            let bytes = completion.result.unwrap();
            look(completion.user_data, &completion.buffer.unwrap()[..bytes]);
            in_flight -= 1;
        }
    }
}

/// Asserts that no completion has an error, drops all completions, and returns their number.
fn all_well(completions: &mut Vec<Completion>) -> usize {
    let number = completions.len();
    for completion in completions.drain(..) {
        assert!(completion.result.is_ok(), "{completion:?}");
    }
    number
}

fn read_whole(engine: &mut Engine, file: FileId, version: u64) {
    let mut found = 0;
    read_all(engine, file, jumping(BLOCKS), |block, bytes| {
        assert!(bytes.len() == BLOCK_BYTES && is_whole(bytes, block, version), "block {block}");
        found += 1;
    });
    assert_eq!(found, BLOCKS);
}

/// Creates a file whose blocks are written and on stable storage.
fn written(engine: &mut Engine, path: &Path) -> FileId {
    let file = engine.open_file(path, &NEW).unwrap();
    write_all(engine, file, 0..BLOCKS, 0, false);
    engine.flush(file).unwrap();
    file
}

/// Compares the content of the file, read through the page cache, with the expected content.
fn assert_contents(path: &Path, block_bytes: usize, blocks: u64, version: u64) {
    let contents = std::fs::read(path).unwrap();
    assert_eq!(contents.len() as u64, blocks * block_bytes as u64);
    for (block, bytes) in contents.chunks(block_bytes).enumerate() {
        assert!(is_whole(bytes, block as u64, version), "block {block}");
    }
}

/// Returns the number of interrupts of all NVMe queues for transfers, on all processors
/// (`proc(5)`). Poll queues cause none; queue 0 is for administration.
fn interrupts() -> u64 {
    let table = std::fs::read_to_string("/proc/interrupts").unwrap();
    let of_queue = |line: &&str| {
        let name = line.split_whitespace().last().unwrap_or_default();
        let queue = name.strip_prefix("nvme").and_then(|name| name.split_once('q'));
        queue.is_some_and(|(_, queue)| queue != "0")
    };
    let counts = table.lines().filter(of_queue).flat_map(|line| {
        line.split_whitespace().skip(1).map_while(|count| count.parse::<u64>().ok())
    });
    counts.sum()
}

/// A kind of transfer, applied to each block once.
struct Transfers {
    what: &'static str,
    /// The function that prepares the file.
    before: fn(&mut Engine, &Path) -> FileId,
    /// The function with the transfers whose interrupts are counted.
    counted: fn(&mut Engine, FileId),
    /// The final version of each block.
    version: u64,
}

/// Does the transfers one at a time, with or without polling, and checks the file. Returns the
/// number of interrupts per transfer. If several transfers were in flight, one interrupt could
/// serve all of them.
fn interrupts_each(place: &Place, transfers: &Transfers, iopoll: bool) -> f64 {
    let way = if iopoll { "polled" } else { "plain" };
    let path = place.folder.path().join(format!("{way} {}", transfers.what));
    let mut engine = engine_of(1, BLOCK_BYTES, iopoll);
    let file = (transfers.before)(&mut engine, &path);
    let interrupts_before = interrupts();
    (transfers.counted)(&mut engine, file);
    let interrupts = interrupts() - interrupts_before;
    if iopoll {
        assert_polled_or_told(&engine, place.polled);
    }
    engine.flush(file).unwrap();
    assert_contents(&path, BLOCK_BYTES, BLOCKS, transfers.version);
    interrupts as f64 / BLOCKS as f64
}

/// Does the transfers with and without polling. If the device can be polled, prints the interrupts
/// per transfer of both and passes them to `judge`.
fn compare(transfers: &Transfers, judge: fn(polled: f64, plain: f64)) {
    for place in places() {
        let [polled, plain] = [true, false].map(|way| interrupts_each(&place, transfers, way));
        if place.polled {
            let (name, what) = (place.name(), transfers.what);
            fact(&format!(
                "{name}: {what}: interrupts each: {polled:.2} with iopoll, {plain:.2} without"
            ));
            judge(polled, plain);
        }
    }
}

/// Prints a fact about the kernel. `eprintln!` is not used, because the test harness hides its
/// output in a passed test.
fn fact(text: &str) {
    let _ = std::io::stderr().write_all(format!("FACT: {text}\n").as_bytes());
}

#[test]
fn random_blocks_of_many_in_flight_are_written_and_read_byte_for_byte() {
    for place in places() {
        let (mut engine, path) = (engine(), place.path());
        let file = written(&mut engine, &path);
        write_all(&mut engine, file, jumping(BLOCKS), 1, false);
        assert_contents(&path, BLOCK_BYTES, BLOCKS, 1);
        read_whole(&mut engine, file, 1);
        assert_polled_or_told(&engine, place.polled);
    }
}

#[test]
fn reads_and_overwrites_where_polling_is_real_need_no_interrupt() {
    let reads: fn(&mut Engine, FileId) = |engine, file| read_whole(engine, file, 0);
    let overwrites: fn(&mut Engine, FileId) = |engine, file| {
        write_all(engine, file, jumping(BLOCKS), 1, false);
    };
    for (what, counted, version) in [("reads", reads, 0), ("overwrites", overwrites, 1)] {
        let transfers = Transfers { what, before: written, counted, version };
        compare(&transfers, none_polled_and_one_each_plain);
    }
}

fn none_polled_and_one_each_plain(polled: f64, plain: f64) {
    assert!(polled < 0.1, "{polled}");
    assert!(plain > 0.5, "{plain}: they are not what is counted");
}

#[test]
fn other_writes_arrive_whether_the_kernel_polls_them_or_not() {
    let write: fn(&mut Engine, FileId) = |engine, file| {
        write_all(engine, file, jumping(BLOCKS), 1, false);
    };
    let allocated: fn(&mut Engine, &Path) -> FileId = |engine, path| {
        let file = engine.open_file(path, &NEW).unwrap();
        engine.queue(0, Op::Fallocate { file, offset: 0, len: BLOCKS * BLOCK_BYTES as u64 });
        engine.drain().unwrap();
        engine.flush(file).unwrap();
        file
    };
    let hole: fn(&mut Engine, &Path) -> FileId = |engine, path| {
        let file = engine.open_file(path, &NEW).unwrap();
        let same = std::fs::File::options().write(true).open(path).unwrap();
        same.set_len(BLOCKS * BLOCK_BYTES as u64).unwrap();
        engine.flush(file).unwrap();
        file
    };
    let durably: fn(&mut Engine, FileId) = |engine, file| {
        write_all(engine, file, jumping(BLOCKS), 1, true);
    };
    let in_order: fn(&mut Engine, FileId) = |engine, file| {
        write_all(engine, file, 0..BLOCKS, 1, false);
    };
    for (what, before, counted) in [
        ("overwrites with RWF_DSYNC", written as fn(&mut Engine, &Path) -> FileId, durably),
        ("writes into allocated blocks", allocated, write),
        ("writes into holes", hole, write),
        ("appends", |engine, path| engine.open_file(path, &NEW).unwrap(), in_order),
    ] {
        compare(&Transfers { what, before, counted, version: 1 }, |_, _| ());
    }
}

#[test]
fn flushes_and_allocation_go_on_beside_polled_transfers_in_flight() {
    for place in places() {
        let (mut engine, path) = (engine(), place.path());
        let file = written(&mut engine, &path);
        let other = engine.open_file(path.with_extension("other"), &NEW).unwrap();
        let (mut in_flight, mut completions) = (0, Vec::new());
        for block in jumping(BLOCKS) {
            queue_write(&mut engine, file, block, 2, block % 5 == 0);
            in_flight += 1;
            let beside = match block % 16 {
                0 => Op::Fsync { file },
                4 => Op::Fdatasync { file: other },
                8 => Op::Fallocate { file: other, offset: block * 4096, len: 4096 },
                12 => Op::Read { file: other, offset: 0, buffer: engine.lease().unwrap() },
                _ => continue,
            };
            engine.queue(BLOCKS + block, beside);
            in_flight += 1;
            // This waits for only some of the transfers in flight, so that both rings stay busy.
            engine.reap(1, &mut completions).unwrap();
            in_flight -= all_well(&mut completions);
        }
        while in_flight > 0 {
            engine.reap(1, &mut completions).unwrap();
            in_flight -= all_well(&mut completions);
        }
        assert_polled_or_told(&engine, place.polled);
        engine.flush(file).unwrap();
        assert_contents(&path, BLOCK_BYTES, BLOCKS, 2);
    }
}

fn one_command_bytes(path: &Path) -> u64 {
    device::device_at(path).map_or(0, |device| device.transfer_bytes_max)
}

#[test]
fn transfers_as_long_as_a_command_of_the_device_and_longer_end() {
    for place in places() {
        for length_kib in [256, 512, 1024] {
            let (bytes, blocks, path) = (length_kib << 10, 4, place.path());
            let path = path.with_extension(length_kib.to_string());
            let mut engine = engine_of(IODEPTH, bytes, true);
            let file = engine.open_file(&path, &NEW).unwrap();
            for version in 0..2 {
                write_all(&mut engine, file, 0..blocks, version, false);
            }
            engine.flush(file).unwrap();
            read_all(&mut engine, file, 0..blocks, |block, found| {
                assert!(found.len() == bytes && is_whole(found, block, 1), "block {block}");
            });
            if place.polled && bytes as u64 > one_command_bytes(&path) {
                // W6: the engine polls, but not these transfers.
                assert!(engine.effective().iopoll && told(&engine, "several commands"));
            } else {
                assert_polled_or_told(&engine, place.polled);
            }
            assert_contents(&path, bytes, blocks, 1);
        }
    }
}

#[test]
fn a_transfer_across_many_extents_and_holes_ends() {
    // The kernel splits the transfer into several commands, and polls at most one of them.
    for place in places() {
        let (bytes, path) = (16 * BLOCK_BYTES, place.path());
        let mut small = engine();
        let file = small.open_file(&path, &NEW).unwrap();
        let every_other = (0..BLOCKS).filter(|block| block % 2 == 1);
        write_all(&mut small, file, every_other, 0, false);
        small.flush(file).unwrap();
        let mut large = engine_of(IODEPTH, bytes, true);
        let options = NEW.create_new(false);
        let file = large.open_file(&path, &options).unwrap();
        read_all(&mut large, file, 0..BLOCKS / 16, |piece, found| {
            for (block, found) in (piece * 16..).zip(found.chunks(BLOCK_BYTES)) {
                let hole = block % 2 == 0 && found.iter().all(|&byte| byte == 0);
                assert!(hole || block % 2 == 1 && is_whole(found, block, 0), "block {block}");
            }
        });
        write_all(&mut large, file, 0..BLOCKS / 16, 1, false);
        large.flush(file).unwrap();
        assert_polled_or_told(&large, place.polled);
        assert_contents(&path, bytes, BLOCKS / 16, 1);
    }
}

#[test]
fn dropping_an_engine_waits_for_polled_transfers_in_flight() {
    // W5
    for place in places() {
        let (mut engine, path) = (engine(), place.path());
        let file = written(&mut engine, &path);
        for block in 0..u64::from(IODEPTH) {
            if block % 2 == 0 {
                let buffer = engine.lease().unwrap();
                let offset = block * BLOCK_BYTES as u64;
                engine.queue(block, Op::Read { file, offset, buffer });
            } else {
                queue_write(&mut engine, file, block, 0, false);
            }
        }
        engine.submit().unwrap();
        assert_polled_or_told(&engine, place.polled);
        drop(engine);
        assert_contents(&path, BLOCK_BYTES, BLOCKS, 0);
    }
}

#[test]
fn a_polled_read_ends_where_the_file_does() {
    for place in places() {
        let path = place.path();
        let contents: Vec<u8> = (0..3 * BLOCK_BYTES + 777).map(|at| pattern(0, at, 3)).collect();
        std::fs::write(&path, &contents).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let mut engine = engine();
        let file = engine.open_file(&path, &FileOptions::new().direct(true)).unwrap();
        let mut found = vec![Vec::new(); 6];
        read_all(&mut engine, file, 0..6, |block, bytes| found[block as usize] = bytes.to_vec());
        assert_polled_or_told(&engine, place.polled);
        assert_eq!(found.concat(), contents);
    }
}

#[test]
fn a_cached_file_beside_a_polled_one_is_never_polled_and_the_reason_is_told() {
    for place in places() {
        let (mut engine, path) = (engine(), place.path());
        let file = written(&mut engine, &path);
        let cached_path = path.with_extension("cached");
        let cached = engine.open_file(&cached_path, &NEW.direct(false)).unwrap();
        for block in 0..BLOCKS {
            queue_write(&mut engine, file, block, 1, false);
            queue_write(&mut engine, cached, block, 1, false);
        }
        engine.drain().unwrap();
        let effective = engine.effective();
        assert!(effective.iopoll || !place.polled, "{effective:?}");
        assert!(told(&engine, "polling needs direct transfers"), "{effective:?}");
        for path in [path, cached_path] {
            assert_contents(&path, BLOCK_BYTES, BLOCKS, 1);
        }
    }
}

#[test]
fn the_bytes_of_a_block_device_are_read_by_polling() {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let places = places();
    // Without such a device, a file with the same content is used.
    let (path, polled) = match std::env::var_os("WROTE_POLLED_BLOCK_DEVICE") {
        Some(device) => (PathBuf::from(device), true),
        None => {
            let path = places[0].path();
            std::fs::write(&path, &program).unwrap();
            (path, false)
        }
    };
    let mut engine = engine();
    let options = FileOptions::new().direct(true);
    let file = engine.open_file(&path, &options).unwrap();
    let blocks = (program.len() / BLOCK_BYTES).min(1024) as u64;
    let mut found = vec![0; blocks as usize * BLOCK_BYTES];
    read_all(&mut engine, file, 0..blocks, |block, bytes| {
        found[block as usize * BLOCK_BYTES..][..bytes.len()].copy_from_slice(bytes);
    });
    assert_polled_or_told(&engine, polled);
    assert!(found == program[..found.len()], "other bytes than were written");
}
