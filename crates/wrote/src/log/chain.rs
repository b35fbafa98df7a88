//! The segments of a framed log in order, and the place up to which they are whole.

use super::batch::BatchHeader;
use super::damage;
use super::format::Format;
use super::input::Input;
use super::names;
use super::rescue::rest;
use super::segment::{HEADER_BYTES, NotASegment, SegmentHeader, VERSION, seed};
use super::walk::{Identity, Step, Walk};
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// A segment, as its first bytes show it.
#[derive(Debug)]
pub(super) struct Segment {
    pub path: PathBuf,
    pub number: u64,
    pub file_bytes: u64,
    /// `None` if the file does not begin as this segment of this log.
    pub header: Option<SegmentHeader>,
    /// Its first batch.
    pub first_batch: Option<BatchHeader>,
}

/// The place up to which a log is whole.
#[derive(Debug)]
pub(super) struct End {
    /// The index of its segment.
    pub last: usize,
    /// The walk that ended there.
    pub walk: Walk,
    /// The segment, open; also for writing if it was flushed.
    pub input: Input,
}

/// Finds the place up to which the log is whole; `None` if no part of it ever was. Of segments that are
/// known to be durable it reads only the headers. With `flush` it flushes the others before it reads them.
pub(super) fn end(
    engine: &mut Engine,
    segments: &[Segment],
    flush: bool,
) -> Result<Option<End>, Error> {
    let Some(known) = segments.iter().find_map(|segment| segment.header) else {
        return without_beginning(engine, segments, Identity::Lost);
    };
    let durable = |segment: &Segment| segment.first_batch.map(|batch| batch.durable_sequence);
    let durable_sequence = segments.iter().filter_map(durable).max().unwrap_or(0);
    let begins_durable = |segment: &Segment| {
        segment.header.is_some_and(|header| header.first_sequence <= durable_sequence)
    };
    // Every segment before this one was durable before some batch was written.
    let start = segments.iter().rposition(begins_durable).unwrap_or(0);
    check_order(&segments[..=start])?;
    if segments[start].header.is_none() {
        let block_bytes = u64::from(known.block_bytes);
        let seed = seed(known.log_id, segments[start].number);
        return without_beginning(engine, segments, Identity::Known { seed, block_bytes });
    }
    let mut last = start;
    loop {
        let (walk, input) = walk_to_end(engine, &segments[last], flush)?;
        match segments.get(last + 1) {
            Some(next) if next.follows(&segments[last], &walk)? => {
                input.close(engine)?;
                last += 1;
            }
            _ => return Ok(Some(End { last, walk, input })),
        }
    }
}

/// Reads the headers of the segments in the folder, while a writer may make and remove some.
pub(super) fn segments(engine: &mut Engine, folder: &Path) -> Result<Vec<Segment>, Error> {
    names::unless_removed(|| {
        let names = names::all(engine, folder, Format::Framed)?;
        read_headers(engine, &names).map(Some)
    })
}

/// Reads the header and the first batch of each file.
pub(super) fn read_headers(
    engine: &mut Engine,
    names: &[(u64, PathBuf)],
) -> Result<Vec<Segment>, Error> {
    let mut segments = Vec::with_capacity(names.len());
    let mut log_id = None;
    for (number, path) in names {
        let mut input = Input::open(engine, path, true, false)?;
        let header = read_header(engine, &mut input, *number)?
            .filter(|header| header.log_id == *log_id.get_or_insert(header.log_id));
        let mut first_batch = None;
        if let Some(header) = &header {
            let mut walk = Walk::new(header);
            walk.next(engine, &mut input)?;
            first_batch = walk.last.map(|(batch, _)| batch);
        }
        let file_bytes = input.len_bytes;
        input.close(engine)?;
        let (number, path) = (*number, path.clone());
        segments.push(Segment { path, number, file_bytes, header, first_batch });
    }
    Ok(segments)
}

/// Reads the header of segment `number`; `None` if the file does not begin as that segment.
pub(super) fn read_header(
    engine: &mut Engine,
    input: &mut Input,
    number: u64,
) -> Result<Option<SegmentHeader>, Error> {
    match SegmentHeader::decode(input.bytes(engine, 0, HEADER_BYTES)?) {
        Ok(header) => Ok(Some(header).filter(|header| header.segment_id == number)),
        Err(NotASegment::Damaged) => Ok(None),
        Err(NotASegment::Version(version)) => {
            let because =
                format!("a log of version {version}; this program reads version {VERSION}");
            Err(Error::Refused { path: input.path.clone(), because })
        }
    }
}

/// Checks segments before the last of which every record was durable: each must be there.
fn check_order(segments: &[Segment]) -> Result<(), Error> {
    for (earlier, later) in segments.iter().zip(segments.iter().skip(1)) {
        if later.number != earlier.number + 1 {
            let what = format!("segment {} of the log is not there", earlier.number + 1);
            return Err(damage::error(&later.path, 0, &what));
        }
        if earlier.header.is_none() {
            return Err(damage::error(&earlier.path, 0, "this is not how a segment begins"));
        }
    }
    Ok(())
}

impl Segment {
    /// Tells whether the log continues here after the segment before, whose walk has ended.
    fn follows(&self, before: &Segment, walk: &Walk) -> Result<bool, Error> {
        let Some(header) = self.header.filter(|_| self.number == before.number + 1) else {
            return Ok(false);
        };
        let (first, end) = (header.first_sequence, walk.sequence);
        if first < end {
            let what = format!("it begins with record {first}, the segment before ends at {end}");
            return Err(damage::error(&self.path, 0, &what));
        }
        Ok(first == end)
    }
}

/// Reads a segment as far as its records are whole.
fn walk_to_end(
    engine: &mut Engine,
    segment: &Segment,
    flush: bool,
) -> Result<(Walk, Input), Error> {
    let mut input = Input::open(engine, &segment.path, true, flush)?;
    if flush {
        input.flush(engine)?;
    }
    let mut walk = Walk::new(&segment.header.expect("only segments with a header are read"));
    while !matches!(walk.next(engine, &mut input)?, Step::End) {}
    Ok((walk, input))
}

/// Examines a log whose first segment does not begin as one: either it never had a whole record, or its
/// beginning was lost.
fn without_beginning(
    engine: &mut Engine,
    segments: &[Segment],
    first: Identity,
) -> Result<Option<End>, Error> {
    for (index, segment) in segments.iter().enumerate() {
        let identity = match segment.header {
            Some(header) => Identity::of(&header),
            None if index == 0 => first,
            None => Identity::Lost,
        };
        let rest = rest::scan_file(engine, &segment.path, 0, identity)?;
        if rest.durable_sequence > 0 || segments[0].number != 1 {
            let what = "this is not how a segment begins, and records in it were durable once";
            return Err(damage::error(&segments[0].path, 0, what));
        }
    }
    Ok(None)
}
