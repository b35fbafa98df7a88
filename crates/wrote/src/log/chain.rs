//! The segments of a framed log in order, as their beginnings show them, and how far they are whole.

use super::batch::BatchHeader;
use super::input::Input;
use super::recovery::{damaged, forget_cached};
use super::rest::{self, Identity};
use super::segment::{HEADER_BYTES, NotASegment, SegmentHeader, VERSION, seed};
use super::walk::{Step, Walk};
use super::{Format, names};
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// A segment as its beginning shows it.
#[derive(Debug)]
pub(super) struct Segment {
    pub path: PathBuf,
    pub number: u64,
    pub file_bytes: u64,
    /// `None` where the file does not begin as this segment of this log.
    pub header: Option<SegmentHeader>,
    /// Its first batch.
    pub first_batch: Option<BatchHeader>,
}

/// The place up to which a log is whole.
#[derive(Debug)]
pub(super) struct End {
    /// In which of the segments.
    pub last: usize,
    /// The walk that ended there.
    pub walk: Walk,
    /// The segment, open; for writing too if it was flushed.
    pub input: Input,
}

/// Finds the place up to which the log is whole; `None` where nothing in it ever was. Segments that are
/// known to be durable are not read: their headers are looked at. With `flush`, those that are read are brought to stable storage first.
pub(super) fn end(
    engine: &mut Engine,
    folder: &Path,
    segments: &[Segment],
    flush: bool,
) -> Result<Option<End>, Error> {
    let Some(known) = segments.iter().find_map(|segment| segment.header) else {
        return without_beginning(engine, folder, segments, Identity::Lost);
    };
    let durable = |segment: &Segment| segment.first_batch.map(|batch| batch.durable_sequence);
    let durable_sequence = segments.iter().filter_map(durable).max().unwrap_or(0);
    let begins_durable = |segment: &Segment| {
        segment.header.is_some_and(|header| header.first_sequence <= durable_sequence)
    };
    // All before this segment were durable before some batch was written.
    let start = segments.iter().rposition(begins_durable).unwrap_or(0);
    check_order(folder, &segments[..=start])?;
    if segments[start].header.is_none() {
        let block_bytes = u64::from(known.block_bytes);
        let seed = seed(known.log_id, segments[start].number);
        let identity = Identity::Known { seed, block_bytes };
        return without_beginning(engine, folder, segments, identity);
    }
    let mut last = start;
    loop {
        let (walk, input) = walk_to_end(engine, &segments[last], flush)?;
        match segments.get(last + 1) {
            Some(next) if next.follows(&segments[last], &walk, folder)? => {
                input.close(engine)?;
                last += 1;
            }
            _ => return Ok(Some(End { last, walk, input })),
        }
    }
}

/// The segments in the folder, while a writer may make and remove some.
pub(super) fn segments(engine: &mut Engine, folder: &Path) -> Result<Vec<Segment>, Error> {
    names::unless_removed(|| {
        let names = names::all(engine, folder, Format::Framed)?;
        look(engine, &names).map(Some)
    })
}

/// Reads how each file begins.
pub(super) fn look(engine: &mut Engine, names: &[(u64, PathBuf)]) -> Result<Vec<Segment>, Error> {
    let mut segments = Vec::with_capacity(names.len());
    let mut log_id = None;
    for (number, path) in names {
        let mut input = Input::open(engine, path, true, false)?;
        let header = match SegmentHeader::decode(input.bytes(engine, 0, HEADER_BYTES)?) {
            Ok(header) => Some(header),
            Err(NotASegment::Damaged) => None,
            Err(NotASegment::Version(version)) => return Err(of_another_version(path, version)),
        };
        let header = header.filter(|header| {
            header.segment_id == *number && header.log_id == *log_id.get_or_insert(header.log_id)
        });
        let first_batch = match header {
            Some(header) => first_batch(engine, &mut input, &header)?,
            None => None,
        };
        let file_bytes = input.len_bytes;
        input.close(engine)?;
        let path = path.clone();
        segments.push(Segment { path, number: *number, file_bytes, header, first_batch });
    }
    Ok(segments)
}

fn first_batch(
    engine: &mut Engine,
    input: &mut Input,
    header: &SegmentHeader,
) -> Result<Option<BatchHeader>, Error> {
    let mut walk = Walk::new(header);
    walk.next(engine, input)?;
    Ok(walk.last.map(|(batch, _)| batch))
}

pub(super) fn of_another_version(path: &Path, version: u32) -> Error {
    let because = format!("a log of version {version}; this program reads version {VERSION}");
    Error::Refused { path: path.to_owned(), because }
}

/// The segments before the last of these were durable: each must be there.
fn check_order(folder: &Path, segments: &[Segment]) -> Result<(), Error> {
    for pair in segments.windows(2) {
        let [earlier, later] = pair else { unreachable!("windows of two") };
        if later.number != earlier.number + 1 {
            let what = format!("segment {} of the log is not there", earlier.number + 1);
            return Err(damaged(folder, &later.path, 0, &what));
        }
        if earlier.header.is_none() {
            return Err(damaged(folder, &earlier.path, 0, "this is not how a segment begins"));
        }
    }
    Ok(())
}

impl Segment {
    /// Whether the log goes on here after the segment before it, which was read to its end.
    fn follows(&self, before: &Segment, walk: &Walk, folder: &Path) -> Result<bool, Error> {
        let Some(header) = self.header.filter(|_| self.number == before.number + 1) else {
            return Ok(false);
        };
        if header.first_sequence < walk.sequence {
            let (first, end) = (header.first_sequence, walk.sequence);
            let what = format!("it begins with record {first}, the segment before ends at {end}");
            return Err(damaged(folder, &self.path, 0, &what));
        }
        Ok(header.first_sequence == walk.sequence)
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
        // What a process that was killed had written may be in memory only.
        engine.flush(input.file)?;
        forget_cached(engine, input.file);
    }
    let mut walk = Walk::new(&segment.header.expect("only segments with a header are read"));
    while !matches!(walk.next(engine, &mut input)?, Step::End) {}
    Ok((walk, input))
}

/// The first segment does not begin as one: nothing was ever whole in this log, or its beginning was lost.
fn without_beginning(
    engine: &mut Engine,
    folder: &Path,
    segments: &[Segment],
    first: Identity,
) -> Result<Option<End>, Error> {
    for (index, segment) in segments.iter().enumerate() {
        let identity = match (first, segment.header) {
            (_, Some(header)) => {
                Identity::Known { seed: header.seed(), block_bytes: u64::from(header.block_bytes) }
            }
            (identity, None) if index == 0 => identity,
            _ => Identity::Lost,
        };
        let rest = rest::scan_file(engine, &segment.path, 0, identity)?;
        if rest.durable_sequence > 0 || segments[0].number != 1 {
            let what = "this is not how a segment begins, and records in it were durable once";
            return Err(damaged(folder, &segments[0].path, 0, what));
        }
    }
    Ok(None)
}
