//! Many `Reader`s on one disk: one engine, and one budget of memory with `Writer`s and
//! `DirectFile`s.

use crate::folder;
use std::fs::File;
use std::io::{BufRead, Read, Seek, SeekFrom, Write};
use std::path::Path;
use wrote::engine::{Fault, Options};
use wrote::{Disk, Error, FileOptions, Ioengine, Reader, ReaderOptions, Sim, Writer};

const RUNGS: [Ioengine; 3] = [Ioengine::Psync, Ioengine::Threads, Ioengine::IoUring];
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The initial memory of a `Reader`: a read of 8 KiB, aligned to a cache line.
const FIRST: usize = 8 * KIB + 64;

/// Opens a disk with 64 KiB of buffers.
fn disk(ioengine: Ioengine) -> Disk {
    Disk::open(&Options::new(ioengine, 16, 4 * KIB)).unwrap()
}

const OWN: usize = 64 * KIB;

/// The bytes of file `number` from `start`.
fn content(number: usize, start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|place| (number * 31 + place / 7 + place % 251) as u8).collect()
}

/// Creates a file outside the page cache, if its pages can be dropped.
fn make_cold(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
    drop_pages(path);
}

fn drop_pages(path: &Path) {
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// Opens a file without kernel read-ahead: cold pages stay cold until read.
fn open_alone(options: &ReaderOptions, path: &Path) -> Result<Reader, Error> {
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    options.clone().from_file(file)
}

/// Reads the files in turn, in pieces, and checks the bytes. Calls `check` after each piece.
/// Returns the bytes read directly.
fn read_in_turn(readers: &mut [Reader], len: usize, check: impl Fn()) -> usize {
    let (mut place, mut direct_bytes) = (vec![0; readers.len()], 0);
    while place.iter().any(|&place| place < len) {
        for (number, reader) in readers.iter_mut().enumerate() {
            let bytes = reader.fill_buf().unwrap();
            let count = bytes.len().min(10_000 + number);
            assert!(bytes[..count] == content(number, place[number], count), "file {number}");
            assert!(count > 0 || place[number] == len, "file {number} ends at {}", place[number]);
            reader.consume(count);
            place[number] += count;
            direct_bytes += if reader.is_direct() { count } else { 0 };
            check();
        }
    }
    direct_bytes
}

#[test]
fn readers_on_one_disk_read_right_within_its_memory_cold_and_warm_on_every_rung() {
    // W8
    const LEN: usize = 700 * KIB + 123;
    let (folder, _) = folder();
    let path = |number: usize| folder.path().join(number.to_string());
    (0..12).for_each(|number| make_cold(&path(number), &content(number, 0, LEN)));
    for rung in RUNGS {
        // Room for all, for some, and for no direct reads.
        for memory in [16 * MIB, 3 * MIB / 2, OWN + 12 * 9 * KIB] {
            for cold in [true, false] {
                let disk = disk(rung);
                disk.set_memory(memory);
                let options = Reader::options().on(&disk).bs(128 * KIB).iodepth(2);
                let mut readers: Vec<Reader> = (0..12)
                    .map(|number| {
                        drop_pages(&path(number));
                        if !cold {
                            std::fs::read(path(number)).unwrap();
                        }
                        open_alone(&options, &path(number)).unwrap()
                    })
                    .collect();
                assert_eq!(disk.memory(), OWN + 12 * FIRST);
                let direct_bytes = read_in_turn(&mut readers, LEN, || {
                    assert!(disk.memory() <= memory, "{} of {memory}", disk.memory());
                });
                let case = format!("{rung:?}, {memory} bytes, cold: {cold}");
                assert!(memory > MIB || direct_bytes == 0, "{case}: {direct_bytes}");
                assert!(cold || direct_bytes == 0, "{case}: {direct_bytes}");
                for reader in &mut readers {
                    // At the end of the file the buffers of direct reads are returned.
                    assert_eq!(reader.read(&mut [0; 9]).unwrap(), 0);
                    assert!(!reader.is_direct());
                }
                assert!(disk.memory() <= OWN + 12 * 129 * KIB, "{case}: {}", disk.memory());
                drop(readers);
                assert_eq!((disk.memory(), disk.outstanding()), (OWN, 0), "{case}");
            }
        }
    }
}

#[test]
fn a_reader_reads_directly_where_the_disk_has_memory_and_says_where_it_has_not() {
    // W6
    const TEST: &str =
        "a_reader_reads_directly_where_the_disk_has_memory_and_says_where_it_has_not";
    const LEN: usize = 4 * MIB;
    let (_folder, path) = folder();
    for rung in RUNGS {
        let disk = disk(rung);
        let options = Reader::options().on(&disk).bs(256 * KIB).iodepth(4);
        // A quarter of the remaining memory fits full buffers, halves, or none.
        for (memory, buffers) in [(4 * MIB, MIB), (3 * MIB, MIB / 2), (MIB, 0)] {
            make_cold(&path, &content(0, 0, LEN));
            disk.set_memory(OWN + FIRST + memory);
            let mut reader = open_alone(&options, &path).unwrap();
            // A long read goes directly into the caller's memory.
            let mut some = vec![0; MIB];
            for piece in some.chunks_mut(1 << 12) {
                reader.read_exact(piece).unwrap();
            }
            assert!(some == content(0, 0, MIB));
            let fallbacks = reader.effective().fallbacks.clone();
            if fallbacks.iter().any(|step| step.wanted == "O_DIRECT") {
                return fixtures::skip(TEST, "the file system takes no direct reads");
            }
            let found = fallbacks.iter().find(|step| step.wanted == "direct reads");
            if buffers == 0 {
                assert!(!reader.is_direct());
                let Some(found) = found else { panic!("{fallbacks:?}") };
                assert_eq!(found.because, "the disk's memory has no room for their buffers");
            } else if !reader.is_direct() {
                return fixtures::skip(TEST, "the file's pages stay in the cache here");
            } else {
                assert_eq!((disk.memory(), found), (OWN + FIRST + buffers, None));
            }
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).unwrap();
            assert!(rest == content(0, MIB, LEN - MIB));
        }
    }
}

#[test]
fn one_reader_too_many_is_refused_by_the_memory_and_the_next_one_finds_what_it_had() {
    // W8
    let (_folder, path) = folder();
    std::fs::write(&path, content(0, 0, 100)).unwrap();
    let disk = disk(Ioengine::IoUring);
    disk.set_memory(OWN + 100 * FIRST);
    let open = || Reader::options().on(&disk).open(&path);
    let mut readers: Vec<Reader> = (0..100).map(|_| open().unwrap()).collect();
    let error = open().unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("bytes of buffers, and may have"), "{error}");
    let writer = Writer::options().on(&disk).open(path.with_extension("new"));
    assert!(matches!(writer, Err(Error::Refused { .. })), "one budget for both");
    readers.pop();
    readers.push(open().unwrap());
    for reader in &mut readers {
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == content(0, 0, 100));
    }
}

#[test]
fn readers_writers_and_direct_files_work_on_one_disk_at_once_from_a_thread_each() {
    // W8
    const LEN: usize = MIB + 4321;
    const MEMORY: usize = 4 * MIB;
    for rung in RUNGS {
        let (folder, path) = folder();
        let disk = disk(rung);
        disk.set_memory(MEMORY);
        let options = FileOptions::new().create_new(true).write(true).direct(true);
        let file = disk.open_file(&path, &options).unwrap();
        let at = |name: &str, number: usize| folder.path().join(format!("{name}-{number}"));
        (0..5).for_each(|number| make_cold(&at("old", number), &content(number, 0, LEN)));
        std::thread::scope(|scope| {
            for number in 0..5 {
                let options = Reader::options().on(&disk).bs(64 * KIB).iodepth(4);
                let mut reader = open_alone(&options, &at("old", number)).unwrap();
                let mut writer =
                    Writer::options().on(&disk).bs(64 * KIB).open(at("new", number)).unwrap();
                let disk = &disk;
                scope.spawn(move || {
                    for turn in 0..3 {
                        let from = turn * 77_777;
                        reader.seek(SeekFrom::Start(from as u64)).unwrap();
                        let mut found = Vec::new();
                        reader.read_to_end(&mut found).unwrap();
                        assert!(found == content(number, from, LEN - from), "file {number}");
                        assert!(disk.memory() <= MEMORY);
                    }
                });
                let new = at("new", number);
                scope.spawn(move || {
                    writer.write_all(&content(number, 0, LEN)).unwrap();
                    assert!(disk.memory() <= MEMORY);
                    writer.finish().unwrap();
                    assert!(std::fs::read(new).unwrap() == content(number, 0, LEN));
                });
            }
            for block in 0..100 {
                let mut buffer = disk.lease().unwrap();
                buffer.fill(block);
                file.write(buffer, u64::from(block) * 4096).unwrap();
                assert!(file.read(u64::from(block) * 4096, 10).unwrap() == [block; 10][..]);
            }
        });
        assert_eq!((disk.memory(), disk.outstanding()), (OWN, 0));
    }
}

#[test]
fn a_reader_that_is_dropped_with_reads_ahead_in_flight_gives_its_memory_back() {
    // W5
    const LEN: usize = 2 * MIB;
    for rung in RUNGS {
        let (_folder, path) = folder();
        make_cold(&path, &content(0, 0, LEN));
        let disk = disk(rung);
        let options = Reader::options().on(&disk).bs(16 * KIB).iodepth(8);
        for some in [1, 40_000, 150_000, 600_000] {
            let mut reader = open_alone(&options, &path).unwrap();
            let mut found = vec![0; some];
            reader.read_exact(&mut found).unwrap();
            assert!(found == content(0, 0, some));
            drop(reader);
            assert_eq!((disk.memory(), disk.outstanding()), (OWN, 0), "{rung:?}, {some} bytes");
        }
        let mut reader = open_alone(&options, &path).unwrap();
        drop(disk);
        // It holds the engine.
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == content(0, 0, LEN));
    }
}

/// A simulated disk with `count` files of `len` bytes.
fn simulated(seed: u64, count: usize, len: usize) -> (Sim, Disk) {
    let sim = Sim::new(seed);
    for number in 0..count {
        let path = format!("/sim/{number}");
        let mut writer = Writer::options().on(&sim.disk()).open(path).unwrap();
        writer.write_all(&content(number, 0, len)).unwrap();
        writer.finish().unwrap();
    }
    let disk = Disk::simulated(&sim, &Options::new(Ioengine::IoUring, 16, 4 * KIB)).unwrap();
    (sim, disk)
}

#[test]
fn on_a_simulated_disk_with_short_and_interrupted_reads_all_three_kinds_are_right_in_one_budget() {
    // W4, W8
    const LEN: usize = 40 * 4096 + 77;
    for seed in 0..40 {
        let (sim, disk) = simulated(seed, 6, LEN);
        let memory = OWN + (seed as usize % 4 + 1) * 128 * KIB;
        disk.set_memory(memory);
        let options = Reader::options().on(&disk).bs(4096).iodepth(4);
        let mut readers: Vec<Reader> =
            (0..6).map(|n| options.clone().open(format!("/sim/{n}")).unwrap()).collect();
        let written = Path::new("/sim/written");
        let mut writer = Writer::options().on(&disk).bs(8192).open(written).unwrap();
        let direct = FileOptions::new().create_new(true).write(true).direct(true);
        let file = disk.open_file("/sim/direct", &direct).unwrap();
        let faults = [Fault::Short(1), Fault::Short(700), Fault::Once(4), Fault::Once(11)];
        for step in 0..30 {
            let fault = faults[(seed + step) as usize % 4];
            sim.fault(sim.operations() + step * 7 + seed % 7, fault);
        }
        let mut blocks = 0..LEN / 4096;
        let direct_bytes = read_in_turn(&mut readers, LEN, || {
            assert!(disk.memory() <= memory, "{} of {memory}", disk.memory());
        });
        let has_room = memory > OWN + 128 * KIB;
        assert_eq!(direct_bytes > 0, has_room, "seed {seed}: {direct_bytes} bytes");
        for block in blocks.by_ref() {
            writer.write_all(&content(9, block * 4096, 4096)).unwrap();
            let mut buffer = disk.lease().unwrap();
            buffer.copy_from_slice(&content(10, block * 4096, 4096));
            file.write(buffer, block as u64 * 4096).unwrap();
            let reader = &mut readers[block % 6];
            let from = block * 3000;
            reader.seek(SeekFrom::Start(from as u64)).unwrap();
            let mut some = vec![0; 20_000];
            reader.read_exact(&mut some).unwrap();
            assert!(some == content(block % 6, from, 20_000), "seed {seed}");
            assert!(disk.memory() <= memory);
        }
        writer.finish().unwrap();
        file.sync_data().unwrap();
        let len = LEN / 4096 * 4096;
        let mut reader = Reader::options().on(&disk).bs(4096).open("/sim/direct").unwrap();
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == content(10, 0, len), "seed {seed}");
        drop((readers, reader));
        assert_eq!((disk.memory(), disk.outstanding()), (OWN, 0));
        assert!(sim.after_power_loss(written).unwrap() == content(9, 0, len));
    }
}

#[test]
fn on_a_simulated_disk_a_reader_dropped_or_moved_at_any_piece_gives_its_memory_back() {
    // W5
    const LEN: usize = 40 * 4096;
    let (_sim, disk) = simulated(3, 1, LEN);
    for some in (0..LEN).step_by(3000) {
        let options = Reader::options().on(&disk).bs(4096).iodepth(4);
        let mut reader = options.open("/sim/0").unwrap();
        let mut found = vec![0; some];
        reader.read_exact(&mut found).unwrap();
        assert!(found == content(0, 0, some));
        let held = disk.memory();
        assert!(held <= OWN + FIRST + 4 * 4096, "{held}");
        if some > 9000 && some % 2000 == 0 {
            // A short read elsewhere leaves the read-ahead to others.
            reader.seek(SeekFrom::Start(0)).unwrap();
            reader.read_exact(&mut [0; 10]).unwrap();
            assert!(!reader.is_direct());
            assert_eq!(disk.memory(), OWN + FIRST);
        }
        drop(reader);
        assert_eq!((disk.memory(), disk.outstanding()), (OWN, 0), "{some} bytes");
    }
    let given = Reader::options().on(&disk).from_file(File::open("/dev/null").unwrap());
    assert!(matches!(given, Err(Error::Refused { .. })));
}
