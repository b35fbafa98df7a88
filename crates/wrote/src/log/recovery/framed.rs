//! Recovery of a framed log: how far its records are whole, and whether that is far enough.

use super::super::batch::BatchHeader;
use super::super::input::Input;
use super::super::rest::{self, Behind, Identity};
use super::super::segment::{HEADER_BYTES, NotASegment, SegmentHeader, VERSION, seed};
use super::super::walk::{Step, Walk};
use super::{Active, Found, Recovered, Sealed, aside, damaged, new_log_id};
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// A segment as its beginning shows it.
struct Segment {
    path: PathBuf,
    number: u64,
    file_bytes: u64,
    /// `None` where the file does not begin as this segment of this log.
    header: Option<SegmentHeader>,
    /// Its first batch.
    first_batch: Option<BatchHeader>,
}

/// What of a segment is behind the end of the log.
struct Later<'a> {
    path: &'a Path,
    /// The end of the last byte that is not zero.
    end: u64,
}

pub(super) fn recover(
    engine: &mut Engine,
    folder: &Path,
    names: &[(u64, PathBuf)],
) -> Result<Found, Error> {
    let segments = look(engine, names)?;
    let Some(known) = segments.iter().find_map(|segment| segment.header) else {
        return begin_anew(engine, folder, &segments, Identity::Lost);
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
        return begin_anew(engine, folder, &segments, identity);
    }
    let mut last = start;
    loop {
        let (walk, input) = walk_to_end(engine, &segments[last])?;
        if let Some(next) = segments.get(last + 1)
            && next.follows(&segments[last], &walk, folder)?
        {
            input.close(engine)?;
            last += 1;
            continue;
        }
        let recovered = cut(engine, folder, &segments, last, &walk, input)?;
        return Ok(found(&segments[..=last], &walk, recovered));
    }
}

/// Reads how each file begins.
fn look(engine: &mut Engine, names: &[(u64, PathBuf)]) -> Result<Vec<Segment>, Error> {
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

fn of_another_version(path: &Path, version: u32) -> Error {
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

/// Flushes a segment and reads it as far as its records are whole.
fn walk_to_end(engine: &mut Engine, segment: &Segment) -> Result<(Walk, Input), Error> {
    let mut input = Input::open(engine, &segment.path, true, true)?;
    // What a process that was killed had written may be in memory only.
    engine.flush(input.file)?;
    let mut walk = Walk::new(&segment.header.expect("only segments with a header are read"));
    while !matches!(walk.next(engine, &mut input)?, Step::End) {}
    Ok((walk, input))
}

/// Makes the end of the walk the end of the log, unless records behind it were durable.
fn cut(
    engine: &mut Engine,
    folder: &Path,
    segments: &[Segment],
    last: usize,
    walk: &Walk,
    mut input: Input,
) -> Result<Recovered, Error> {
    let header = segments[last].header.expect("it was walked through");
    let names: Vec<(u64, PathBuf)> =
        segments[last + 1..].iter().map(|segment| (segment.number, segment.path.clone())).collect();
    let Behind { rest, later, lost } =
        rest::behind(engine, &mut input, walk, header.log_id, &names)?;
    if let Some((path, offset)) = lost {
        let what = format!("record {} can't be read, and was durable once", walk.sequence);
        return Err(damaged(folder, &path, offset, &what));
    }
    let later = names.iter().zip(&later).map(|((_, path), rest)| Later { path, end: rest.end });
    let later: Vec<Later> = later.collect();

    let mut recovered = Recovered {
        records: walk.sequence - segments[0].header.map_or(0, |header| header.first_sequence),
        closed: walk.is_closed()
            && rest.end == walk.end
            && later.iter().all(|later| later.end == 0),
        torn_bytes: rest.end - walk.end,
        ..Recovered::default()
    };
    if rest.end > walk.end {
        recovered.kept_aside.push(aside::copy(engine, &mut input, walk.end, rest.end)?);
        // The copy must be found before what it was copied from is gone.
        engine.sync_folder(folder)?;
    }
    put_aside(engine, &later, &mut recovered)?;
    if input.len_bytes != walk.end {
        engine.truncate(input.file, walk.end)?;
        engine.flush(input.file)?;
    }
    input.close(engine)?;
    engine.sync_folder(folder)?;
    Ok(recovered)
}

/// Takes files out of the log: those in which nothing was written yet are removed. The newest goes first,
/// so that there is never a gap.
fn put_aside(engine: &mut Engine, later: &[Later], recovered: &mut Recovered) -> Result<(), Error> {
    for Later { path, end } in later.iter().rev() {
        recovered.torn_bytes += end;
        if *end == 0 {
            engine.remove(path)?;
        } else {
            recovered.kept_aside.push(aside::rename(engine, path)?);
        }
    }
    Ok(())
}

/// The first segment does not begin as one: nothing was ever whole in this log, or its beginning was lost.
fn begin_anew(
    engine: &mut Engine,
    folder: &Path,
    segments: &[Segment],
    first: Identity,
) -> Result<Found, Error> {
    let mut later = Vec::new();
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
        later.push(Later { path: &segment.path, end: rest.end });
    }
    let mut recovered = Recovered::default();
    put_aside(engine, &later, &mut recovered)?;
    engine.sync_folder(folder)?;
    Ok(Found::nothing(new_log_id(), recovered))
}

fn found(segments: &[Segment], walk: &Walk, recovered: Recovered) -> Found {
    let header = |segment: &Segment| segment.header.expect("its order was checked");
    let (active, sealed) = segments.split_last().expect("one was walked through");
    let sealed = sealed.iter().zip(&segments[1..]).map(|(segment, next)| Sealed {
        path: segment.path.clone(),
        bytes: segment.file_bytes,
        end_sequence: header(next).first_sequence,
        written_at_ns: header(next).created_at_ns,
    });
    Found {
        recovered,
        log_id: header(active).log_id,
        sealed: sealed.collect(),
        active: Some(Active {
            path: active.path.clone(),
            number: active.number,
            bytes: walk.end,
            block_bytes: header(active).block_bytes,
            created_at_ns: header(active).created_at_ns,
            last_checksum: walk.last.map_or(0, |(_, checksum)| checksum),
            after_cut: !walk.is_between_batches(),
        }),
        first_sequence: header(&segments[0]).first_sequence,
        next_sequence: walk.sequence,
    }
}
