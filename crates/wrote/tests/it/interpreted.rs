//! Tests that run all code with unsafe memory handling on the simulated disk. They are small enough
//! for Miri (`cargo xtask nightly miri`).

use crate::path;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use wrote::engine::Options;
use wrote::{Disk, FileOptions, Ioengine, Log, LogReader, Sim, Survives, SyncPolicy, Writer};

const BLOCK_BYTES: usize = 4096;

#[test]
fn a_writer_takes_bytes_pieces_readers_seeks_and_syncs() {
    for sync in [SyncPolicy::No, SyncPolicy::Always] {
        let sim = Sim::new(1);
        let options = Writer::options().bs(BLOCK_BYTES).iodepth(2).sync(sync);
        let mut writer = options.on(&sim.disk()).open(path()).unwrap();
        let mut expected = Vec::new();
        for byte in 0..40 {
            writer.write_all(&[byte]).unwrap();
            expected.push(byte);
        }
        for piece in [&[7; 100][..], &[8; 5000], &[9; BLOCK_BYTES]] {
            writer.write_all(piece).unwrap();
            expected.extend_from_slice(piece);
        }
        writer.flush().unwrap();
        let taken = writer.read_from((&b"from a reader"[..]).chain(&[3; 600][..])).unwrap();
        assert_eq!(taken, 613);
        expected.extend_from_slice(b"from a reader");
        expected.extend_from_slice(&[3; 600]);
        writer.seek(SeekFrom::Start(10)).unwrap();
        writer.write_all(b"a header").unwrap();
        expected[10..18].copy_from_slice(b"a header");
        assert_eq!(writer.finish().unwrap().bytes, expected.len() as u64);
        assert!(sim.contents(path()).unwrap() == expected);
    }
}

#[test]
fn a_log_takes_records_of_several_threads_and_returns_them() {
    let sim = Sim::new(2);
    let folder = Path::new("/sim/log");
    let options = Log::options().buffers(2).buffer_bytes(BLOCK_BYTES);
    let options = options.segment_bytes(2 * BLOCK_BYTES as u64).zeros(false);
    let log = options.on(&sim.disk()).open(folder).unwrap();
    thread::scope(|scope| {
        for producer in 0..2 {
            let log = &log;
            scope.spawn(move || {
                for len in [1, 700, 1500, 20] {
                    let byte = b'a' + producer;
                    let ticket = log.append(&vec![byte; len]).unwrap();
                    let sequence = ticket.sequence();
                    ticket.wait().unwrap();
                    assert_eq!(log.survives(sequence), Survives::PowerLoss);
                }
            });
        }
    });
    log.close().unwrap();
    let found = LogReader::open_on(&sim.disk(), folder, 0).unwrap();
    let found: Vec<Vec<u8>> = found.map(|record| record.unwrap().bytes).collect();
    for byte in [b'a', b'b'] {
        let own = found.iter().filter(|record| record[0] == byte);
        assert!(own.map(Vec::len).eq([1, 700, 1500, 20]));
    }
}

#[test]
fn a_direct_file_is_written_and_read_in_pieces_and_whole_files_are_replaced() {
    let sim = Sim::new(3);
    let disk = Disk::simulated(&sim, &Options::new(Ioengine::IoUring, 4, BLOCK_BYTES)).unwrap();
    let options = FileOptions::new().create_new(true).write(true).direct(true);
    let file = disk.open_file(path(), &options).unwrap();
    disk.block_on(async {
        let mut writes = Vec::new();
        for block in 0..4 {
            let mut buffer = disk.start_lease().await.unwrap();
            buffer.fill(block);
            writes.push(file.start_write(buffer, u64::from(block) * BLOCK_BYTES as u64));
        }
        for write in writes {
            write.await.unwrap();
        }
    });
    let across = file.read(BLOCK_BYTES as u64 - 2, 4).unwrap();
    assert_eq!(across, [0, 0, 1, 1][..]);
    drop(file.start_read(0, 100));
    file.sync_data().unwrap();
    drop((across, file, disk));
    assert_eq!(sim.contents(path()).unwrap().len(), 4 * BLOCK_BYTES);
}
