//! Tests of every rung of the engine on the real kernel.

use crate::folder;
use fixtures::{Mounted, or_skip};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use wrote::engine::{Completion, Engine, FileId, Op, Options};
use wrote::{Error, FileOptions, Ioengine};

/// The interfaces to the kernel. An interface that the kernel refuses is replaced by its fallback.
#[derive(Clone, Copy, Debug)]
enum Rung {
    Psync,
    Threads,
    Mmap,
    IoUring,
    PlainUring,
    Sqpoll,
    Polled,
    PolledSqpoll,
}
use Rung::{IoUring, Psync};

const RUNGS: [Rung; 8] = [
    Psync,
    Rung::Threads,
    Rung::Mmap,
    IoUring,
    Rung::PlainUring,
    Rung::Sqpoll,
    Rung::Polled,
    Rung::PolledSqpoll,
];
const BUFFER_BYTES: usize = 16 * 1024;
const NEW: FileOptions = FileOptions::new().create_new(true).write(true);
const NEW_DIRECT: FileOptions = NEW.direct(true);

fn options(rung: Rung) -> Options {
    let ioengine = match rung {
        Psync => Ioengine::Psync,
        Rung::Threads => Ioengine::Threads,
        Rung::Mmap => Ioengine::Mmap,
        _ => Ioengine::IoUring,
    };
    let registered = !matches!(rung, Rung::PlainUring);
    let options = Options::new(ioengine, 8, BUFFER_BYTES)
        .registered_buffers(registered)
        .registered_files(registered)
        .iopoll(matches!(rung, Rung::Polled | Rung::PolledSqpoll));
    match rung {
        Rung::Sqpoll | Rung::PolledSqpoll => options.sqpoll(100, None),
        _ => options,
    }
}

fn engine(rung: Rung) -> Engine {
    Engine::open(&options(rung)).unwrap()
}

/// Returns a byte that identifies the block and the offset in it.
fn pattern(block: u64, place: usize) -> u8 {
    (block as usize * 31 + place * 7 + place / 256) as u8
}

fn write_blocks(engine: &mut Engine, file: FileId, blocks: u64, durable: bool) {
    for block in 0..blocks {
        let mut buffer = engine.lease().unwrap();
        buffer.iter_mut().enumerate().for_each(|(place, byte)| *byte = pattern(block, place));
        let offset = block * BUFFER_BYTES as u64;
        engine.queue(block, Op::Write { file, offset, buffer, durable });
    }
    engine.drain().unwrap();
}

fn assert_blocks(path: &Path, blocks: u64) {
    let contents = std::fs::read(path).unwrap();
    assert_eq!(contents.len() as u64, blocks * BUFFER_BYTES as u64);
    for (block, bytes) in contents.chunks(BUFFER_BYTES).enumerate() {
        assert!(
            bytes.iter().enumerate().all(|(place, &byte)| byte == pattern(block as u64, place))
        );
    }
}

fn one(engine: &mut Engine, op: Op) -> Completion {
    engine.queue(7, op);
    let mut completions = Vec::new();
    engine.reap(1, &mut completions).unwrap();
    assert_eq!(completions.len(), 1);
    let completion = completions.pop().unwrap();
    assert_eq!(completion.user_data, 7);
    completion
}

#[test]
fn every_rung_writes_every_byte_where_it_was_told() {
    for rung in RUNGS {
        for options in [NEW, NEW_DIRECT] {
            for durable in [false, true] {
                let (_folder, path) = folder();
                let mut engine = engine(rung);
                let file = engine.open_file(&path, &options).unwrap();
                write_blocks(&mut engine, file, 40, durable);
                engine.flush(file).unwrap();
                assert_blocks(&path, 40);
                assert_eq!(engine.file_len(file).unwrap(), 40 * BUFFER_BYTES as u64);
            }
        }
    }
}

#[test]
fn every_rung_reads_what_is_there_and_no_further() {
    for rung in RUNGS {
        for direct in [false, true] {
            let (_folder, path) = folder();
            // The last block is partial, so a direct read of it is short.
            let contents: Vec<u8> = (0..3 * BUFFER_BYTES + 777).map(|i| pattern(1, i)).collect();
            std::fs::write(&path, &contents).unwrap();
            let mut engine = engine(rung);
            let options = FileOptions::new().direct(direct);
            let file = engine.open_file(&path, &options).unwrap();
            let mut found = Vec::new();
            for block in 0..5 {
                let offset = block * BUFFER_BYTES as u64;
                let buffer = engine.lease().unwrap();
                let completion = one(&mut engine, Op::Read { file, offset, buffer });
                let bytes = completion.result.unwrap();
                found.extend_from_slice(&completion.buffer.unwrap()[..bytes]);
            }
            assert_eq!(found, contents);
            let (offset, buffer) = (1 << 62, engine.lease().unwrap());
            let beyond = one(&mut engine, Op::Read { file, offset, buffer });
            assert_eq!(beyond.result.unwrap(), 0, "{rung:?}");
        }
    }
}

#[test]
fn a_file_that_exists_is_never_made_again() {
    // W7
    for rung in RUNGS {
        let (_folder, path) = folder();
        std::fs::write(&path, "precious").unwrap();
        let error = engine(rung).open_file(&path, &NEW_DIRECT).unwrap_err();
        assert!(error.to_string().ends_with("open: File exists (os error 17)"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}

#[test]
fn a_closed_file_frees_its_place_and_its_blocks_for_another() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let mut engine = engine(rung);
        // There are more files than a ring registers at once.
        for number in 0..2 * Options::REGISTERED_FILES_MAX {
            let path = path.with_extension(number.to_string());
            let file = engine.open_file(&path, &NEW).unwrap();
            write_blocks(&mut engine, file, 1, false);
            engine.close_file(file).unwrap();
            assert_blocks(&path, 1);
        }
    }
}

#[test]
fn more_files_than_a_ring_registers_are_written_and_it_says_so() {
    // W6
    for rung in RUNGS {
        let (_folder, path) = folder();
        let mut engine = engine(rung);
        let path = |number: u32| path.with_extension(number.to_string());
        let files: Vec<_> = (0..3 * Options::REGISTERED_FILES_MAX)
            .map(|number| engine.open_file(path(number), &NEW).unwrap())
            .collect();
        let is_registered = engine.effective().registered_files;
        let fallbacks = &engine.effective().fallbacks;
        let told = fallbacks.iter().filter(|step| step.got == "some unregistered files").count();
        assert_eq!(told, usize::from(is_registered), "{fallbacks:?}");
        // The slot of a closed file is reused, whether the file was registered or not.
        for number in [3, 100] {
            engine.close_file(files[number as usize]).unwrap();
            std::fs::remove_file(path(number)).unwrap();
            let file = engine.open_file(path(number), &NEW).unwrap();
            write_blocks(&mut engine, file, 1, false);
        }
        for (number, file) in (0..).zip(files).filter(|(number, _)| ![3, 100].contains(number)) {
            write_blocks(&mut engine, file, 1, false);
            assert_blocks(&path(number), 1);
        }
        assert_blocks(&path(3), 1);
        assert_blocks(&path(100), 1);
    }
}

#[test]
fn dropping_an_engine_waits_for_what_is_in_flight() {
    // W5
    for rung in RUNGS {
        let (_folder, path) = folder();
        let mut engine = engine(rung);
        let file = engine.open_file(&path, &NEW_DIRECT).unwrap();
        for block in 0..8 {
            let mut buffer = engine.lease().unwrap();
            buffer.iter_mut().enumerate().for_each(|(place, byte)| *byte = pattern(block, place));
            let offset = block * BUFFER_BYTES as u64;
            engine.queue(block, Op::Write { file, offset, buffer, durable: false });
        }
        engine.submit().unwrap();
        drop(engine);
        assert_blocks(&path, 8);
    }
}

#[test]
fn memory_is_bounded_by_the_pool() {
    // W8
    let mut engine = engine(IoUring);
    let held: Vec<_> = (0..8).map(|_| engine.lease().unwrap()).collect();
    assert!(matches!(engine.lease(), Err(Error::Engine { .. })));
    drop(held);
    assert!(engine.lease().is_ok());
}

#[test]
fn completions_that_are_given_one_by_one_are_those_of_all_operations() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let mut engine = engine(rung);
        let file = engine.open_file(&path, &NEW).unwrap();
        write_blocks(&mut engine, file, 8, false);
        let mut seen = Vec::new();
        let mut check = |Completion { user_data, result, buffer, .. }: Completion| {
            let (block, buffer) = (user_data % 8, buffer.unwrap());
            assert_eq!(result.unwrap(), BUFFER_BYTES);
            assert!(buffer.iter().enumerate().all(|(at, byte)| *byte == pattern(block, at)));
            seen.push(user_data);
        };
        for number in 0..20 {
            let buffer = engine.lease().unwrap();
            let offset = number % 8 * BUFFER_BYTES as u64;
            engine.queue(number, Op::Read { file, offset, buffer });
            engine.reap_each(engine.is_full().into(), &mut check).unwrap();
        }
        engine.reap_each(usize::MAX, &mut check).unwrap();
        assert_eq!(engine.outstanding(), 0, "{rung:?}");
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..20), "{rung:?}");
    }
}

#[test]
fn a_caller_that_panics_at_a_completion_loses_none_of_the_others() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let mut engine = engine(rung);
        let file = engine.open_file(&path, &NEW).unwrap();
        for block in 0..8 {
            let buffer = engine.lease().unwrap();
            let offset = block * BUFFER_BYTES as u64;
            engine.queue(block, Op::Write { file, offset, buffer, durable: false });
        }
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            engine.reap_each(usize::MAX, |_| panic!("the caller's mistake"))
        }));
        assert!(panicked.is_err());
        let mut completions = Vec::new();
        engine.reap(usize::MAX, &mut completions).unwrap();
        assert_eq!((completions.len(), engine.buffers_free()), (7, 8), "{rung:?}");
    }
}

#[test]
fn the_depth_that_was_reached_is_told() {
    // M6
    let (_folder, path) = folder();
    let mut deep = engine(IoUring);
    let file = deep.open_file(&path, &NEW).unwrap();
    write_blocks(&mut deep, file, 3, false);
    assert!((1..=3).contains(&deep.effective().iodepth_reached));
    let mut one_at_a_time = engine(Psync);
    let file = one_at_a_time.open_file(path.with_extension("2"), &NEW).unwrap();
    write_blocks(&mut one_at_a_time, file, 20, false);
    assert_eq!(one_at_a_time.effective().iodepth_reached, 1);
}

#[test]
fn writing_to_a_file_opened_for_reading_fails_with_the_kernels_words() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        std::fs::write(&path, "text").unwrap();
        let mut engine = engine(rung);
        let file = engine.open_file(&path, &FileOptions::default()).unwrap();
        let buffer = engine.lease().unwrap();
        let completion = one(&mut engine, Op::Write { file, offset: 0, buffer, durable: false });
        let error = completion.result.unwrap_err();
        assert!(error.to_string().contains("write at byte 0: Bad file descriptor"), "{error}");
        assert_eq!(engine.buffers_free(), 8, "the buffer is free again");
    }
}

#[test]
fn a_full_file_system_is_an_error_that_names_it() {
    let mounted = or_skip!(Mounted::tmpfs(1 << 20));
    for rung in RUNGS {
        let path = mounted.path().join(format!("{rung:?}"));
        let mut engine = engine(rung);
        let file = engine.open_file(&path, &NEW_DIRECT).unwrap();
        for block in 0..100 {
            let buffer = engine.lease().unwrap();
            let offset = block * BUFFER_BYTES as u64;
            engine.queue(block, Op::Write { file, offset, buffer, durable: false });
        }
        let error = engine.drain().unwrap_err();
        assert!(error.to_string().contains("No space left on device"), "{error}");
        drop(engine);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn dropping_an_engine_lets_go_of_its_files_at_once() {
    // The blocks of a removed file become free once no ring's table refers to the file.
    let mounted = or_skip!(Mounted::tmpfs(4 << 20));
    let free = || rustix::fs::statvfs(mounted.path()).unwrap().f_bfree;
    let before = free();
    for rung in RUNGS {
        let path = mounted.path().join("file");
        let mut engine = engine(rung);
        let file = engine.open_file(&path, &NEW).unwrap();
        write_blocks(&mut engine, file, 100, false);
        std::fs::remove_file(&path).unwrap();
        assert!(free() < before);
        drop(engine);
        if matches!(rung, Rung::Sqpoll | Rung::PolledSqpoll) {
            // The kernel thread releases its last file when it next runs.
            while free() < before {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        assert_eq!(free(), before, "{rung:?}");
    }
}

#[test]
#[should_panic(expected = "the file was not closed")]
fn a_file_that_was_closed_never_means_the_one_opened_in_its_place() {
    let (_folder, path) = folder();
    let mut engine = engine(Psync);
    let closed = engine.open_file(&path, &NEW).unwrap();
    engine.close_file(closed).unwrap();
    engine.open_file(path.with_extension("2"), &NEW).unwrap();
    engine.queue(0, Op::Fdatasync { file: closed });
}

#[test]
fn polling_is_taken_or_its_absence_is_told() {
    // W6
    let (_folder, path) = folder();
    let mut engine = engine(Rung::Polled);
    let file = engine.open_file(&path, &NEW_DIRECT).unwrap();
    write_blocks(&mut engine, file, 4, false);
    let effective = engine.effective();
    let told = effective.fallbacks.iter().any(|step| {
        (step.wanted == "polled completions" || step.wanted == "io_uring")
            && !step.because.is_empty()
    });
    assert!(effective.iopoll != told, "{effective:?}");
}

#[test]
fn a_mapping_is_never_direct_and_says_so() {
    // W6
    let (_folder, path) = folder();
    let mut engine = engine(Rung::Mmap);
    let file = engine.open_file(&path, &NEW_DIRECT).unwrap();
    assert!(!engine.is_direct(file));
    assert_eq!(engine.effective().fallbacks[0].wanted, "O_DIRECT");
}

#[test]
fn bytes_that_were_truncated_can_be_written_again() {
    for rung in RUNGS {
        let (_folder, path) = folder();
        let mut engine = engine(rung);
        let file = engine.open_file(&path, &NEW).unwrap();
        write_blocks(&mut engine, file, 4, false);
        engine.truncate(file, 0).unwrap();
        write_blocks(&mut engine, file, 4, false);
        assert_blocks(&path, 4);
    }
}

#[test]
fn the_holes_of_a_mapped_file_stay_but_where_it_is_written() {
    const LEN: u64 = 256 << 20;
    let (_folder, path) = folder();
    std::fs::File::create_new(&path).unwrap().set_len(LEN).unwrap();
    let mut engine = engine(Rung::Mmap);
    let options = FileOptions::new().write(true);
    let file = engine.open_file(&path, &options).unwrap();
    for offset in [0, LEN / 2 - 1, LEN - BUFFER_BYTES as u64, LEN] {
        let buffer = engine.lease().unwrap();
        one(&mut engine, Op::Write { file, offset, buffer, durable: false }).result.unwrap();
    }
    let metadata = path.metadata().unwrap();
    assert_eq!(metadata.len(), LEN + BUFFER_BYTES as u64);
    // `blocks` counts units of 512 bytes (`stat(2)`).
    assert!(metadata.blocks() * 512 < LEN / 4, "{} blocks", metadata.blocks());
}

#[test]
fn uncached_transfers_and_metadata_flushes_write_the_same_bytes() {
    // W6: RWF_DONTCACHE is used, or its fallback is recorded.
    for rung in [Psync, Rung::Threads, IoUring] {
        let (_folder, path) = folder();
        let mut engine = engine(rung);
        let options = NEW.dontcache(true).sync_metadata(true);
        let file = engine.open_file(&path, &options).unwrap();
        write_blocks(&mut engine, file, 12, true);
        assert_blocks(&path, 12);
        let buffer = engine.lease().unwrap();
        let read = one(&mut engine, Op::Read { file, offset: 0, buffer });
        assert_eq!(read.result.unwrap(), BUFFER_BYTES);
    }
}

#[test]
fn an_atomic_write_is_whole_or_an_error() {
    let (_folder, path) = folder();
    let mut engine = engine(IoUring);
    let options = NEW_DIRECT.atomic(true);
    let file = engine.open_file(&path, &options).unwrap();
    let mut buffer = engine.lease().unwrap();
    buffer.iter_mut().enumerate().for_each(|(place, byte)| *byte = pattern(0, place));
    let completion = one(&mut engine, Op::Write { file, offset: 0, buffer, durable: false });
    match completion.result {
        Ok(bytes) => {
            assert_eq!(bytes, BUFFER_BYTES);
            assert_blocks(&path, 1);
        }
        Err(error) => assert_eq!(std::fs::read(&path).unwrap(), [0; 0], "{error}"),
    }
}
