//! The segments of a framed log in order, as their headers show them.

mod heads;

use super::batch::BatchHeader;
use super::format::Format;
use super::input::{Input, LogFiles};
use super::names;
use super::names::SegmentNames;
use super::segment::{HEADER_BYTES, NotASegment, SegmentHeader, VERSION};
use super::walk::{self, Walk};
use crate::Error;
use std::path::{Path, PathBuf};

/// A segment, as its first bytes show it.
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
pub(super) fn segments(files: &LogFiles, folder: &Path) -> Result<Vec<SegmentHead>, Error> {
    names::unless_removed(|| {
        let names = names::all(files, folder, Format::Framed)?;
        read_headers(files, &names).map(Some)
    })
}

/// Reads the header and first batch of each file, without segments that a cut removed from the log.
pub(super) fn read_headers(
    files: &LogFiles,
    names: &[(u64, PathBuf)],
) -> Result<Vec<SegmentHead>, Error> {
    read_all_headers(files, names).map(without_cut)
}

/// Removes the segments between one started by a cut and the one that it continues.
fn without_cut(segments: Vec<SegmentHead>) -> Vec<SegmentHead> {
    let mut live = Vec::with_capacity(segments.len());
    let (mut previous, mut limit) = (u64::MAX, u64::MAX);
    for mut segment in segments.into_iter().rev().filter(|segment| segment.number > 0) {
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

fn read_all_headers(files: &LogFiles, names: &[(u64, PathBuf)]) -> Result<Vec<SegmentHead>, Error> {
    let mut segments: Vec<SegmentHead> = Vec::with_capacity(names.len());
    let mut known: Option<(usize, u64)> = None;
    for (index, head) in heads::of(files, names).into_iter().enumerate() {
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
    Ok(segments)
}

/// Reads the header and the first batch of a file from the disk.
pub(super) fn read_head(files: &LogFiles, number: u64, path: &Path) -> Result<SegmentHead, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let header = read_header(&mut input, number)?;
    let (path, file_bytes) = (path.to_owned(), input.len_bytes);
    let mut first_batch = None;
    if let Some(header) = &header {
        let mut walk = Walk::new(input, header);
        walk.next()?;
        first_batch = walk.last.map(|(batch, _)| batch);
    }
    Ok(SegmentHead { path, number, file_bytes, header, first_batch, limit: u64::MAX })
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
                 give it its own name back, or move it out of the folder"
            );
            Err(Error::Foreign { path: input.path.clone(), because })
        }
        Err(NotASegment::Damaged) => Ok(None),
        Err(NotASegment::Version(version)) => {
            let because =
                format!("a log of version {version}; this program reads version {VERSION}");
            Err(Error::Refused { path: input.path.clone(), because })
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
