//! Tests of `Writer`s and `Reader`s on one `Disk`. They use the disk's method, but each has its own
//! engine.

use crate::folder;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use wrote::engine::{Fault, Options};
use wrote::{Disk, FileOptions, Ioengine, Reader, Sim, Writer};

const RUNGS: [Ioengine; 3] = [Ioengine::Psync, Ioengine::Threads, Ioengine::IoUring];
const LEN: usize = 1_000_777;

/// Returns `len` bytes of file `number` from `start` on.
fn content(number: usize, start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|place| (number * 31 + place / 7 + place % 251) as u8).collect()
}

#[test]
fn writers_readers_and_direct_files_work_on_one_disk_at_once_by_its_method() {
    // W6
    for rung in RUNGS {
        let (folder, path) = folder();
        let disk = Disk::open(&Options::new(rung, 16, 4096)).unwrap();
        let effective = disk.effective().ioengine;
        let options = FileOptions::new().create_new(true).write(true).direct(true);
        let file = disk.open_file(&path, &options).unwrap();
        std::thread::scope(|scope| {
            for number in 0..5 {
                let path = folder.path().join(number.to_string());
                let mut writer = Writer::options().on(&disk).bs(64 << 10).open(&path).unwrap();
                assert_eq!(writer.effective().ioengine, effective);
                let disk = &disk;
                scope.spawn(move || {
                    writer.write_all(&content(number, 0, LEN)).unwrap();
                    writer.seek(SeekFrom::Start(100)).unwrap();
                    writer.write_all(&content(number, 100, 5)).unwrap();
                    assert!(writer.finish().unwrap().durable);
                    let mut reader = Reader::options().on(disk).open(&path).unwrap();
                    reader.seek(SeekFrom::Start(77_777)).unwrap();
                    let mut found = Vec::new();
                    reader.read_to_end(&mut found).unwrap();
                    assert!(found == content(number, 77_777, LEN - 77_777), "file {number}");
                });
            }
            for block in 0..100 {
                let mut buffer = disk.lease().unwrap();
                buffer.fill(block);
                file.write(buffer, u64::from(block) * 4096).unwrap();
                assert!(file.read(u64::from(block) * 4096, 10).unwrap() == [block; 10][..]);
            }
        });
        assert_eq!((disk.buffers_free(), disk.outstanding()), (16, 0));
    }
}

#[test]
fn a_writer_outlives_the_handles_of_its_disk_and_is_dropped_whole() {
    // W5
    for rung in RUNGS {
        let (_folder, path) = folder();
        let disk = Disk::open(&Options::new(rung, 16, 4096)).unwrap();
        let mut writer = Writer::options().on(&disk).bs(16 << 10).open(&path).unwrap();
        drop(disk);
        writer.write_all(&content(1, 0, LEN)).unwrap();
        drop(writer);
        assert!(std::fs::read(&path).unwrap() == content(1, 0, LEN));
    }
}

#[test]
fn on_a_simulated_disk_all_three_are_right_with_short_and_interrupted_operations() {
    // W4
    let len = 40 * 4096;
    for seed in 0..40 {
        let sim = Sim::new(seed);
        let disk = sim.disk();
        let faults = [Fault::Short(512), Fault::Short(1024), Fault::Once(4), Fault::Once(11)];
        for step in 0..60 {
            sim.fault(step * 7 + seed % 7, faults[(seed + step) as usize % 4]);
        }
        let written = Path::new("/sim/written");
        let mut writer = Writer::options().on(&disk).bs(8192).open(written).unwrap();
        let direct = FileOptions::new().create_new(true).write(true).direct(true);
        let file = disk.open_file("/sim/direct", &direct).unwrap();
        for block in 0..len / 4096 {
            writer.write_all(&content(9, block * 4096, 4096)).unwrap();
            let mut buffer = disk.lease().unwrap();
            buffer.copy_from_slice(&content(10, block * 4096, 4096));
            file.write(buffer, block as u64 * 4096).unwrap();
        }
        writer.finish().unwrap();
        file.sync_data().unwrap();
        let mut reader = Reader::options().on(&disk).bs(4096).open("/sim/direct").unwrap();
        let mut found = vec![0; 20_000];
        reader.read_exact(&mut found).unwrap();
        assert!(found == content(10, 0, 20_000), "seed {seed}");
        reader.seek(SeekFrom::Start(3000)).unwrap();
        found.clear();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == content(10, 3000, len - 3000), "seed {seed}");
        assert!(sim.after_power_loss(written).unwrap() == content(9, 0, len));
    }
}
