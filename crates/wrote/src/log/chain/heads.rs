//! The first bytes of many sealed segments, read through the page cache.
//!
//! Opening a log examines all of its possibly thousands of segments. Nearly all before the last two
//! were flushed long ago, so the page cache equals the disk. The caller reads the disk itself if a
//! file does not start as expected, or need not be durable.

use super::super::batch;
use super::super::input::LogFiles;
use super::super::segment::{self, SegmentHeader};
use super::super::walk;
use super::SegmentHead;
use crate::engine::{Folder, open_within};
use rustix::fs::{Advice, FileType, OFlags, fadvise, fstat};
use rustix::io::{ReadWriteFlags, pread, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// The segment header and the header of the first batch.
const HEAD_BYTES: usize = segment::HEADER_BYTES + batch::HEADER_BYTES;
/// The number of segments at the end of a log that are often not durable.
const LAST: usize = 2;
/// Files open at once, so that the device reads several concurrently.
const FILES: usize = 32;
/// The most threads, and the fewest files for each, because starting one takes time.
const THREADS_MAX: usize = 4;
const THREAD_FILES_MIN: usize = 1000;
/// The part of a file that is read ahead.
const AHEAD_BYTES: u64 = 4096;

/// A file whose first bytes are not in the page cache.
struct Awaited {
    index: usize,
    file: File,
    file_bytes: u64,
}

/// Returns the heads of the segments before the last two, with `None` for each other one and each
/// that could not be read this way.
pub(super) fn of(files: &LogFiles, names: &[(u64, PathBuf)]) -> Vec<Option<SegmentHead>> {
    let mut heads: Vec<Option<SegmentHead>> = names.iter().map(|_| None).collect();
    let sealed = &names[..names.len().saturating_sub(LAST)];
    match sealed.first() {
        Some((_, path)) if files.has_descriptor(path).unwrap_or(false) => {}
        _ => return heads,
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cpus.min(sealed.len() / THREAD_FILES_MIN).clamp(1, THREADS_MAX);
    let share = sealed.len().div_ceil(threads);
    let held = files.held.as_ref();
    std::thread::scope(|scope| {
        let mut shares = sealed.chunks(share).zip(heads.chunks_mut(share));
        let own = shares.next();
        shares.for_each(|(names, heads)| _ = scope.spawn(move || read(held, names, heads)));
        own.into_iter().for_each(|(names, heads)| read(held, names, heads));
    });
    heads
}

/// Reads the heads of these segments.
fn read(held: Option<&Folder>, names: &[(u64, PathBuf)], heads: &mut [Option<SegmentHead>]) {
    for (names, heads) in names.chunks(FILES).zip(heads.chunks_mut(FILES)) {
        let mut awaited = Vec::new();
        for (index, (name, head)) in names.iter().zip(&mut *heads).enumerate() {
            let Some((file, file_bytes)) = open(held, &name.1) else { continue };
            let mut bytes = [0; HEAD_BYTES];
            let into = &mut [IoSliceMut::new(&mut bytes)];
            match preadv2(&file, into, 0, ReadWriteFlags::NOWAIT) {
                Ok(HEAD_BYTES) => *head = decode(&bytes, name, file_bytes),
                _ => {
                    let _ = fadvise(&file, 0, NonZeroU64::new(AHEAD_BYTES), Advice::WillNeed);
                    awaited.push(Awaited { index, file, file_bytes });
                }
            }
        }
        for Awaited { index, file, file_bytes } in awaited {
            let mut bytes = [0; HEAD_BYTES];
            if pread(&file, &mut bytes, 0) == Ok(HEAD_BYTES) {
                heads[index] = decode(&bytes, &names[index], file_bytes);
            }
        }
    }
}

/// Opens an ordinary file, and returns its length too.
fn open(held: Option<&Folder>, path: &Path) -> Option<(File, u64)> {
    // Opening a pipe with a segment's name would block.
    let file = open_within(held, path, OFlags::NONBLOCK).ok()?;
    let stat = fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then_some((file, stat.st_size as u64))
}

/// Returns the head of a segment that starts with `bytes`, if valid.
fn decode(
    bytes: &[u8; HEAD_BYTES],
    (number, path): &(u64, PathBuf),
    file_bytes: u64,
) -> Option<SegmentHead> {
    let header = SegmentHeader::decode(bytes).ok().filter(|header| header.segment_id == *number)?;
    let (first, _) = walk::decode(&bytes[segment::HEADER_BYTES..], header.seed())?;
    (first.first_sequence == header.first_sequence).then(|| SegmentHead {
        path: path.clone(),
        number: *number,
        file_bytes,
        header: Some(header),
        first_batch: Some(first),
        limit: u64::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::SampleLog;
    use super::super::{read_head, read_headers};
    use super::*;

    fn names(folder: &Path, built: &SampleLog) -> Vec<(u64, PathBuf)> {
        let files = built.files(folder);
        for (path, bytes) in &files {
            std::fs::write(path, bytes).unwrap();
        }
        (1..).zip(files).map(|(number, (path, _))| (number, path)).collect()
    }

    #[test]
    fn the_first_bytes_of_sealed_segments_are_those_on_the_disk() {
        let mut built = SampleLog::default();
        for number in 0..70 {
            built = built.segment().batch(number, &[b"a record"]);
        }
        built.segments[20].bytes[30] ^= 1;
        built.segments[40].bytes[70] ^= 1;
        let folder = fixtures::folder();
        let names = names(folder.path(), &built);
        std::fs::write(&names[50].1, b"short").unwrap();
        let files = LogFiles::open().unwrap();
        let heads = of(&files, &names);
        let found = |index: usize| heads[index].is_some();
        let missing: Vec<usize> = (0..70).filter(|&index| !found(index)).collect();
        assert_eq!(missing, [20, 40, 50, 68, 69]);
        let whole = read_headers(&files, &names).unwrap();
        for (index, segment) in whole.iter().enumerate() {
            let (number, path) = &names[index];
            let on_disk = read_head(&files, *number, path).unwrap();
            assert_eq!(format!("{segment:?}"), format!("{on_disk:?}"));
        }
        assert!(whole[20].header.is_none() && whole[50].header.is_none());
        assert!(whole[40].header.is_some() && whole[40].first_batch.is_none());
    }
}
