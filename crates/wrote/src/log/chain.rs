//! The segments of a log in order, as their headers show them.

use super::batch::{self, BatchHeader};
use super::input::{Input, LogFiles};
use super::names::{self, SegmentNames};
use super::segment::{self, HEADER_BYTES, NotASegment, SegmentHeader, VERSION};
use super::walk::{self, Identity};
use crate::Error;
use crate::engine::{Folder, folder_of};
use rustix::fs::{Advice, FileType, OFlags, fadvise, fstat};
use rustix::io::pread;
use std::fs::File;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// A segment, as described by its first bytes.
#[derive(Debug)]
pub(super) struct SegmentHead {
    pub path: PathBuf,
    pub number: u64,
    pub file_bytes: u64,
    /// `None` if the file does not start as this segment of this log.
    pub header: Option<SegmentHeader>,
    pub first_batch: Option<BatchHeader>,
    /// A cut starts a later segment with this record; [`u64::MAX`] if there is none.
    pub limit: u64,
}

impl SegmentHead {
    /// Returns whether it follows segment `number`, by its header or, without one, by its number.
    pub(super) fn continues(&self, number: u64) -> bool {
        self.header.map_or(self.number - 1, |header| header.previous()) == number
    }

    /// Returns the length of the segment's longest batch, if the batch after its header states it.
    /// That batch precedes every record, so no record can imitate it.
    pub(super) fn longest_bytes(&self) -> Option<u32> {
        self.first_batch.and_then(|first| walk::longest_bytes(&first))
    }
}

/// The segments of a log by name, without those removed by a cut.
#[derive(Debug)]
pub(super) struct LiveNames {
    pub names: SegmentNames,
    /// The last segment, if a cut started it.
    pub cut: Option<SegmentHeader>,
}

impl LiveNames {
    /// Returns the first record of a cut log after segment `number`; [`u64::MAX`] if there is none.
    pub(super) fn limit_of(&self, number: u64) -> u64 {
        let behind = self.cut.filter(|header| header.previous() == number);
        behind.map_or(u64::MAX, |header| header.first_sequence)
    }
}

/// Drops segments that a cut removed from the log.
///
/// A writer deletes their files before it starts another segment, so only the last segment can
/// refer to some that still exist.
pub(super) fn live(files: &LogFiles, mut names: SegmentNames) -> Result<LiveNames, Error> {
    let cut = match names.last() {
        Some((number, path)) => {
            let mut input = Input::open(files, path, true, false)?;
            // The reader that reaches it detects a misplaced segment.
            let header = decode(&mut input)?.ok();
            header.filter(|own| own.segment_id == *number && own.cut_behind.is_some())
        }
        None => None,
    };
    if let Some(header) = cut {
        let is_live = |number| number <= header.previous() || number == header.segment_id;
        names.retain(|(number, _)| is_live(*number));
    }
    Ok(LiveNames { names, cut })
}

/// Reads the headers of the segments in the folder, while a writer may create and remove some.
pub(super) fn segments(files: &LogFiles) -> Result<Vec<SegmentHead>, Error> {
    names::unless_removed(|| {
        let names = names::all(files)?;
        read_headers(files, &names).map(Some)
    })
}

/// Removes the segments between one started by a cut and the one that it continues.
fn without_cut(segments: Vec<SegmentHead>) -> Vec<SegmentHead> {
    let mut live = Vec::with_capacity(segments.len());
    let (mut previous, mut limit) = (u64::MAX, u64::MAX);
    for mut segment in segments.into_iter().rev() {
        if segment.number > previous {
            continue;
        }
        if segment.number == previous {
            segment.limit = limit;
        }
        if let Some(header) = segment.header.filter(|header| header.cut_behind.is_some()) {
            (previous, limit) = (header.previous(), header.first_sequence);
        } else {
            (previous, limit) = (u64::MAX, u64::MAX);
        }
        live.push(segment);
    }
    live.reverse();
    live
}

/// Reads the header and first batch of each file, without segments that a cut removed from the log.
pub(super) fn read_headers(
    files: &LogFiles,
    names: &[(u64, PathBuf)],
) -> Result<Vec<SegmentHead>, Error> {
    let mut segments: Vec<SegmentHead> = Vec::with_capacity(names.len());
    let mut known: Option<(usize, u64)> = None;
    for (index, head) in heads(files, names).into_iter().enumerate() {
        let (number, path) = &names[index];
        let segment = match head {
            Some(head) => head,
            None => read_head(files, *number, path)?,
        };
        if let Some(SegmentHeader { log_id, .. }) = segment.header {
            let (first, known_id) = *known.get_or_insert((index, log_id));
            check_log((path, log_id), (&names[first].1, known_id))?;
        }
        segments.push(segment);
    }
    Ok(without_cut(segments))
}

/// Reads the header and the first batch of a file from the disk.
pub(super) fn read_head(files: &LogFiles, number: u64, path: &Path) -> Result<SegmentHead, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let header = read_header(&mut input, number)?;
    let bytes = input.bytes(0, HEAD_BYTES)?;
    let first_batch = header.and_then(|header| first_batch(bytes, &header));
    let (path, file_bytes, limit) = (path.to_owned(), input.len_bytes, u64::MAX);
    Ok(SegmentHead { path, number, file_bytes, header, first_batch, limit })
}

/// Returns the batch after a segment's header, if it begins with the segment's first record.
fn first_batch(bytes: &[u8], header: &SegmentHeader) -> Option<BatchHeader> {
    let (first, _) = walk::decode(bytes.get(HEADER_BYTES..)?, header.seed())?;
    (first.first_sequence == header.first_sequence).then_some(first)
}

/// Returns how the batches of the segment at `index` are recognized: by its own header, or else by
/// the log's number, which any other header states. Readers, checks and openings must agree on it.
pub(super) fn identity(segments: &[SegmentHead], index: usize) -> Identity {
    let SegmentHead { header, number, .. } = &segments[index];
    let any = segments.iter().find_map(|segment| segment.header);
    match (header, any.filter(|any| any.log_id != 0)) {
        (Some(header), _) => Identity::of(header),
        (None, Some(any)) => Identity::of(&SegmentHeader { segment_id: *number, ..any }),
        (None, None) => Identity::Lost,
    }
}

/// Describes a segment that starts with record `first`, before the `end` of its predecessor: no
/// writer or crash causes that.
pub(super) fn overlap(first: u64, end: u64) -> String {
    format!("it begins with record {first}, the segment before ends at {end}")
}

/// Checks that two segments, each with its log's number, belong to one log.
pub(super) fn check_log(
    (path, log_id): (&Path, u64),
    (known, known_id): (&Path, u64),
) -> Result<(), Error> {
    if log_id == known_id {
        return Ok(());
    }
    let because = format!(
        "a segment of the log {log_id:016x}, but {} is of the log {known_id:016x}; move the one \
         that does not belong here out of the folder",
        known.display()
    );
    Err(Error::Foreign { path: path.to_owned(), because })
}

/// Reads the header of segment `number`; `None` if the file does not start as a segment. Fails if
/// it is an intact header of another segment.
pub(super) fn read_header(input: &mut Input, number: u64) -> Result<Option<SegmentHeader>, Error> {
    match decode(input)? {
        Ok(header) if header.segment_id == number => Ok(Some(header)),
        Ok(SegmentHeader { log_id, segment_id, .. }) => {
            let because = format!(
                "segment {segment_id} of the log {log_id:016x}, with the name of segment {number}; \
                 `wrote log repair {}` gives it its own name back, unless another file is that \
                 segment too: then move one of them out of the folder",
                folder_of(&input.path).display()
            );
            Err(Error::Foreign { path: input.path.clone(), because })
        }
        Err(NotASegment::Damaged) => Ok(None),
        Err(NotASegment::Version(version)) => {
            let because =
                format!("a log of version {version}; this program reads version {VERSION}");
            Err(Error::refused(&input.path, because))
        }
    }
}

/// Decodes the first bytes of a file. Reads them again if they are not a header: the log would end
/// before such a file, so a single read is not enough.
fn decode(input: &mut Input) -> Result<Result<SegmentHeader, NotASegment>, Error> {
    let first = SegmentHeader::decode(input.bytes(0, HEADER_BYTES)?);
    if !matches!(first, Err(NotASegment::Damaged)) {
        return Ok(first);
    }
    input.look_again()?;
    Ok(SegmentHeader::decode(input.bytes(0, HEADER_BYTES)?))
}

/// The segment header and the header of the first batch.
const HEAD_BYTES: usize = segment::HEADER_BYTES + batch::HEADER_BYTES;
/// The number of segments at the end of a log that are often not durable.
const LAST: usize = 2;
/// Files open at once, so that the device reads several concurrently.
const FILES: usize = 32;
/// The part of a file that is read ahead.
const AHEAD_BYTES: u64 = 4096;

/// Returns the heads of the segments before the last two, with `None` for each other one and each
/// that could not be read this way.
fn heads(files: &LogFiles, names: &[(u64, PathBuf)]) -> Vec<Option<SegmentHead>> {
    let mut heads = Vec::with_capacity(names.len());
    let sealed = &names[..names.len().saturating_sub(LAST)];
    for names in sealed.chunks(FILES) {
        let open = |(_, path): &(u64, PathBuf)| open_ordinary(&files.folder, path);
        let opened: Vec<_> = names.iter().map(open).collect();
        for (file, _) in opened.iter().flatten() {
            let _ = fadvise(file, 0, NonZeroU64::new(AHEAD_BYTES), Advice::WillNeed);
        }
        heads.extend(names.iter().zip(opened).map(|(name, opened)| {
            let (file, file_bytes) = opened?;
            let mut bytes = [0; HEAD_BYTES];
            let is_whole = pread(&file, &mut bytes, 0) == Ok(HEAD_BYTES);
            is_whole.then(|| decode_head(&bytes, name, file_bytes)).flatten()
        }));
    }
    heads.resize_with(names.len(), || None);
    heads
}

/// Opens an ordinary file, and returns its length too.
fn open_ordinary(folder: &Folder, path: &Path) -> Option<(File, u64)> {
    // Opening a pipe with a segment's name would block.
    let file = folder.open_file(path, OFlags::NONBLOCK).ok()?;
    let stat = fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then_some((file, stat.st_size as u64))
}

/// Returns the head of a segment that starts with `bytes`, if valid.
fn decode_head(
    bytes: &[u8; HEAD_BYTES],
    (number, path): &(u64, PathBuf),
    file_bytes: u64,
) -> Option<SegmentHead> {
    let header = SegmentHeader::decode(bytes).ok().filter(|header| header.segment_id == *number)?;
    let first_batch = Some(first_batch(bytes, &header)?);
    let (path, number, limit) = (path.clone(), *number, u64::MAX);
    Some(SegmentHead { path, number, file_bytes, header: Some(header), first_batch, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::SampleLog;

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
        let files = LogFiles::open_in(None, &Folder::open(folder.path()).unwrap()).unwrap();
        let heads = heads(&files, &names);
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
