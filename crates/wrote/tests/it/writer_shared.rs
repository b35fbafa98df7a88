//! Many `Writer`s on one disk: one engine, one budget of memory, every byte in its file.

use crate::folder;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use wrote::engine::Options;
use wrote::{Disk, Error, Ioengine, Sim, Writer};

const RUNGS: [Ioengine; 3] = [Ioengine::Psync, Ioengine::Threads, Ioengine::IoUring];
const MIB: usize = 1 << 20;

/// The bytes of a disk's own buffers.
const OWN: usize = 16 * 4096;

fn disk(ioengine: Ioengine) -> Disk {
    Disk::open(&Options::new(ioengine, 16, 4096)).unwrap()
}

/// The bytes of file `number` from `start`.
fn content(number: usize, start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|place| (number * 31 + place / 7 + place % 251) as u8).collect()
}

/// Writes `len` bytes to each writer, in turn and in pieces.
fn fill(writers: &mut [Writer], len: usize, piece: usize) {
    for start in (0..len).step_by(piece) {
        for (number, writer) in writers.iter_mut().enumerate() {
            writer.write_all(&content(number, start, piece.min(len - start))).unwrap();
        }
    }
}

#[test]
fn writers_on_one_disk_write_what_they_are_given_small_and_grown_on_every_rung() {
    for rung in RUNGS {
        for direct in [true, false] {
            let (folder, _) = folder();
            let disk = disk(rung);
            // The first ones get the buffers of their options, later ones smaller buffers.
            disk.set_memory(5 * MIB);
            let options = Writer::options().on(&disk).direct(direct).bs(256 << 10).iodepth(3);
            let path = |number: usize| folder.path().join(number.to_string());
            let mut writers: Vec<Writer> =
                (0..8).map(|number| options.clone().open(path(number)).unwrap()).collect();
            assert_eq!(disk.memory(), OWN + 8 * (32 << 10));
            let len = MIB + 777;
            fill(&mut writers, len, 5000);
            let grown = disk.memory() - OWN - 8 * (32 << 10);
            assert!(grown > 4 * (256 << 10) && grown < 8 * 4 * (256 << 10), "{grown}");
            assert!(disk.memory() <= 5 * MIB);
            for (number, writer) in writers.into_iter().enumerate() {
                let written = writer.finish().unwrap();
                assert!(written.durable && written.bytes == len as u64);
                let found = std::fs::read(path(number)).unwrap();
                assert!(found == content(number, 0, len), "{rung:?}: file {number}");
            }
            assert_eq!(disk.memory(), OWN);
        }
    }
}

#[test]
fn writers_on_one_disk_are_filled_by_a_thread_each_beside_its_direct_files() {
    for rung in RUNGS {
        let (folder, path) = folder();
        let disk = disk(rung);
        let file = {
            let options = wrote::FileOptions::new().create_new(true).write(true).direct(true);
            disk.open_file(&path, &options).unwrap()
        };
        std::thread::scope(|scope| {
            for number in 0..6 {
                let path = folder.path().join(number.to_string());
                let mut writer = Writer::options().on(&disk).bs(64 << 10).open(&path).unwrap();
                scope.spawn(move || {
                    writer.write_all(&content(number, 0, MIB)).unwrap();
                    writer.sync_data().unwrap();
                    writer.seek(SeekFrom::Start(100)).unwrap();
                    writer.write_all(b"later").unwrap();
                    writer.finish().unwrap();
                    let mut expected = content(number, 0, MIB);
                    expected[100..105].copy_from_slice(b"later");
                    assert!(std::fs::read(path).unwrap() == expected);
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
fn a_thousand_writers_have_64_mib_at_most_and_one_too_many_is_refused() {
    // W8
    const WRITERS: usize = 1000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.current.is_some_and(|files| files < WRITERS as u64 + 100) {
        let because = format!("{:?} files may be open here (RLIMIT_NOFILE)", limit.current);
        return fixtures::skip("a_thousand_writers_have_64_mib_at_most", &because);
    }
    let (folder, _) = folder();
    let disk = disk(Ioengine::IoUring);
    disk.set_memory(64 * MIB);
    let path = |number: usize| folder.path().join(number.to_string());
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|n| Writer::options().on(&disk).open(path(n)).unwrap()).collect();
    fill(&mut writers, 40_000, 20_000);
    assert!(disk.memory() <= 64 * MIB, "{} bytes", disk.memory());
    disk.set_memory(disk.memory());
    let error = Writer::options().on(&disk).open(path(WRITERS)).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("bytes of buffers, and may have"), "{error}");
    assert!(!path(WRITERS).exists());
    for writer in writers {
        writer.close().unwrap();
    }
    for number in (0..WRITERS).step_by(101) {
        assert!(std::fs::read(path(number)).unwrap() == content(number, 0, 40_000));
    }
}

#[test]
fn a_writer_outlives_the_handles_of_its_disk_and_is_dropped_whole() {
    // W5
    for rung in RUNGS {
        let (_folder, path) = folder();
        let disk = disk(rung);
        let mut writer = Writer::options().on(&disk).bs(16 << 10).open(&path).unwrap();
        drop(disk);
        writer.write_all(&content(1, 0, 300_000)).unwrap();
        drop(writer);
        assert!(std::fs::read(&path).unwrap() == content(1, 0, 300_000));
    }
}

#[test]
fn a_writer_on_a_simulated_disk_meets_its_faults() {
    let sim = Sim::new(1);
    let disk = Disk::simulated(&sim, &Options::new(Ioengine::IoUring, 4, 4096)).unwrap();
    let path = Path::new("/sim/file");
    let mut writer = Writer::options().on(&disk).bs(4096).iodepth(3).open(path).unwrap();
    let own = disk.buffers() as usize * disk.buffer_bytes();
    assert_eq!(disk.memory(), own + 2 * 4096);
    writer.write_all(&content(1, 0, 50_000)).unwrap();
    // W8: the memory of a simulated disk counts too.
    assert_eq!(disk.memory(), own + 2 * 4096 + 4 * 4096);
    writer.finish().unwrap();
    assert_eq!(disk.memory(), own);
    assert!(sim.after_power_loss(path).unwrap() == content(1, 0, 50_000));
}
