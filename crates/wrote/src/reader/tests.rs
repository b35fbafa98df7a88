//! Random sequences of reads and seeks, with each method of reading a file, compared with the
//! file's content.

use super::{Reader, ReaderOptions};
use crate::{Ioengine, Sim};
use proptest::prelude::*;
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::{BufRead, IoSliceMut, Read, Seek, SeekFrom};
use std::path::Path;

const BS_BYTES: usize = 4096;
/// The length is sufficient for direct reads, which begin after two pieces, and only if at least
/// four more follow.
const LEN_MAX: usize = 20 * BS_BYTES;

#[derive(Clone, Copy, Debug)]
enum Step {
    Read(usize),
    Exact(usize),
    Vectored(usize, usize),
    Fill(usize),
    Line,
    Bytes(usize),
    OwnBytes(usize),
    Start(usize),
    Current(i64),
    End(i64),
    ToEnd,
}

fn step() -> impl Strategy<Value = Step> {
    let far = -(LEN_MAX as i64)..LEN_MAX as i64;
    prop_oneof![
        6 => (0usize..3 * BS_BYTES).prop_map(Step::Read),
        4 => (0usize..200).prop_map(Step::Read),
        3 => (0usize..5 * BS_BYTES).prop_map(Step::Exact),
        2 => (0usize..BS_BYTES, 0usize..BS_BYTES).prop_map(|(one, two)| Step::Vectored(one, two)),
        4 => (0usize..2 * BS_BYTES).prop_map(Step::Fill),
        3 => Just(Step::Line),
        3 => (1usize..500).prop_map(Step::Bytes),
        3 => (1usize..2 * BS_BYTES).prop_map(Step::OwnBytes),
        2 => (0usize..LEN_MAX + 99).prop_map(Step::Start),
        2 => far.clone().prop_map(Step::Current),
        2 => (-200i64..200).prop_map(Step::Current),
        1 => far.prop_map(Step::End),
        1 => Just(Step::ToEnd),
    ]
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place / 251 + place * 7 + 1) as u8).collect()
}

fn null() -> File {
    File::open("/dev/null").unwrap()
}

/// Performs the steps, and compares each result with `content`.
fn run(reader: &mut Reader, steps: &[Step], content: &[u8]) {
    let mut at = 0;
    for &step in steps {
        let rest = content.get(at..).unwrap_or_default();
        let mut seek_to = None;
        let moved = match step {
            Step::Read(len) => {
                let mut into = vec![0; len];
                let read = reader.read(&mut into).unwrap();
                assert!(read > 0 || len == 0 || rest.is_empty(), "{step:?} at {at}");
                assert_eq!(into[..read], rest[..read]);
                read
            }
            Step::Exact(len) => {
                let mut into = vec![0; len];
                match reader.read_exact(&mut into) {
                    Ok(()) => assert_eq!(into, rest[..len]),
                    Err(error) => {
                        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
                        assert!(len > rest.len());
                    }
                }
                len.min(rest.len())
            }
            Step::Vectored(one, two) => {
                let (mut one, mut two) = (vec![0; one], vec![0; two]);
                let mut into = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
                let read = reader.read_vectored(&mut into).unwrap();
                let both = [one, two].concat();
                assert!(read > 0 || both.is_empty() || rest.is_empty());
                assert_eq!(both[..read], rest[..read]);
                read
            }
            Step::Fill(len) => {
                let found = reader.fill_buf().unwrap();
                assert_eq!(found.is_empty(), rest.is_empty());
                assert_eq!(*found, rest[..found.len()]);
                let len = len.min(found.len());
                reader.consume(len);
                len
            }
            Step::Line => {
                let mut line = Vec::new();
                let read = reader.read_until(b'\n', &mut line).unwrap();
                let end = rest.iter().position(|&byte| byte == b'\n').map(|end| end + 1);
                assert_eq!(line, rest[..end.unwrap_or(rest.len())]);
                read
            }
            Step::Bytes(count) => {
                let found: Vec<u8> =
                    reader.by_ref().bytes().take(count).map(Result::unwrap).collect();
                assert_eq!(found, rest[..count.min(rest.len())]);
                found.len()
            }
            Step::OwnBytes(count) => {
                let mut bytes = std::mem::replace(reader, Reader::from(null())).bytes();
                let found: Vec<u8> = bytes.by_ref().take(count).map(Result::unwrap).collect();
                *reader = bytes.into();
                assert_eq!(found, rest[..count.min(rest.len())]);
                found.len()
            }
            Step::Start(place) => {
                seek_to = Some((SeekFrom::Start(place as u64), Some(place)));
                0
            }
            Step::Current(by) => {
                seek_to = Some((SeekFrom::Current(by), at.checked_add_signed(by as isize)));
                0
            }
            Step::End(by) => {
                let place = content.len().checked_add_signed(by as isize);
                seek_to = Some((SeekFrom::End(by), place));
                0
            }
            Step::ToEnd => {
                let mut all = b"before".to_vec();
                let read = reader.read_to_end(&mut all).unwrap();
                assert_eq!(all, [b"before", rest].concat());
                read
            }
        };
        at += moved;
        match seek_to {
            Some((to, Some(place))) => {
                assert_eq!(reader.seek(to).unwrap(), place as u64);
                at = place;
            }
            Some((to, None)) => {
                assert_eq!(reader.seek(to).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
            }
            None => {}
        }
        assert_eq!(reader.stream_position().unwrap(), at as u64, "{step:?}");
        assert_eq!(reader.len().unwrap(), content.len() as u64);
    }
}

fn options(ioengine: Ioengine, direct: bool) -> ReaderOptions {
    ReaderOptions { ioengine, ..Reader::options().bs(BS_BYTES).iodepth(4).direct(direct) }
}

/// Drops the file's pages from the page cache, so that a file on a disk is cold.
fn drop_pages(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

/// Opens a file without kernel read-ahead (`posix_fadvise(2)`), so that cold pages stay cold until
/// they are read.
fn open_alone(path: &Path) -> File {
    let file = File::open(path).unwrap();
    fadvise(&file, 0, None, Advice::Random).unwrap();
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn any_reads_and_seeks_find_the_files_own_bytes_on_every_rung(
        steps in prop::collection::vec(step(), 0..30),
        len in prop_oneof![0usize..LEN_MAX, (0usize..20).prop_map(|pages| pages * BS_BYTES)],
        cold in any::<bool>(),
        ioengine in prop::sample::select(
            vec![Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync]),
        given in any::<bool>(),
    ) {
        let folder = fixtures::folder();
        let (path, content) = (folder.path().join("file"), content(len));
        std::fs::write(&path, &content).unwrap();
        if cold {
            drop_pages(&path);
        }
        let options = options(ioengine, true);
        let mut reader = if given {
            options.from_file(open_alone(&path))
        } else {
            options.open(&path).unwrap()
        };
        run(&mut reader, &steps, &content);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_reads_and_seeks_find_the_files_own_bytes_on_a_simulated_disk_with_short_reads(
        steps in prop::collection::vec(step(), 0..30),
        len in prop_oneof![0usize..LEN_MAX, (0usize..20).prop_map(|pages| pages * BS_BYTES)],
        direct in any::<bool>(),
        refuse in 0u8..3,
        seed in any::<u64>(),
        short in prop::collection::vec((0u64..40, prop_oneof![0u64..4, 0u64..5000]), 0..6),
    ) {
        let (sim, path, content) = (Sim::new(seed), Path::new("/sim/file"), content(len));
        let mut writer = crate::Writer::options().on(&sim.disk()).open(path).unwrap();
        std::io::Write::write_all(&mut writer, &content).unwrap();
        writer.finish().unwrap();
        match refuse {
            1 => sim.refuse_direct_at_open(),
            2 => sim.refuse_direct_at_transfer(),
            _ => {}
        }
        for (operation, bytes) in short {
            sim.fault(sim.operations() + operation, crate::engine::Fault::Short(bytes));
        }
        let mut reader = options(Ioengine::IoUring, direct).on(&sim.disk()).open(path).unwrap();
        run(&mut reader, &steps, &content);
    }
}

#[test]
fn a_cold_file_is_read_directly_and_a_warm_one_through_the_cache() {
    let test = "a_cold_file_is_read_directly_and_a_warm_one_through_the_cache";
    let folder = fixtures::folder();
    let (path, content) = (folder.path().join("file"), content(LEN_MAX));
    std::fs::write(&path, &content).unwrap();
    let direct_bytes = |reader: &mut Reader| {
        let (mut found, mut direct) = (Vec::new(), 0);
        loop {
            let bytes = reader.fill_buf().unwrap();
            let len = bytes.len();
            found.extend_from_slice(bytes);
            reader.consume(len);
            if len == 0 {
                break;
            }
            direct += if reader.is_direct() { len } else { 0 };
        }
        assert!(found == content);
        direct
    };
    for ioengine in [Ioengine::IoUring, Ioengine::Threads, Ioengine::Psync] {
        let open = || options(ioengine, true).from_file(open_alone(&path));
        std::fs::read(&path).unwrap();
        assert_eq!(direct_bytes(&mut open()), 0, "{ioengine:?}");
        drop_pages(&path);
        let file = File::open(&path).unwrap();
        let left = crate::cached_bytes(std::os::fd::AsFd::as_fd(&file), LEN_MAX as u64);
        if left != Some(0) {
            return fixtures::skip(test, "the file's pages stay in the cache here");
        }
        let mut reader = open();
        let direct = direct_bytes(&mut reader);
        if reader.effective().fallbacks.iter().any(|step| step.wanted == "O_DIRECT") {
            return fixtures::skip(test, "the file system takes no direct reads");
        }
        // The first pieces come from the page cache.
        assert!(direct >= LEN_MAX - 4 * BS_BYTES, "{direct} bytes by {ioengine:?}");
        drop_pages(&path);
        assert_eq!(direct_bytes(&mut options(ioengine, false).open(&path).unwrap()), 0);
    }
}

#[test]
fn a_file_that_becomes_warm_in_the_middle_is_read_on_through_the_cache_and_back() {
    let test = "a_file_that_becomes_warm_in_the_middle_is_read_on_through_the_cache_and_back";
    const LEN: usize = 100 * BS_BYTES;
    let folder = fixtures::folder();
    let (path, content) = (folder.path().join("file"), content(LEN));
    std::fs::write(&path, &content).unwrap();
    drop_pages(&path);
    let file = File::open(&path).unwrap();
    if crate::cached_bytes(std::os::fd::AsFd::as_fd(&file), LEN as u64) != Some(0) {
        return fixtures::skip(test, "the file's pages stay in the cache here");
    }
    // The third quarter becomes cached.
    let warm = LEN / 2..LEN * 3 / 4;
    let file = open_alone(&path);
    let mut page = vec![0; BS_BYTES];
    for place in warm.clone().step_by(BS_BYTES) {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut page, place as u64).unwrap();
    }
    let mut reader = options(Ioengine::IoUring, true).from_file(open_alone(&path));
    let mut ways = vec![false];
    let mut found = Vec::new();
    loop {
        let bytes = reader.fill_buf().unwrap();
        if bytes.is_empty() {
            break;
        }
        found.extend_from_slice(bytes);
        let len = bytes.len();
        if reader.is_direct() != *ways.last().unwrap() {
            ways.push(reader.is_direct());
        }
        reader.consume(len);
    }
    assert!(found == content);
    if reader.effective().fallbacks.iter().any(|step| step.wanted == "O_DIRECT") {
        return fixtures::skip(test, "the file system takes no direct reads");
    }
    assert!(ways.starts_with(&[false, true, false, true]), "{ways:?}");
}
