//! The segments of a framed log in order, as their headers show them.

mod heads;

use super::batch::BatchHeader;
use super::format::Format;
use super::input::{Input, LogFiles};
use super::names;
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
    /// `None` if the file does not begin as this segment of this log.
    pub header: Option<SegmentHeader>,
    pub first_batch: Option<BatchHeader>,
}

impl SegmentHead {
    /// Returns the most bytes that a batch of the segment has, if the batch behind its header says
    /// so. No record stands before that batch, so none can hold its bytes.
    pub(super) fn longest_bytes(&self) -> Option<u32> {
        self.first_batch.and_then(|first| walk::longest_bytes(&first))
    }
}

/// Reads the headers of the segments in the folder, while a writer may make and remove some.
pub(super) fn segments(files: &LogFiles, folder: &Path) -> Result<Vec<SegmentHead>, Error> {
    names::unless_removed(|| {
        let names = names::all(files, folder, Format::Framed)?;
        read_headers(files, &names).map(Some)
    })
}

/// Reads the header and the first batch of each file.
pub(super) fn read_headers(
    files: &LogFiles,
    names: &[(u64, PathBuf)],
) -> Result<Vec<SegmentHead>, Error> {
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
fn read_head(files: &LogFiles, number: u64, path: &Path) -> Result<SegmentHead, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let header = read_header(&mut input, number)?;
    let (path, file_bytes) = (path.to_owned(), input.len_bytes);
    let mut first_batch = None;
    if let Some(header) = &header {
        let mut walk = Walk::new(input, header);
        walk.next()?;
        first_batch = walk.last.map(|(batch, _)| batch);
    }
    Ok(SegmentHead { path, number, file_bytes, header, first_batch })
}

/// Checks that two segments, each with its log's number, are of one log.
pub(super) fn check_log(
    (path, log_id): (&Path, u64),
    (known, known_id): (&Path, u64),
) -> Result<(), Error> {
    if log_id == known_id {
        return Ok(());
    }
    let because = format!(
        "a segment of the log {log_id:016x}, but {} is of the log {known_id:016x}; move the one that \
         does not belong here out of the folder",
        known.display()
    );
    Err(Error::Foreign { path: path.to_owned(), because })
}

/// Reads the header of segment `number`; `None` if the file does not begin as a segment. Fails if
/// it is a whole header of another segment.
pub(super) fn read_header(input: &mut Input, number: u64) -> Result<Option<SegmentHeader>, Error> {
    match SegmentHeader::decode(input.bytes(0, HEADER_BYTES)?) {
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
