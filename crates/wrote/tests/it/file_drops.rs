//! W5: dropping the handle of an operation in flight does not free its buffer before the kernel has
//! finished with it, and does not cancel its write. In a child process, the drop does nothing.

use crate::folder;
use crate::in_child::in_child;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashMap;
use std::future::Future;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use wrote::engine::{Engine, Options};
use wrote::file::{DirectFile, DiskBuffer, Operation};
use wrote::{
    Disk, Error, FileOptions, Ioengine, Lines, Log, LogReader, Reader, Sim, SyncPolicy, Writer,
};

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 64;
const BUFFERS: usize = 12;
const DEPTH: u32 = 8;
/// The byte that overwrites free buffers.
const SCRIBBLE: u8 = 0xEE;

fn options(ioengine: Ioengine) -> Options {
    Options::new(ioengine, DEPTH, BLOCK_BYTES).buffers(BUFFERS as u32)
}

fn new(direct: bool) -> FileOptions {
    FileOptions::new().create_new(true).write(true).direct(direct)
}

/// Returns the content of a block after `version` writes, which never contains the scribble.
fn content(block: u64, version: u32) -> Vec<u8> {
    let value = |place: usize| (block as usize * 7 + version as usize * 13 + place / 16) % 200;
    (0..BLOCK_BYTES).map(|place| value(place) as u8).collect()
}

enum StartedOp {
    Read(u64, u32, Operation<DiskBuffer>),
    Write(Operation<()>),
}

impl StartedOp {
    fn has_bytes(&self) -> bool {
        matches!(self, StartedOp::Read(_, _, operation) if operation.is_over())
    }

    /// Polls the operation once, and returns whether it is complete.
    fn poll(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        match self {
            StartedOp::Read(block, version, operation) => {
                match Pin::new(operation).poll(&mut context) {
                    Poll::Ready(bytes) => {
                        assert!(bytes.unwrap() == content(*block, *version)[..]);
                        true
                    }
                    Poll::Pending => false,
                }
            }
            StartedOp::Write(operation) => match Pin::new(operation).poll(&mut context) {
                Poll::Ready(result) => {
                    result.unwrap();
                    true
                }
                Poll::Pending => false,
            },
        }
    }
}

/// A file, and the number of writes to each of its blocks.
struct Blocks {
    disk: Disk,
    file: DirectFile,
    versions: HashMap<u64, u32>,
}

impl Blocks {
    fn new(disk: Disk, path: &Path, direct: bool) -> Blocks {
        let file = disk.open_file(path, &new(direct)).unwrap();
        let mut blocks = Blocks { disk, file, versions: HashMap::new() };
        for block in 0..BLOCKS {
            blocks.write(block, false).wait().unwrap();
        }
        blocks
    }

    fn write(&mut self, block: u64, durable: bool) -> Operation<()> {
        let version = self.versions.entry(block).or_default();
        *version += 1;
        let mut buffer = self.disk.lease().unwrap();
        buffer.copy_from_slice(&content(block, *version));
        let offset = block * BLOCK_BYTES as u64;
        if durable {
            self.file.start_write_durable(buffer, offset)
        } else {
            self.file.start_write(buffer, offset)
        }
    }

    fn read(&self, block: u64) -> StartedOp {
        let operation = self.file.start_read(block * BLOCK_BYTES as u64, BLOCK_BYTES);
        StartedOp::Read(block, self.versions[&block], operation)
    }

    /// Leases every free buffer, overwrites it, and returns it.
    fn scribble(&self) -> Vec<DiskBuffer> {
        let mut leased: Vec<DiskBuffer> = std::iter::from_fn(|| self.disk.try_lease()).collect();
        leased.iter_mut().for_each(|buffer| buffer.fill(SCRIBBLE));
        leased
    }

    /// Asserts that every buffer is free, in flight, in a completed read, or leased. Operations on
    /// different blocks do not wait for each other, so each outstanding operation has its buffer.
    /// On a real kernel, some may complete while they are being counted, so the count is repeated.
    fn assert_accounted<'a>(
        &self,
        started: impl IntoIterator<Item = &'a StartedOp> + Clone,
        leased: &[DiskBuffer],
    ) {
        let count = || {
            let read = started.clone().into_iter().filter(|started| started.has_bytes()).count();
            self.disk.buffers_free() + self.disk.outstanding() + read + leased.len()
        };
        let found = (0..=BUFFERS).map(|_| count()).find(|&found| found == BUFFERS);
        assert!(found.is_some(), "a buffer in flight was given out, or one is lost");
    }

    fn assert_contents(&self, found: &[u8]) {
        assert_eq!(found.len(), self.versions.len() * BLOCK_BYTES);
        for (block, bytes) in (0..).zip(found.chunks(BLOCK_BYTES)) {
            assert!(bytes == content(block, self.versions[&block]), "block {block}");
        }
    }
}

fn untouched(buffers: &[DiskBuffer]) -> bool {
    buffers.iter().flat_map(|buffer| buffer.iter()).all(|&byte| byte == SCRIBBLE)
}

/// Starts eight operations, each with one buffer and on a different block.
fn eight(blocks: &mut Blocks) -> Vec<StartedOp> {
    let mut started = Vec::new();
    for number in 0..8 {
        started.push(match number % 3 {
            0 => blocks.read(number),
            1 => StartedOp::Write(blocks.write(number, false)),
            _ => StartedOp::Write(blocks.write(number, true)),
        });
    }
    started
}

#[test]
fn any_operation_dropped_at_any_point_holds_its_buffer_until_it_is_complete() {
    for direct in [false, true] {
        for dropped in 0..8 {
            for completed_first in 0..8 {
                let path = Path::new("/sim/file");
                let sim = Sim::new(dropped as u64 * 8 + completed_first as u64);
                let disk = Disk::simulated(&sim, &options(Ioengine::IoUring)).unwrap();
                let mut blocks = Blocks::new(disk, path, direct);
                let mut started: Vec<Option<StartedOp>> =
                    eight(&mut blocks).into_iter().map(Some).collect();
                // Some operations complete first, possibly including this one.
                let mut completed = 0;
                while completed < completed_first {
                    for place in (0..8).filter(|&place| place != dropped) {
                        if started[place].as_mut().is_some_and(StartedOp::poll) {
                            started[place] = None;
                            completed += 1;
                        }
                    }
                }
                let outstanding = blocks.disk.outstanding();
                started[dropped] = None;
                assert_eq!(blocks.disk.outstanding(), outstanding, "it goes on");
                blocks.assert_accounted(started.iter().flatten(), &[]);
                let leased = blocks.scribble();
                blocks.assert_accounted(started.iter().flatten(), &leased);
                blocks.disk.drain().unwrap();
                assert!(untouched(&leased));
                blocks.assert_accounted(started.iter().flatten(), &leased);
                for mut operation in started.into_iter().flatten() {
                    assert!(operation.poll(), "everything is complete");
                }
                blocks.assert_contents(&sim.contents(path).unwrap());
                blocks.assert_accounted([], &leased);
            }
        }
    }
}

/// Starts, drops, polls and scribbles at random, and checks the buffers after each step.
fn drop_by_chance(blocks: &mut Blocks, random: &mut Xoshiro256PlusPlus) {
    let mut started: Vec<StartedOp> = Vec::new();
    let mut leased: Vec<DiskBuffer> = Vec::new();
    let first = random.random_range(0..BLOCKS);
    for step in 0..BLOCKS {
        match random.random_range(0..6) {
            0 | 1 if blocks.disk.buffers_free() > 0 => {
                let block = (first + step) % BLOCKS;
                started.push(match random.random_range(0..9) {
                    0..4 => blocks.read(block),
                    4..8 => StartedOp::Write(blocks.write(block, false)),
                    _ => StartedOp::Write(blocks.write(block, true)),
                });
            }
            2 | 3 if !started.is_empty() => {
                let place = random.random_range(0..started.len());
                drop(started.swap_remove(place));
            }
            4 if !started.is_empty() => {
                let place = random.random_range(0..started.len());
                if started[place].poll() {
                    drop(started.swap_remove(place));
                }
            }
            5 => blocks.disk.submit().unwrap(),
            _ => {}
        }
        blocks.assert_accounted(&started, &leased);
        leased.extend(blocks.scribble().into_iter().take(2));
        blocks.assert_accounted(&started, &leased);
        if leased.len() > 3 {
            assert!(untouched(&leased));
            leased.clear();
        }
    }
    drop(started);
    blocks.disk.drain().unwrap();
    assert!(untouched(&leased));
    blocks.assert_accounted([], &leased);
}

#[test]
fn on_the_kernel_no_buffer_in_flight_is_leased_and_every_dropped_write_is_whole() {
    for ioengine in [Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync] {
        for seed in 0..30 {
            let (_folder, path) = folder();
            let disk = Disk::open(&options(ioengine)).unwrap();
            let mut blocks = Blocks::new(disk, &path, seed % 2 == 0);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            drop_by_chance(&mut blocks, &mut random);
            blocks.assert_contents(&std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn dropping_the_last_handle_of_a_disk_carries_out_what_was_started() {
    for ioengine in [Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync] {
        let (_folder, path) = folder();
        let disk = Disk::open(&options(ioengine)).unwrap();
        let mut blocks = Blocks::new(disk, &path, true);
        // There are more writes than fit in flight: some wait for a free slot, and some for another
        // write to their block.
        for block in [0, 1, 2, 3, 4, 5, 6, 0, 1] {
            drop(blocks.write(block, false));
        }
        let Blocks { disk, file, versions } = blocks;
        drop(disk);
        drop(file);
        let found = std::fs::read(&path).unwrap();
        for (block, bytes) in (0..).zip(found.chunks(BLOCK_BYTES)) {
            assert!(bytes == content(block, versions[&block]), "{ioengine:?}: block {block}");
        }
    }
}

#[test]
fn a_dropped_file_is_closed_when_its_last_operation_is_complete() {
    let (_folder, path) = folder();
    let disk = Disk::open(&options(Ioengine::IoUring)).unwrap();
    // There are far more files than a ring registers at once.
    for number in 0..4 * Options::REGISTERED_FILES_MAX {
        let file = disk.open_file(path.with_extension(number.to_string()), &new(true)).unwrap();
        let mut buffer = disk.lease().unwrap();
        buffer.fill(number as u8);
        let write = file.start_write(buffer, 0);
        drop(file);
        if number % 2 == 0 {
            write.wait().unwrap();
        } else {
            drop(write);
            disk.drain().unwrap();
        }
    }
    let found = std::fs::read(path.with_extension("7")).unwrap();
    assert_eq!(found, [7; BLOCK_BYTES]);
}

#[test]
fn a_read_that_waits_for_a_buffer_is_given_up_when_it_is_dropped() {
    let sim = Sim::new(1);
    let disk = Disk::simulated(&sim, &options(Ioengine::IoUring)).unwrap();
    let blocks = Blocks::new(disk, Path::new("/sim/file"), true);
    let mut leased = blocks.scribble();
    let operations = sim.operations();
    let first = blocks.file.start_read(0, 2 * BLOCK_BYTES);
    let second = blocks.file.start_read(0, 10);
    leased.pop();
    assert_eq!(blocks.disk.outstanding(), 2);
    drop(first);
    assert!(second.wait().unwrap() == content(0, 1)[..10]);
    assert_eq!(sim.operations(), operations + 1, "nothing was read for the one that was dropped");
}

#[test]
fn dropped_operations_are_bounded_by_the_depth() {
    // W8
    let sim = Sim::new(1);
    let disk = Disk::simulated(&sim, &options(Ioengine::IoUring)).unwrap();
    let blocks = Blocks::new(disk, Path::new("/sim/file"), true);
    for _ in 0..1000 {
        drop(blocks.file.start_sync_data());
        assert!(blocks.disk.outstanding() <= DEPTH as usize);
    }
}

fn is_forked<T>(result: Result<T, impl Into<std::io::Error>>) {
    let error = result.map(drop).map_err(Into::into).expect_err("this is another process");
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    assert!(matches!(inner, Some(Error::Forked)), "{error}");
}

fn poll<T>(future: impl Future<Output = T>) -> T {
    let context = &mut Context::from_waker(Waker::noop());
    match std::pin::pin!(future).poll(context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it would wait for ever"),
    }
}

#[test]
fn in_a_child_process_handles_answer_with_one_error_and_their_drop_leaves_the_parents_alone() {
    let (_folder, path) = folder();
    let create = FileOptions::new().create(true).write(true);
    for ioengine in [Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync] {
        let mut engine = Engine::open(&options(ioengine)).unwrap();
        let file = engine.open_file(&path, &create).unwrap();
        let disk = Disk::open(&options(ioengine)).unwrap();
        let direct = disk.open_file(&path, &create).unwrap();
        let writing = Writer::options().on(&disk).open(&path).unwrap();
        let (started, buffer) = (direct.start_sync_data(), disk.lease().unwrap());
        let mut parts = Some((engine, disk, direct, writing, started, buffer));
        in_child(|| {
            let (mut engine, disk, direct, mut writing, started, buffer) = parts.take().unwrap();
            is_forked(engine.open_file(&path, &create));
            is_forked(engine.flush(file));
            is_forked(engine.file_len(file));
            is_forked(engine.close_file(file));
            is_forked(engine.reap(1, &mut Vec::new()));
            is_forked(engine.rename(&path, path.with_extension("other"), false));
            assert!(disk.try_lease().is_none());
            is_forked(poll(started));
            is_forked(direct.write(buffer, 0));
            is_forked(writing.write_all(&[1; 10 << 20]));
            is_forked(Writer::options().on(&disk).open(&path));
            is_forked(direct.clone().close());
            // Handles that the child has opened itself work.
            let own = Disk::open(&options(ioengine)).unwrap();
            let own_file = own.open_file(path.with_extension("own"), &create).unwrap();
            own_file.write(own.lease().unwrap(), 0).unwrap();
        });
        let (mut engine, disk, direct, mut writing, started, mut buffer) = parts.take().unwrap();
        started.wait().unwrap();
        buffer.fill(7);
        direct.write(buffer, 0).unwrap();
        assert_eq!(direct.read(0, 1).unwrap()[..], [7]);
        writing.write_all(&[1; 100_000]).unwrap();
        writing.finish().unwrap();
        engine.flush(file).unwrap();
        engine.close_file(file).unwrap();
        disk.drain().unwrap();
    }
}

#[test]
fn in_a_child_process_a_file_of_lines_answers_with_one_error_whatever_lock_is_held() {
    let (_folder, path) = folder();
    for sync in [SyncPolicy::Always, SyncPolicy::No] {
        let lines = Lines::options().sync(sync).buffer_bytes(4096).open(&path).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        lines.append(&[b'x'; 100]).unwrap().wait().unwrap();
                    }
                });
            }
            for _ in 0..20 {
                in_child(|| {
                    is_forked(lines.append(b"by the child"));
                    is_forked(lines.try_append(&["by the child"]));
                    is_forked(lines.ticket().wait());
                    is_forked(poll(lines.ticket().until_durable().into_owned()));
                    is_forked(lines.flush());
                    is_forked(lines.reopen());
                    is_forked(lines.close());
                    assert_eq!((lines.appended(), lines.written(), lines.torn()), (0, 0, None));
                });
            }
            is_over.store(true, Ordering::SeqCst);
        });
        lines.close().unwrap();
    }
    assert!(!std::fs::read_to_string(&path).unwrap().contains("child"));
}

#[test]
fn in_a_child_process_a_log_its_readers_and_writers_leave_the_parents_files_and_lock_alone() {
    let (_folder, path) = folder();
    let [replaced, read, log_path] = ["replaced", "read", "log"].map(|it| path.with_extension(it));
    std::fs::write(&replaced, b"old").unwrap();
    std::fs::write(&read, vec![5; 1 << 20]).unwrap();
    wrote::write(path.with_extension("saved"), b"by the parent").unwrap();
    let replacing = Writer::replace(&replaced).unwrap();
    let mut reader = Reader::open(&read).unwrap();
    reader.read_exact(&mut [0; 100]).unwrap();
    for sync in [SyncPolicy::Always, SyncPolicy::No] {
        let log = Log::options().sync(sync).open(&log_path).unwrap();
        log.append(b"before").unwrap().wait().unwrap();
        let ticket = log.append(b"in flight").unwrap().into_owned();
        let next = log.stats().next_sequence;
        let (mut follower, stream) = (
            LogReader::open(&log_path, 0).unwrap().following().unwrap(),
            log.reader(0).unwrap().following().unwrap().into_stream().unwrap(),
        );
        follower.next().unwrap().unwrap();
        let mut parts = Some((log, ticket, follower, stream));
        in_child(|| {
            let (log, ticket, mut follower, mut stream) = parts.take().unwrap();
            is_forked(log.append(b"by the child"));
            is_forked(ticket.wait());
            is_forked(log.close());
            is_forked(follower.next().unwrap());
            is_forked(follower.seek(0));
            let next = poll(std::future::poll_fn(|context| {
                futures_util::Stream::poll_next(Pin::new(&mut stream), context)
            }));
            is_forked(next.unwrap());
            let refused = Log::open(&log_path).unwrap_err();
            drop((log, follower, stream));
            assert!(matches!(refused, Error::Refused { .. }), "{refused}");
            let still = Log::open(&log_path).unwrap_err();
            assert!(matches!(still, Error::Refused { .. }), "the parent has the lock: {still}");
            assert!(LogReader::open(&log_path, 0).unwrap().next().unwrap().is_ok());
            wrote::write(path.with_extension("saved"), b"by the child").unwrap();
        });
        let (log, ticket, mut follower, stream) = parts.take().unwrap();
        ticket.wait().unwrap();
        assert_eq!(log.append(b"after").unwrap().sequence(), next);
        log.close().unwrap();
        assert!(follower.next().unwrap().is_ok());
        drop(stream);
    }
    #[cfg(feature = "tokio")]
    {
        let mut reading = Reader::open(&read).unwrap().into_async().unwrap();
        let mut writing = Some(Writer::create(&path).unwrap().into_async().unwrap());
        in_child(|| {
            let mut writing = writing.take().unwrap();
            is_forked(poll(tokio::io::AsyncReadExt::read(&mut reading, &mut [0; 10])));
            is_forked(poll(tokio::io::AsyncWriteExt::flush(&mut writing)));
            is_forked(poll(tokio::io::AsyncWriteExt::shutdown(&mut writing)));
        });
        drop((reading, writing));
    }
    let mut parts = Some((replacing, reader));
    in_child(|| {
        let (mut replacing, mut reader) = parts.take().unwrap();
        is_forked(reader.seek(SeekFrom::Start(1 << 19)));
        is_forked(std::io::copy(&mut reader, &mut std::io::sink()));
        is_forked(replacing.write_all(&[1; 10 << 20]));
        is_forked(replacing.sync_data());
        is_forked(replacing.finish());
    });
    let (mut replacing, mut reader) = parts.take().unwrap();
    replacing.write_all(b"new").unwrap();
    replacing.finish().unwrap();
    assert_eq!(std::fs::read(&replaced).unwrap(), b"new");
    assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), (1 << 20) - 100);
}
