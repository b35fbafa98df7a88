//! The order of a log's segments, as their headers state it.

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
    /// The segment's header; `None` if the file does not start as this segment of this log.
    pub header: Option<SegmentHeader>,
    pub first_batch: Option<BatchHeader>,
    /// The first record of the later segment that a cut started; [`u64::MAX`] if there is none.
    /// Records from there on are not part of this segment.
    pub limit: u64,
}

impl SegmentHead {
    /// Returns whether this segment follows segment `number`, according to its header, or to its
    /// own number if it has no header.
    pub(super) fn continues(&self, number: u64) -> bool {
        self.header.map_or(self.number - 1, |header| header.previous()) == number
    }

    /// Returns the length of the segment's longest batch, if the batch after the header states it.
    /// That batch precedes every record, so no record can imitate it.
    pub(super) fn longest_bytes(&self) -> Option<u32> {
        self.first_batch.and_then(|first| walk::longest_bytes(&first))
    }
}

/// The names of a log's segments, without segments that a cut removed.
#[derive(Debug)]
pub(super) struct LiveNames {
    pub names: SegmentNames,
    /// The header of the last segment, if a cut started that segment.
    pub cut: Option<SegmentHeader>,
}

impl LiveNames {
    /// Returns the first record of the segment that a cut started after segment `number`;
    /// [`u64::MAX`] if there is none.
    pub(super) fn limit_of(&self, number: u64) -> u64 {
        let behind = self.cut.filter(|header| header.previous() == number);
        behind.map_or(u64::MAX, |header| header.first_sequence)
    }
}

/// Returns the names of the segments that are part of the log, without segments that a cut removed.
///
/// A writer deletes the files of removed segments before it starts another segment. So only the
/// last segment can have removed segments whose files still exist.
pub(super) fn live(files: &LogFiles, mut names: SegmentNames) -> Result<LiveNames, Error> {
    let cut = match names.last() {
        Some((number, path)) => {
            let mut input = Input::open(files, path, true, false)?;
            // A segment under the wrong name is detected later, by the reader that reaches it.
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

/// Reads the headers of the segments in the folder, even while a writer creates and removes
/// segments.
pub(super) fn segments(files: &LogFiles) -> Result<Vec<SegmentHead>, Error> {
    names::unless_removed(|| {
        let names = names::all(files)?;
        read_headers(files, &names).map(Some)
    })
}

/// Returns the segments without the ones between a segment started by a cut and the segment that it
/// continues.
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

/// Reads the header and the first batch of each file, and leaves out segments that a cut removed.
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

/// Reads the header and the first batch of one segment from the disk.
pub(super) fn read_head(files: &LogFiles, number: u64, path: &Path) -> Result<SegmentHead, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let header = read_header(&mut input, number)?;
    let bytes = input.bytes(0, HEAD_BYTES)?;
    let first_batch = header.and_then(|header| first_batch(bytes, &header));
    let (path, file_bytes, limit) = (path.to_owned(), input.len_bytes, u64::MAX);
    Ok(SegmentHead { path, number, file_bytes, header, first_batch, limit })
}

/// Returns the header of the batch after a segment's header, if it starts with the segment's first
/// record.
fn first_batch(bytes: &[u8], header: &SegmentHeader) -> Option<BatchHeader> {
    let (first, _) = walk::decode(bytes.get(HEADER_BYTES..)?, header.seed())?;
    (first.first_sequence == header.first_sequence).then_some(first)
}

/// Returns the identity of the segment at `index`, which its batches must have. It comes from the
/// segment's own header, or else from its number and the log's number, which any other header
/// states. Readers, checks and recovery must agree on the identity.
pub(super) fn identity(segments: &[SegmentHead], index: usize) -> Identity {
    let SegmentHead { header, number, .. } = &segments[index];
    let any = segments.iter().find_map(|segment| segment.header);
    match (header, any.filter(|any| any.log_id != 0)) {
        (Some(header), _) => Identity::of(header),
        (None, Some(any)) => Identity::of(&SegmentHeader { segment_id: *number, ..any }),
        (None, None) => Identity::Lost,
    }
}

/// Describes the damage of a segment whose first record `first` comes before the `end` of the
/// previous segment. Neither a writer nor a crash causes such an overlap.
pub(super) fn overlap(first: u64, end: u64) -> String {
    format!("it begins with record {first}, but the segment before ends at {end}")
}

/// Refuses two segments, each given with its log's number, if they belong to different logs.
pub(super) fn check_log(
    (path, log_id): (&Path, u64),
    (known, known_id): (&Path, u64),
) -> Result<(), Error> {
    if log_id == known_id {
        return Ok(());
    }
    let because = format!(
        "a segment of log {log_id:016x}, but {} belongs to log {known_id:016x}; move the one that \
         does not belong here out of the folder",
        known.display()
    );
    Err(Error::Foreign { path: path.to_owned(), because })
}

/// Reads the header of segment `number`; `None` if the file does not start as a segment. Fails if
/// the file has an intact header of another segment.
pub(super) fn read_header(input: &mut Input, number: u64) -> Result<Option<SegmentHeader>, Error> {
    match decode(input)? {
        Ok(header) if header.segment_id == number => Ok(Some(header)),
        Ok(SegmentHeader { log_id, segment_id, .. }) => {
            let because = format!(
                "segment {segment_id} of log {log_id:016x}, under the name of segment {number}; \
                 `wrote log repair {}` gives it its own name back, unless another file is that \
                 segment too; then move one of them out of the folder first",
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

/// Decodes the first bytes of a file. If they are not a header, reads them a second time: a reader
/// would take the log to end before such a file, so one read is not enough evidence.
fn decode(input: &mut Input) -> Result<Result<SegmentHeader, NotASegment>, Error> {
    let first = SegmentHeader::decode(input.bytes(0, HEADER_BYTES)?);
    if !matches!(first, Err(NotASegment::Damaged)) {
        return Ok(first);
    }
    input.look_again()?;
    Ok(SegmentHeader::decode(input.bytes(0, HEADER_BYTES)?))
}

/// The length in bytes of a segment header and the header of the first batch.
const HEAD_BYTES: usize = segment::HEADER_BYTES + batch::HEADER_BYTES;
/// The number of segments at the end of a log that are often not durable yet.
const LAST: usize = 2;
/// The number of files that are open at once, so that the device reads several files concurrently.
const FILES: usize = 32;
/// The number of bytes at the start of a file that are read ahead.
const AHEAD_BYTES: u64 = 4096;

/// Returns the heads of all segments, read with read-ahead. A head is `None` if it could not be
/// read in this manner or is not valid; the last two heads always are.
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

/// Opens an ordinary file, and returns it with its length; `None` if it can't be opened or is not
/// ordinary.
fn open_ordinary(folder: &Folder, path: &Path) -> Option<(File, u64)> {
    // Without `NONBLOCK`, opening a pipe that has a segment's name would block.
    let file = folder.open_file(path, OFlags::NONBLOCK).ok()?;
    let stat = fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then_some((file, stat.st_size as u64))
}

/// Returns the head of a segment whose file starts with `bytes`, if it is valid.
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
